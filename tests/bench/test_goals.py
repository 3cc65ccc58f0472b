"""Goals of benchmarks that a requirement names."""

import pytest

from bench import research, team

FASTER = "8 subtasks, times faster than one by one"


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.req("RC-124")
async def test_eight_subtasks_at_once_are_three_to_five_times_faster_than_one_by_one() -> None:
    figures = await team.run()
    print(f"{FASTER}: {figures[FASTER]:.1f}")
    assert figures[FASTER] >= team.GOALS[FASTER][1] >= 3


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_twenty_crawlers_at_once_take_little_more_than_the_model() -> None:
    figures = research.run()
    name, (_, most) = next(iter(research.GOALS.items()))
    print(f"{name}: {figures[name]:.2f}")
    assert figures[name] <= most
