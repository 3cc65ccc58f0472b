"""Executors by type and name."""

from __future__ import annotations

import pytest

from greenroom.core.ports.executor import Abilities, Bench, Executor, Outcome
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World


class Named:
    """An executor that has nothing but its name."""

    def __init__(self, type_: StepType, name: str) -> None:
        self.type = type_
        self.name = name
        self.description = f"a {type_} called {name}"

    def terms(self, _: World, __: Step) -> Terms:
        """Free."""
        return Terms(effect="pure")

    async def run(self, _: Bench) -> Outcome:
        """Nothing."""
        return Outcome()


@pytest.mark.req("MAS-257")
def test_an_executor_is_found_by_its_type_and_its_name() -> None:
    skill: Executor = Named("skill", "look")
    tool: Executor = Named("tool", "look")
    abilities = Abilities((skill, tool))
    assert abilities.get("skill", "look") is skill
    assert abilities.get("tool", "look") is tool
    assert abilities.get("tool", "think") is None
    assert [(one.type, one.name, one.description) for one in abilities.described()] == [
        ("skill", "look", "a skill called look"),
        ("tool", "look", "a tool called look"),
    ]
