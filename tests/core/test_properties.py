"""Properties of all decisions, over random wishes. What is checked after each of them stands in invariants.py."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import greenroom
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.ports.codec import encode_event
from greenroom.core.rules.decide import decide
from greenroom.core.state.team_state import EMPTY_STATE
from tests.core.drive import Driver
from tests.core.house import ANN, BOB, CY, HUE, MINUTE, PIA, House, plan
from tests.core.wishes import anything, wish, words

# Reaches no line that other tests do not, and to be measured takes it twice as long.
pytestmark = pytest.mark.no_cover

ROOT = Path(__file__).resolve().parents[2]
SOURCE = str(Path(greenroom.__file__).parents[1])
FIRST = plan(("one", ANN), ("two", BOB, ("one",)), ("three", PIA))
STAGES = (
    evolve(FIRST, subtasks=tuple(evolve(one, tries=2) for one in FIRST.subtasks), concurrency=2),
    plan(("four", HUE), ("five", CY)),
)
SAMPLE = settings(
    max_examples=20,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
FULL = settings(SAMPLE, max_examples=500, derandomize=False)
RANDOMS = st.randoms(use_true_random=False)
SEEDS = st.integers(min_value=0, max_value=2**32)


def busy_house(rng: Random, moves: int, waiting_timeout: int | None = MINUTE) -> House:
    """A house in which a lot was asked for."""
    house = House.furnished(stages=STAGES, waiting_timeout=waiting_timeout)
    for _ in range(moves):
        if rng.randrange(4) == 0:
            house.later(rng.choice((1, 200, 6_000, 70_000)))
        house.ask(*wish(rng, house.state, house.now))
    return house


def invariants_hold(seed: int, moves: int) -> None:
    busy_house(Random(seed), moves)


@given(seed=SEEDS)
@settings(SAMPLE, max_examples=60)
def test_whatever_is_asked_the_invariants_hold(seed: int) -> None:
    invariants_hold(seed, 120)


@pytest.mark.prove
@given(seed=SEEDS)
@FULL
def test_whatever_is_asked_the_invariants_hold_in_long_runs(seed: int) -> None:
    invariants_hold(seed, 400)


def everything_comes_to_an_end(seed: int, moves: int, waiting_timeout: int | None) -> None:
    """No deadlock: with everybody at work all waits end, even where no clock would end them."""
    rng = Random(seed)
    house = Driver(busy_house(rng, moves, waiting_timeout), rng).rest()
    assert not house.state.waits
    assert not house.state.steps
    assert not house.state.approvals
    assert not house.state.timers
    assert all(agent.step_lock == () and agent.running is None for agent in house.state.agents.values())


@pytest.mark.parametrize("waiting_timeout", [MINUTE, None])
@given(seed=SEEDS)
@SAMPLE
def test_every_wait_ends_when_everybody_works(waiting_timeout: int | None, seed: int) -> None:
    everything_comes_to_an_end(seed, 60, waiting_timeout)


@pytest.mark.prove
@pytest.mark.parametrize("waiting_timeout", [MINUTE, None])
@given(seed=SEEDS)
@FULL
def test_every_wait_ends_when_everybody_works_after_long_runs(waiting_timeout: int | None, seed: int) -> None:
    everything_comes_to_an_end(seed, 200, waiting_timeout)


def nobody_waits_for_the_deaf(seed: int, moves: int) -> None:
    rng = Random(seed)
    house = busy_house(rng, moves)
    deaf = frozenset(AgentId(name) for name in ("ann", "bob", "pia"))
    Driver(house, rng, deaf=deaf).rest()
    assert not house.state.waits
    assert all(step.agent_id in deaf for step in house.state.steps.values())


@given(seed=SEEDS)
@SAMPLE
def test_who_never_answers_keeps_nobody_waiting_for_ever(seed: int) -> None:
    nobody_waits_for_the_deaf(seed, 40)


@pytest.mark.prove
@given(seed=SEEDS)
@FULL
def test_who_never_answers_keeps_nobody_waiting_for_ever_after_long_runs(seed: int) -> None:
    nobody_waits_for_the_deaf(seed, 200)


@given(rng=RANDOMS)
@SAMPLE
def test_no_wish_raises_in_an_empty_house(rng: Random) -> None:
    state = House.furnished().state
    for _ in range(10):
        decide(EMPTY_STATE, anything(rng, state, 1), by=words.asker(rng, state), now=1)


def fingerprint_of_a_long_run() -> str:
    """The log of a run, as one hash. The run itself is the same in every process; its hash seed is not."""
    house = Driver(busy_house(Random(7), 400), Random(8)).rest()
    lines = [encode_event(event) for event in house.log]
    return hashlib.sha256(b"\n".join(line.type.encode() + line.data for line in lines)).hexdigest()


def test_the_same_run_makes_the_same_log_in_every_process() -> None:
    code = "from tests.core.test_properties import fingerprint_of_a_long_run as f; print(f())"
    found = set()
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    for seed in ("1", "2"):
        environment = unmeasured | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join((SOURCE, str(ROOT)))}
        run = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        found.add(run.stdout.strip())
    assert len(found) == 1
