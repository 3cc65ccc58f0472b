"""What an actor may do: only under terms for the very work, at the price it has, with a conversation that stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from greenroom.abilities.skills.converse import Converse
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TaskId, TeamId, ThreadId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Capabilities, Executor, Outcome, StepContext
from greenroom.core.ports.log import StoredEvent
from greenroom.core.ports.model import Failed, Finished, ModelCard, ModelEvent, ModelRequest, ModelTextDelta, Usage
from greenroom.core.rules.intents import AddTask, ModifyStep, MoveWindow, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState
from greenroom.core.sync.replay import read_ended_steps

ANN, LEAD, T1 = AgentId("ann"), AgentId("lead"), TaskId("t1")
HERE = ThreadId("ann@t1")


class Does:
    """A skill or tool that does what the test says."""

    description: str = "Anything."

    def __init__(
        self,
        name: str,
        does: Callable[[StepContext], Outcome],
        terms: Callable[[Step], StepTerms] = lambda _: StepTerms(effect="model"),
        kind: StepType = "skill",
    ) -> None:
        self.type: StepType = kind
        self.name = name
        self._does = does
        self._terms = terms
        self.histories: list[Sequence[Step]] = []
        self.sizes: list[int] = []

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        self.sizes.append(state.threads[step.thread_id].size)
        return self._terms(step)

    async def run(self, context: StepContext) -> Outcome:
        self.histories.append(await context.history())
        return self._does(context)


class Here:
    """A team of one agent in a folder, which can be closed and opened again."""

    def __init__(self, home: Path, *executors: Executor) -> None:
        self._home = home
        self.log: MemoryLog | None = None
        self._kits = {"test": lambda _: Capabilities(executors)}

    async def __aenter__(self) -> Here:
        if self.log is None:
            self.runtime = await Runtime.open(self._home, capability_factories=self._kits)
        else:
            self.runtime = Runtime(self.log, capability_factories=self._kits)
        teams = [one.stream for one in await self.runtime.log.streams()]
        self.team = TeamId(teams[0]) if teams else await self._found()
        await self.runtime.start(self.team)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runtime.close()

    async def _found(self) -> TeamId:
        spec = AgentSpec(name="ann", style="plan", tools=("shell",), skills=("one", "two"))
        agents = [(LEAD, AgentSpec(name="lead", manager=True)), (ANN, spec)]
        team = await self.runtime.create("x", agents, capabilities_name="test", limits=Limits(money=6_000))
        await self.runtime.ask(team, AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), driver="manager"))
        return team

    async def queue(self, *works: Work) -> TeamState:
        """Let the agent do these, and what follows from them, until it rests; the world then."""
        await self.runtime.ask(self.team, QueueSteps(agent_id=ANN, works=works, task_id=T1))
        async with asyncio.timeout(20):
            while True:
                state = await self.runtime.state(self.team)
                waiting = any(step.state in ("awaiting_approval", "awaiting_budget") for step in state.steps.values())
                if state.team.paused or waiting or (not state.steps and state.agents[ANN].running is None):
                    return state
                await asyncio.sleep(0)


def asks_for_rm(step: Step) -> StepTerms:
    """What a careful shell wants to run under."""
    command = str((step.work.instruction_content or {}).get("command"))
    terms = StepTerms(effect="effectful", question=f"{command}?", digest=command)
    return evolve(terms, verdict="ask") if "rm" in command else terms


RM = {"command": "rm -rf /"}


def fills_in(bench: StepContext) -> Outcome:
    """Give the next tool its instruction."""
    (tool,) = [step for step in bench.state.steps_of(ANN) if step.work.type == "tool"]
    filled = evolve(tool.work, instruction_content=RM)
    return Outcome(result={"text": "so"}, intents=(ModifyStep(step_id=tool.step_id, work=filled),))


def plans_badly(_: StepContext) -> Outcome:
    """Ask for a step that is refused, and then for one that gets the number of the refused one."""
    foreign = QueueSteps(agent_id=ANN, works=(Work(type="skill", executor="crochet"),))
    dangerous = QueueSteps(agent_id=ANN, works=(Work(type="tool", executor="shell", instruction_content=RM),))
    return Outcome(result={"text": "so"}, intents=(foreign, dangerous))


@pytest.mark.parametrize(
    ("does", "tools"),
    [(fills_in, (Work(type="tool", executor="shell"),)), (plans_badly, ())],
    ids=["filled", "guessed"],
)
async def test_nothing_runs_under_terms_that_were_made_for_something_else(
    tmp_path: Path, does: Callable[[StepContext], Outcome], tools: tuple[Work, ...]
) -> None:
    shell = Does("shell", lambda _: Outcome(), asks_for_rm, "tool")
    harmless = Does("crochet", lambda _: Outcome(), lambda _: StepTerms(effect="pure"))
    begins = Does("instruction_generation", does)
    async with Here(tmp_path, shell, harmless, begins) as here:
        state = await here.queue(Work(type="skill", executor="instruction_generation"), *tools)
        assert [approval.question for approval in state.approvals.values()] == ["rm -rf /?"]
        assert shell.histories == [], "it never ran"


class CutOff:
    """A model whose replies are paid for and of no use."""

    name = "bad:model"

    def __init__(self, events: Sequence[ModelEvent], error: Exception | None = None) -> None:
        self.calls = 0
        self._events = events
        self._error = error

    @property
    def card(self) -> ModelCard:
        return ModelCard()

    def get_model(self, _: str) -> CutOff:
        return self

    def price(self, read: int, written: int) -> int | None:
        return (read + written) * 3 // 8

    async def stream(self, _: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Begin, and end too early."""
        self.calls += 1
        for event in self._events:
            yield event
        if self._error is not None:
            raise self._error


