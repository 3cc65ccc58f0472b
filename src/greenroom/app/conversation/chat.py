"""A chat: a conversation with an agent that stays open; what was said in it, and finding it again.

A turn is over when none of its steps is left.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, Literal

from greenroom.abilities.skills.talk.meaning import unfenced
from greenroom.abilities.skills.talk.own import ANSWER, given
from greenroom.abilities.skills.talk.transcript import calls_of
from greenroom.actors.payload import made_whole
from greenroom.app.conversation.names import ALONE, CHAT, TALKS
from greenroom.app.conversation.start import FIRST, Cast, brought, found_chat, model_of, turn, voiced
from greenroom.app.conversation.typed import interrupted
from greenroom.app.host import Host
from greenroom.app.lookup import LAST, find, refused
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import Standing
from greenroom.core.base.amounts import NOTHING, Amounts, Limits
from greenroom.core.base.errors import Bug, StoreFault
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, StepId, TaskId, TeamId, ThreadId, thread_id
from greenroom.core.base.records import encode, evolve, record
from greenroom.core.ports.executor import Live
from greenroom.core.ports.model import Retried, TextDelta
from greenroom.core.rules.intents import (
    AnswerApproval,
    ChangeAgent,
    FinishTask,
    Intent,
    Interrupt,
    MoveWindow,
    QueueSteps,
    ResumeTask,
    ResumeTeam,
    SetLimits,
)
from greenroom.core.state.approval import Approval
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from greenroom.core.state.thread import Thread
from greenroom.core.state.world import World, ordered
from greenroom.core.sync.bus import Commit


def models_of(world: World) -> tuple[str, ...]:
    """The models that a team asks, by the names in the specs of its agents; none for a team with a script."""
    if world.team.kit not in TALKS:
        return ()
    return tuple(dict.fromkeys(model_of(agent.spec) for agent in world.agents.values()))


def choose_model(world: World, agent: AgentId, name: str) -> tuple[ChangeAgent, ...]:
    """Let an agent ask another model from now on, and with it all who ask the same one."""
    own = model_of(world.agents[agent].spec)
    same = [one for one in ordered(world.agents) if model_of(one.spec) == own]
    return tuple(ChangeAgent(agent_id=one.agent_id, spec=voiced(one.spec, name)) for one in same)


async def settle(runtime: Runtime, team: TeamId) -> None:
    """End the tasks in which nothing will happen any more, with the error that made it so. A chat waits for people."""
    world = await runtime.world(team)
    if world.team.kit not in ALONE:
        return
    for name in tuple(world.tasks):
        if (await runtime.stands(team, name)).word == "idle":
            why = await last_error(runtime, team, name)
            await runtime.ask(team, FinishTask(task_id=name, state="failed", summary=why))


async def last_error(runtime: Runtime, team: TeamId, task: TaskId) -> str:
    """Why nothing happens any more in a task."""
    found = ""
    async for step in runtime.archive(team, "step"):
        if isinstance(step, Step) and step.task_id == task and step.error:
            found = step.error
    return found or "There was no answer."


SPOKEN: Final = ("converse", "summarize")
"""The skills whose words are the agent's."""


@record
class Exchange:
    """What was said, and what was answered. Without an answer, `error` says why there is none."""

    asked: str
    answer: str = ""
    error: str = ""


async def exchanges(runtime: Runtime, team: TeamId, thread: Thread) -> list[Exchange]:
    """The turns of a thread that are in its window."""
    found: list[Exchange] = []
    spec = (await runtime.world(team)).agents[thread.agent_id].spec
    async for step in runtime.archive(team, "step"):
        if not isinstance(step, Step) or step.thread_id != thread.thread_id or step.ended_in < thread.window_from:
            continue
        if step.work.executor not in SPOKEN or "deferred" in (step.result or {}):
            continue
        asked, text = typed_in(step), said_in(await made_whole(step, runtime.log), spec)
        if asked or not found:
            found.append(Exchange(asked=asked))
        told = evolve(found[-1], answer="\n\n".join(one for one in (found[-1].answer, text) if one), error=step.error)
        found[-1] = told
    return found


def said_in(step: Step, spec: AgentSpec) -> str:
    """What the agent said in it: its words, or (as JSON) the answer that has the shape it is to have."""
    result = step.result or {}
    text = str(result.get("text", ""))
    if spec.answer is None or result.get("over") != ANSWER:
        return text
    call = next((one for one in calls_of(result) if one.name == ANSWER), None)
    return unfenced(text) if call is None else encode(given(spec.answer, call.arguments)).decode()


