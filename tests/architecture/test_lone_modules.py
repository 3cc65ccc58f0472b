"""A small module with one importer belongs into that importer."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.architecture.house import Finding, Source, listing, sources

SMALL = 80
FOUND_BY_REGISTRY = {
    "greenroom.adapters.sandbox.seatbelt": "an adapter, beside those of the other systems",
    "greenroom.app.store_check": "its importer is a command, which holds no logic of the store",
    "greenroom.cli.main": "the entry point of the command",
}
"""Modules that stay, and why. Packages collect modules for their users, so `__init__` is no importer here."""


def name_module(path: str) -> str:
    """Return the name under which a file in `src` is imported."""
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def find_imports(source: Source, modules: Iterable[str]) -> Iterator[str]:
    """Yield the modules that a file imports, anywhere in it."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from names.intersection(modules) or {node.module}


def find_lone(files: Iterable[Source]) -> Iterator[Finding]:
    """Yield small modules with exactly one importer."""
    modules = {name_module(file.path): file for file in files if not file.path.endswith("__init__.py")}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, file in modules.items():
        for imported in find_imports(file, modules):
            importers[imported].add(name)
    for name, file in modules.items():
        if len(importers[name]) == 1 and len(file.text.splitlines()) < SMALL and name not in FOUND_BY_REGISTRY:
            yield Finding(file.path, f"merge into {importers[name].pop()}")


def test_no_small_module_has_only_one_importer() -> None:
    found = list(find_lone(source for source in sources() if source.path.startswith("src/")))
    assert not found, listing(found)


def test_a_lone_module_is_found() -> None:
    lone = Source(path="src/greenroom/a.py", text="x = 1\n")
    user = Source(path="src/greenroom/b.py", text="from greenroom.a import x\n")
    other = Source(path="src/greenroom/c.py", text="def f():\n    from greenroom import a\n")
    assert list(find_lone((lone, user))) == [Finding(lone.path, "merge into greenroom.b")]
    assert not list(find_lone((lone, user, other)))
    assert not list(find_lone((Source(path=lone.path, text="x = 1\n" * SMALL), user)))
