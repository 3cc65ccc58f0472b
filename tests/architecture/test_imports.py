"""Imports are at the top, checkers are not silenced casually, and no room is called `utils`."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from tests.architecture.house import Finding, Function, Source, compare, exceptions, listing, sources

SILENCER = re.compile(
    r"""\#\s*(
        (?:(?:ruff|flake8):\s*)?noqa\b.*
        | type:\s*ignore\b.*
        | (?:mypy|pyright|pylint):.*
        | pragma:\s*no\b.*
        | fmt:\s*(?:off|skip)\b.*
    )""",
    re.IGNORECASE | re.VERBOSE,
)
NO_NAMES = {"common", "helper", "helpers", "misc", "util", "utils"}
LOADERS = {"import_module", "__import__"}
INSIDE = re.compile(r"^(?!import |from ).*import", re.MULTILINE)
"""A line that may contain an import that is not at the top."""


def hidden_imports(source: Source) -> Iterator[Finding]:
    """Yield imports inside functions, by statement or by call. Most files have the word at the top only."""
    if INSIDE.search(source.text) is None:
        return
    for function in source.functions:
        for node in own_nodes(function):
            if (name := imported(node)) is not None:
                yield Finding(source.path, f"{name} in {function.name}")


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield all nodes of a function without those of nested functions, which are checked separately."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function):
            waiting.extend(ast.iter_child_nodes(node))


def imported(node: ast.AST) -> str | None:
    """Return the module that this node imports, if any."""
    match node:
        case ast.Import(names=names):
            return ", ".join(alias.name for alias in names)
        case ast.ImportFrom(module=module, level=level):
            return "." * level + (module or "")
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in LOADERS:
            return ast.unparse(node.func)
    return None


def silenced(source: Source) -> Iterator[Finding]:
    """Yield comments that silence a checker. Most files do not contain the words at all and are not parsed."""
    if SILENCER.search(source.text) is None:
        return
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and (found := SILENCER.search(token.string)):
            yield Finding(source.path, found[1].strip())


def nameless(path: str) -> list[str]:
    """Return folders and files on this path whose names say nothing."""
    return [part for part in PurePosixPath(path).with_suffix("").parts if part.removeprefix("_") in NO_NAMES]


@cache
def all_hidden() -> list[Finding]:
    return [finding for source in sources() for finding in hidden_imports(source)]


@cache
def all_silenced() -> list[Finding]:
    return [finding for source in sources() for finding in silenced(source)]


def lazy(table: str) -> set[str]:
    """Return the names of a table of lazy.toml."""
    return set(tomllib.loads((Path(__file__).parent / "lazy.toml").read_text())[table])


def test_a_function_imports_only_what_is_listed_as_lazy() -> None:
    late = {finding for finding in all_hidden() if not finding.what.split(" in ")[0].endswith(tuple(LOADERS))}
    new = [finding for finding in late if finding.what.split(" in ")[0] not in lazy("modules")]
    assert not new, listing(new)
    assert lazy("modules") <= {finding.what.split(" in ")[0] for finding in late}, "a line is no longer needed"


def test_no_module_is_imported_by_string_but_by_the_listed_loaders() -> None:
    found = {finding.file for finding in all_hidden() if finding.what.split(" in ")[0].endswith(tuple(LOADERS))}
    assert found == lazy("by_string")


def test_no_checker_is_silenced() -> None:
    new, _ = compare(all_silenced(), exceptions("suppressions"))
    assert not new, listing(new)


def test_every_listed_suppression_is_still_needed() -> None:
    _, stale = compare(all_silenced(), exceptions("suppressions"))
    assert not stale, listing(stale)


def test_every_room_has_a_name() -> None:
    assert [source.path for source in sources() if nameless(source.path)] == []


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("def f():\n    import os\n", "os in f"),
        ("async def f():\n    if True:\n        from os import path, sep\n", "os in f"),
        ("class A:\n    def f(self):\n        from . import b\n", ". in f"),
        ("def f():\n    return importlib.import_module('os')\n", "importlib.import_module in f"),
        ("def f():\n    def g():\n        import os\n", "os in g"),
    ],
)
def test_a_hidden_import_is_found_once(code: str, what: str) -> None:
    assert [finding.what for finding in hidden_imports(Source(path="sample.py", text=code))] == [what]


def test_an_import_at_the_top_is_fine() -> None:
    code = "import os\nif TYPE_CHECKING:\n    from a import b\ndef f():\n    return os.sep\n"
    assert list(hidden_imports(Source(path="sample.py", text=code))) == []


@pytest.mark.parametrize(
    "words",
    [
        "noqa",
        "noqa: BLE001",
        "type: ignore[arg-type]",
        "pragma: no cover",
        "ruff: noqa",
        "mypy: ignore-errors",
        "fmt: off",
    ],
)
def test_a_silencer_is_found(words: str) -> None:
    sample = Source(path="sample.py", text=f"x = 1  # {words}\n")
    assert [finding.what for finding in silenced(sample)] == [words]


def test_a_silencer_in_a_string_or_a_sentence_is_none() -> None:
    code = 'x = "# noqa"  # why this type: it ignores nothing\n'
    assert list(silenced(Source(path="sample.py", text=code))) == []


@pytest.mark.parametrize("path", ["src/greenroom/utils/x.py", "src/greenroom/helpers.py", "tests/common.py"])
def test_a_nameless_room_is_found(path: str) -> None:
    assert nameless(path)


def test_a_named_room_is_fine() -> None:
    assert not nameless("src/greenroom/core/sync/common_ground.py")
