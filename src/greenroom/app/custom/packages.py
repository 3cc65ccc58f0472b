"""Tools of installed packages: entry points of the group `greenroom.tools`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from greenroom.app.custom.foreign import has_form
from greenroom.app.custom.giving import made
from greenroom.app.functions.tools import Tool
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.tool import ToolExecutor

GROUP: Final = "greenroom.tools"


def of_packages() -> tuple[list[ToolExecutor], list[str]]:
    """All tools, and what is wrong with entry points that give none. Who installed a package has agreed to it."""
    found: list[ToolExecutor] = []
    troubles: list[str] = []
    for one in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        try:
            found += _of(one)
        except WorldFault as fault:
            troubles.append(
                f"The package {_package(one)!r} gives tools under {one.name!r}, which cannot be used: "
                f"{str(fault).rstrip('.')}. It is left out; update or uninstall it."
            )
    return found, troubles


def _of(one: EntryPoint) -> list[ToolExecutor]:
    try:
        return _given(one)
    except WorldFault:
        raise
    except (Exception, SystemExit) as error:
        raise WorldFault(f"{type(error).__name__}: {error}") from error


def _given(one: EntryPoint) -> list[ToolExecutor]:
    thing = one.load()
    source = f"package:{_package(one)}"
    if isinstance(thing, Tool) or has_form(thing):
        return made([thing], source)
    if not callable(thing):
        raise WorldFault(f"{type(thing).__name__} is neither a tool nor a function that gives tools")
    given = cast("Callable[[], object]", thing)()
    several = isinstance(given, Iterable) and not isinstance(given, Tool) and not has_form(given)
    return made(cast("Iterable[object]", given) if several else [given], source)


def _package(one: EntryPoint) -> str:
    return one.dist.name if one.dist is not None else one.value
