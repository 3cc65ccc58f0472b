"""What counts as gone wrong for good: each condition by itself, on events as the log has them."""

import pytest
from immutables import Map

from greenroom.app.organisation.phrases import BASE_TASK
from greenroom.cli.interactive.organisation import FailureLog
from greenroom.core.base.ids import AgentId, StepId, SubtaskId, TaskId, ThreadId
from greenroom.core.base.records import evolve
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step, StepEnded, StepQueued, Work
from greenroom.core.state.task import Task, TaskEnd, TaskEnded
from greenroom.core.state.team_state import EMPTY_STATE, TeamState
from greenroom.core.state.thread import Thread

BOSS, WU = AgentId("boss"), AgentId("wu")
T2, T3 = TaskId("t2"), TaskId("t3")
HERE, STEP = ThreadId("boss@t2"), StepId("boss#4")
PLANS = Work(type="skill", executor="planning")
TASK = Task(task_id=T2, name="Tea", intention="", manager=BOSS, group=(BOSS, WU), parent=BASE_TASK)
THREAD = Thread(thread_id=HERE, agent_id=BOSS, task_id=T2)
FAILED = StepEnded(at=0, step_id=STEP, thread_id=HERE, attempt=1, state="failed", error="no luck")
AGAIN = StepQueued(
    at=0, step_id=StepId("boss#5"), agent_id=BOSS, thread_id=HERE, task_id=T2, work=PLANS, place=0, cause=STEP
)
GIVEN_UP = "boss failed: no luck"


def state(*, work: Work = PLANS, thread: Thread = THREAD, task: Task = TASK) -> TeamState:
    """A task of the boss, in which a step of somebody is about to end."""
    step = Step(
        step_id=STEP,
        agent_id=thread.agent_id,
        thread_id=HERE,
        task_id=T2,
        stage_id=None,
        subtask_id=thread.subtask_id,
        work=work,
        queued_at=0,
    )
    return evolve(EMPTY_STATE, steps=Map({STEP: step}), threads=Map({HERE: thread}), tasks=Map({T2: task}))


def heard(*events: Event, on: TeamState) -> tuple[str, ...]:
    failures = FailureLog("en")
    for one in events:
        failures.add(on, one)
    return failures.all()


def test_a_managers_own_skill_that_fails_is_given_up() -> None:
    assert heard(FAILED, on=state()) == (GIVEN_UP,)


@pytest.mark.parametrize(
    "on",
    [
        pytest.param(state(work=Work(type="tool", executor="planning")), id="a tool, whose failure is read"),
        pytest.param(state(work=Work(type="skill", executor="compact")), id="a sum, without which work goes on"),
        pytest.param(state(thread=evolve(THREAD, agent_id=WU)), id="of somebody who does not manage"),
        pytest.param(state(thread=evolve(THREAD, subtask_id=SubtaskId("t2.s1.1"))), id="a subtask, which is reported"),
        pytest.param(state(thread=evolve(THREAD, call="c")), id="a call, whose caller hears of it"),
        pytest.param(evolve(state(), threads=Map()), id="in no conversation"),
        pytest.param(evolve(state(), tasks=Map()), id="in no task"),
    ],
)
def test_what_somebody_else_hears_of_or_what_stops_nothing_is_not_given_up(on: TeamState) -> None:
    assert heard(FAILED, on=on) == ()


def test_what_ended_well_is_no_failure() -> None:
    assert heard(evolve(FAILED, state="finished"), on=state()) == ()


def test_the_same_work_once_more_takes_a_failure_back() -> None:
    assert heard(FAILED, AGAIN, on=state()) == ()


@pytest.mark.parametrize(
    "queued",
    [
        pytest.param(evolve(AGAIN, agent_id=WU), id="of another agent"),
        pytest.param(evolve(AGAIN, work=Work(type="skill", executor="think")), id="of another executor"),
        pytest.param(evolve(AGAIN, cause=StepId("boss#3")), id="because of another step"),
        pytest.param(evolve(AGAIN, cause=None), id="because of nothing"),
    ],
)
def test_other_work_takes_no_failure_back(queued: StepQueued) -> None:
    assert heard(FAILED, queued, on=state()) == (GIVEN_UP,)


@pytest.mark.parametrize("parent", [None, BASE_TASK])
@pytest.mark.parametrize("state_name", ["failed", "cancelled"])
def test_a_task_of_the_organisation_that_ends_without_success_is_lost(
    parent: TaskId | None, state_name: TaskEnd
) -> None:
    ended = TaskEnded(at=0, task_id=T2, state=state_name, summary="")
    assert heard(ended, on=state(task=evolve(TASK, parent=parent))) == (f"Task t2 (Tea) ended: {state_name}.",)


def test_a_part_of_another_task_is_for_the_manager_of_that_and_a_finished_one_is_not_lost() -> None:
    ended = TaskEnded(at=0, task_id=T2, state="failed", summary="")
    assert heard(ended, on=state(task=evolve(TASK, parent=T3))) == ()
    assert heard(evolve(ended, state="finished"), on=state()) == ()
