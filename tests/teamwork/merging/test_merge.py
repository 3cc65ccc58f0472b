"""One file, two sides: what is merged, what stays a conflict, and why."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.teamwork.merging.merge import Merge, merge_file
from greenroom.teamwork.merging.syntax import is_valid

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c = 1\n", "\n", "d(1, 2)\n", "  e\n"]), max_size=8).map("".join)


def merge(path: str, base: str, left: str, right: str) -> Merge:
    return merge_file(path, base.encode(), left.encode(), right.encode())


@given(TEXTS, TEXTS)
def test_a_side_that_changed_nothing_takes_the_other(base: str, other: str) -> None:
    assert merge("a.txt", base, base, other) == Merge(other)
    assert merge("a.txt", base, other, base) == Merge(other)
    assert merge("a.txt", base, other, other) == Merge(other)


@given(TEXTS, TEXTS, TEXTS)
def test_no_line_goes_that_neither_side_deleted(base: str, left: str, right: str) -> None:
    merged = merge("a.txt", base, left, right)
    kept = set(left.split("\n")) & set(right.split("\n")) & set(base.split("\n"))
    assert merged.conflicts or {line.strip() for line in kept} <= {line.strip() for line in merged.text.split("\n")}


@given(TEXTS, TEXTS, TEXTS)
def test_a_conflict_is_one_from_both_sides(base: str, left: str, right: str) -> None:
    one, other = merge("a.txt", base, left, right), merge("a.txt", base, right, left)
    assert bool(one.conflicts) == bool(other.conflicts)


MERGED = {
    "imports": ("a.py", "import a\n\nx = 1\n", "import a\nimport b\n\nx = 1\n", "import a\nimport c\n\nx = 1\n"),
    "methods": (
        "a.py",
        "class A:\n    def a(self):\n        pass\n",
        "class A:\n    def a(self):\n        pass\n\n    def b(self):\n        return 1\n",
        "class A:\n    def a(self):\n        pass\n\n    def c(self):\n        return 2\n",
    ),
    "keys": ("a.json", '{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "b": 2\n}\n', '{\n  "a": 1,\n  "c": 3\n}\n'),
    "yaml keys": ("a.yml", "a: 1\n", "a: 1\nb: 2\n", "a: 1\nc: 3\n"),
    "toml keys": ("a.toml", "[x]\na = 1\n", "[x]\na = 1\nb = 2\n", "[x]\na = 1\nc = 3\n"),
    "list items": ("a.md", "# A\n\n- a\n", "# A\n\n- a\n- b\n", "# A\n\n- a\n- c\n"),
    "go functions": (
        "a.go",
        "package a\n\nfunc A() {\n}\n",
        "package a\n\nfunc A() {\n}\n\nfunc B() {\n\tb()\n}\n",
        "package a\n\nfunc A() {\n}\n\nfunc C() {\n\tc()\n}\n",
    ),
    "rust functions": ("a.rs", "fn a() {}\n", "fn a() {}\n\nfn b() {}\n", "fn a() {}\n\nfn c() {}\n"),
    "java methods": (
        "A.java",
        "class A {\n    int a() { return 1; }\n}\n",
        "class A {\n    int a() { return 1; }\n\n    int b() { return 2; }\n}\n",
        "class A {\n    int a() { return 1; }\n\n    int c() { return 3; }\n}\n",
    ),
    "typescript members": (
        "a.ts",
        "interface A {\n  a: string;\n}\n",
        "interface A {\n  a: string;\n  b: string;\n}\n",
        "interface A {\n  a: string;\n  c: string;\n}\n",
    ),
}


@pytest.mark.parametrize("case", MERGED)
def test_additions_of_both_sides_stay_left_first(case: str) -> None:
    path, base, left, right = MERGED[case]
    merged = merge(path, base, left, right)
    assert not merged.conflicts
    assert {resolution.rung for resolution in merged.resolutions} == {"structure"}
    lines = [line.strip().rstrip(",") for line in merged.text.splitlines()]
    wanted = chain(left.splitlines(), right.splitlines())
    assert {line.strip().rstrip(",") for line in wanted} == set(lines)
    only_left = next(line for line in left.splitlines() if line not in right and line not in base and "b" in line)
    only_right = next(line for line in right.splitlines() if line not in left and line not in base and "c" in line)
    assert lines.index(only_left.strip().rstrip(",")) < lines.index(only_right.strip().rstrip(","))
    assert is_valid(path, merged.text)


def test_neighbouring_lines_and_words_of_one_line_are_merged() -> None:
    lines = merge("a.py", "first = 1\nsecond = 2\n", "first = 10\nsecond = 2\n", "first = 1\nsecond = 20\n")
    assert lines.text == "first = 10\nsecond = 20\n"
    words = merge("a.py", "call(alpha, beta, gamma)\n", "call(ALPHA, beta, gamma)\n", "call(alpha, beta, GAMMA)\n")
    assert words.text == "call(ALPHA, beta, GAMMA)\n"


def test_a_side_that_changed_white_space_only_gives_way() -> None:
    assert merge("a.js", "f(a,b);\n", "f(a, b);\n", "f(a,c);\n").text == "f(a,c);\n"


CONFLICTS = {
    "the same value": ("a.py", "x = 1\n", "x = 2\n", "x = 3\n"),
    "a version": ("a.toml", 'version = "1.2.3"\n', 'version = "1.3.0"\n', 'version = "2.2.3"\n'),
    "the same name": ("a.py", "", "def f():\n    return 1\n", "def f():\n    return 2\n"),
    "deleted and changed": ("a.py", "def f():\n    return 1\n", "", "def f():\n    return 2\n"),
    "statements": ("a.py", "def f():\n    a()\n", "def f():\n    a()\n    b()\n", "def f():\n    a()\n    c()\n"),
    "a renamed name": ("a.py", "f(old, 1)\n", "f(new, 1)\n", "f(old, old)\n"),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_what_cannot_be_known_stays_a_conflict_with_its_reason(case: str) -> None:
    merged = merge(*CONFLICTS[case])
    assert merged.conflicts
    assert all(conflict.why for conflict in merged.conflicts)
    assert "<<<<<<< left\n" in merged.text


def test_a_file_that_is_not_text_stays_a_conflict() -> None:
    assert merge_file("a.bin", b"\xff", b"\xfe", b"\xfd").conflicts[0].why == "the file is not UTF-8 text"
