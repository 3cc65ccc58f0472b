"""What a program of Python or JavaScript imports of its own project, and whether it asserts something."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from typing import Final

from greenroom.abilities.checks.command_lines import placed

RELATIVE: Final = re.compile(r"(?:from|require\(|import\(?)\s*['\"](\.{1,2}/[^'\"\n]+)['\"]")
SUFFIXES: Final = ("", ".js", ".mjs", ".cjs", ".ts", "/index.js")
ASSERTS: Final = re.compile(
    rb"^\s*assert\b|\bimport (?:pytest|unittest)\b|\bAssertionError\b|\bassert\(|\bexpect\(", re.MULTILINE
)


def imported(path: str, source: str, top: str) -> Iterator[str]:
    """Paths of files that it may import, whether they are there or not; `top` is where the project begins."""
    if path.endswith(".py"):
        yield from _python(path, source, top)
    else:
        for name in RELATIVE.findall(source):
            yield from (placed(posixpath.dirname(path) or ".", f"{name}{one}") for one in SUFFIXES)


def asserts(content: bytes) -> bool:
    """Whether a module has a judge in it, by what it says."""
    return ASSERTS.search(content) is not None


def _python(path: str, source: str, top: str) -> Iterator[str]:
    here = posixpath.dirname(path) or "."
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        for level, name in _names(node):
            tops = (placed(here, "../" * (level - 1) or "."),) if level else (here, top, placed(top, "src"))
            whole = name.replace(".", "/")
            for one in dict.fromkeys(tops):
                yield from (placed(one, f"{whole}.py"), placed(one, f"{whole}/__init__.py"))


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        yield from ((0, one.name) for one in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        yield node.level, base
        yield from ((node.level, f"{base}.{one.name}".strip(".")) for one in node.names)
