"""Semantic conflicts: planted ones are found, clean merges have none, and no content makes the search fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.app.messages import set_language
from greenroom.teamwork.symbols.conflicts import MAX_SIZE, find_semantic_conflicts, parse_symbols
from tests.teamwork.symbols.cases import Case, list_cases

PLANTED = list(list_cases("planted_"))
CLEAN = list(list_cases("clean"))
BASE = {"a.py": "def f(x): ...\n", "c.ts": "export const c = (x: number) => x\n"}
KNOWN_MISSES = {"an overload is removed"}


def name_case(case: Case) -> str:
    """Name a test after what was planted."""
    return f"{case.kind} {next(iter(case.base)).rpartition('.')[2]} {case.what}"


@pytest.mark.parametrize("case", [case for case in PLANTED if case.what not in KNOWN_MISSES], ids=name_case)
def test_planted_conflict_is_found_with_both_places(case: Case, tmp_path: Path) -> None:
    found = [conflict for conflict in case.find(tmp_path) if (conflict.kind, conflict.name) == (case.kind, case.name)]
    assert len(found) == 1
    for place, version in ((found[0].left, case.left), (found[0].right, case.right)):
        text = {**case.base, **version}[place.path]
        assert 1 <= place.line <= len(text.splitlines()) + 10
        assert place.path in found[0].sentence


@pytest.mark.parametrize("case", CLEAN, ids=name_case)
def test_clean_merge_has_no_conflict(case: Case, tmp_path: Path) -> None:
    assert case.find(tmp_path) == ()


def test_nine_of_ten_planted_conflicts_are_found() -> None:
    assert len(PLANTED) == 76
    assert len(KNOWN_MISSES) * 10 <= len(PLANTED)


def test_sides_can_be_exchanged() -> None:
    left = {**BASE, "b.py": "from a import f\nf(1)\n"}
    right = {**BASE, "a.py": "def f(x, y): ...\n"}
    (found,) = find_semantic_conflicts(BASE, left, right, {**left, **right})
    assert (str(found.left), str(found.right)) == ("b.py:2", "a.py:1")


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "`f` now needs `y` (changed by main in a.py:1), but b.py:2 does not pass it."),
        ("zh", "`f` 现在需要 `y`（main修改，见 a.py:1），但 b.py:2 没有传入。"),
    ],
)
def test_sentence_says_who_changed_what_and_where(language: str, sentence: str) -> None:
    set_language(language)
    left = {**BASE, "a.py": "def f(x, y): ...\n"}
    right = {**BASE, "b.py": "from a import f\nf(1)\n"}
    (found,) = find_semantic_conflicts(BASE, left, right, {**right, **left}, authors=("main", "code-1"))
    set_language("en")
    assert found.sentence == sentence


def test_unchanged_files_are_read_only_where_a_changed_file_leads() -> None:
    left = {"a.py": "from lib.used import g\ndef f(x, y): return g(x)\n"}
    right = {"a.py": BASE["a.py"], "b.py": "from a import f\nf(1)\n"}
    asked: list[str] = []

    def read(path: str) -> str:
        asked.append(path)
        return "def g(x): ...\n"

    paths = ["lib/__init__.py", "lib/used.py", *(f"lib/other_{number}.py" for number in range(100))]
    found = find_semantic_conflicts({"a.py": BASE["a.py"]}, left, right, {**right, **left}, paths=paths, read=read)
    assert [conflict.name for conflict in found] == ["f"]
    assert set(asked) <= {"lib/__init__.py", "lib/used.py"}


@pytest.mark.parametrize(
    "content",
    [
        "from a import f\nf(1\n",
        b"\xff\xfe\x00f(1)",
        "\0",
        "\ud800",
        "f(" * 5_000 + ")" * 5_000,
        "x = " + "1 + " * 50_000 + "1",
        "x = [\n" + "f(1),\n" * MAX_SIZE + "]",
        "",
    ],
    ids=["syntax error", "not UTF-8", "NUL", "surrogate", "nested", "long sum", "huge", "empty"],
)
@pytest.mark.parametrize("path", ["b.py", "b.ts", "b.tsx", "b.txt"])
def test_content_that_cannot_be_read_is_left_out(path: str, content: str | bytes) -> None:
    left = {**BASE, path: content}
    right = {**BASE, "a.py": content, "c.ts": content}
    assert find_semantic_conflicts(BASE, left, right, {**left, **right}) == ()


PIECES = (
    "def f(|class A|(|)|:|\n|    |self.x|=|await |{|}|import |from |export |const |a|b|.|,|'s'|@app.get('/x')|=>|<A b/>"
    "|*|...|interface I|?|return |async |[|]|lambda a: b|enum E|type T = |new |super()|this.a|export default |`${a}`"
)
TEXTS = st.lists(st.sampled_from(PIECES.split("|")), max_size=30).map("".join)


@given(TEXTS, TEXTS)
def test_any_text_is_compared_without_fault(first: str, second: str) -> None:
    for path in ("a.py", "c.ts", "d.tsx"):
        left, right = {**BASE, path: first}, {**BASE, path: second}
        find_semantic_conflicts(BASE, left, right, {**BASE, path: first + second})


def test_typescript_is_left_out_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_symbols("c.ts", BASE["c.ts"])
    monkeypatch.setitem(sys.modules, "ast_grep_py", None)
    assert parse_symbols("c.ts", BASE["c.ts"]) is None
