"""A tool call: validated, authorised, run with a time limit, and told to callbacks afterwards."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.app.toolset.custom import Callbacks, find_callbacks
from greenroom.app.toolset.pipeline import NOBODY_TO_APPROVE, ToolPipeline, bound_agents, call_digest, decide_unattended
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import AgentId, StepId, TaskId, TeamId, ThreadId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Capabilities, Outcome, StepContext
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import WHOLE_KEY, PolicyDecision, Target, ToolCard
from greenroom.core.rules.intents import AddTask, AnswerApproval, QueueSteps
from greenroom.core.state.approval import ApprovalScope
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Effect, Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState
from greenroom.policy.policy import build_rules_policy
from tests.core.house import CY, House, question, skill
from tests.core.rules.test_calls import ask

ANN, BOB, T1 = AgentId("ann"), AgentId("bob"), TaskId("t1")
SCHEMA: Data = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
Verdict = Literal["allow", "notify", "ask", "deny"]
RULE = "allow tool say"
CALL = Work(type="tool", executor="say", instruction_content={"text": "x"})


class Say:
    """A tool that says what it is given, or does what the test wants."""

    type: StepType = "tool"
    name: str = "say"
    description: str = "Says it."

    def __init__(
        self,
        does: Callable[[StepContext], object] | None = None,
        *,
        effect: Effect = "pure",
        seconds: int = 0,
        schema: Data = SCHEMA,
        verdict: Verdict = "allow",
    ) -> None:
        spec = ToolSpec(name=self.name, description=self.description, parameters=schema)
        self.card = ToolCard(spec=spec, group="read", effect=effect, seconds=seconds, shown=2_000)
        self.calls = 0
        self._does = does
        self._verdict: Verdict = verdict

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """Its name."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Its effect."""
        return StepTerms(effect=self.card.effect, verdict=self._verdict)

    async def run(self, context: StepContext) -> Outcome:
        """Say it."""
        self.calls += 1
        found = self._does(context) if self._does is not None else None
        if isinstance(found, asyncio.Event):
            await found.wait()
        return Outcome(result={"output": str((context.step.work.instruction_content or {}).get("text"))})


