"""The subtasks of a stage as a graph: priorities, limits, attempts, failures, pauses, and plans that change."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from greenroom.actors.stage_scheduler import find_changed_tasks, schedule
from greenroom.core.base.ids import AgentId, SubtaskId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.rules.queue import next_step
from greenroom.core.state.spec import AgentSpec, Cooperation
from greenroom.core.state.stage import OnFailure, Stage, SubtaskAssigned
from greenroom.core.state.task import Task
from tests.core.house import ANN, BOB, BOSS, CY, S1, SYSTEM, T1, House
from tests.core.test_properties import FULL, SAMPLE, SEEDS
from tests.core.wishes import plan as wishes

TESTERS = (AgentId("tester-1"), AgentId("tester-2"))
CHECKS = AgentId("checks")
MEMBERS = (ANN, BOB, CY, *TESTERS, CHECKS)


def sub(name: str, agent: AgentId = ANN, *needs: str) -> i.SubtaskPlan:
    return i.SubtaskPlan(name=name, duty=f"do {name}", agent=agent, needs=needs)


def staged(*subtasks: i.SubtaskPlan, concurrency: int = 0, on_failure: OnFailure = "stop") -> House:
    """A task with one running stage. Of the two testers one may work at a time; `checks` is Greenroom's own."""
    house = House.furnished()
    tester = AgentSpec(name="tester", cooperation=Cooperation(concurrency=1))
    house.do(*(i.AddAgent(agent_id=name, spec=tester) for name in TESTERS))
    house.do(i.AddAgent(agent_id=CHECKS, spec=AgentSpec(name="checks", kind="system")))
    house.do(i.AddParticipants(task_id=T1, agents=MEMBERS))
    plan = i.StagePlan(intention="build", subtasks=subtasks, concurrency=concurrency, on_failure=on_failure)
    house.do(i.AddStages(task_id=T1, stages=(plan,)), by=BOSS)
    return go_on(house)


def go_on(house: House) -> House:
    """Do what is due until nothing is. What changed and the whole give the same answer."""
    while due := schedule(house.state, sorted(house.state.tasks)):
        for intent in due:
            house.ask(intent, SYSTEM)
        assert house.fresh, f"{due} is due and refused"
    return house


def running(house: House) -> list[str]:
    return [one.name for one in house.state.stages[S1].subtasks if one.state == "running"]


def states(house: House) -> dict[str, str]:
    return {one.name: one.state for one in stage_of(house).subtasks}


def stage_of(house: House) -> Stage:
    return house.state.stages[S1] if S1 in house.state.stages else house.archived(Stage)[-1]


def finish(house: House, name: str, state: str = "finished", by: str | None = None, summary: str = "") -> House:
    """End a subtask by name, as its own agent does, and do what is due then."""
    subtask = next(one for one in house.state.stages[S1].subtasks if one.name == name)
    end = i.FinishSubtask(subtask_id=subtask.subtask_id, stage_id=S1, summary=summary)
    return go_on(house.do(evolve(end, state=state), by=by or subtask.agent))


# ---------------------------------------------------------------------------------------------- limits and order


def test_no_more_subtasks_run_than_the_stage_allows_and_the_next_starts_when_one_ends() -> None:
    house = staged(sub("a"), sub("b", BOB), sub("c", CY), concurrency=2)
    assert running(house) == ["a", "b"]
    house.refused("too_many", i.AssignSubtask(subtask_id=SubtaskId("t1.s1.3"), stage_id=S1), by=SYSTEM)
    assert running(finish(house, "b")) == ["a", "c"]


def test_a_type_of_agent_has_its_own_limit() -> None:
    house = staged(sub("a", TESTERS[0]), sub("b", TESTERS[1]), sub("c"))
    assert running(house) == ["a", "c"]
    house.refused("too_many", i.AssignSubtask(subtask_id=SubtaskId("t1.s1.2"), stage_id=S1), by=SYSTEM)
    assert running(finish(house, "a")) == ["b", "c"]


