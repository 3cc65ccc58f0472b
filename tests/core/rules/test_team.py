"""The team as a whole: begin, declare, pause, resume, fork."""

import pytest

from greenroom.core.base.amounts import NOTHING, Amounts, Limits
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId
from greenroom.core.rules import intents as i
from greenroom.core.state.agent import Capability, Declared
from greenroom.core.state.approval import ApprovalVoided
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import PROCESS_KIND, PreparedEffect, StepInterrupted, StepTerms
from greenroom.core.state.team import ForkOrigin, TeamPaused
from greenroom.core.state.timer import TimerSet
from tests.core.house import ANN, BOB, HUE, MINUTE, T1, House, question, reply, skill

FORK = i.ForkTeam(team_id=TeamId("fork"), origin=ForkOrigin(team_id=TeamId("team"), version=9))


def test_a_team_begins_with_its_limits() -> None:
    house = House().do(i.CreateTeam(team_id=TeamId("a"), name="A", kit="demo", limits=Limits(money=5)))
    assert house.state.team.kit == "demo"
    assert house.state.budgets[TEAM_BUDGET].limits == Limits(money=5)


def test_only_a_person_or_the_house_begins_a_team() -> None:
    House().refused("team_exists", i.CreateTeam(team_id=TeamId("a"), name="A"), by="somebody")


def test_what_the_house_has_is_declared_once_until_it_changes() -> None:
    house = House.furnished()
    ability = Capability(name="shell", type="tool", description="runs a command")
    spec = AgentSpec(name="Guest", llm_config={"model": "m"})
    house.do(i.Declare(blueprints=(spec,), abilities=(ability,)))
    assert house.happened(Declared)
    house.do(i.Declare(blueprints=(spec,), abilities=(ability,)))
    assert not house.happened(Declared)
    house.do(i.Declare(abilities=(ability,)))
    assert not house.state.blueprints
    house.refused("not_manager", i.Declare(), by=ANN)


def test_a_paused_team_starts_nothing_and_goes_on_when_told() -> None:
    house = House.furnished().queue(ANN).do(i.PauseTeam())
    assert house.next(ANN) is None
    house.refused(
        "not_next", i.StartStep(step_id=house.agent(ANN).todo[0], terms=StepTerms(effect="pure"), work=skill()), by=ANN
    )
    house.do(i.ResumeTeam())
    assert house.next(ANN) == "ann#1"


def test_pausing_again_is_in_the_log_and_starts_nothing() -> None:
    house = House.furnished().queue(ANN).do(i.PauseTeam(why="tea")).do(i.PauseTeam(why="cake"))
    assert [one.why for one in house.happened(TeamPaused)] == ["cake"]
    assert house.state.team.paused == "cake"
    assert house.next(ANN) is None


def test_pausing_now_interrupts_what_runs_and_queues_it_again() -> None:
    house = House.furnished().queue(ANN).queue(BOB)
    house.start(ANN)
    house.do(i.PauseTeam(now=True))
    assert house.running(ANN).state == "cancelling"
    house.release(ANN)
    assert house.agent(ANN).todo == ("ann#1",)
    house.do(i.ResumeTeam())
    assert house.start(ANN).attempt == 2


def test_only_a_person_pauses_and_resumes_the_team() -> None:
    house = House.furnished()
    house.refused("not_manager", i.PauseTeam(), by=ANN)
    house.refused("not_paused", i.ResumeTeam())
    house.refused("not_manager", i.ResumeTeam(), by=ANN)


def test_a_fork_is_another_team_with_the_same_work() -> None:
    house = House.furnished().queue(ANN).do(FORK)
    assert house.state.team.team_id == "fork"
    assert house.state.team.origin == FORK.origin
    assert house.next(ANN) == "ann#1"
    house.refused("not_manager", FORK, by=ANN)


def test_a_fork_interrupts_what_ran_and_pays_nothing_for_it() -> None:
    house = House.furnished(team_limits=Limits(tokens=100)).queue(ANN)
    house.start(ANN, terms=StepTerms(effect="model", needs=Amounts(tokens=40)))
    house.later(10 * MINUTE).do(FORK)
    (event,) = house.happened(StepInterrupted)
    assert event.spent == NOTHING
    assert house.state.budgets[TEAM_BUDGET].spent == house.state.budgets[TEAM_BUDGET].reserved == NOTHING
    house.refused("stale_attempt", i.ReleaseStep(step_id=event.step_id, attempt=1), by=ANN)


def test_a_fork_doubts_an_effect_that_was_under_way() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, "effectful")
    house.do(FORK)
    assert house.ended("ann#1").state == "uncertain"


def test_a_fork_voids_questions_to_people_and_asks_them_again_itself() -> None:
    house = House.furnished().queue(ANN).queue(BOB)
    asks = StepTerms(effect="effectful", verdict="ask", question="may I?", digest="d")
    house.start(ANN, terms=asks)
    house.start(BOB, terms=asks)
    house.answer(BOB).do(FORK)
    assert len(house.happened(ApprovalVoided)) == 2
    assert not house.state.approvals
    assert not house.state.mail
    for agent in (ANN, BOB):
        assert house.start(agent, terms=asks).state == "awaiting_approval"


def test_a_fork_forgets_wakeups_and_bounds_its_waits_anew() -> None:
    house = House.furnished().do(i.SetTimer(agent_id=ANN, task_id=T1, name="tea", due=10**9))
    waiting = house.ask_agent(ANN, BOB, timeout=500)[0]
    house.later(400).do(FORK)
    (timer,) = house.state.timers.values()
    assert (timer.subject, timer.due) == (waiting, house.now + 500)
    assert len(house.happened(TimerSet)) == 1
    house.later(499).refused("too_early", i.FireTimer(timer_id=timer.timer_id))
    house.later(1).do(i.FireTimer(timer_id=timer.timer_id))
    assert house.released(waiting) == "timeout"


def test_in_a_fork_the_answer_still_comes() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    house.do(FORK).run(BOB, reply(waiting, ANN))
    assert house.agent(ANN).step_lock == ()


def test_a_letter_to_a_person_survives_a_fork() -> None:
    house = House.furnished().do(
        i.SendMessage(task_id=T1, receiver=(HUE,), message="when?", need_reply=True, sender=ANN), FORK
    )
    assert len(house.state.mail) == 1


@pytest.mark.parametrize("receiver", [BOB, HUE])
def test_a_wait_without_a_bound_stays_without_one(receiver: AgentId) -> None:
    house = House.furnished(waiting_timeout=None).queue(ANN)
    house.run(ANN, question(receiver)).do(FORK)
    assert not house.state.timers
    assert len(house.state.waits) == 1


def test_a_fork_knows_the_files_that_were_prepared_and_has_no_hand_in_the_processes() -> None:
    house = House.furnished().queue(ANN)
    step = house.start(ANN, "keyed")
    file = PreparedEffect(kind="file", key="a.txt", before="1", after="2")
    process = PreparedEffect(kind=PROCESS_KIND, key="77", before="boot:1")
    house.do(i.PrepareEffect(step_id=step.step_id, attempt=1, prepared=(process, file)), by=ANN).do(FORK)
    assert house.state.steps[step.step_id].prepared == (file,)
