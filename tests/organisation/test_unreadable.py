"""Each of the twelve skills answers nonsense: it is asked once more, then it has failed, and who must know is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from greenroom.abilities.tools.tool import wrap_long_tail
from greenroom.core.base.ids import AgentId
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.spec import TurnPolicy
from tests.abilities.skills.planned.digging import SPEC, Dig
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
from tests.organisation.crowd import Crowd, crowd

ADA = AgentId("ada")
ONCE = TurnPolicy(repairs=1)

PLANS: Mapping[str, Sequence[object]] = {
    "planning": [step("quick_think")],
    "reflection": [step("quick_think")],
    "summary": [step("quick_think")],
    "instruction_generation": [tool()],
    "think": [step("think")],
    "quick_think": [step("quick_think")],
    "send_message": [step("send_message")],
    "process_message": [step("ask_info"), step("quick_think")],
    "ask_info": [step("ask_info")],
    "tool_decision": [tool("dig")],
}
"""A plan in which Ada comes to this skill."""

SAID: Mapping[str, str] = {
    "planning": "Planning",
    "reflection": "Reflection",
    "send_message": "Send Message",
    "ask_info": "Ask Info",
    "tool_decision": "Tool Decision",
}


def lines(skill: str) -> dict[tuple[str, str], Sequence[Line]]:
    """Ada can do everything but this; Boss gives up when he hears of it."""
    good: dict[str, Line] = {
        "planning": said("planning", PLANS[skill]),
        "reflection": NOTHING_MORE,
        "summary": DONE,
        "instruction_generation": said("instruction_generation", {"text": "hello", "where": "here"}),
        "think": said("think", "x"),
        "quick_think": said("quick_think", "x"),
        "send_message": said("send_message", message("kim")),
        "process_message": said("process_message", "x"),
        "ask_info": said("ask_info", {"type": "6", "about": []}),
        "tool_decision": said("tool_decision", {"decision": "end", "direction": ""}),
    }
    ends = {"state": "failed", "summary": "It was too much."}
    return {
        **{("ada", name): [line] for name, line in good.items()},
        ("ada", skill): ["No tags."],
        ("boss", "planning"): [said("planning", [step("task_manager"), step("task_manager")])],
        ("boss", "task_manager"): [
            said("task_manager", {"action": "finish_stage", "stage_id": "t1.s1", **ends}),
            said("task_manager", {"action": "finish_task", "task_id": "t1", **ends}),
        ],
        ("boss", "reflection"): [NOTHING_MORE],
    }


async def tried(here: Crowd, agent: AgentId, skill: str) -> list[str]:
    """How the steps of a skill ended."""
    return [one.state for one in await here.steps(agent) if one.work.executor == skill]


@pytest.mark.req("MAS-119", "MAS-122", "MAS-123", "MAS-131", "MAS-167")
@pytest.mark.parametrize("skill", PLANS)
async def test_in_a_stage_the_agent_has_failed_its_manager_reads_why_and_the_person_hears_the_end(skill: str) -> None:
    spec = planner("ada", turn=ONCE, tools=("echo", "dig"))
    async with crowd(lines(skill), specs={"ada": spec}, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        assert await here.work({"ada": "do it"}) == "failed"
        assert await tried(here, ADA, skill) == ["failed", "failed"], "once it is asked for again"
        assert f"{SAID.get(skill, skill)} step: failed." in await here.notes()
        (stage,) = await here.stages()
        assert (stage.state, [one.state for one in stage.members]) == ("failed", ["failed"])
        assert "Your reply has no block" in stage.members[0].completion
        report = (await here.steps(BOSS))[0].work
        assert report.executor == "planning"
        assert "- ada, ada: failed.\n```\nI could not do this" in report.text_content
        heard = [one for one in await here.messages() if KIM in one.receiver][-1]
        assert (heard.message, heard.data) == (
            "It was too much.",
            {"instruction": "finish_task", "task_id": "t1", "state": "failed"},
        )
        left = [one for one in await here.steps(ADA) if one.state in ("skipped", "cancelled")]
        assert not [one for one in left if one.work.executor == skill], "nothing else of it was ever begun"


async def test_a_manager_that_fails_in_a_task_without_people_tells_a_person_of_the_task_above() -> None:
    """What Boss made for Kim has only agents in it: Kim hears all the same that nobody decides there any more."""
    add = {
        "action": "add_task",
        "task_name": "Tea",
        "task_intention": "Make tea",
        "task_group": ["ada"],
        "stages": [{"stage_intention": "Make it", "agent_allocation": {"ada": "make it"}}],
    }
    told: dict[tuple[str, str], Sequence[Line]] = {
        **lines("think"),
        ("ada", "think"): [said("think", "x")],
        ("boss", "planning"): [said("planning", [step("task_manager")]), "No tags."],
        ("boss", "task_manager"): [said("task_manager", add)],
    }
    async with crowd(told, "ada", specs={"boss": planner("boss", manager=True, turn=ONCE)}) as here:
        await here.work()
        await here.runtime.ask(
            here.team,
            SendMessage(task_id=T1, receiver=(BOSS,), message="Tea.", need_reply=True, kind="request", sender=KIM),
        )
        await here.until(lambda state: not state.steps and any(one.reported for one in state.stages.values()))
        heard = [one for one in await here.messages() if one.receiver == (KIM,)]
        assert [(one.task_id, one.sender_id) for one in heard] == [(T1, BOSS)]
        assert heard[0].message.startswith("I could not do this: Decide how to go on after t2.s1.")