def test_a_higher_limit_of_a_type_lets_the_next_one_start() -> None:
    house = staged(sub("a", TESTERS[0]), sub("b", TESTERS[1]))
    spec = AgentSpec(name="tester", cooperation=Cooperation(concurrency=2))
    house.do(i.ChangeAgent(agent_id=TESTERS[1], spec=spec))
    found = schedule(house.state, find_changed_tasks(house.state, house.fresh))
    assert found == [i.AssignSubtask(subtask_id=SubtaskId("t1.s1.2"), stage_id=S1)]


def test_the_agents_of_greenroom_itself_count_for_no_limit() -> None:
    house = staged(sub("a"), sub("base", CHECKS), sub("b", BOB), concurrency=1)
    assert running(house) == ["a", "base"]


def test_a_lower_priority_starts_first_then_the_order_of_the_plan() -> None:
    late = evolve(sub("late"), priority=5)
    house = staged(late, evolve(sub("second", BOB), priority=1), evolve(sub("third", CY), priority=1), concurrency=1)
    for name in ("second", "third", "late"):
        assert running(house) == [name]
        finish(house, name)


def test_a_handoff_goes_to_no_type_that_is_at_its_limit() -> None:
    house = staged(sub("a", TESTERS[0]), sub("b"))
    hand = i.SendMessage(task_id=T1, receiver=(TESTERS[1],), message="yours", delivery="handoff", handoff_summary="x")
    house.run(ANN, hand)
    assert [one.agent for one in stage_of(house).subtasks] == [TESTERS[0], ANN]
    assert "too_many" in house.codes()


# ---------------------------------------------------------------------------------------------- failures


def test_a_failed_subtask_is_tried_again_and_the_briefing_says_what_failed() -> None:
    house = staged(evolve(sub("a"), tries=2), sub("b", BOB, "a"))
    house.start(ANN)
    house.finish(ANN, i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1, state="failed", summary="no disk"))
    go_on(house)
    assert states(house) == {"a": "running", "b": "init"}
    assert house.texts(ANN)[-1].splitlines()[-1] == "This is attempt 2 of 2. The last attempt failed: no disk"
    finish(house, "a", "failed", summary="again")
    assert states(house) == {"a": "failed", "b": "skipped"}
    assert [one.summary for one in stage_of(house).subtasks] == ["again", "a failed"]


def test_an_agent_that_stops_without_a_word_is_tried_again() -> None:
    house = go_on(staged(evolve(sub("a"), tries=2)).run(ANN))
    assert running(house) == ["a"]
    assert stage_of(house).subtasks[0].attempt == 2
    assert states(go_on(house.run(ANN))) == {"a": "failed"}


def test_an_agent_that_says_it_has_failed_is_tried_again() -> None:
    house = staged(evolve(sub("a"), tries=2))
    house.do(i.UpdateStageAgentState(stage_id=S1, agent_id=ANN, state="failed"), by=ANN)
    assert running(go_on(house)) == ["a"]
    assert [one.state for one in stage_of(house).members] == ["working"]


def test_a_final_failure_is_not_tried_again() -> None:
    house = staged(evolve(sub("a"), tries=3))
    end = i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1, state="failed", final=True)
    assert states(go_on(house.do(end, by=ANN))) == {"a": "failed"}


@pytest.mark.parametrize("by", [BOSS, "door"])
def test_what_a_manager_or_a_person_calls_failed_is_not_tried_again(by: str) -> None:
    assert states(finish(staged(evolve(sub("a"), tries=3)), "a", "failed", by=by)) == {"a": "failed"}


def test_the_steps_of_a_failed_attempt_end_but_messages_are_still_read() -> None:
    house = staged(evolve(sub("a"), tries=2))
    house.do(i.SendMessage(task_id=T1, receiver=(ANN,), message="look", stage_relative=S1), by=BOB)
    step = house.start(ANN)
    rest = i.QueueSteps(agent_id=ANN, works=(step.work,))
    failed = i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1, state="failed")
    house.finish(ANN, rest, failed)
    own = [one for one in house.state.steps_of(ANN) if one.subtask_id is not None]
    assert [one.message_id for one in own] == ["bob>1"]


