"""Which existing parts of a Python file of tests were changed; what is only added beside them does not count.

Added is what cannot reach the old tests: a new test, class, fixture, import or constant under a name that was free.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

ANYWHERE: Final = ("setup", "teardown", "pytest_", "__", "collect_ignore", "pytestmark", "load_tests", "runTest")
"""Names that reach every test of a file or class by being there."""

WHOLE: Final = "the whole file"


def rewritten(before: bytes, after: bytes) -> tuple[str, ...]:
    """The names of what was there and is not as it was; of a file that is no Python any more, all of it."""
    old, new = _parsed(before), _parsed(after)
    if old is None:
        return ()
    if new is None:
        return (WHOLE,)
    return tuple(dict.fromkeys(_changed(old.body, new.body)))


def _parsed(content: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _changed(old: Sequence[ast.stmt], new: Sequence[ast.stmt], inside: str = "") -> Iterator[str]:
    kept = {ast.dump(one) for one in old}
    there = {ast.dump(one) for one in new}
    left = [one for one in new if ast.dump(one) not in kept]
    for one in old:
        if ast.dump(one) in there:
            continue
        named = _definition(one, left)
        if isinstance(one, ast.ClassDef) and isinstance(named, ast.ClassDef) and _head(one) == _head(named):
            left.remove(named)
            yield from _changed(one.body, named.body, f"{inside}{one.name}.")
        elif not isinstance(one, ast.Import | ast.ImportFrom) and not _is_words(one):
            if named is not None:
                left.remove(named)
            yield f"{inside}{next(iter(_names(one)), f'line {one.lineno}')}"
    yield from _lost_imports(old, new)
    bound = {name for one in old for name in _names(one)}
    free = frozenset(_imported(old))
    yield from (f"{inside}{told}" for one in left for told in _reaching(one, bound, free))


def _head(one: ast.ClassDef) -> str:
    return " ".join(ast.dump(part) for part in (*one.bases, *one.keywords, *one.decorator_list))


def _definition(one: ast.stmt, some: Sequence[ast.stmt]) -> ast.stmt | None:
    """What has the same name now."""
    names = set(_names(one))
    return next((other for other in some if names and names == set(_names(other))), None)


def _names(one: ast.stmt) -> Iterator[str]:
    match one:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield one.name
        case ast.Assign():
            inside = [part for target in one.targets for part in ast.walk(target)]
            if not any(isinstance(part, ast.Attribute | ast.Subscript) for part in inside):  # these reach elsewhere
                yield from (part.id for part in inside if isinstance(part, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in one.names)
        case _:
            return


def _is_words(one: ast.stmt) -> bool:
    """A docstring, or the like."""
    return isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)


def _imported(some: Sequence[ast.stmt]) -> dict[str, str]:
    """Bound names, and from where."""
    found: dict[str, str] = {}
    for one in some:
        if isinstance(one, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: f"{alias.name}" for alias in one.names}
        elif isinstance(one, ast.ImportFrom):
            where = f"{'.' * one.level}{one.module or ''}"
            found |= {alias.asname or alias.name: f"{where}:{alias.name}" for alias in one.names}
    return found


def _lost_imports(old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> Iterator[str]:
    """Names that come from somewhere else now. One that nobody imports any more breaks what used it, or nothing."""
    now = _imported(new)
    yield from (f"the import of {name}" for name, where in _imported(old).items() if now.get(name, where) != where)


def _reaching(one: ast.stmt, bound: set[str], imported: frozenset[str]) -> Iterator[str]:
    """Why something new could reach the old tests; nothing if it cannot."""
    names = list(_names(one))
    if isinstance(one, ast.Import | ast.ImportFrom):
        # A name that was imported before, and now from elsewhere, is told of above.
        yield from (f"{name} (imported over it)" for name in names if name in bound - imported)
        return
    if _is_words(one):
        return
    if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign) and names:
        taken = [name for name in names if name in bound or name.startswith(ANYWHERE)]
        yield from (f"{name} (added)" for name in taken)
        decorators = getattr(one, "decorator_list", [])
        if not taken and any("autouse" in ast.dump(each) for each in decorators):
            yield f"{names[0]} (added, and used by all)"
        return
    yield f"line {one.lineno} (added)"
