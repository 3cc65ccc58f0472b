"""Results and events of runs, the errors that runs raise, and the list of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, NoReturn, TypeVar

from greenroom.app.agents.specs import MAX_ROUNDS, add_version, int_between
from greenroom.app.conversation.start import FIRST_TASK_ID
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.messages import translate
from greenroom.app.runtime import Runtime
from greenroom.app.settings.values import MAX_NUMBER, BadValue, Reader, parse_number
from greenroom.app.task_status import read_status
from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.errors import (
    GreenroomError,
    IncompleteAnswer,
    ModelFault,
    ProviderFault,
    StoreFault,
    WorldFault,
    make_refusal,
)
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import CapabilitiesFactory
from greenroom.core.ports.log import StreamInfo
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    T = _TypeVar("T", default=str)
else:
    T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """What a run has used.

    - `cost`: The price of the model calls in dollars.
    - `tokens`: The tokens of the model calls, input and output.
    - `seconds`: The time of work, without waiting for a person.
    - `steps`: The number of model and tool calls.
    - `estimated_calls`: The model calls whose `cost` and `tokens` are estimated, because no believable bill came.
    """

    cost: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    steps: int = 0
    estimated_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits of one run. None keeps the limit of the `Greenroom`.

    - `cost`: The price of the model calls in dollars.
    - `tokens`: The tokens of the model calls, input and output.
    - `seconds`: The time of work, without waiting for a person.
    - `steps`: The number of model and tool calls.
    - `turns`: The number of turns after which the agent must answer. None keeps its `max_turns`.
    """

    cost: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    steps: int | None = None
    turns: int | None = None

    def __post_init__(self) -> None:
        amount, count = partial(parse_number, expected="values.amount"), int_between(0, int(MAX_NUMBER))
        readers: tuple[Reader, ...] = (amount, count, amount, count, int_between(1, MAX_ROUNDS))
        for name, reader in zip(self.__slots__, readers, strict=True):
            if getattr(self, name) is not None:
                check_value(reader, getattr(self, name), f"limit `{name}`")

    def apply_to(self, limits: Limits) -> Limits:
        """Return the limits with those of this run."""
        own = {
            "money": None if self.cost is None else round(self.cost * MILLIONTHS_PER_DOLLAR),
            "tokens": self.tokens,
            "millis": None if self.seconds is None else round(self.seconds * 1000),
            "steps": self.steps,
        }
        return evolve(limits, **{name: value for name, value in own.items() if value is not None})

    def apply_to_spec(self, spec: AgentSpec) -> AgentSpec:
        """Return the agent's spec with the limit of its turns."""
        return spec if self.turns is None else add_version(evolve(spec, turn=evolve(spec.turn, rounds=self.turns)))


def check_value(reader: Reader, value: object, field: str) -> None:
    """Check a value with the rule of agent files."""
    try:
        reader(value)
    except BadValue as unfit:
        raise WorldFault("library.bad_value", value=value, field=field, unfit=unfit) from None


def make_usage(spent: Amounts) -> RunUsage:
    """Convert the amounts of a budget."""
    cost, seconds, estimated = spent.money / MILLIONTHS_PER_DOLLAR, spent.millis / 1000, spent.estimated
    return RunUsage(cost=cost, tokens=spent.tokens, seconds=seconds, steps=spent.steps, estimated_calls=estimated)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(Generic[T]):
    """The result of a finished run, or of one turn of a conversation.

    - `output`: The answer in the agent's `output_type`.
    - `text`: The same answer as text.
    - `run_id`: The id of the run or conversation.
    - `usage`: What the run or the turn has used.
    """

    output: T
    text: str
    run_id: TeamId
    usage: RunUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of an agent's answer."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A piece of an agent's reasoning."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted:
    """An agent calls a tool or another agent. `ToolCallFinished` has the same `call_id`."""

    agent: str
    tool: str
    arguments: Data
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFinished:
    """A call has ended. `output` is the result, or the error if `is_error`."""

    agent: str
    tool: str
    output: str
    is_error: bool
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled:
    """The provider failed for this `reason`, and the model is asked again. Discard the text of this turn so far."""

    agent: str
    reason: str


RunEvent = TextDelta | ReasoningDelta | ToolCallStarted | ToolCallFinished | RetryScheduled | RunResult[T]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedTools:
    """The tools that ran: `tools` in order, and `counts` by name. Denied calls are not included."""

    tools: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The last tool, or an empty string."""
        return self.tools[-1] if self.tools else ""

    @property
    def user_data(self) -> dict[str, object]:
        """The same data under Jarvis' names."""
        return {"__last_executed_tool__": self.last, "__executed_tools__": list(self.tools)}