def test_a_cancelled_subtask_is_stopped_first_and_not_tried_again() -> None:
    house = staged(evolve(sub("a"), tries=3), sub("b", BOB, "a"))
    step = house.start(ANN)
    finish(house, "a", "cancelled", by="door")
    assert house.state.steps[step.step_id].state == "cancelling"
    assert states(house) == {"a": "cancelled", "b": "skipped"}
    house.release(ANN)
    assert not house.state.steps


@pytest.mark.parametrize(("on_failure", "other"), [("stop", "skipped"), ("continue", "running")])
def test_after_a_failure_running_ones_go_on_and_waiting_ones_only_if_the_plan_says_so(
    on_failure: OnFailure, other: str
) -> None:
    house = staged(sub("a"), sub("b", BOB), sub("c", CY), concurrency=2, on_failure=on_failure)
    assert states(finish(house, "a", "failed")) == {"a": "failed", "b": "running", "c": other}
    finish(house, "b")
    if other == "running":
        finish(house, "c")
    assert stage_of(house).state == "failed"


def test_the_failure_of_a_part_that_is_not_required_stops_nothing() -> None:
    house = staged(evolve(sub("a"), required=False), sub("b", BOB), concurrency=1)
    assert running(finish(house, "a", "failed")) == ["b"]
    assert stage_of(finish(house, "b")).state == "finished"


def test_what_starts_anyway_waits_for_the_end_of_what_it_needs() -> None:
    last = evolve(sub("verify", CY, "a", "b"), anyway=True)
    house = staged(sub("a"), sub("b", BOB), last, on_failure="continue")
    assert running(finish(house, "a", "failed")) == ["b"]
    house.refused("not_ready", i.AssignSubtask(subtask_id=SubtaskId("t1.s1.3"), stage_id=S1), by=SYSTEM)
    assert running(finish(house, "b")) == ["verify"]


def test_an_escalated_stage_is_reported_and_goes_on_with_another_plan() -> None:
    house = finish(staged(sub("a"), on_failure="escalate"), "a", "failed")
    assert stage_of(house).reported
    house.do(i.Replan(stage_id=S1, subtasks=(sub("a"), sub("b", BOB))), by=BOSS)
    assert running(go_on(house)) == ["b"]
    assert not stage_of(house).reported


def test_an_escalated_failure_pauses_what_starts_anyway_until_a_person_decides() -> None:
    last = evolve(sub("verify", CY, "a", "b", "c"), anyway=True)
    plans = (sub("a"), sub("b", BOB), sub("c", ANN, "a"), last)
    house = finish(staged(*plans, on_failure="escalate"), "a", "failed")
    assert (running(house), house.state.tasks[T1].paused) == (["b"], None), "the others go on to their end"
    finish(house, "b")
    paused = "escalated: a failed, c was skipped"
    assert (states(house)["verify"], house.state.tasks[T1].paused) == ("init", paused)
    assert go_on(house.do(i.ResumeTask(task_id=T1))).state.tasks[T1].paused == paused
    house.do(i.Replan(stage_id=S1, subtasks=(evolve(plans[0], tries=2), *plans[1:])))
    assert running(go_on(house.do(i.ResumeTask(task_id=T1)))) == ["a"]
    finish(finish(house, "a"), "c")
    assert running(house) == ["verify"]


def test_a_verification_that_fails_ends_an_escalated_stage() -> None:
    last = evolve(sub("verify", CY, "a"), anyway=True)
    house = finish(staged(sub("a"), last, on_failure="escalate"), "a")
    finish(house, "verify", "failed")
    assert house.archived(Task)[-1].state == "failed"


# ---------------------------------------------------------------------------------------------- pauses and the end


