"""The coverage settings of the tests name existing rooms."""

import re

import pytest

from tests.measuring import DOORS, MEASURED, TESTS, WHOLLY


def test_rooms_and_tests_that_are_measured_otherwise_exist() -> None:
    assert [one for one in (*DOORS, *WHOLLY) if not (TESTS / one).is_dir()] == []
    assert [one for one in MEASURED if not any((TESTS / door / f"{one}.py").is_file() for door in DOORS)] == []


@pytest.mark.req("RC-129")
def test_the_gate_refuses_less_than_85_percent_of_coverage() -> None:
    floors = re.findall(r"coverage report .*--fail-under=(\d+)", (TESTS.parent / "go").read_text("utf-8"))
    assert len(floors) == 2
    assert min(map(int, floors)) > 85
