"""Goals of benchmarks that a requirement names."""

import pytest

from bench import team
from bench.__main__ import COMPARE


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.req("RC-124")
async def test_eight_subtasks_at_once_are_three_to_five_times_faster_than_one_by_one() -> None:
    figures = await team.run()
    for name, (compare, goal) in team.GOALS.items():
        print(f"{name}: {figures[name]:.2f} ({compare} {goal})")
        assert COMPARE[compare](figures[name], goal), name
