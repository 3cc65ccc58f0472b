"""What agents may not do, said by rules and not by prose: nothing of it happens, and who wanted it reads why.

The one who wants it here is a skill that checks nothing, so that only the rules are left.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from greenroom.core.base.ids import AgentId, StageId, WaitingId
from greenroom.core.base.records import Data
from greenroom.core.rules.intents import (
    Consequence,
    FinishTask,
    NeedToolDecision,
    QueueSteps,
    SendMessage,
    UpdateStageAgentState,
)
from greenroom.core.state.step import Work
from tests.abilities.skills.planned.planners import BOSS, DONE, KIM, NOTHING_MORE, T1, THINKS, Line, planner, said, step
from tests.organisation.crowd import Rogue, crowd

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
        await here.until(lambda state: state.stages[S1].members[0].state == "finished")
        assert await here.did(ADA) == ["planning", "quick_think", "think", "reflection", "summary"], "as it had planned"
        assert f"{type(wish).__name__} was refused." in here.model.told("think")
        assert why in here.model.told("think")
        state = await here.state()
        assert (set(state.tasks), set(state.agents), len(state.stages)) == ({T1}, {ADA, BEA, BOSS, KIM}, 1)
        assert not [one for one in await here.messages() if one.kind != "instruction"]
