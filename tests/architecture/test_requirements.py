"""The manifest of requirements and the marks that name its ids."""

from collections import Counter

from tools.requirements import ROOT, claimed, marks, rows, wanted

MANIFEST = """# Title
- **MA-1** First.
- **MAS-12** Second, with **bold**.
- **ZZ-3** Of no source.
- **G-2** A gap.
- C-1 A conflict.
"""


def test_every_mark_names_a_requirement() -> None:
    known = wanted()
    assert {name: places for name, places in claimed().items() if name not in known} == {}


def test_every_id_is_given_once() -> None:
    ids = Counter(name for name, _ in rows((ROOT / "docs" / "requirements.md").read_text("utf-8")))
    assert ids
    assert [name for name, count in ids.items() if count > 1] == []


def test_rows_are_read() -> None:
    assert rows(MANIFEST) == [("MA-1", "First."), ("MAS-12", "Second, with **bold**."), ("G-2", "A gap.")]


def test_marks_are_found_on_tests_classes_and_modules() -> None:
    code = (
        'pytestmark = pytest.mark.req("MA-1")\n'
        'class TestA:\n    @pytest.mark.req("MAS-2", "NO-3")\n    def test_b(self): ...\n'
    )
    assert list(marks(code)) == [("MA-1", 1), ("MAS-2", 3), ("NO-3", 3)]
