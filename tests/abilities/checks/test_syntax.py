"""The syntax of changed files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.excerpts import LINES, excerpt
from greenroom.abilities.checks.syntax import LONGEST, syntax_faults


@pytest.mark.req("RC-92")
@pytest.mark.parametrize(
    ("path", "content", "line"),
    [
        ("a.py", b"x = 1\ndef f(:\n", 2),
        ("a.py", b"x = '\0'", 1),
        ("a.json", b'{\n "a": }', 2),
        ("a.json", b"\xff", 1),
        ("a.toml", b"a = ", 1),
        ("a.yaml", b"a: [1", 1),
    ],
)
def test_a_broken_file_is_named_with_its_line(path: str, content: bytes, line: int) -> None:
    (fault,) = syntax_faults({path: content, "b.py": b"x = 1"})
    assert (fault.path, fault.line) == (path, line)
    assert str(fault).startswith(f"Syntax error detected in {path}, line {line}: ")


def test_what_may_be_something_else_is_left_alone() -> None:
    files = {
        "tsconfig.json": b"// words\n{}",
        "chart.yaml": b"a: {{ .Values.b }}",
        "tagged.yml": b"a: !Ref b\n---\nc: 1",
        "a.rs": b"fn (",
        "deep.json": b"[" * 100_000,
        "long.py": b"(" * (LONGEST + 1),
        "warned.py": b"x = '\\d'",
        "good.toml": b"a = 1",
    }
    assert syntax_faults(files) == ()


def test_what_was_broken_before_is_not_ours() -> None:
    assert syntax_faults({"a.json": b"{"}, {"a.json": b"// {"}) == ()
    assert len(syntax_faults({"a.json": b"{"}, {"a.json": b"{}"})) == 1


@given(st.sampled_from(["a.py", "a.json", "a.toml", "a.yml"]), st.binary(max_size=200))
def test_any_content_can_be_looked_at(path: str, content: bytes) -> None:
    assert len(syntax_faults({path: content})) <= 1


def test_an_excerpt_is_what_stands_around_the_failing_test() -> None:
    noise = [f"line {n}" for n in range(200)]
    text = "\n".join((*noise, "____ test_a ____", "E   assert 1 == 2", *noise))
    found = excerpt(text, ["t.py::test_a"]).splitlines()
    assert "E   assert 1 == 2" in found
    assert len(found) <= LINES + 10
    assert excerpt("\n".join(noise)).splitlines()[-1] == "line 199"
    assert excerpt("one\n\ntwo\n==========") == "one\ntwo\n==="
    parts = excerpt("\n".join((*noise, "Error: a", *noise, "Error: b", *noise))).splitlines()
    assert parts == ["Error: a", "…", "Error: b"]
