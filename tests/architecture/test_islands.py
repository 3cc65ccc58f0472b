"""A function or class of `src` that nothing in `src` names is an island: no user can reach it."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import greenroom
from tests.architecture.house import Finding, Source, listing, sources

PUBLIC = frozenset(vars(greenroom)["_HOME"])
FOUND_BY_REGISTRY = ("src/greenroom/cli/commands/", "src/greenroom/testing/")
"""The command loader finds the first; users' tests import the second."""

CODE_IN_TEXT = re.compile(r"\bimport \w|\bcast\b|^_[A-Z]\w*$")
"""A program for another process, or the name of a type."""

WORD = re.compile(r"\w+")


REGISTRY = "router"
"""The decorator of a function that FastAPI calls."""


def is_route(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Return whether a decorator registers this function as a route."""
    named = (ast.unparse(decorator).partition(".")[0] for decorator in node.decorator_list)
    return REGISTRY in named


def find_names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a file uses. An import is a use only under another name, a text if it holds the name."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.alias(name=name, asname=str()):
                yield name
            case ast.Constant(value=str(text)) if CODE_IN_TEXT.search(text):
                yield from WORD.findall(text)
            case _:
                pass


def find_islands(files: Iterable[Source], public: frozenset[str] = PUBLIC) -> Iterator[Finding]:
    """Yield functions and classes at the top of a file that no file uses."""
    known = list(files)
    used = Counter(name for file in known for name in find_names(file.tree))
    for file in known:
        for node in file.tree.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            is_special = node.name.startswith("__") or node.name in public or is_route(node)
            if not used[node.name] and not is_special and not file.path.startswith(FOUND_BY_REGISTRY):
                yield Finding(file.path, f"`{node.name}` is used by nothing")


def test_everything_in_src_is_used_by_something() -> None:
    found = list(find_islands(source for source in sources() if source.path.startswith("src/")))
    assert not found, listing(found)


def test_an_island_is_found() -> None:
    island = Source(path="src/greenroom/a.py", text="def f(): ...\ndef g(): ...\nclass Known: ...\n")
    user = Source(path="src/greenroom/b.py", text="from greenroom.a import f, g\n\ng()\n")
    routes = Source(path="src/greenroom/c.py", text="@router.get('/')\ndef h(): ...\n")
    assert list(find_islands((island, user, routes), frozenset({"Known"}))) == [
        Finding(island.path, "`f` is used by nothing")
    ]
