"""What files and packages bring to a workspace: the person's own, and the project's as far as it was agreed to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from greenroom.app.custom.callbacks import find_callbacks, given_callbacks
from greenroom.app.custom.giving import given_by
from greenroom.app.custom.packages import of_packages
from greenroom.app.hands.callbacks import Callbacks
from greenroom.app.hands.equipment import Equipment
from greenroom.app.hands.hands import toolbox_of
from greenroom.app.hands.modules import Broken, load_module
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.schema import Settings
from greenroom.app.trust.ledger import Trusted
from greenroom.app.trust.scripts import FOLDERS, Kind, Script, brought, own_scripts, project_scripts
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.tool import ToolExecutor

LEFT_OUT: Final = "greenroom trust"


def custom_equipment(root: Path, settings: Settings, trusted: Trusted) -> Equipment:
    """All that may be used here, and a note for all that may not. This is where such files are run.

    Of two tools with one name the first one stays: the house's, then the person's, packages', the project's.
    """
    folder = config_folder()
    own = own_scripts(folder / FOLDERS["tool"])
    packed, troubles = of_packages()
    brings = _brings(root, "tool", trusted)
    mine, broken = _tools(own.found, "yours")
    theirs, spoilt = _tools(brings.usable, "project")
    tools, doubles = _first_of_each(root, (*mine, *packed, *theirs))
    callbacks = _callbacks(root, (folder / FOLDERS["callback"], *map(Path, settings.after_tool_call)), trusted)
    notes = (*own.troubles, *broken, *troubles, *brings.troubles, *spoilt, *doubles)
    return Equipment(
        tools=tools,
        after=callbacks.after,
        notes=(*notes, *callbacks.notes),
        unagreed=(*brings.unagreed, *callbacks.unagreed),
    )


def _tools(scripts: Iterable[Script], whose: str) -> tuple[list[ToolExecutor], list[str]]:
    found: list[ToolExecutor] = []
    troubles: list[str] = []
    for one in scripts:
        try:
            found += _given(one, f"{whose}:{one.path.name}")
        except Broken as broken:
            troubles.append(str(broken))
    return found, troubles


def _given(script: Script, source: str) -> list[ToolExecutor]:
    module = load_module(script.path, script.beside)
    try:
        return given_by(module, source)
    except WorldFault as fault:
        raise Broken(script.path, str(fault).rstrip(".")) from None
    except (Exception, SystemExit) as error:
        raise Broken(script.path, f"gives no tool: {type(error).__name__}: {error}") from error


def _first_of_each(root: Path, tools: Iterable[ToolExecutor]) -> tuple[tuple[ToolExecutor, ...], list[str]]:
    known = {tool.name: tool.card.source for tool in toolbox_of(root)}
    kept: list[ToolExecutor] = []
    doubles: list[str] = []
    for tool in tools:
        first = known.get(tool.name)
        if first is None:
            known[tool.name] = tool.card.source
            kept.append(tool)
            continue
        whose = "Greenroom has one itself" if first == "built-in" else f"{first} gives one"
        doubles.append(f"The tool {tool.name!r} of {tool.card.source} is left out: {whose}. Give it another name.")
    return tuple(kept), doubles


# ------------------------------------------------------------------------------------------------------- callbacks


def _callbacks(root: Path, folders: Iterable[Path], trusted: Trusted) -> Equipment:
    """Who hears of every call afterwards: the person's callbacks, then the project's."""
    places = list(dict.fromkeys(folders))
    lost = [f"{one} is no folder, so no callback is found there." for one in places[1:] if not one.is_dir()]
    found, troubles = find_callbacks(one for one in places if one.is_dir())
    brings = _brings(root, "callback", trusted)
    for one in brings.usable:
        try:
            found += given_callbacks(one)
        except Broken as broken:
            troubles.append(str(broken))
    return Equipment(
        after=(Callbacks(found),) if found else (),
        notes=(*lost, *troubles, *brings.troubles),
        unagreed=brings.unagreed,
    )


# ----------------------------------------------------------------------------------------------------------- trust


@record
class _Brings:
    """The files of the project that may be used, what is wrong with others, and what waits for a person's trust."""

    usable: tuple[Script, ...]
    troubles: tuple[str, ...]
    unagreed: tuple[str, ...] = ()


def _brings(root: Path, kind: Kind, trusted: Trusted) -> _Brings:
    scripts = project_scripts(root, kind)
    usable = tuple(one for one in scripts.found if trusted(brought(one, kind, root)))
    left = [one.path.name for one in scripts.found if one not in usable]
    if not left:
        return _Brings(usable=usable, troubles=tuple(scripts.troubles))
    what = f"{FOLDERS[kind] if len(left) > 1 else kind} of this project"
    verb = "are" if len(left) > 1 else "is"
    note = f"The {what} {verb} not used before you agree to {'them' if len(left) > 1 else 'it'}"
    waits = f"{note}, {', '.join(left)}: {LEFT_OUT}"
    return _Brings(usable=usable, troubles=tuple(scripts.troubles), unagreed=(waits,))