async def find_executed_tools(runtime: Runtime, team: TeamId) -> ExecutedTools:
    """Return the ended tool calls of a run."""
    tool_names = [
        step.work.executor
        async for step in runtime.archive(team, "step")
        if isinstance(step, Step) and step.work.type == "tool" and step.started_at is not None
    ]
    return ExecutedTools(tools=tuple(tool_names), counts=Counter(tool_names))


ERROR_MESSAGES: Final[Mapping[str, tuple[str, str]]] = {
    "waiting": ("library.approval_needed", "library.pass_approve"),
    "interrupted": ("library.interrupted", "library.send_or_resume"),
    "cancelled": ("library.ended", ""),
    "finished": ("library.ended", ""),
    "limit": ("library.limit_reached", "library.raise_limit"),
}
"""By the state of a run without a result: why there is none, and how to continue."""


def make_run_error(state: str, why: str, *, resume_hint: str, partial: str = "") -> GreenroomError:
    """Make the error for a run without a result. `resume_hint` is the code that continues the run. `partial` is the
    text of an answer that has no end."""
    if state in ("failed", "idle"):
        return ModelFault(why)
    if state == "provider":
        error = ProviderFault("library.provider_failed", why=why.partition(": ")[2], resume_hint=resume_hint)
        return IncompleteAnswer(str(error), partial) if partial else error
    values = {"state": state, "why": why.removeprefix("limit: "), "resume_hint": resume_hint}
    messages = ERROR_MESSAGES.get(state, ("library.stopped", "library.continue_with"))
    message, hint = (translate(key, **values) for key in messages)
    return make_refusal(state, message, hint)


@contextmanager
def attach_run_id(get_run_id: Callable[[], str]) -> Iterator[None]:
    """Add the run's id to every `GreenroomError` raised inside."""
    try:
        yield
    except GreenroomError as error:
        error.run_id = error.run_id or get_run_id()
        raise


LIBRARY_RUN: Final = "library"
LIBRARY_CHAT: Final = "library-chat"


def refuse_program_team(team: Team) -> NoReturn:
    """Raise `WorldFault` with the Python call that continues this run."""
    kind = "conversation" if team.kit == LIBRARY_CHAT else "run"
    raise WorldFault(f"library.program_{kind}", name=team.team_id)


REFUSING_FACTORIES: Final[Mapping[str, CapabilitiesFactory]] = {
    LIBRARY_RUN: refuse_program_team,
    LIBRARY_CHAT: refuse_program_team,
}
"""Factories for front ends that cannot run library teams. They explain how to continue in Python."""

ENDED_STATES: Final = ("finished", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A stored run or conversation.

    - `run_id`: The id that `resume` takes.
    - `agent`: The name of the agent that got the prompt.
    - `text`: The prompt, or the name of a conversation.
    - `state`: *stopped* can continue, but no process runs it. A conversation without open work is *idle*.
    - `started_at`: When it started, in UTC.
    - `is_conversation`: Whether it is a conversation.
    """

    run_id: TeamId
    agent: str
    text: str
    state: str
    started_at: datetime
    is_conversation: bool

    @property
    def is_over(self) -> bool:
        """Whether the run has finished, failed or been cancelled."""
        return self.state in ENDED_STATES


async def list_runs(runtime: Runtime, *, agent: str = "", limit: int) -> list[RunInfo]:
    """Return the newest runs, newest first. Skip logs that cannot be read."""
    runs: list[RunInfo] = []
    for info in reversed(await runtime.log.streams()):
        run_info = await _read_run_info(runtime, info) if info.head.version else None
        if run_info is not None and agent in ("", run_info.agent):
            runs.append(run_info)
        if len(runs) >= limit:
            break
    return runs


async def _read_run_info(runtime: Runtime, info: StreamInfo) -> RunInfo | None:
    team = TeamId(info.stream)
    try:
        state = await runtime.state(team)
    except StoreFault:
        return None
    if state.team.kit not in (LIBRARY_RUN, LIBRARY_CHAT):
        return None
    task = state.tasks.get(FIRST_TASK_ID) or next(iter(await runtime.ended_tasks(team)), None)
    if task is None:
        return None
    status = read_status(state, FIRST_TASK_ID)
    state_name = status.state if status is not None else task.state
    is_conversation = state.team.kit == LIBRARY_CHAT
    return RunInfo(
        run_id=team,
        agent=task.manager,
        text=task.name if is_conversation else task.intention,
        state="stopped" if state_name == "working" and info.owner is None else state_name,
        started_at=datetime.fromtimestamp(task.created_at / 1000, UTC),
        is_conversation=is_conversation,
    )
