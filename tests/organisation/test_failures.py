"""What happens next when something fails: a tool, an agent, a stage, a name, a budget, a memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, StageId
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.rules.agents import MAX_MEMORY_CHARS
from greenroom.core.rules.intents import PauseTask, RemoveAgent, ResumeTask, ResumeTeam, SendMessage, SetLimits
from greenroom.core.state.spec import AgentSpec, TurnPolicy
from greenroom.core.state.step import Work
from tests.abilities.skills.planned.planners import (
    BOSS,
    DONE,
    KIM,
    NOTHING_MORE,
    T1,
    Line,
    message,
    planner,
    said,
    step,
    tool,
)
from tests.abilities.skills.talks import Echo
from tests.organisation.crowd import crowd

ADA, BEA = AgentId("ada"), AgentId("bea")
Lines = dict[tuple[str, str], Sequence[Line]]


def works(who: str, *steps: Mapping[str, object]) -> Lines:
    """Somebody with a plan, who can do what is in it."""
    return {
        (who, "planning"): [said("planning", list(steps))],
        (who, "instruction_generation"): [said("instruction_generation", {"text": "hello", "where": "here"})],
        (who, "quick_think"): [said("quick_think", "x")],
        (who, "process_message"): [said("process_message", "I see.")],
        (who, "reflection"): [NOTHING_MORE],
        (who, "summary"): [DONE],
    }


def decides(*actions: Mapping[str, object]) -> Lines:
    """Boss does one thing after each stage."""
    return {
        ("boss", "planning"): [said("planning", [step("task_manager")])],
        ("boss", "task_manager"): [said("task_manager", one) for one in actions],
        ("boss", "reflection"): [NOTHING_MORE],
    }


def ends(what: str, name: str, state: str = "finished") -> dict[str, object]:
    return {"action": f"finish_{what}", f"{what}_id": name, "state": state, "summary": f"{name} is {state}."}


class Broken(Echo):
    """A tool of somebody else that raises what nobody expects."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def run(self, _: StepContext) -> Outcome:
        """Raise."""
        raise self._error


@pytest.mark.req("MAS-88", "MAS-119", "MAS-189")
@pytest.mark.parametrize("error", [WorldFault("The cup is empty."), ZeroDivisionError("by zero"), OSError("no tea")])
async def test_a_tool_that_raises_fails_its_step_and_the_agent_looks_back_on_it(error: Exception) -> None:
    lines = {**works("ada", tool()), **decides(ends("task", "t1"))}
    async with crowd(lines, "ada", executors=[Broken(error)]) as here:
        assert await here.work({"ada": "use it"}) == "finished"
        assert (await here.did(ADA))[:4] == ["planning", "instruction_generation", "!echo", "reflection"]
        failed = next(one for one in await here.steps(ADA) if one.state == "failed")
        assert str(error) in failed.error
        assert str(error) in here.model.told("reflection"), "that is what it decides by"
        assert [one.state for one in (await here.stages())[0].members] == ["finished"], "a tool is no agent"


@pytest.mark.req("MAS-57", "MAS-58", "MAS-97", "MAS-139", "MAS-167")
async def test_when_one_of_two_fails_the_other_one_goes_on_and_the_manager_reads_of_both() -> None:
    lines = {
        **works("bea", step("quick_think")),
        ("ada", "planning"): ["No."],
        **decides(ends("task", "t1", "failed")),
    }
    spec = planner("ada", turn=TurnPolicy(repairs=0))
    async with crowd(lines, "bea", specs={"ada": spec}) as here:
        thinking = here.hold(BOSS)
        await here.work({"ada": "one", "bea": "two"}, {"bea": "three"}, wait=False)
        await here.until(lambda world: world.agents[BOSS].running is not None)
        first, second = sorted(await here.stages(), key=lambda one: one.stage_id)
        assert {one.agent_id: one.state for one in first.members} == {"ada": "failed", "bea": "finished"}
        assert (first.state, second.state) == ("running", "init"), "nothing goes on until the manager has decided"
        thinking.set()
        assert await here.rest() == "failed"
        report = (await here.steps(BOSS))[0].work.text_content
        assert "- ada, ada: failed.\n```\nI could not do this" in report
        assert "- bea, bea: finished. All is done." in report
        assert [(one.stage_id, one.state) for one in await here.stages()] == [
            ("t1.s1", "failed"),
            ("t1.s2", "cancelled"),
        ]
        assert await here.did(BEA) == ["planning", "quick_think", "reflection", "summary"], "the second never began"