def typed_in(step: Step) -> str:
    """What a person typed to begin this step; empty when it goes on with another one."""
    if step.cause is not None or step.message_id is not None:
        return ""
    return step.work.intention or step.work.text_content


async def typed_before(runtime: Runtime, teams: list[TeamId], *, most: int) -> AsyncIterator[str]:
    """What was typed in these chats (newest first), the last thing first."""
    left = most
    for team in teams:
        lines = [
            text async for step in runtime.archive(team, "step") if isinstance(step, Step) and (text := typed_in(step))
        ]
        for line in list(reversed(lines))[:left]:
            yield line
        left -= len(lines)
        if left <= 0:
            return


TurnWord = Literal[
    "answered", "interrupted", "failed", "provider", "limit", "paused", "waiting", "finished", "cancelled"
]


@record
class Turn:
    """What came of what was said. `why` says more where there is no answer; after the `last` one the chat is over."""

    word: TurnWord
    answer: str = ""
    why: str = ""
    spent: Amounts = NOTHING
    last: bool = False


class Chat:
    """Owned and run in this process while it is open. Its team is made when the first thing is said."""

    def __init__(self, runtime: Runtime, *, team: TeamId | None = None, agent: AgentId) -> None:
        self._runtime = runtime
        self.team = team
        self.agent = agent
        self._last: Step | None = None
        self._texts: dict[StepId, list[str]] = {}
        self._stopping = False
        self._cut_off = False
        self._before = NOTHING
        self._stops: list[Callable[[], None]] = []

    @property
    def thread(self) -> ThreadId:
        """Where it is held."""
        return thread_id(self.agent, FIRST)

    @property
    def its_team(self) -> TeamId:
        """The team, which is there once something was said."""
        if self.team is None:
            raise Bug("Nothing was said in this chat yet.")
        return self.team

    async def world(self) -> World:
        """What is true in it."""
        return await self._runtime.world(self.its_team)

    async def found(self, cast: Cast, text: str, *, typed: str = "", limits: Limits, kit: str = CHAT) -> TeamId:
        """Make the team, with the first thing that is said; it does not work yet."""
        self.team = await found_chat(self._runtime, cast, text, typed=typed, limits=limits, kit=kit)
        return self.team

    async def open(self) -> Host:
        """Let its agents work from now on."""
        host = await self._runtime.start(self.its_team)
        self._before = host.world.budgets[TEAM_BUDGET].spent
        self._stops = [host.listen(self._follow), host.watch(self._watch)]
        return host

    def close(self) -> None:
        """Listen no more. The team goes on as long as the runtime has it."""
        for stop in self._stops:
            stop()
        self._stops = []

    async def say(self, text: str, *, typed: str = "") -> None:
        """Say something. What could not go on before is left; what was said then is read together with this."""
        world = await self.world()
        language = world.agents[self.agent].spec.language
        told = interrupted(text, language=language) if self._cut_off else text
        resumed = _resumed(world)
        left: list[Intent] = [Interrupt(thread_id=self.thread)] if resumed and self._has_work(world) else []
        queued = evolve(self._queued(turn(told, typed or text)), origins=brought(text, typed))
        await self._ask(*left, *resumed, queued)

    async def go_on(self) -> None:
        """Let it go on with what was: what is queued, else whatever it thinks is next."""
        world = await self.world()
        more = [] if self._has_work(world) else [self._queued(turn(""))]
        await self._ask(*_resumed(world), *more)

    async def interrupt(self) -> None:
        """Stop what goes on; the conversation stays."""
        self._stopping = True
        await self._runtime.ask(self.its_team, Interrupt(thread_id=self.thread))

    async def over(self) -> Turn:
        """Wait until nothing goes on any more; says what came of it."""
        stands = await self._runtime.wait(self.its_team, FIRST)
        spent = (await self.world()).budgets[TEAM_BUDGET].spent
        cost, self._before = spent.minus(self._before), spent
        came = self._turn(stands, await self._words())
        self._texts.clear()
        self._last, self._cut_off, self._stopping = None, self._stopping, False
        return evolve(came, spent=cost, last=FIRST not in (await self.world()).tasks)

    async def _words(self) -> str:
        """What the agent said last; of one that answers in a shape, its answer."""
        spec, last = (await self.world()).agents[self.agent].spec, self._last
        if last is None:
            return ""
        if spec.answer is None:
            return "".join(self._texts.get(last.step_id, ()))
        return said_in(await made_whole(last, self._runtime.log), spec)

    def _turn(self, stands: Standing, answer: str) -> Turn:
        """Who has nothing to do has answered, unless somebody or something kept it from that."""
        if stands.word != "idle" and stands.word != "working":
            return Turn(word=stands.word, why=stands.why)
        last = self._last
        if self._stopping:
            return Turn(word="interrupted", answer=answer)
        if last is not None and last.state == "failed":
            return Turn(word="failed", why=last.error)
        return Turn(word="answered", answer=answer)

    async def clear(self) -> None:
        """Begin anew: of what was said, nothing is told any more. Who the agent is stays; the log keeps all."""
        thread = (await self.world()).threads.get(self.thread)
        if thread is not None:
            begin = max(thread.last + 1, thread.window_from)
            await self._runtime.ask(self.its_team, MoveWindow(thread_id=self.thread, window_from=begin, size=0))

    async def choose(self, model: str) -> None:
        """Ask another model from now on."""
        await self._runtime.ask(self.its_team, *choose_model(await self.world(), self.agent, model))

    async def allow(self, limits: Limits) -> None:
        """What it may spend from now on."""
        await self._runtime.ask(self.its_team, SetLimits(budget_id=TEAM_BUDGET, limits=limits))

    async def complete(self, summary: str = "") -> None:
        told = summary or "The person said that it is done."
        await self._runtime.ask(self.its_team, FinishTask(task_id=FIRST, summary=told))

    async def questions(self) -> list[Approval]:
        """What a person is asked before something is done."""
        return [one for one in (await self.world()).approvals.values() if one.state == "pending"]

    async def answer(self, answer: AnswerApproval) -> None:
        await self._runtime.ask(self.its_team, answer)

    async def exchanges(self) -> list[Exchange]:
        """What was said and answered since the chat was last cleared, oldest first."""
        thread = (await self.world()).threads.get(self.thread)
        return await exchanges(self._runtime, self.its_team, thread) if thread is not None else []

    async def goes_on(self) -> bool:
        """Whether something is still to be done in it."""
        return self._has_work(await self.world())

    def _follow(self, commit: Commit) -> None:
        for row in commit.archived:
            step = row.record
            if isinstance(step, Step) and step.thread_id == self.thread and step.work.executor in SPOKEN:
                self._last = step

    def _watch(self, step: Step, event: Live) -> None:
        if step.thread_id != self.thread or step.work.executor not in SPOKEN:
            return
        if isinstance(event, TextDelta):
            self._texts.setdefault(step.step_id, []).append(event.text)
        elif isinstance(event, Retried):
            self._texts.pop(step.step_id, None)

    def _has_work(self, world: World) -> bool:
        thread = world.threads.get(self.thread)
        return thread is not None and thread.open_steps > 0

    def _queued(self, work: Work) -> QueueSteps:
        return QueueSteps(agent_id=self.agent, works=(work,), task_id=FIRST)

    async def _ask(self, *intents: Intent) -> None:
        self._cut_off = self._stopping = False
        await self._runtime.ask(self.its_team, *intents)


