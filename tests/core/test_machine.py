"""A stateful machine over one house: wishes of everybody, stale attempts, stale owners, time, restarts."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from greenroom.core.base.amounts import UNLIMITED, Limits
from greenroom.core.base.errors import Rejection
from greenroom.core.ports.codec import decode_state, encode_state
from greenroom.core.rules.intents import FinishStep, Intent, PrepareEffect, Recover, ReleaseStep, StartStep
from tests.core.house import SYSTEM, House
from tests.core.invariants import holds
from tests.core.test_properties import FULL, SAMPLE, SEEDS, STAGES
from tests.core.wishes import anything, finish, owned, wish, words, work

# Reaches no line that other tests do not, and to be measured takes it twice as long.
pytestmark = pytest.mark.no_cover

SMALL = Limits(money=12, tokens=30, hops=10, millis=100_000)


def is_busy(machine: Everything) -> bool:
    """Whether somebody runs a step."""
    return bool(words.busy(machine.house.state))


class Everything(RuleBasedStateMachine):
    """Whatever is asked, by whomever, in whatever order: `House.ask` holds each decision against the invariants."""

    def __init__(self) -> None:
        super().__init__()
        self.house = House.furnished(stages=STAGES)

    @initialize(limits=st.sampled_from([UNLIMITED, SMALL]), team=st.sampled_from([UNLIMITED, SMALL]))
    def move_in(self, limits: Limits, team: Limits) -> None:
        self.house = House.furnished(stages=STAGES, limits=limits, team_limits=team)

    @rule(millis=st.sampled_from([0, 1, 500, 6_000, 70_000, -3_000]))
    def time_passes(self, millis: int) -> None:
        self.house.later(millis)

    @rule(seed=SEEDS)
    def somebody_wishes(self, seed: int) -> None:
        rng = Random(seed)
        for _ in range(rng.randint(1, 8)):
            self.house.ask(*wish(rng, self.house.state, self.house.now))

    @rule(seed=SEEDS)
    def somebody_wishes_anything(self, seed: int) -> None:
        rng, state = Random(seed), self.house.state
        self.house.ask(anything(rng, state, self.house.now), words.asker(rng, state))

    @rule(seed=SEEDS)
    def a_step_starts(self, seed: int) -> None:
        rng, state = Random(seed), self.house.state
        self.house.ask(*owned(rng, state, work.start_step(rng, state)))

    @rule(seed=SEEDS)
    def a_step_finishes(self, seed: int) -> None:
        rng, state = Random(seed), self.house.state
        self.house.ask(*owned(rng, state, finish(rng, state)))

    @precondition(is_busy)
    @rule(off=st.sampled_from([-1, 1, 7]))
    def stale_attempts_are_refused(self, off: int) -> None:
        for step in words.busy(self.house.state):
            number = step.attempt + off
            stale: tuple[Intent, ...] = (
                FinishStep(step_id=step.step_id, attempt=number),
                ReleaseStep(step_id=step.step_id, attempt=number),
                PrepareEffect(step_id=step.step_id, attempt=number, prepared=()),
            )
            for intent in stale:
                self.house.refused("stale_attempt", intent, by=step.agent_id)

    @rule(back=st.integers(min_value=0, max_value=3))
    def stale_owners_are_refused(self, back: int) -> None:
        epoch = self.house.state.team.epoch - back
        self.house.refused("stale_epoch", Recover(epoch=epoch, owner="old"), by=SYSTEM)

    @precondition(is_busy)
    @rule(seed=SEEDS)
    def a_busy_agent_starts_nothing_else(self, seed: int) -> None:
        for step in words.busy(self.house.state):
            for name in self.house.state.agents[step.agent_id].todo:
                start = StartStep(step_id=name, terms=work.terms(Random(seed)), work=step.work)
                found = self.house.ask(start, step.agent_id)
                assert isinstance(found, Rejection)
                assert found.code == "not_next"

    @precondition(is_busy)
    @rule()
    def the_process_dies_and_another_takes_over(self) -> None:
        self.house.state = decode_state(encode_state(self.house.state))
        self.house.do(Recover(epoch=self.house.state.team.epoch + 1, owner="next"), by=SYSTEM)
        assert not words.busy(self.house.state)

    @invariant()
    def the_state_is_sound(self) -> None:
        holds(self.house.state)


def test_everything_may_be_asked_for() -> None:
    run_state_machine_as_test(Everything, settings=settings(SAMPLE, max_examples=60, stateful_step_count=40))


@pytest.mark.prove
def test_everything_may_be_asked_for_again_and_again() -> None:
    run_state_machine_as_test(Everything, settings=settings(FULL, max_examples=500, stateful_step_count=100))