@pytest.mark.req("MAS-15", "MAS-51", "MAS-56", "MAS-166")
async def test_a_stage_that_the_manager_calls_failed_is_over_and_what_is_planned_behind_it_begins() -> None:
    lines = {
        **works("ada", step("quick_think")),
        **decides(ends("stage", "t1.s1", "failed"), ends("task", "t1", "failed")),
    }
    async with crowd(lines, "ada") as here:
        assert await here.work({"ada": "one"}, {"ada": "two"}) == "failed"
        assert [(one.stage_id, one.state) for one in await here.stages()] == [
            ("t1.s1", "failed"),
            ("t1.s2", "finished"),
        ]
        (task,) = await here.runtime.ended_tasks(here.team)
        assert (task.state, task.summary) == ("failed", "t1 is failed.")
        assert [one.message for one in await here.messages() if KIM in one.receiver] == ["t1 is failed."]


UNKNOWN: list[tuple[str, Mapping[str, object], str]] = [
    ("task_manager", ends("stage", "t9.s9"), "There is no open stage 't9.s9'. Open stages: none."),
    ("task_manager", ends("task", "t9"), "There is no open task 't9'. Open tasks: t1."),
    (
        "task_manager",
        {"action": "add_stage", "task_id": "t1", "stage_intention": "x", "agent_allocation": {"eve": "y"}},
        "There is no 'eve' here.",
    ),
    (
        "agent_manager",
        {"action": "init_new_agent", "agent_id": "new", "blueprint": "poet"},
        "There is no blueprint 'poet'. Blueprints: cook.",
    ),
    ("agent_manager", {"action": "add_task_participant", "task_id": "t1", "agents": ["eve"]}, "There is no 'eve'"),
    ("send_message", message("eve"), "There is no 'eve' here. Use an agent's id: boss (Boss), kim (Kim), ada (Ada)."),
]


@pytest.mark.req("MAS-151", "MAS-164", "MAS-165", "MAS-170", "MAS-171")
@pytest.mark.parametrize(("skill", "bad", "why"), UNKNOWN, ids=range(len(UNKNOWN)))
async def test_what_names_nobody_and_nothing_is_told_so_and_at_last_the_person_is(
    skill: str, bad: Mapping[str, object], why: str
) -> None:
    lines: Lines = {("boss", skill): [said(skill, bad)]}
    spec = planner("boss", manager=True, turn=TurnPolicy(repairs=1))
    async with crowd(lines, "ada", specs={"boss": spec}, blueprints=[AgentSpec(name="cook", style="plan")]) as here:
        await here.work(group=["ada"])
        before = set((await here.world()).agents)
        await here.queue("boss", Work(type="skill", executor=skill, intention="Do it."))
        await here.rest()
        assert await here.did(BOSS) == [f"!{skill}", f"!{skill}"]
        assert why in here.model.told(skill, 1)
        assert why in (await here.messages())[-1].message
        assert (await here.messages())[-1].receiver == (KIM,)
        world = await here.world()
        assert (set(world.agents), set(world.tasks)) == (before, {T1}), "nothing was made of it"


@pytest.mark.req("MAS-60", "MAS-170")
async def test_an_agent_that_is_made_twice_is_made_once_and_the_manager_reads_why() -> None:
    makes = said("agent_manager", {"action": "init_new_agent", "agent_id": "new", "blueprint": "cook", "task_id": "t1"})
    lines: Lines = {
        ("boss", "agent_manager"): [makes],
        ("boss", "think"): [said("think", "x")],
    }
    async with crowd(lines, blueprints=[AgentSpec(name="cook", style="plan")]) as here:
        await here.work()
        made = Work(type="skill", executor="agent_manager")
        await here.queue("boss", made, made, Work(type="skill", executor="think"))
        await here.rest()
        assert "new" in (await here.world()).agents
        assert (await here.world()).tasks[T1].group.count(AgentId("new")) == 1
        assert "AddAgent was refused. The agent id 'new' is taken. Choose another." in here.model.told("think")


