"""The input of the architecture tests: the project's Python files and the dated list of exceptions."""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "bench", "tools")
EXCEPTIONS = Path(__file__).with_name("exceptions.toml")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Source:
    """One Python file: its path from the root, with slashes, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text)

    @property
    def functions(self) -> Iterator[Function]:
        """Yield all functions at any depth. They are statements, so expressions are not searched."""
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Function):
                yield node
            waiting.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


@dataclass(frozen=True, order=True)
class Finding:
    """A finding in a file. To keep it, add a line to the list of exceptions."""

    file: str
    what: str


@cache
def sources() -> tuple[Source, ...]:
    """Return all Python files of the project."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return tuple(Source(path=path.relative_to(ROOT).as_posix(), text=path.read_text("utf-8")) for path in paths)


def exceptions(kind: str, listed: str | None = None) -> list[Finding]:
    """Return the exceptions of one kind. Each must have a date and a reason."""
    lines = tomllib.loads(EXCEPTIONS.read_text("utf-8") if listed is None else listed).get(kind, [])
    for line in lines:
        if not isinstance(line.get("since"), date) or not line.get("reason"):
            raise ValueError(f"an exception needs a date and a reason: {line}")
    return [Finding(line["file"], line["what"]) for line in lines]


def compare(found: Iterable[Finding], listed: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return (found but not listed, listed but not found). One line excuses one finding, not all similar ones."""
    here, there = Counter(found), Counter(listed)
    return sorted((here - there).elements()), sorted((there - here).elements())


def listing(findings: Iterable[Finding]) -> str:
    """Return one finding per line, for the message of a failing test."""
    return "".join(f"\n    {finding.file}: {finding.what}" for finding in findings)
