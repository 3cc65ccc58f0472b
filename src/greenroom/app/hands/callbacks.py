"""Callbacks of one's own after every tool call: `.py` files in folders that the person names.

A file gives its callback in one of three forms, of which the first that is there counts: `after_tool_call_cb` (the
callback itself), `get_after_tool_call_cb()` (returns it), `register_after_tool_call_cb()` (returns it, or None if it
has put it somewhere itself).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias, cast

from greenroom.app.hands.modules import Broken, load_module
from greenroom.core.ports.executor import Outcome
from greenroom.core.state.step import Step

Callback: TypeAlias = Callable[[Mapping[str, object]], object]
FACTORIES: Final = ("get_after_tool_call_cb", "register_after_tool_call_cb")


class Callbacks:
    """All callbacks. One that fails is told of in the log of the program, and costs nobody anything."""

    def __init__(self, callbacks: Iterable[Callback] = ()) -> None:
        self._callbacks = tuple(callbacks)

    def __call__(self, step: Step, outcome: Outcome) -> None:
        """Tell all of them."""
        told = told_of(step, outcome)
        for callback in self._callbacks:
            try:
                callback(told)
            except (Exception, SystemExit):
                logging.getLogger(__name__).exception("A callback failed after %s", step.work.executor)


def told_of(step: Step, outcome: Outcome) -> Mapping[str, object]:
    """What a callback is told."""
    return {
        "agent": step.agent_id,
        "tool": step.work.executor,
        "arguments": dict(step.work.instruction_content or {}),
        "state": outcome.state,
        "output": str((outcome.result or {}).get("output", "")),
        "error": outcome.error,
    }


def find_callbacks(folders: Iterable[Path]) -> tuple[list[Callback], list[str]]:
    """The callbacks of all files, by folder and name; and what is wrong with files that give none.

    Files whose name begins with `_` are there for others.
    """
    found: list[Callback] = []
    troubles: list[str] = []
    for folder in folders:
        for file in sorted(one for one in folder.glob("*.py") if not one.name.startswith("_")):
            try:
                found.extend(given_callbacks(file))
            except Broken as broken:
                troubles.append(str(broken))
    return found, troubles


def given_callbacks(file: Path, source: bytes | None = None) -> list[Callback]:
    """The callbacks of one file, or of what stood in it when it was looked at; `Broken` when it cannot be used."""
    module = load_module(file, source)
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
