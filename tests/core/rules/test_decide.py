"""The table of all rules, and who may ask."""

from typing import get_args

import pytest

from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.rules import intents as i
from greenroom.core.rules.decide import RULES
from greenroom.core.rules.draft import is_manager, is_trusted, reject_unknown
from greenroom.core.state.spec import AgentSpec
from tests.core.house import ANN, BOSS, DOOR, HUE, SYSTEM, House


def test_every_intent_has_a_rule() -> None:
    assert set(RULES) == set(i.INTENT_TYPES.values()) == set(get_args(i.Intent))


def test_no_step_may_ask_for_what_only_doors_and_the_house_decide() -> None:
    kept = {"CreateTeam", "ForkTeam", "Recover", "Declare", "PauseTeam", "ResumeTeam", "ReportStage", "AssignSubtask"}
    kept |= {"StartStep", "PrepareEffect", "FinishStep", "ReleaseStep", "AnswerApproval", "FireTimer", "Interrupt"}
    kept |= {"ChangeAgent", "FormGroup", "RecordStep"}
    assert {one.__name__ for one in get_args(i.Consequence)} == set(i.INTENT_TYPES) - kept


@pytest.mark.parametrize(
    "intent",
    [
        i.AddAgent(agent_id=ANN, spec=AgentSpec(name="x")),
        i.AddTask(name="x", intention="x", manager=ANN),
        i.Recover(epoch=1, owner="x"),
        i.PauseTeam(),
    ],
    ids=lambda intent: type(intent).__name__,
)
def test_nothing_happens_before_there_is_a_team(intent: i.Intent) -> None:
    House().refused("no_team", intent)


def test_a_team_begins_once() -> None:
    house = House().do(i.CreateTeam(team_id=TeamId("a"), name="A"))
    house.refused("team_exists", i.CreateTeam(team_id=TeamId("b"), name="B"))


def test_people_doors_and_the_house_are_trusted_and_models_are_not() -> None:
    state = House.furnished().state
    assert all(is_trusted(state, by) for by in (DOOR, "door:page", SYSTEM, HUE))
    assert not any(is_trusted(state, by) for by in (BOSS, ANN, "doorman", "systems", "ghost"))


def test_a_manager_manages_without_being_trusted() -> None:
    state = House.furnished().state
    assert is_manager(state, BOSS)
    assert is_manager(state, HUE)
    assert not is_manager(state, ANN)
    assert not is_manager(state, "ghost")


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    assert "Known: a, b." in str(reject_unknown("agent", "c", (AgentId("b"), AgentId("a"))))
    assert "never existed" in str(reject_unknown("step", "c"))
