"""In public projects, set up as their developers would, a right change is verified and a breaking one is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.projects.row import PROJECTS, explain, play


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PROJECTS)
def test_a_right_change_is_verified_and_a_breaking_one_is_not(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    row = play(PROJECTS[name], tmp_path)
    record_property("cells", row.cells)
    if row.skipped:
        pytest.skip(row.skipped)
    assert not row.wrong, explain(row, verbose=True)
