"""One file, two sides: what is merged, what stays a conflict, and why."""

import sys
from collections import Counter
from itertools import chain

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from greenroom.teamwork.merging.lines import CONFIDENCES, MOST_CHARACTERS, MOST_LINES
from greenroom.teamwork.merging.merge import Merge, merge_file
from greenroom.teamwork.merging.syntax import is_valid

LINES = ["a", "b", "c = 1", "", "d(1, 2)", "  e", "import f", "- g", "def h():\n    pass", "i: 1", "## 1.0", "j,"]
TEXTS = st.lists(st.sampled_from([line + "\n" for line in LINES]), max_size=8).map("".join)
PATHS = st.sampled_from(
    ["a.txt", "a.py", "a.ts", "a.json", "a.yml", "a.toml", "a.md", "a.go", "a.rs", "A.java", "CHANGES", "a.css"]
)


def merge(path: str, base: str, left: str, right: str) -> Merge:
    return merge_file(path, base.encode(), left.encode(), right.encode())


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first draw collects the constants of all modules
@given(PATHS, TEXTS, TEXTS)
def test_a_side_that_changed_nothing_takes_the_other(path: str, base: str, other: str) -> None:
    assert merge(path, base, base, other) == Merge(other)
    assert merge(path, base, other, base) == Merge(other)
    assert merge(path, base, other, other) == Merge(other)


@given(PATHS, TEXTS, TEXTS, TEXTS)
@example("a.txt", "a\nb\na\nb\na\n", "a\nb\na\n", "a\nb\na\na\na\n")  # each side deletes one of the two `b`
def test_no_line_goes_that_neither_side_deleted(path: str, base: str, left: str, right: str) -> None:
    merged = merge(path, base, left, right)
    before, one, other = (Counter(text.split("\n")) for text in (base, left, right))
    kept = {line for line in before if one[line] and other[line] and one[line] + other[line] > before[line]}
    assert merged.conflicts or {line.strip() for line in kept} <= {line.strip() for line in merged.text.split("\n")}


@given(PATHS, TEXTS, TEXTS, TEXTS)
def test_what_a_side_added_is_in_the_result(path: str, base: str, left: str, right: str) -> None:
    merged = merge(path, base, left, right)
    if not merged.conflicts:
        added = (set(left.split()) | set(right.split())) - set(base.split())
        assert added <= set(merged.text.split())


@given(PATHS, TEXTS, TEXTS, TEXTS)
def test_a_conflict_is_one_from_both_sides(path: str, base: str, left: str, right: str) -> None:
    one, other = merge(path, base, left, right), merge(path, base, right, left)
    assert bool(one.conflicts) == bool(other.conflicts)
    assert one.confidence == other.confidence
    if not one.conflicts:
        assert is_valid(path, one.text) == is_valid(path, other.text)


