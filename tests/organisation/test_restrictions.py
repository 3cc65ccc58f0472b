"""What agents may not do, said by rules and not by prose: nothing of it happens, and who wanted it reads why.

The one who wants it here is a skill that checks nothing, so that only the rules are left.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from greenroom.core.base.ids import AgentId, StageId, WaitingId
from greenroom.core.base.records import Data
from greenroom.core.rules.intents import (
    AddAgent,
    AddTask,
    Consequence,
    FinishStage,
    FinishTask,
    NeedToolDecision,
    QueueSteps,
    RemoveAgent,
    SendMessage,
    SubtaskPlan,
    UpdateStageAgentState,
    UpdateWorkingMemory,
)
from greenroom.core.state.mas_format import collect_working_memory
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Work
from tests.abilities.skills.planned.planners import BOSS, DONE, KIM, NOTHING_MORE, T1, THINKS, Line, planner, said, step
from tests.organisation.crowd import Crowd, Rogue, crowd

ADA, BEA, S1 = AgentId("ada"), AgentId("bea"), StageId("t1.s1")
LINES: dict[tuple[str, str], Sequence[Line]] = {
    (who, skill): [line]
    for who in ("ada", "bea")
    for skill, line in (
        ("planning", said("planning", [step("quick_think"), step("think")])),
        ("think", said("think", "x")),
        ("process_message", said("process_message", "I see.")),
        ("reflection", NOTHING_MORE),
        ("summary", DONE),
    )
}


def queue(executor: str, type_: str = "skill", agent: AgentId = ADA) -> QueueSteps:
    """A wish to do this."""
    given: Data | None = {} if type_ == "tool" else None
    work = Work(type="tool" if type_ == "tool" else "skill", executor=executor, instruction_content=given)
    return QueueSteps(agent_id=agent, works=(work,))


PART = SubtaskPlan(name="ada", duty="more", agent=ADA)
FORBIDDEN: dict[str, tuple[Consequence, str]] = {
    "a summary that no reflection wants": (queue("summary"), "Only reflection may schedule a summary step."),
    "a decision about no tool": (queue("tool_decision"), "Only a long-tail tool may cause a tool_decision step."),
    "a decision that a skill asks for": (
        NeedToolDecision(agent_id=ADA, task_id=T1, stage_id=S1, tool_name="echo"),
        "Only a tool step may ask for a tool_decision.",
    ),
    "a tool of others": (queue("rm", "tool"), "'ada' may not use the tool 'rm'."),
    "managing tasks": (queue("task_manager"), "may not use the skill 'task_manager': only the manager"),
    "managing agents": (queue("agent_manager"), "may not use the skill 'agent_manager': only the manager"),
    "a step for somebody else": (queue("think", agent=BEA), "'ada' may not queue steps for 'bea'."),
    "to be finished without a summary": (
        UpdateStageAgentState(stage_id=S1, agent_id=ADA, state="finished"),
        "Only a summary step may say that the stage is finished.",
    ),
    "another one to be finished": (
        UpdateStageAgentState(stage_id=S1, agent_id=BEA, state="failed"),
        "'ada' may not speak for 'bea'",
    ),
    "the task to be over": (FinishTask(task_id=T1), "'ada' may not finish task 't1'"),
    "to answer what nobody asked": (
        SendMessage(task_id=T1, receiver=(BEA,), message="Hi.", return_waiting_id=WaitingId("bea>9:ada")),
        "No agent waits for 'ada' with the id 'bea>9:ada'.",
    ),
    "to write as somebody else": (
        SendMessage(task_id=T1, receiver=(BEA,), message="Hi.", sender=KIM),
        "'ada' may not write as 'kim'.",
    ),
}


@pytest.mark.req("MAS-71", "MAS-122", "MAS-130", "MAS-137", "MAS-163", "MAS-169", "MAS-181")
@pytest.mark.parametrize("what", FORBIDDEN)
async def test_what_an_agent_may_not_do_does_not_happen_and_it_reads_why(what: str) -> None:
    wish, why = FORBIDDEN[what]
    ada = planner("ada", skills=(*THINKS, "task_manager", "agent_manager"))  # to have them in a file makes no manager
    async with crowd(LINES, "bea", specs={"ada": ada}, executors=[Rogue(wish)]) as here:
        here.hold(BEA)
        await here.work({"ada": "want", "bea": "wait"}, wait=False)
        await here.until(lambda world: world.stages[S1].members[0].state == "finished")
        assert await here.did(ADA) == ["planning", "quick_think", "think", "reflection", "summary"], "as it had planned"
        assert f"{type(wish).__name__} was refused." in here.model.told("think")
        assert why in here.model.told("think")
        world = await here.world()
        assert (set(world.tasks), set(world.agents), len(world.stages)) == ({T1}, {ADA, BEA, BOSS, KIM}, 1)
        assert not [one for one in await here.messages() if one.kind != "instruction"]


SECOND = AgentId("second")
NOT_EVEN_A_MANAGER: dict[str, tuple[Consequence, str]] = {
    "a person to manage a task": (
        AddTask(name="x", intention="y", manager=KIM),
        "'boss' may not make 'kim' manage a task: people say themselves what they manage. Manage it yourself",
    ),
    "another manager to go": (RemoveAgent(agent_id=SECOND), "'boss' may not remove 'second', who manages"),
    "an agent twice": (AddAgent(agent_id=ADA, spec=AgentSpec(name="ada")), "The agent id 'ada' is taken."),
}


@pytest.mark.req("MAS-163", "MAS-169", "MAS-233")
@pytest.mark.parametrize("what", NOT_EVEN_A_MANAGER)
async def test_what_not_even_a_manager_may_do_does_not_happen_and_it_reads_why(what: str) -> None:
    wish, why = NOT_EVEN_A_MANAGER[what]
    lines = {("boss", "think"): [said("think", "x")]}
    second = planner("second", manager=True)
    async with crowd(lines, "ada", specs={"second": second}, executors=[Rogue(wish)]) as here:
        await here.work()
        await here.queue("boss", *(Work(type="skill", executor=one) for one in ("quick_think", "think")))
        await here.rest()
        assert f"{type(wish).__name__} was refused." in here.model.told("think")
        assert why in here.model.told("think")
        world = await here.world()
        assert (set(world.tasks), set(world.agents)) == ({T1}, {ADA, BOSS, KIM, SECOND})


@pytest.mark.req("MAS-132", "MAS-181")
async def test_a_plan_that_forgets_to_look_back_gets_a_reflection_from_the_house() -> None:
    """Whatever put it there: here it was no skill that knows of it."""
    works = (Work(type="skill", executor="think"),)
    planning = Rogue(QueueSteps(agent_id=ADA, works=works))
    planning.name = "planning"
    async with crowd(LINES, "ada", executors=[planning]) as here:
        await here.work({"ada": "plan"})
        assert await here.did(ADA) == ["planning", "think", "reflection", "summary"]


async def held_with_letters(here: Crowd) -> None:
    """Bea does her part and holds; one message to her is about the stage, another one about nothing in it."""
    here.hold(BEA)
    await here.work({"bea": "think"}, {"bea": "think again"}, wait=False)
    await here.until(lambda world: world.agents[BEA].running is not None)
    for text, stage in (("About the stage.", S1), ("About the weather.", "no_relative")):
        sent = SendMessage(task_id=T1, receiver=(BEA,), message=text, stage_relative=StageId(stage), sender=BOSS)
        await here.runtime.ask(here.team, sent)


@pytest.mark.req("MAS-73", "MAS-74", "MAS-76", "MAS-77", "MAS-155", "MAS-229", "MAS-230")
async def test_when_a_stage_ends_its_steps_and_its_working_memory_go_and_unrelated_messages_stay() -> None:
    quick = {("bea", "quick_think"): [said("quick_think", "x")]}
    async with crowd({**LINES, **quick}, "bea") as here:
        await held_with_letters(here)
        before = collect_working_memory(await here.world(), BEA)
        assert before == {"t1": {"t1.s1": ["bea#1", "bea#2"], "no_relative": ["bea#3"]}}
        await here.runtime.ask(here.team, FinishStage(stage_id=S1, state="finished"))
        await here.until(lambda world: any(one.stage_id == "t1.s2" for one in world.steps.values()))
        after = collect_working_memory(await here.world(), BEA)
        assert after == {"t1": {"no_relative": ["bea#3"], "t1.s2": ["bea#4"]}}, "the next stage has nothing of the last"
        here.hold(BEA).set()
        await here.rest()
        read = [one for one in await here.steps(BEA) if one.work.executor == "process_message"]
        assert [(one.state, one.work.text_content.splitlines()[-1]) for one in read] == [
            ("skipped", "About the stage."),
            ("finished", "About the weather."),
        ]
        await here.runtime.ask(here.team, FinishTask(task_id=T1, state="finished"))
        assert collect_working_memory(await here.world(), BEA) == {}


@pytest.mark.req("MAS-78", "MAS-231")
async def test_who_is_told_of_a_task_has_it_in_its_working_memory() -> None:
    async with crowd(LINES, "ada", "bea") as here:
        here.hold(BEA)
        await here.work({"bea": "think"}, group=["ada"], wait=False)
        await here.until(lambda world: world.agents[BEA].running is not None)
        await here.runtime.ask(here.team, UpdateWorkingMemory(agent_id=ADA, task_id=T1, stage_id=S1))
        assert collect_working_memory(await here.world(), ADA) == {"t1": {"t1.s1": []}}
