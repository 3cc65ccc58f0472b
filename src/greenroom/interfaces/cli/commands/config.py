"""`greenroom config`: which settings hold here, and which files they come from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from rich.text import Text

from greenroom.app.settings.layers import Loaded, load, looked_at, rows
from greenroom.core.base.errors import WorldFault
from greenroom.interfaces.cli.asked.orders import ConfigPath, ConfigShow
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.session import Desk

SETTINGS: Final = (
    Column(name="setting"),
    Column(name="value", gives=True),
    Column(name="from", gives=True, style="dim"),
)
FILES: Final = (Column(name="what"), Column(name="file"), Column(name="there"))


async def config_show(desk: Desk, _: ConfigShow) -> Exit:
    """A row per setting."""
    found = rows(here())
    desk.out.begin(command="config show")
    desk.out.expect("settings")
    for one in found:
        desk.out.item("setting", {"key": one.key, "value": one.value, "from": str(one.origin)})
    desk.out.show(Fitted(SETTINGS, [row(one.key, value(one.value), str(one.origin)) for one in found]))
    return desk.out.result("ok", Exit.DONE)


async def config_path(desk: Desk, _: ConfigPath) -> Exit:
    """A row per file, whether it is there or not."""
    files = looked_at(os.environ, Path.cwd())
    desk.out.begin(command="config path")
    desk.out.expect("files")
    for one in files:
        desk.out.item("file", {"what": one.what, "path": str(one.path), "there": one.there})
    desk.out.show(Fitted(FILES, [row(one.what, str(one.path), "yes" if one.there else "no") for one in files]))
    return desk.out.result("ok", Exit.DONE)


def here() -> Loaded:
    """The settings that hold in the current folder."""
    try:
        return load({}, os.environ, Path.cwd())
    except FileNotFoundError:
        raise WorldFault("The current folder is gone. Go to another one.") from None


def value(text: str) -> Text:
    """What is not set looks like it."""
    return Text(text) if text else Text("not set", style="dim")
