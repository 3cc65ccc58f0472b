"""Names in `src`: modules and classes are nouns, functions are verbs, and no variable is called `one`."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.architecture.house import Finding, Source, listing, sources

IRREGULAR = (
    "begun|bound|bought|brought|built|chosen|done|drawn|driven|fed|felt|forgotten|found|given|gone|got|grown|heard|held|"
    "hidden|kept|known|laid|led|left|lent|lost|made|meant|met|paid|said|seen|sent|shown|spent|spoken|stood|struck|"
    "taken|taught|thought|told|torn|understood|won|worn|written"
)
PARTICIPLE = re.compile(rf"_{{0,2}}(?:un|re|mis)?(?:[a-z]+ed|{IRREGULAR})")
VERBS = {"embed", "exceed", "feed", "need", "proceed"}
"""Verbs that end like a participle."""

NOUNS = {"pricing.py", "recording.py"}
"""Module names that end in -ing and are nouns."""


def find_misnamed(source: Source) -> Iterator[Finding]:
    """Yield functions that are bare participles, variables called `one`, and modules named by a gerund."""
    name = PurePosixPath(source.path).name
    if name.endswith("ing.py") and name not in NOUNS:
        yield Finding(source.path, "a module is a noun: rename the file")
    for node in ast.walk(source.tree):
        match node:
            case ast.FunctionDef(name=function) | ast.AsyncFunctionDef(name=function) if (
                PARTICIPLE.fullmatch(function) and function.strip("_") not in VERBS
            ):
                yield Finding(source.path, f"{function}: use a verb that says what it does")
            case ast.Name(id="one", ctx=ast.Store()) | ast.arg(arg="one"):
                yield Finding(source.path, f"`one` in line {node.lineno}: name what it is")
            case _:
                pass


SCHEMAS = "src/greenroom/http/schemas.py"
"""The API shows records of the core under their own names, so its classes are unique in that file only."""


def find_twins(files: tuple[Source, ...]) -> Iterator[Finding]:
    """Yield class names that are used twice: public ones in `src`, private ones in a room."""
    named = [
        (find_scope(file.path, node.name), file.path)
        for file in files
        for node in file.tree.body
        if isinstance(node, ast.ClassDef)
    ]
    counts = Counter(name for name, _ in named)
    yield from (Finding(path, f"class {name} exists twice") for name, path in named if counts[name] > 1)


def find_scope(path: str, name: str) -> str:
    """Return where a class name must be unique: in `src`, in the schemas, or for a private class in its room."""
    if path == SCHEMAS:
        return f"schemas:{name}"
    return name if not name.startswith("_") else f"{PurePosixPath(path).parts[2]}:{name}"


def in_src() -> tuple[Source, ...]:
    return tuple(source for source in sources() if source.path.startswith("src/"))


def test_modules_are_nouns_and_functions_are_verbs() -> None:
    found = [finding for source in in_src() for finding in find_misnamed(source)]
    assert not found, listing(found)


def test_a_class_name_is_used_once() -> None:
    found = sorted(find_twins(in_src()))
    assert not found, listing(found)


def test_the_checks_find_what_they_are_for() -> None:
    bad = Source(path="src/greenroom/app/telling.py", text="def told(one):\n    for one in one: pass\nclass A: pass\n")
    assert len(list(find_misnamed(bad))) == 4
    assert len(list(find_twins((bad, bad)))) == 2
    good = Source(path="src/greenroom/app/notes.py", text="def render(note):\n    return note\n")
    assert not list(find_misnamed(good))
