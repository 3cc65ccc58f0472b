"""What happens next when something fails: a tool, an agent, a stage, a name, a budget, a memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, StageId
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.spec import TurnPolicy
from tests.abilities.skills.planned.planners import (
    BOSS,
    DONE,
    KIM,
    NOTHING_MORE,
    T1,
    Line,
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
        await here.until(lambda state: state.agents[BOSS].running is not None)
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


@pytest.mark.req("MAS-119", "MAS-155")
async def test_who_has_failed_in_a_stage_still_reads_what_was_written_to_it_about_that() -> None:
    lines = {**works("ada", step("quick_think"), step("think")), **decides(ends("stage", "t1.s1", "failed"))}
    lines["ada", "think"] = ["No."]
    async with crowd(lines, "bea", specs={"ada": planner("ada", turn=TurnPolicy(repairs=0))}) as here:
        thinking = here.hold(ADA, "quick_think")
        await here.work({"ada": "think"}, group=["bea"], wait=False)
        await here.until(lambda state: len(state.agents[ADA].todo) == 2)
        about = SendMessage(
            task_id=T1, receiver=(ADA,), message="Mind the cup.", stage_relative=StageId("t1.s1"), sender=BEA
        )
        await here.runtime.ask(here.team, about)
        thinking.set()
        await here.rest()
        assert await here.did(ADA) == ["planning", "quick_think", "!think", "reflection", "process_message"]
        assert (await here.steps(ADA))[3].state == "skipped"
        assert [one.state for one in (await here.stages())[0].members] == ["failed"]