TOLD = (ModelTextDelta(text="..."), Usage(output=5, money=1_500), Failed(kind="filter", why="It is refused."))


@pytest.mark.parametrize(
    ("model", "calls"),
    [
        (CutOff(TOLD), 3),
        (CutOff((ModelTextDelta(text="..."),), ModelFault("gone", spent=Amounts(money=2_000))), 2),
        (CutOff((ModelTextDelta(text="..."),), ConnectionResetError("gone")), 2),
        (CutOff((ModelTextDelta(text="..."), Finished())), 2),
    ],
    ids=["the provider told", "the fault told", "nobody knows", "no usage"],
)
async def test_a_reply_that_is_no_use_is_paid_for_all_the_same(tmp_path: Path, model: CutOff, calls: int) -> None:
    async with Here(tmp_path, Converse(model)) as here:
        state = await here.queue(*[Work(type="skill", executor="converse")] * 10)
        assert state.team.paused is not None
        assert 0 < state.budgets[TEAM_BUDGET].spent.money <= 6_000
        assert model.calls == calls


ODD = {"text": "odd", "nan": float("nan"), "raw": b"raw", "pair": (1, 2), "deep": {1: "one"}}
AS_JSON = {"text": "odd", "nan": None, "raw": "cmF3", "pair": [1, 2], "deep": {"1": "one"}}


def begins_with(now: str, later: str) -> Callable[[StepContext], Outcome]:
    """A result that JSON cannot have, and two steps: the one that is queued first comes last."""

    def does(_: StepContext) -> Outcome:
        last = QueueSteps(agent_id=ANN, works=(Work(type="skill", executor=later),))
        first = QueueSteps(agent_id=ANN, works=(Work(type="skill", executor=now),), place="next")
        return Outcome(result=ODD, intents=(last, first))

    return does


