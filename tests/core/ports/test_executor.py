"""Executors by type and name, and what they may return."""

from __future__ import annotations

import re

import pytest

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Capabilities, Executor, Outcome, StepContext, check_outcome, check_terms
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState


class Named:
    """An executor that has nothing but its name."""

    def __init__(self, type_: StepType, name: str) -> None:
        self.type = type_
        self.name = name
        self.description = f"a {type_} called {name}"

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        return StepTerms(effect="pure")

    async def run(self, _: StepContext) -> Outcome:
        return Outcome()


@pytest.mark.req("MAS-257")
def test_an_executor_is_found_by_its_type_and_its_name() -> None:
    skill: Executor = Named("skill", "look")
    tool: Executor = Named("tool", "look")
    abilities = Capabilities((skill, tool))
    assert abilities.get("skill", "look") is skill
    assert abilities.get("tool", "look") is tool
    assert abilities.get("tool", "think") is None
    assert [(one.type, one.name, one.description) for one in abilities.describe()] == [
        ("skill", "look", "a skill called look"),
        ("tool", "look", "a tool called look"),
    ]


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        ("done", "It returned str, not an Outcome."),
        (Outcome(state="cancelled"), "the unknown state 'cancelled'. Use finished, failed or uncertain"),
        (evolve(Outcome(), intents=[]), "intents that are not a tuple"),
        (evolve(Outcome(), spent=3), "an invalid cost"),
        (evolve(Outcome(), error=None), "an error that is not text"),
        (evolve(Outcome(), origins=["web"]), "origins that are not a tuple of labels"),
        (evolve(Outcome(), origins=(1,)), "origins that are not a tuple of labels"),
        (Outcome(spent=evolve(Amounts(), money="3")), "It returned an invalid cost. "),
    ],
)
def test_an_outcome_that_is_none_is_refused(outcome: object, why: str) -> None:
    with pytest.raises(WorldFault, match=re.escape(why)):
        check_outcome(outcome)


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ("pure", "Its terms 'pure' are not a StepTerms."),
        (evolve(StepTerms(effect="pure"), priced="yes"), "Its terms are invalid. "),
        (StepTerms(effect="pure", needs=Amounts(tokens=-1)), "a negative cost"),
    ],
)
def test_terms_that_are_none_are_refused(terms: object, why: str) -> None:
    with pytest.raises(WorldFault, match=re.escape(why)):
        check_terms(terms)


def test_what_is_sound_comes_back_as_it_is() -> None:
    outcome, terms = Outcome(spent=Amounts(tokens=3), origins=("web",)), StepTerms(effect="pure")
    assert (check_outcome(outcome), check_terms(terms)) == (outcome, terms)
