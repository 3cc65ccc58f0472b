"""Goals of benchmarks that a requirement names."""

import pytest

from bench import team

FASTER = "8 subtasks, times faster than one by one"


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.req("RC-124")
async def test_eight_subtasks_at_once_are_three_to_five_times_faster_than_one_by_one() -> None:
    figures = await team.run()
    print(f"{FASTER}: {figures[FASTER]:.1f}")
    assert figures[FASTER] >= team.GOALS[FASTER][1] >= 3
