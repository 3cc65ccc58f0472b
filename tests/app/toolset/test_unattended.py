"""Where nobody is there, an agent is told so in a sentence that it can read."""

from __future__ import annotations

import pytest

from greenroom.app.toolset.pipeline import NOBODY, Unattended
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World
from tests.core.house import ANN, House


class Asks:
    """Wants a yes to this question."""

    type: StepType = "tool"
    name: str = "asks"
    description: str = "Ask."

    def __init__(self, question: str) -> None:
        self._question = question

    def terms(self, _: World, __: Step) -> Terms:
        """Ask."""
        return Terms(effect="effectful", verdict="ask", question=self._question, digest="x")

    async def run(self, _: Bench) -> Outcome:
        """Never."""
        raise AssertionError


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        ("ann wants to use it. It may hold secrets.\n  | cat .env\n  | rm x", f"It may hold secrets, and {NOBODY}"),
        ("It speaks.", f"It speaks, and {NOBODY}"),
        ("", NOBODY),
    ],
)
def test_why_it_is_not_done_is_said_apart_from_the_call_itself(question: str, rule: str) -> None:
    house = House.furnished().queue(ANN)
    terms = Unattended(Asks(question)).terms(house.world, next(iter(house.world.steps_of(ANN))))
    assert terms.verdict == "deny"
    assert terms.rule.endswith(rule)
    assert "\n" not in terms.rule
