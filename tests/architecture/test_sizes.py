"""A file holds one idea, a function fits on a screen, an argument list is short."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.architecture.house import Finding, Function, Source, compare, exceptions, listing, sources

FILE_LINES = 600
FUNCTION_LINES = 60
POSITIONAL = 6
DEPTH = 3
Block = ast.If | ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith | ast.Try | ast.TryStar | ast.Match


def oversized(source: Source) -> Iterator[Finding]:
    """Yield what is too large in this file. Ruff checks the complexity."""
    lines = len(source.text.splitlines())
    if lines > FILE_LINES:
        yield Finding(source.path, f"file of more than {FILE_LINES} lines")
    for function in source.functions:
        yield from (Finding(source.path, f"{function.name}: {fault}") for fault in faults(function))


def faults(function: Function) -> Iterator[str]:
    """Yield what is too large in this function."""
    if (function.end_lineno or function.lineno) - function.lineno + 1 > FUNCTION_LINES:
        yield f"more than {FUNCTION_LINES} lines"
    if len(positional(function)) > POSITIONAL:
        yield f"more than {POSITIONAL} positional arguments"
    if max(map(depth, function.body)) > DEPTH:
        yield f"more than {DEPTH} levels deep"


def depth(node: ast.AST) -> int:
    """Return the nesting depth of blocks. An `elif` counts like its `if`; nested functions are counted separately."""
    if isinstance(node, Function | ast.ClassDef | ast.expr):
        return 0
    below = max((depth(child) - is_elif(node, child) for child in ast.iter_child_nodes(node)), default=0)
    return below + isinstance(node, Block)


def is_elif(node: ast.AST, child: ast.AST) -> bool:
    """Return whether this `if` is the only statement in the `else` of that node."""
    return isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]


def positional(function: Function) -> list[str]:
    """Return the names of positional parameters."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


@cache
def all_oversized() -> list[Finding]:
    return [finding for source in sources() for finding in oversized(source)]


def test_every_file_and_function_keeps_its_size() -> None:
    new, _ = compare(all_oversized(), exceptions("sizes"))
    assert not new, listing(new)


def test_every_listed_size_is_still_needed() -> None:
    _, stale = compare(all_oversized(), exceptions("sizes"))
    assert not stale, listing(stale)


def findings(text: str) -> list[str]:
    return [finding.what for finding in oversized(Source(path="sample.py", text=text))]


def test_a_long_file_is_found() -> None:
    assert findings("x = 1\n" * 600) == []
    assert findings("x = 1\n" * 601) == ["file of more than 600 lines"]


def test_a_long_function_is_found() -> None:
    assert findings("def fits():\n" + "    x = 1\n" * 59) == []
    method = "class A:\n    async def long(self):\n" + "        x = 1\n" * 60
    assert findings(method) == ["long: more than 60 lines"]


def test_a_long_argument_list_is_found() -> None:
    assert findings("def fits(self, a, b, c, d, e, f, *, g, h): ...") == []
    assert findings("def wide(a, b, c, /, d, e, f, g): ...") == ["wide: more than 6 positional arguments"]


def nested(*heads: str) -> str:
    lines = ["def deep():", *heads, "x = 1"]
    return "\n".join("    " * level + line for level, line in enumerate(lines))


def test_a_deep_function_is_found() -> None:
    assert findings(nested("for a in b:", "with c:", "if d:")) == []
    assert findings(nested("for a in b:", "with c:", "if d:", "while e:")) == ["deep: more than 3 levels deep"]


def test_a_chain_of_elif_is_not_deep() -> None:
    chain = "".join(f"    elif a == {number}:\n        x = 1\n" for number in range(5))
    assert findings(f"def flat(a):\n    if a:\n        x = 1\n{chain}") == []
