"""The manifest of requirements and the marks that name its ids."""

from collections import Counter
from pathlib import Path

from tools.requirements import ROOT, claimed, closure, imports, marks, rows, unreached, unreached_modules, wanted

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


def test_imports_are_followed_but_not_those_for_types(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    from b import c\nif TYPE_CHECKING:\n    import d\n")
    (tmp_path / "b.py").write_text("import e\n")
    known = {"a": tmp_path / "a.py", "b": tmp_path / "b.py"}
    assert imports(known["a"]) == {"b", "b.c"}
    assert closure(["a"], known) == {"a", "b"}


def test_the_command_line_reaches_the_tools_and_the_parsers_of_replies() -> None:
    reached_by_users = ("greenroom.abilities.protocols", "greenroom.abilities.tools", "greenroom.core", "greenroom.cli")
    assert [name for name in unreached_modules() if name.startswith(reached_by_users)] == []


def test_every_claim_drives_something_that_a_user_can_reach() -> None:
    assert list(unreached()) == []
