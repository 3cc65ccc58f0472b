"""The coverage settings of the tests name existing rooms."""

from tests.measuring import DOORS, MEASURED, TESTS, WHOLLY


def test_rooms_and_tests_that_are_measured_otherwise_exist() -> None:
    assert [one for one in (*DOORS, *WHOLLY) if not (TESTS / one).is_dir()] == []
    assert [one for one in MEASURED if not any((TESTS / door / f"{one}.py").is_file() for door in DOORS)] == []