@pytest.mark.req("MAS-32", "MAS-273")
async def test_who_waits_for_an_agent_that_is_removed_is_told_and_goes_on() -> None:
    asks = said("send_message", message("bea", need_reply=True, waiting=True))
    lines = {**works("ada", step("send_message")), ("ada", "send_message"): [asks], **decides(ends("task", "t1"))}
    async with crowd(lines, "ada", "bea") as here:
        here.hold(BEA)
        await here.work({"ada": "ask"}, group=["bea"], wait=False)
        await here.until(lambda world: world.agents[BEA].running is not None)
        await here.runtime.ask(here.team, PauseTask(task_id=T1, now=True))
        await here.until(lambda world: world.agents[BEA].running is None)
        await here.runtime.ask(here.team, RemoveAgent(agent_id=BEA), ResumeTask(task_id=T1))
        assert await here.rest() == "finished"
        assert await here.did(ADA) == ["planning", "send_message", "process_message", "reflection", "summary"]
        assert "bea will not answer: the agent was removed" in here.model.told("process_message")
        assert "bea" not in (await here.world()).agents


@pytest.mark.req("MAS-68", "MAS-121")
async def test_a_memory_that_is_full_stays_as_it_is_and_the_work_goes_on() -> None:
    old = "x" * (MAX_MEMORY_CHARS - 10)
    lines = {**works("ada", step("quick_think"), step("quick_think")), **decides(ends("task", "t1"))}
    lines["ada", "quick_think"] = [
        said("quick_think", "one", memory=old),
        said("quick_think", "two", memory="One more thing to remember."),
    ]
    async with crowd(lines, "ada") as here:
        assert await here.work({"ada": "think"}) == "finished"
        assert (await here.world()).agents[ADA].memory == old
        last = [one for one in await here.steps(ADA) if one.work.executor == "quick_think"][-1]
        assert (last.state, (last.result or {})["not_kept"]) == (
            "finished",
            "Your persistent memory is full: nothing more was kept.",
        )
        assert "nothing more was kept" in here.model.told("reflection")
        assert "was refused" not in here.model.told("reflection"), "it is told once"


@pytest.mark.req("MAS-119", "MAS-155")
async def test_who_has_failed_in_a_stage_still_reads_what_was_written_to_it_about_that() -> None:
    lines = {**works("ada", step("quick_think"), step("think")), **decides(ends("stage", "t1.s1", "failed"))}
    lines["ada", "think"] = ["No."]
    async with crowd(lines, "bea", specs={"ada": planner("ada", turn=TurnPolicy(repairs=0))}) as here:
        thinking = here.hold(ADA, "quick_think")
        await here.work({"ada": "think"}, group=["bea"], wait=False)
        await here.until(lambda world: len(world.agents[ADA].todo) == 2)
        about = SendMessage(
            task_id=T1, receiver=(ADA,), message="Mind the cup.", stage_relative=StageId("t1.s1"), sender=BEA
        )
        await here.runtime.ask(here.team, about)
        thinking.set()
        await here.rest()
        assert await here.did(ADA) == ["planning", "quick_think", "!think", "reflection", "process_message"]
        assert (await here.steps(ADA))[3].state == "skipped"
        assert [one.state for one in (await here.stages())[0].members] == ["failed"]


async def test_a_budget_that_is_reached_in_the_middle_pauses_the_task_and_more_money_lets_it_end() -> None:
    lines = {**works("ada", *[step("quick_think")] * 5), **decides(ends("task", "t1"))}
    async with crowd(lines, "ada", limits=Limits(steps=4)) as here:
        assert await here.work({"ada": "think"}) == "limit"
        done = await here.did(ADA)
        assert done == ["planning", "quick_think", "quick_think", "quick_think"], "not one more than was allowed"
        world = await here.world()
        assert not [one for one in world.budgets.values() if one.reserved.steps]
        await here.runtime.ask(here.team, SetLimits(budget_id=TEAM_BUDGET, limits=Limits(steps=100)))
        paused = world.team.paused
        await here.runtime.ask(here.team, ResumeTeam() if paused else ResumeTask(task_id=T1))
        assert await here.rest() == "finished"
        assert await here.did(ADA) == ["planning", *["quick_think"] * 5, "reflection", "summary"]
