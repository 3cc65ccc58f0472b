"""The list of exceptions itself."""

import pytest

from tests.architecture.house import Finding, compare, exceptions

LINE = 'sizes = [{ file = "a.py", what = "long", since = 2026-01-02, reason = "because" }]'


def test_a_line_names_a_file_and_a_finding() -> None:
    assert exceptions("sizes", LINE) == [Finding("a.py", "long")]
    assert exceptions("suppressions", LINE) == []


@pytest.mark.parametrize("missing", ["since = 2026-01-02, ", 'reason = "because" '])
def test_a_line_without_date_or_reason_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match="needs a date and a reason"):
        exceptions("sizes", LINE.replace(missing, "").replace(", }", " }"))


def test_one_line_excuses_one_finding() -> None:
    finding, other = Finding("a.py", "x"), Finding("b.py", "y")
    assert compare([finding, finding], [finding]) == ([finding], [])
    assert compare([finding], [finding, other]) == ([], [other])
    assert compare([finding], [finding]) == ([], [])