def _resumed(world: World) -> list[Intent]:
    """What lets it go on if it was paused."""
    found: list[Intent] = [ResumeTeam()] if world.team.paused is not None else []
    task = world.tasks.get(FIRST)
    return [*found, ResumeTask(task_id=FIRST)] if task is not None and task.paused is not None else found


SHOWN = 5
"""Chats of which what was typed is offered again."""


async def chats(runtime: Runtime, *, most: int = SHOWN) -> list[TeamId]:
    """The newest chats, open or over."""
    found: list[TeamId] = []
    for info in reversed(await runtime.log.streams()):
        team = TeamId(info.stream)
        if info.head.version and await _kit(runtime, team) == CHAT:
            found.append(team)
        if len(found) >= most:
            break
    return found


async def find_chat(runtime: Runtime, name: str) -> TeamId | None:
    """The chat that is meant, if it can go on. None when the newest one is wanted and there is none."""
    if name.strip() == LAST:
        for team in await chats(runtime):
            if FIRST in (await runtime.world(team)).tasks:
                return team
        return None
    team = (await find(runtime, name)).team
    world = await runtime.world(team)
    if world.team.kit != CHAT:
        raise refused("no_chat", f"{team!r} is no chat.", f"Go on with it: `greenroom resume {team}`.")
    if FIRST not in world.tasks:
        hint = f"Begin a new one with `greenroom chat`, or take it up at an earlier moment: `greenroom fork {team}`."
        raise refused("chat_over", f"The chat {team!r} is over.", hint)
    return team


async def _kit(runtime: Runtime, team: TeamId) -> str:
    try:
        return (await runtime.world(team)).team.kit
    except StoreFault:
        return ""  # one that cannot be read does not keep anybody from the others
