"""Callbacks of one's own after every tool call: `.py` files in folders that the person names.

A file gives its callback in one of three forms, of which the first that is there counts: `after_tool_call_cb` (the
callback itself), `get_after_tool_call_cb()` (returns it), `register_after_tool_call_cb()` (returns it, or None if it
has put it somewhere itself). A callback may be a coroutine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, cast

from greenroom.app.hands.modules import Broken, load_module
from greenroom.app.hands.telling import Callback
from greenroom.app.trust.scripts import Script, own_scripts

FACTORIES: Final = ("get_after_tool_call_cb", "register_after_tool_call_cb")


def find_callbacks(folders: Iterable[Path]) -> tuple[list[Callback], list[str]]:
    """The callbacks of all files, by folder and name; and what is wrong with files that give none.

    Files whose name begins with `_` are there for others.
    """
    found: list[Callback] = []
    troubles: list[str] = []
    for folder in folders:
        scripts = own_scripts(folder)
        troubles += scripts.troubles
        for one in scripts.found:
            try:
                found.extend(given_callbacks(one))
            except Broken as broken:
                troubles.append(str(broken))
    return found, troubles


def given_callbacks(script: Script) -> list[Callback]:
    """The callbacks of one file, of what stood in it when it was looked at; `Broken` when it cannot be used."""
    file, module = script.path, load_module(script.path, script.beside)
    direct = getattr(module, "after_tool_call_cb", None)
    if callable(direct):
        return [cast("Callback", direct)]
    for name in FACTORIES:
        factory = getattr(module, name, None)
        if callable(factory):
            return _made(file, name, factory)
    return []


def _made(file: Path, name: str, factory: Callable[[], object]) -> list[Callback]:
    try:
        made = factory()
    except (Exception, SystemExit) as error:
        raise Broken(file, f"{name}() failed: {type(error).__name__}: {error}") from error
    if callable(made):
        return [cast("Callback", made)]
    if made is None and name == FACTORIES[1]:
        return []
    raise Broken(file, f"{name}() returned {type(made).__name__}, which cannot be called")