def test_no_subtask_starts_while_its_task_or_team_is_paused() -> None:
    for pause, resume in (
        (i.PauseTask(task_id=T1), i.ResumeTask(task_id=T1)),
        (i.PauseTeam(), i.ResumeTeam()),
    ):
        house = staged(evolve(sub("a"), tries=2), sub("b", BOB), concurrency=1).do(pause)
        assert running(finish(house, "a", "failed")) == []
        house.do(i.Replan(stage_id=S1, subtasks=(sub("a"), sub("b", BOB), sub("c", CY))))
        assert running(go_on(house)) == []
        assert running(go_on(house.do(resume))) == ["a"]


# ---------------------------------------------------------------------------------------------- whole runs


def a_graph_of_subtasks_comes_to_its_end(seed: int) -> None:
    """Some fail, stall or are cancelled, the plan changes, the task pauses: all end, and the task with them."""
    rng = Random(seed)
    names = [f"n{number}" for number in range(rng.randint(2, 12))]
    plans = [
        evolve(
            sub(name, rng.choice(MEMBERS), *rng.sample(names[:place], k=rng.randrange(min(place, 3) + 1))),
            priority=rng.randrange(3),
            tries=rng.choice((1, 2, 3)),
            required=rng.randrange(4) > 0,
            anyway=rng.randrange(5) == 0,
        )
        for place, name in enumerate(names)
    ]
    on_failure: OnFailure = rng.choice(("stop", "continue"))
    house = staged(*plans, concurrency=rng.randrange(4), on_failure=on_failure)
    for _ in range(400):
        if T1 not in house.state.tasks:
            break
        live_on(rng, house)
        go_on(house)
    assert T1 not in house.state.tasks, "it never ends"
    assert house.archived(Task)[-1].state in ("finished", "failed")
    assert all(one.state in ("finished", "failed", "skipped", "cancelled") for one in stage_of(house).subtasks)
    assert all(one.attempt <= one.tries for one in stage_of(house).subtasks)


def live_on(rng: Random, house: House) -> None:
    """Let one thing happen: mostly an agent's next step, sometimes a pause, a cancellation or another plan."""
    chance = rng.randrange(20)
    if chance == 0:
        house.do(i.PauseTask(task_id=T1))
        finish_any(rng, house)
        assert not any(isinstance(event, SubtaskAssigned) for event in go_on(house).fresh)
        house.do(i.ResumeTask(task_id=T1))
    elif chance in (1, 3):
        house.ask(wishes.replan(rng, house.state), "door")
    elif chance == 2:
        finish_any(rng, house, by="door")
    ready = [agent for agent in MEMBERS if next_step(house.state, agent) is not None]
    for agent in MEMBERS:
        step = house.agent(agent).running
        if step is not None:
            house.release(agent)
    if ready and T1 in house.state.tasks:
        agent = rng.choice(ready)
        if next_step(house.state, agent) is None:
            return
        step_ = house.start(agent)
        if house.agent(agent).running is None:
            return  # no model speaks for Greenroom's own agent, so its step has failed
        ends: tuple[i.Consequence, ...] = ()
        if step_.subtask_id is not None and rng.randrange(4):
            end = i.FinishSubtask(subtask_id=step_.subtask_id, stage_id=S1, output={"protocol": "x", "version": 1})
            ends = (evolve(end, state=rng.choice(("finished", "finished", "failed"))),)
        house.finish(agent, *ends)


def finish_any(rng: Random, house: House, by: str = SYSTEM) -> None:
    open_ = [one for one in house.state.stages[S1].subtasks if one.state in ("init", "running")]
    if open_:
        end = i.FinishSubtask(subtask_id=rng.choice(open_).subtask_id, stage_id=S1)
        house.do(evolve(end, state=rng.choice(("failed", "cancelled"))), by=by)


@given(seed=SEEDS)
@settings(SAMPLE, max_examples=40)
@pytest.mark.no_cover
def test_every_graph_of_subtasks_comes_to_its_end(seed: int) -> None:
    a_graph_of_subtasks_comes_to_its_end(seed)


@pytest.mark.prove
@given(seed=SEEDS)
@FULL
def test_every_graph_of_subtasks_comes_to_its_end_again_and_again(seed: int) -> None:
    a_graph_of_subtasks_comes_to_its_end(seed)