@given(PATHS, st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_any_bytes_are_merged_or_refused(path: str, base: bytes, left: bytes, right: bytes) -> None:
    merged = merge_file(path, base, left, right)
    assert all(conflict.why for conflict in merged.conflicts)


@given(PATHS, st.text(max_size=40))
def test_any_text_is_valid_or_not(path: str, text: str) -> None:
    assert is_valid(path, text) in ({None} if path in {"a.txt", "a.md", "CHANGES", "a.css"} else {True, False})


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
    "sections": (
        "CHANGES.md",
        "# Changes\n\n## 1.0\n\nfirst\n",
        "# Changes\n\n## 1.2\n\nb\n\n## 1.0\n\nfirst\n",
        "# Changes\n\n## 1.1\n\nc\n\n## 1.0\n\nfirst\n",
    ),
    "tests": (
        "a.test.js",
        "describe(x, () => {\n  it('a', () => {\n    a()\n  })\n})\n",
        "describe(x, () => {\n  it('a', () => {\n    a()\n  })\n\n  it('b', () => {\n    b(1)\n  })\n})\n",
        "describe(x, () => {\n  it('a', () => {\n    a()\n  })\n\n  it('c', () => {\n    c(2)\n  })\n})\n",
    ),
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
    assert is_valid(path, merged.text) is not False


@pytest.mark.parametrize("case", MERGED)
def test_each_kind_of_resolution_has_its_own_confidence(case: str) -> None:
    merged = merge(*MERGED[case])
    (ending,) = (ending for ending in CONFIDENCES if merged.resolutions[0].why.endswith(ending))
    assert merged.confidence == CONFIDENCES[ending]


def test_imports_stay_sorted() -> None:
    base = "import a\nimport z\n"
    merged = merge("a.py", base, "import a\nimport m\nimport z\n", "import a\nimport c\nimport z\n")
    assert merged.text == "import a\nimport c\nimport m\nimport z\n"


def test_imports_of_unknown_order_stay_left_first() -> None:
    merged = merge("a.py", "import a\n", "import a\nimport m\n", "import a\nimport c\n")
    assert merged.text == "import a\nimport m\nimport c\n"


def test_without_ast_grep_python_is_merged_by_its_own_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ast_grep_py", None)
    assert merge(*MERGED["methods"]).resolutions[0].why == "both sides added members"
    assert merge(*MERGED["go functions"]).conflicts
    assert is_valid("a.py", "def f(:") is False
    assert is_valid("a.go", "func {{{") is None


def test_neighbouring_lines_and_words_of_one_line_are_merged() -> None:
    lines = merge("a.py", "first = 1\nsecond = 2\n", "first = 10\nsecond = 2\n", "first = 1\nsecond = 20\n")
    assert lines.text == "first = 10\nsecond = 20\n"
    words = merge("a.py", "call(alpha, beta, gamma)\n", "call(ALPHA, beta, gamma)\n", "call(alpha, beta, GAMMA)\n")
    assert words.text == "call(ALPHA, beta, GAMMA)\n"
    assert lines.confidence == CONFIDENCES["changed different lines"]
    assert words.confidence == CONFIDENCES["changed different words"]


VERSIONS = {
    "a later minor version": ("2.1.0", "2.2.0", "2.1.1", "2.2.0"),
    "a release candidate": ("1.0rc1", "1.0rc2", "1.0", "1.0"),
    "numbers, not letters": ("1.9.0", "1.10.0", "1.9.5", "1.10.0"),
}


@pytest.mark.parametrize("case", VERSIONS)
def test_the_higher_version_wins(case: str) -> None:
    base, left, right, wanted = (f'version = "{version}"\n' for version in VERSIONS[case])
    merged = merge("a.toml", base, left, right)
    assert merged.text == merge("a.toml", base, right, left).text == wanted
    assert merged.confidence == CONFIDENCES["raised a version"]


def test_the_side_with_the_higher_version_may_change_more_words() -> None:
    base, left, right = "Version: 2.0.1 (stable)\n", "Version: 3.0.0 (next)\n", "Version: 2.0.2 (stable)\n"
    assert merge("README.rst", base, left, right).text == left
    assert merge("README.rst", base, left, "Version: 2.0.2 (old)\n").conflicts


def test_a_short_addition_that_the_other_side_has_too_gives_way() -> None:
    more = "new\n" + "".join(f"line {at}\n" for at in range(MOST_LINES))
    short = merge("a.css", "", "new\n", "new\nnext\n")
    assert short.text == "new\nnext\n"
    assert short.confidence == CONFIDENCES["contains the other side's addition"]
    assert merge("a.css", "", "new\n", more).conflicts


def test_words_of_a_minified_line_are_not_compared() -> None:
    line = "a=1;" * MOST_CHARACTERS
    assert merge("a.min.js", f"b;{line}c;\n", f"d;{line}c;\n", f"b;{line}e;\n").conflicts


def test_a_side_that_changed_white_space_only_gives_way() -> None:
    assert merge("a.js", "f(a,b);\n", "f(a, b);\n", "f(a,c);\n").text == "f(a,c);\n"


CONFLICTS = {
    "the same value": ("a.py", "x = 1\n", "x = 2\n", "x = 3\n"),
    "a lowered version": ("a.toml", 'version = "1.2.3"\n', 'version = "1.1.0"\n', 'version = "1.3.0"\n'),
    "the same name": ("a.py", "", "def f():\n    return 1\n", "def f():\n    return 2\n"),
    "deleted and changed": ("a.py", "def f():\n    return 1\n", "", "def f():\n    return 2\n"),
    "statements": ("a.py", "def f():\n    a()\n", "def f():\n    a()\n    b()\n", "def f():\n    a()\n    c()\n"),
    "words of prose": ("a.md", "one two three four\n", "ONE two three four\n", "one two three FOUR\n"),
    "a file that would not parse": (
        "a.json",
        '{\n"a": 1\n}\n',
        '{\n"a": 1,\n"b": 2\n}\n',
        '{\n"c": 0,\n"a": 1,\n"b": 3\n}\n',
    ),
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


@pytest.mark.parametrize(
    ("path", "base", "left", "right"),
    [
        (
            "tax.py",
            "def f(x):\n    return x\n",
            "def f(x):\n    n = x\n    return x\n",
            "def f(x):\n    x = 0\n    return x\n",
        ),
        ("tax.js", "a = 1\nend()\n", "a = 1\ntotal = a\nend()\n", "a = 1\na = 7\nend()\n"),
        ("new.py", "", "from a import x\n", "from __future__ import annotations\n"),
        ("requirements.txt", "a==1\n", "a==1\nflask==2\n", "a==1\nFlask>=3\n"),
        ("deploy", "x=1\n", "x=1\nrm -rf /x\n", "x=1\ncp -r /x /y\n"),
    ],
    ids=["statements", "assignments", "future imports", "one package twice", "a script"],
)
def test_additions_whose_order_or_choice_has_a_meaning_are_left(path: str, base: str, left: str, right: str) -> None:
    assert merge_file(path, base.encode(), left.encode(), right.encode()).conflicts


@pytest.mark.parametrize(
    ("path", "versions"),
    [
        ("shop.py", ("fee = max(0.5, total * 0.1)", "fee = max(1.5, total * 0.1)", "fee = min(2.5, cart * 0.3)")),
        ("shop.py", ("x = 1.5", "x = 2.5", "x = 3.5")),
        ("shop.py", ('name = "Hello  World"', 'name = "HelloWorld"', 'name = "Hello World"')),
    ],
    ids=["other edits", "numbers", "texts"],
)
def test_numbers_and_texts_are_not_versions_and_formatting(path: str, versions: tuple[str, str, str]) -> None:
    base, left, right = (f"{line}\n".encode() for line in versions)
    assert merge_file(path, base, left, right).conflicts


@pytest.mark.parametrize("numbers", [("1.0", "1.0.post1", "1.0.post2"), ("1.0rc1", "1.0", "1.0.post2")])
def test_a_release_after_the_final_one_is_higher(numbers: tuple[str, str, str]) -> None:
    base, left, right = (f"shop=={number}\n".encode() for number in numbers)
    assert merge_file("requirements.txt", base, left, right).text == "shop==1.0.post2\n"


@pytest.mark.parametrize(
    ("path", "left", "right"),
    [
        (".gitignore", "!keep.log\n", "*.log\n"),
        ("CODEOWNERS", "/docs/ @a\n", "* @b\n"),
        ("a.toml", "[b]\nc = 1\n", "d = 2\n"),
    ],
)
def test_entries_whose_order_has_a_meaning_are_left(path: str, left: str, right: str) -> None:
    base = "x = 1\n"
    assert merge_file(path, base.encode(), (base + left).encode(), (base + right).encode()).conflicts
