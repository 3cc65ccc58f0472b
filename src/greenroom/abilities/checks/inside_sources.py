"""Tests that stand in one file with what they test: those of Rust, and examples in the words of Python (doctests).

They cannot be put back without the work, so a changed one is never cleared: a person looks. Whoever only adds some has
changed none.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

RUST: Final = ".rs"
PART: Final = re.compile(r"^[ \t]*#\[cfg\((?:all\(|any\()?test\b", re.MULTILINE)
TEST: Final = re.compile(r"^[ \t]*#\[(?:\w+::)*(?:test|rstest|test_case|proptest)\b", re.MULTILINE)
NAME: Final = re.compile(r"\bfn\s+(\w+)")
MADE: Final = re.compile(r"\b(?:fn|const|static|struct|enum|union|trait|type|mod|macro_rules!)\s+(\w+)")
MACRO: Final = re.compile(r"\bmacro_rules!\s*(\w+)")
JUDGES: Final = frozenset(
    {
        *("assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"),
        *("panic", "unreachable", "todo", "unimplemented", "matches"),
    }
)
"""Macros that everybody has: whoever makes one of that name changes what tests say, in other files too."""

CALLED: Final = re.compile(r"\b(\w+)!")
SIGNS: Final = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\bb?r(?P<raw>#*)\".*?(?:\"(?P=raw)|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)"
    r"|'(?:\\.[^']*|[^'\\])'|(?P<sign>[(){}\[\];])",
    re.DOTALL,
)
"""Brackets and ends of Rust, and what may hold such signs and means none."""

USE: Final = re.compile(r"\buse\s+([^;]+);")
WORD: Final = re.compile(r"[A-Za-z_]\w*")
Example = tuple[str, str]


def changed_in_rust(before: bytes, after: bytes) -> tuple[str, ...]:
    """The names of tests in a source of Rust that are not as they were; of what else is in the part for tests, names
    that old tests use and that mean something else now. A test ends with its last brace: what follows is not its own.
    """
    old, new = _tests(before), _tests(after)
    taken = _macros(before, after, "\n".join(old))
    if not old:
        return taken
    lost = [one for one in old[1:] if not any(other.startswith(one) for other in new[1:])]
    names = [found[1] if (found := NAME.search(one)) else "a test" for one in lost]
    lines = iter(new[0].splitlines() if new else ())
    kept = all(any(line == one for one in lines) for line in old[0].splitlines())
    used = set(WORD.findall("\n".join(old)))
    bound = sorted((_bound("\n".join(new)) - _bound("\n".join(old))) & used)
    added = dict.fromkeys((*(f"{one} (added)" for one in bound), *taken))
    return (*names, *(() if kept else ("the part for tests",)), *added)


def _macros(before: bytes, after: bytes, tests: str) -> tuple[str, ...]:
    """Macros that are made, or brought, anywhere in the file and that tests use: they hold for what stands below."""
    old, new = (one.decode("utf-8", "replace") for one in (before, after))
    used = JUDGES | set(CALLED.findall(tests))
    made = set(MACRO.findall(new)) - set(MACRO.findall(old)) | _brought(new) - _brought(old)
    return tuple(f"{one}! (added)" for one in sorted(made & used))


def _bound(text: str) -> set[str]:
    """Names that are made here, or brought here; whoever does so goes before `use super::*`."""
    return {*MADE.findall(text), *_brought(text)}


def _brought(text: str) -> set[str]:
    return {word for found in USE.finditer(text) for word in WORD.findall(found[1].rpartition("::")[2])}


def _tests(content: bytes) -> list[str]:
    """What comes before the first test in the parts that are for them, and each test; nothing where there is none."""
    whole = "\n".join(line.rstrip() for line in content.decode("utf-8", "replace").splitlines())
    parts: list[str] = []
    end = 0
    for begin in sorted(found.start() for pattern in (PART, TEST) for found in pattern.finditer(whole)):
        if begin >= end:
            end = _end(whole, begin)
            parts.append(whole[begin:end])
    if not parts:
        return []
    text = "\n".join(parts)
    cuts = [0, *(found.start() for found in TEST.finditer(text)), len(text)]
    return [text[here:there].rstrip("} \t\n") for here, there in pairwise(cuts)]


def _end(text: str, begin: int) -> int:
    """Where what begins here ends: with its last brace, or with a `;` that is in none. Where no end is found, it is the
    file's."""
    depth = 0
    for found in SIGNS.finditer(text, begin):
        sign = found["sign"] or " "
        depth += (sign in "([{") - (sign in ")]}")
        if depth <= 0 and sign in "};":
            return found.end()
    return len(text)


def changed_doctests(before: bytes, after: bytes) -> tuple[str, ...]:
    """Where examples of a Python source are not as they were. New ones may follow the old: one that goes before them
    could bind their names anew."""
    new = dict(_examples(after))
    return tuple(name for name, old in _examples(before) if old and new.get(name, [])[: len(old)] != old)


def _examples(content: bytes) -> Iterator[tuple[str, list[Example]]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from _inside(tree, "")


def _inside(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> Iterator[tuple[str, list[Example]]]:
    yield name or "the module", _read(ast.get_docstring(node) or "")
    for one in node.body:
        if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _inside(one, f"{name}.{one.name}" if name else one.name)


def _read(words: str) -> list[Example]:
    if ">>>" not in words:
        return []
    import doctest

    try:
        return [(one.source, one.want) for one in doctest.DocTestParser().get_examples(words)]
    except ValueError:  # what doctest itself cannot read fails by itself
        return []
