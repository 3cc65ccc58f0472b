"""What comes of a run, what is heard while it goes on, what it raises, and which runs there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Generic, NoReturn, TypeVar

from greenroom.app.conversation.start import FIRST
from greenroom.app.kit import KitMaker
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import standing
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import (
    GreenroomError,
    ModelFault,
    ProviderFault,
    Refused,
    Rejected,
    StoreFault,
    WorldFault,
)
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data
from greenroom.core.ports.log import StreamInfo
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team import Team

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    T = _TypeVar("T", default=str)
else:
    T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T]):
    """A run that is over. `output` is the answer, `text` its words; `run` is its name in the log."""

    output: T
    text: str
    run: TeamId
    spent: Amounts

    @property
    def cost(self) -> float:
        return self.spent.money / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A piece of what an agent says."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A piece of what it thinks before it speaks."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """It calls a tool, or another agent."""

    agent: str
    tool: str
    arguments: Data
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What came of a call."""

    agent: str
    tool: str
    output: str
    failed: bool
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What the agent said in this turn is void: its provider failed, and it is asked again."""

    agent: str
    why: str


Heard = Said | Thought | Called | Returned | Again | Result[T]


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """The tools that were really called, in order; what nobody agreed to is not among them."""

    tools: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The newest one; empty when there was none."""
        return self.tools[-1] if self.tools else ""

    @property
    def user_data(self) -> dict[str, object]:
        """The same under the names that Jarvis has for it."""
        return {"__last_executed_tool__": self.last, "__executed_tools__": list(self.tools)}


async def executed_in(runtime: Runtime, team: TeamId) -> Executed:
    """All calls of a run that were begun and are over."""
    found = [
        step.work.executor
        async for step in runtime.archive(team, "step")
        if isinstance(step, Step) and step.work.type == "tool" and step.started_at is not None
    ]
    return Executed(tools=tuple(found), counts=Counter(found))


def fault(word: str, why: str, *, go_on: str) -> GreenroomError:
    """Why there is no result. `go_on` is how to go on with what can be gone on with."""
    match word:
        case "failed" | "idle":
            return ModelFault(why)
        case "provider":
            return ProviderFault(f"{why.partition(': ')[2]} Go on later: {go_on}.")
        case "waiting":
            told, hint = f"A person is asked: {why}", f"Give `approve`, a function that answers, and go on: {go_on}."
        case "interrupted":
            told, hint = "It was interrupted.", f"Say something else, or go on: {go_on}."
        case "cancelled" | "finished":
            told, hint = f"It is {word}: {why}", ""
        case _:
            told, hint = f"It is {word}: {why}", f"Go on with {go_on}."
    return Refused(Rejected(code=word, why=told, hint=hint))


@contextmanager
def telling_of(run: Callable[[], str]) -> Iterator[None]:
    """Whatever is raised here on purpose says of which run it is."""
    try:
        yield
    except GreenroomError as error:
        error.run = error.run or run()
        raise


RUN: Final = "library"
TALK: Final = "library-chat"


def kits_of_programs() -> Mapping[str, KitMaker]:
    """For doors that cannot run them: who tries is told what to do instead."""
    return {RUN: refuse, TALK: refuse}


def refuse(team: Team) -> NoReturn:
    """Say where it can go on."""
    name = team.team_id
    call = f"house.chat(agent, resume={name!r})" if team.kit == TALK else f"house.resume(agent, {name!r})"
    what = "conversation" if team.kit == TALK else "run"
    raise WorldFault(f"The {what} {name!r} belongs to a program. Go on with it in Python: `{call}`.")


OVER: Final = ("finished", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run, or with `talk` a conversation: its id, whose it is, what was asked for, how it stands and since when.

    `state` is *stopped* when it can go on and nobody lets it; a conversation in which nothing is open is *idle*.
    """

    run: TeamId
    agent: str
    text: str
    state: str
    begun: datetime
    talk: bool

    @property
    def over(self) -> bool:
        """Whether nothing can go on in it."""
        return self.state in OVER


async def listed(runtime: Runtime, *, agent: str = "", most: int) -> list[RunInfo]:
    """The newest, newest first. A log that cannot be read keeps nobody from the others."""
    found: list[RunInfo] = []
    for info in reversed(await runtime.log.streams()):
        one = await _known(runtime, info) if info.head.version else None
        if one is not None and agent in ("", one.agent):
            found.append(one)
        if len(found) >= most:
            break
    return found


async def _known(runtime: Runtime, info: StreamInfo) -> RunInfo | None:
    team = TeamId(info.stream)
    try:
        world = await runtime.world(team)
    except StoreFault:
        return None
    if world.team.kit not in (RUN, TALK):
        return None
    task = world.tasks.get(FIRST) or next(iter(await runtime.ended_tasks(team)), None)
    if task is None:
        return None
    stands = standing(world, FIRST)
    state = stands.word if stands is not None else task.state
    stopped = state == "working" and info.owner is None
    return _info(team, task, "stopped" if stopped else state, talk=world.team.kit == TALK)


def _info(team: TeamId, task: Task, state: str, *, talk: bool) -> RunInfo:
    return RunInfo(
        run=team,
        agent=task.manager,
        text=task.name if talk else task.intention,
        state=state,
        begun=datetime.fromtimestamp(task.created_at / 1000, UTC),
        talk=talk,
    )