@pytest.mark.parametrize(
    ("now", "later", "left"), [("two", "one", ["short", "one"]), ("one", "two", ["short"])], ids=["before", "after"]
)
async def test_a_conversation_is_the_same_after_a_restart(
    tmp_path: Path, now: str, later: str, left: list[str]
) -> None:
    """Whatever its results are made of, and in whichever order its steps were queued when its window moved."""
    first = Does("converse", begins_with(now, later))
    one = Does("one", lambda _: Outcome(result={"text": "one"}))
    two = Does("two", lambda _: Outcome(result={"text": "short"}, intents=(MoveWindow(thread_id=HERE),)))
    look = Does("planning", lambda _: Outcome(result={"text": "seen"}))
    async with Here(tmp_path, first, one, two, look) as here:
        await here.queue(Work(type="skill", executor="converse"))
        await here.queue(Work(type="skill", executor="planning"))
    assert two.histories[0][0].result == AS_JSON
    async with Here(tmp_path, first, one, two, look) as here:
        await here.queue(Work(type="skill", executor="planning"))
    live, again = look.histories
    assert [(step.result or {})["text"] for step in live] == left
    assert [step.result for step in again[:-1]] == [step.result for step in live]


async def test_what_a_step_reserves_counts_what_was_said_a_moment_ago(tmp_path: Path) -> None:
    one = Does("one", lambda _: Outcome())
    first = Does(
        "converse",
        lambda _: Outcome(
            result={"text": "x" * 500}, intents=(QueueSteps(agent_id=ANN, works=(Work(type="skill", executor="one"),)),)
        ),
    )
    async with Here(tmp_path, first, one) as here:
        await here.queue(Work(type="skill", executor="converse"))
    assert len(one.sizes) == 1, "it was started together with the end of the step before it"
    assert one.sizes[0] > 500


async def test_an_executor_that_takes_its_instruction_apart_changes_nothing_but_its_own_copy(tmp_path: Path) -> None:
    def takes_apart(bench: StepContext) -> Outcome:
        given = bench.step.work.instruction_content
        assert isinstance(given, dict)
        given.clear()
        return Outcome(result={"kept": dict(bench.state.steps[bench.step.step_id].work.instruction_content or {})})

    shell = Does("shell", takes_apart, lambda _: StepTerms(effect="pure"), "tool")
    async with Here(tmp_path, shell) as here:
        await here.queue(Work(type="tool", executor="shell", instruction_content={"path": "x"}))
        (step,) = [one async for one in here.runtime.archive(here.team, "step")]
        assert isinstance(step, Step)
        assert step.result == {"kept": {"path": "x"}}


async def test_a_window_is_what_had_ended_when_somebody_looked(tmp_path: Path) -> None:
    again = Work(type="skill", executor="one")
    one = Does("one", lambda bench: Outcome(result={"text": str(bench.step.ordinal)}))
    async with Here(tmp_path, one) as here:
        await here.queue(again, again, again)
    first, second, third = one.histories
    assert [len(window) for window in one.histories] == [0, 1, 2]
    assert [step.result for step in third] == [{"text": "1"}, {"text": "2"}]
    assert (third[0], third[-1], third[1:], list(first)) == (second[0], third[1], [third[1]], [])
    with pytest.raises(IndexError):
        _ = second[1]


class Narrow(MemoryLog):
    """A log that gives two steps at a time."""

    async def chain(self, stream: str, version: int, limit: int = 2) -> Sequence[StoredEvent]:
        return await super().chain(stream, version, limit)


async def test_a_long_conversation_is_read_back_page_by_page(tmp_path: Path) -> None:
    again = Work(type="skill", executor="one")
    one = Does("one", lambda bench: Outcome(result={"text": str(bench.step.ordinal)}))
    here = Here(tmp_path, one)
    here.log = Narrow()
    async with here:
        await here.queue(*[again] * 7)
        last = (await here.runtime.state(here.team)).threads[HERE].last
        whole = await read_ended_steps(here.log, here.team, last, 0)
        assert [step.ordinal for step in whole] == [1, 2, 3, 4, 5, 6, 7]
        assert await read_ended_steps(here.log, here.team, last, whole[4].ended_in) == whole[4:]
        assert await read_ended_steps(here.log, here.team, last, last + 1) == []
        assert await read_ended_steps(here.log, here.team, 0, 0) == []