class Says:
    """A policy that a test decides. It knows whom it was asked about."""

    def __init__(self, ruling: PolicyDecision | Callable[[AgentId], PolicyDecision]) -> None:
        self._ruling = ruling
        self.asked: list[AgentId] = []

    def decide(
        self,
        agent: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> PolicyDecision:
        """As the test wants, and allowed by what was granted."""
        self.asked.append(agent)
        found = self._ruling if isinstance(self._ruling, PolicyDecision) else self._ruling(agent)
        return PolicyDecision(verdict="allow", rule=found.grant) if found.grant and found.grant in grants else found


ALLOW, ASK = PolicyDecision(verdict="allow"), PolicyDecision(verdict="ask", why="It speaks.", grant=RULE)
DENY = PolicyDecision(verdict="deny", rule="deny tool say", why="`deny tool say` forbids it.")


class Here:
    """A team of one or two that calls the tool."""

    def __init__(self, runtime: Runtime, team: TeamId) -> None:
        self.runtime, self.team = runtime, team

    async def call(self, agent: AgentId = ANN, /, **given: object) -> None:
        """Queue a call and wait until nothing more happens."""
        work = Work(type="tool", executor="say", instruction_content=given)
        await self.runtime.ask(self.team, QueueSteps(agent_id=agent, works=(work,), task_id=T1))
        async with asyncio.timeout(20):
            await self.runtime.wait(self.team, T1)

    async def ended(self) -> list[Step]:
        """All calls that ended."""
        return [one async for one in self.runtime.archive(self.team, "step") if isinstance(one, Step)]

    async def state(self) -> TeamState:
        """What is true."""
        return await self.runtime.state(self.team)

    async def answer(self, scope: ApprovalScope = "once", *, yes: bool = True) -> None:
        """Answer the first question, and wait again."""
        name = next(one.approval_id for one in (await self.state()).approvals.values() if one.state == "pending")
        answer = AnswerApproval(approval_id=name, answer="approved" if yes else "denied", scope=scope)
        await self.runtime.ask(self.team, answer)
        async with asyncio.timeout(20):
            await self.runtime.wait(self.team, T1)


@asynccontextmanager
async def here(tool: Say, policy: Says, heard: list[Outcome] | None = None) -> AsyncIterator[Here]:
    """Two agents who have the tool."""

    async def after(_: Step, outcome: Outcome) -> None:
        if heard is not None:
            heard.append(outcome)

    kit = Capabilities([ToolPipeline(tool, policy, [after])])
    runtime = Runtime(MemoryLog(), capability_factories={"test": lambda _: kit})
    try:
        agents = [(name, AgentSpec(name=name, tools=("say",))) for name in (ANN, BOB)]
        team = await runtime.create("test", agents, capabilities_name="test")
        await runtime.start(team)
        await runtime.ask(team, AddTask(name="t", intention="t", manager=ANN, group=(ANN, BOB), driver="manager"))
        yield Here(runtime, team)
    finally:
        await runtime.close()


async def test_a_call_that_is_allowed_is_made_and_told_of() -> None:
    heard: list[Outcome] = []
    async with here(Say(), Says(ALLOW), heard) as team:
        await team.call(text="hello")
        (step,) = await team.ended()
    assert (step.state, step.result) == ("finished", {"output": "hello"})
    assert [one.result for one in heard] == [{"output": "hello"}]


@pytest.mark.parametrize("given", [{}, {"text": 5}, {"text": "x", "more": 1}])
async def test_arguments_that_do_not_fit_never_reach_the_tool_nor_a_person(given: dict[str, object]) -> None:
    tool, policy = Say(), Says(ASK)
    async with here(tool, policy) as team:
        await team.call(**given)
        (step,) = await team.ended()
    assert step.error.startswith("Not called: ")
    assert step.error.endswith("Look at the parameters of say.")
    assert (tool.calls, policy.asked) == (0, [])


async def test_a_tool_whose_own_schema_is_none_says_so() -> None:
    async with here(Say(schema={"type": "nonsense"}), Says(ALLOW)) as team:
        await team.call(text="x")
        (step,) = await team.ended()
    assert "its own schema is none" in step.error


async def test_what_is_denied_is_not_done_and_the_agent_reads_which_rule_says_so() -> None:
    tool = Say()
    async with here(tool, Says(DENY)) as team:
        await team.call(text="x")
        (step,) = await team.ended()
    assert (step.state, step.error, tool.calls) == ("failed", "Not permitted: `deny tool say` forbids it.", 0)


async def test_a_person_is_asked_about_exactly_this_call() -> None:
    tool = Say()
    async with here(tool, Says(ASK)) as team:
        await team.call(text="hello")
        (asked,) = (await team.state()).approvals.values()
        assert asked.question == "ann wants to use say. It speaks.\n  | text: hello"
        assert (asked.grant, tool.calls) == (RULE, 0)
        assert asked.digest == call_digest("say", {"text": "hello"}) != call_digest("say", {"text": "Hello"})
        await team.answer()
        await team.call(text="hello")
        assert len((await team.state()).approvals) == 1, "once is once"
    assert tool.calls == 1


class Runs(Say):
    """Asks by itself, and runs a command."""

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """A command line."""
        return (Target(kind="command", value="make"),)

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """A question of its own."""
        return StepTerms(effect="keyed", verdict="ask", question="Does it count?")


@pytest.mark.parametrize(
    ("ruling", "more"),
    [(ASK, "\nA yes also lets it run on this machine: It speaks."), (ALLOW, "")],
    ids=["it would be asked about anyway", "walls are around it"],
)
async def test_a_tool_that_asks_by_itself_says_what_a_yes_lets_it_run(ruling: PolicyDecision, more: str) -> None:
    async with here(Runs(), Says(ruling)) as team:
        await team.call(text="hello")
        (asked,) = (await team.state()).approvals.values()
    assert asked.question == f"Does it count?{more}"


async def test_a_person_sees_what_they_say_yes_to_and_nothing_of_it_is_obeyed() -> None:
    text = "first\x1b[2J\nsecond \u202e" + "x" * 10_000
    async with here(Say(), Says(ASK)) as team:
        await team.call(text=text)
        (asked,) = (await team.state()).approvals.values()
    lines = asked.question.split("\n")
    assert lines[1:3] == ["  | text: first\\x1b[2J", lines[2]]
    assert lines[2].startswith("  | second \\u202exxx")
    assert (lines[-1], len(asked.question) < 5_000) == ("  [… There is more of it than can be shown here …]", True)


@pytest.mark.parametrize("own", ["allow", "notify", "ask", "deny"])
@pytest.mark.parametrize("ruling", [ALLOW, ASK, DENY])
def test_a_tool_s_own_word_can_only_tighten_and_a_yes_is_for_exactly_this_call(
    own: Verdict, ruling: PolicyDecision
) -> None:
    house = House.furnished().queue(ANN)
    step = evolve(next(iter(house.state.steps_of(ANN))), work=CALL)
    terms = ToolPipeline(Say(verdict=own), Says(ruling)).terms(house.state, step)
    order = ("allow", "notify", "ask", "deny")
    assert terms.verdict == max(own, ruling.verdict, key=order.index)
    assert terms.digest == call_digest("say", {"text": "x"})


async def test_a_yes_for_the_run_is_one_for_all_its_agents() -> None:
    tool = Say()
    async with here(tool, Says(ASK)) as team:
        await team.call(text="one")
        await team.call(BOB, text="two")
        await team.answer("run")
        await team.call(BOB, text="three")
        assert not (await team.state()).approvals
    assert tool.calls == 3


async def test_a_no_is_told_and_nothing_is_done() -> None:
    tool = Say()
    async with here(tool, Says(ASK)) as team:
        await team.call(text="x")
        await team.answer(yes=False)
        (step,) = await team.ended()
    assert (step.state, tool.calls) == ("failed", 0)
    assert step.error.startswith("Denied by ")


@pytest.mark.parametrize(("effect", "state"), [("pure", "failed"), ("effectful", "uncertain")])
async def test_a_tool_that_hangs_is_stopped(effect: Effect, state: str) -> None:
    async with here(Say(lambda _: asyncio.Event(), effect=effect, seconds=1), Says(ALLOW)) as team:
        await team.call(text="x")
        step, *_ = await team.ended()
    assert step.state == state
    assert "did not come to an end within 1 seconds and was stopped." in step.error


@pytest.mark.req("MAS-189")
@pytest.mark.parametrize(("lines", "beside"), [(1_000, False), (20_000, True)])
async def test_of_a_long_result_the_ends_are_read_and_all_of_it_is_kept(lines: int, beside: bool) -> None:
    text = "\n".join(f"line {number}" for number in range(lines))
    async with here(Say(), Says(ALLOW)) as team:
        await team.call(text=text)
        (step,) = await team.ended()
        result = step.result or {}
        assert bool(step.blobs) is beside
        kept = json.loads(await team.runtime.log.get_blob(step.blobs[0])) if beside else result
    assert kept[WHOLE_KEY] == text
    shown = str(result["output"])
    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith(f"line {lines - 1}")
    assert "read_output" in shown
    assert len(shown) < 3_000


async def test_a_long_error_is_cut() -> None:
    def fails(_: StepContext) -> None:
        raise ModelFault("x" * 100_000)

    async with here(Say(fails), Says(ALLOW)) as team:
        await team.call(text="x")
        (step,) = await team.ended()
    assert (step.state, len(step.error) < 5_000, step.error[-3:]) == ("failed", True, "[…]")


async def test_what_a_terminal_would_obey_is_taken_out_of_results() -> None:
    async with here(Say(), Says(ALLOW)) as team:
        await team.call(text="a\x1b]0;title\x07b\x1b[2J")
        (step,) = await team.ended()
    output = str((step.result or {})["output"])
    assert not {"\x1b", "\x07"}.intersection(output)
    assert (output[0], "b" in output) == ("a", True), "what it says is still there"


async def test_nobody_gets_done_by_those_whom_another_calls_what_it_may_not_do_itself() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob"))
    onward = evolve(question(CY), call_id="to-cy", delivery="call")
    work = Work(type="tool", executor="shell", instruction_content={"agent": "cy"}, call_id="to-cy")
    house.run(BOB, onward, QueueSteps(agent_id=BOB, works=(work, skill("converse", "go on")), place="next"))
    (step,) = house.state.steps_of(CY)
    assert bound_agents(house.state, step) == [CY, BOB, ANN]
    policy = Says(lambda agent: DENY if agent == ANN else ALLOW)
    assert ToolPipeline(Say(), policy).terms(house.state, evolve(step, work=CALL)).verdict == "deny"


async def test_who_is_bound_by_rules_binds_those_who_work_for_it() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob"))
    (step,) = house.state.steps_of(BOB)
    bound = evolve(house.state.agents[ANN], spec=evolve(house.state.agents[ANN].spec, rules=("deny tool say",)))
    state = evolve(house.state, agents=house.state.agents.set(ANN, bound))
    guarded = ToolPipeline(Say(), build_rules_policy({"user": ["allow tool say"]}, "/w"))
    assert guarded.terms(house.state, evolve(step, work=CALL)).verdict == "allow"
    assert guarded.terms(state, evolve(step, work=CALL)).verdict == "deny"


STEP = Step(
    step_id=StepId("ann#1"),
    agent_id=AgentId("ann"),
    thread_id=ThreadId("ann@t1"),
    task_id=TaskId("t1"),
    stage_id=None,
    subtask_id=None,
    work=Work(type="tool", executor="echo", instruction_content={"text": "x"}),
    queued_at=0,
)
BENCH = cast("StepContext", SimpleNamespace(step=STEP))


@pytest.mark.parametrize("hangs", [False, True])
async def test_what_a_call_came_to_is_not_lost_when_all_ends_while_others_hear_of_it(hangs: bool) -> None:
    begun, heard, goes_on = asyncio.Event(), list[str](), asyncio.Event()

    async def after(_: Step, outcome: Outcome) -> None:
        begun.set()
        await goes_on.wait()
        heard.append(outcome.state)

    call = asyncio.create_task(ToolPipeline(Say(), Says(ALLOW), [after]).run(BENCH))
    async with asyncio.timeout(20):
        await begun.wait()
        call.cancel()
        if not hangs:
            goes_on.set()
        assert (await call).result == {"output": "x"}
    assert heard == ([] if hangs else ["finished"])
    assert not call.cancelling()


async def test_who_cancels_himself_while_he_hears_of_a_call_is_not_mistaken_for_others() -> None:
    async def after(_: Step, __: Outcome) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await ToolPipeline(Say(), Says(ALLOW), [after]).run(BENCH)


ENDLESS = """
import asyncio, threading
from greenroom.app.toolset.custom import Callbacks
asyncio.run(Callbacks([lambda told: threading.Event().wait()], seconds=0.1).tell({}, "it"))
print("over")
"""


def test_a_callback_that_never_ends_does_not_keep_a_process_from_ending() -> None:
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (0, "over\n")
    assert "has not ended 0.1 seconds after it" in ended.stderr
    assert time.monotonic() - began < 20


DIRECT = "def after_tool_call_cb(call): call['heard'].append('direct')\n"
GET = "def get_after_tool_call_cb(): return lambda call: call['heard'].append('get')\n"
REGISTER = "def register_after_tool_call_cb(): return lambda call: call['heard'].append('register')\n"


def heard(folder: Path) -> list[str]:
    """Who is told of a call."""
    told: list[str] = []
    found, _ = find_callbacks([folder])
    for one in found:
        one({"heard": told})
    return told


@pytest.mark.req("AG-147", "AG-148", "AG-149", "AG-150")
@pytest.mark.parametrize(
    ("text", "form"),
    [
        (DIRECT, "direct"),
        (GET, "get"),
        (REGISTER, "register"),
        (REGISTER + GET, "get"),
        (REGISTER + GET + DIRECT, "direct"),
    ],
)
def test_each_form_gives_its_callback_and_the_callback_itself_comes_first(tmp_path: Path, text: str, form: str) -> None:
    (tmp_path / "audit.py").write_text(text, encoding="utf-8")
    assert heard(tmp_path) == [form]


@pytest.mark.req("AG-151")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def after(: pass", "cannot be run: SyntaxError in line 1"),
        ("1 / 0", "cannot be run: ZeroDivisionError"),
        ("raise SystemExit(3)", "cannot be run: SystemExit"),
        ("def get_after_tool_call_cb(): 1 / 0", "get_after_tool_call_cb() failed: ZeroDivisionError"),
        ("def get_after_tool_call_cb(): return 5", "returned int, which cannot be called"),
    ],
)
def test_a_broken_file_is_named_and_does_not_stop_the_others(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    (tmp_path / "b.py").write_text(DIRECT, encoding="utf-8")
    found, troubles = find_callbacks([tmp_path])
    assert len(found) == 1
    assert len(troubles) == 1
    assert f"{tmp_path / 'a.py'}: " in troubles[0]
    assert why in troubles[0]


def test_what_registers_itself_and_what_is_no_callback_gives_none(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def register_after_tool_call_cb(): return None", encoding="utf-8")
    (tmp_path / "b.py").write_text("X = 1", encoding="utf-8")
    assert find_callbacks([tmp_path, tmp_path / "nowhere"]) == ([], [])


@pytest.mark.req("AG-151")
async def test_a_callback_that_fails_keeps_nobody_from_hearing() -> None:
    calls: list[object] = []

    def fails(_: object) -> None:
        raise ValueError

    await Callbacks([fails, calls.append])(STEP, Outcome(result={"output": "x"}))
    assert calls == [
        {"agent": "ann", "tool": "echo", "arguments": {"text": "x"}, "state": "finished", "output": "x", "error": ""}
    ]


async def test_each_callback_has_a_copy_of_its_own() -> None:
    heard: list[Mapping[str, Any]] = []

    def alters(call: Mapping[str, Any]) -> None:
        dict.clear(call["arguments"]["deep"])
        heard.append(call)

    step = evolve(STEP, work=evolve(STEP.work, instruction_content={"deep": {"text": "x"}}))
    await Callbacks([alters, heard.append])(step, Outcome())
    assert [one["arguments"] for one in heard] == [{"deep": {}}, {"deep": {"text": "x"}}]
    assert step.work.instruction_content == {"deep": {"text": "x"}}


async def test_a_callback_may_be_a_coroutine_and_holds_nobody_up_if_it_blocks() -> None:
    heard: list[str] = []
    ours, release = threading.get_ident(), threading.Event()

    async def waits(_: Mapping[str, object]) -> None:
        await asyncio.sleep(0)
        heard.append("here" if threading.get_ident() == ours else "aside")

    async def blocks(_: Mapping[str, object]) -> None:
        release.wait(20)

    try:
        await Callbacks([waits, blocks, waits], seconds=0.2)(STEP, Outcome())
    finally:
        release.set()
    assert heard == ["aside", "aside"]


async def test_a_callback_that_does_not_end_is_left_and_hears_of_nothing_more_until_it_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, release = threading.Semaphore(0), threading.Event()
    heard: list[object] = []

    def blocks(_: object) -> None:
        begun.release()
        release.wait(20)

    callbacks = Callbacks([blocks, heard.append], seconds=0.2)
    await callbacks(STEP, Outcome())
    assert "has not ended 0.2 seconds after echo: it is abandoned" in caplog.text
    await callbacks(STEP, Outcome())
    assert "is not called after echo: it has not ended yet" in caplog.text
    assert len(heard) == 2
    release.set()
    assert begun.acquire(blocking=False)
    async with asyncio.timeout(20):
        while not begun.acquire(blocking=False):
            await callbacks(STEP, Outcome())


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        (
            "ann wants to use it. It may hold secrets.\n  | cat .env\n  | rm x",
            f"It may hold secrets, and {NOBODY_TO_APPROVE}",
        ),
        ("It speaks.", f"It speaks, and {NOBODY_TO_APPROVE}"),
        ("", NOBODY_TO_APPROVE),
    ],
)
def test_where_nobody_is_there_why_it_is_not_done_is_said_apart_from_the_call(question: str, rule: str) -> None:
    house = House.furnished().queue(ANN)
    asked = StepTerms(effect="effectful", verdict="ask", question=question, digest="x")
    terms = decide_unattended(house.state, next(iter(house.state.steps_of(ANN))), asked)
    assert (terms.verdict, "\n" in terms.rule) == ("deny", False)
    assert terms.rule.endswith(rule)
