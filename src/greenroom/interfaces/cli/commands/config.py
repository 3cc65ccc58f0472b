"""`greenroom config`: which settings hold here, and which files they come from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from rich.text import Text

from greenroom.app.settings.layers import load, looked_at, rows
from greenroom.core.base.errors import WorldFault
from greenroom.interfaces.cli.context import Invocation
from greenroom.interfaces.cli.display.output import Column, Fitted, row
from greenroom.interfaces.cli.exit_codes import Exit

SETTINGS: Final = (
    Column(name="setting"),
    Column(name="value", gives=True),
    Column(name="from", gives=True, style="dim"),
)
FILES: Final = (Column(name="what"), Column(name="file"), Column(name="there"))


async def config_show(cli: Invocation) -> Exit:
    """Show every setting and where it comes from; keys are masked."""
    try:
        found = rows(load({}, os.environ, Path.cwd()))
    except FileNotFoundError:
        raise WorldFault("The current folder is gone. Go to another one.") from None
    cli.out.begin(command="config show")
    cli.out.listing("setting", ({"key": each.key, "value": each.value, "from": str(each.origin)} for each in found))
    unset = Text("not set", style="dim")
    cells = [row(each.key, each.value or unset.copy(), str(each.origin)) for each in found]
    cli.out.show(Fitted(SETTINGS, cells))
    return cli.out.result("ok", Exit.DONE)


async def config_path(cli: Invocation) -> Exit:
    """Print the files that settings and keys are read from."""
    files = looked_at(os.environ, Path.cwd())
    cli.out.begin(command="config path")
    cli.out.listing("file", ({"what": each.what, "path": str(each.path), "there": each.there} for each in files))
    cli.out.show(Fitted(FILES, [row(each.what, str(each.path), "yes" if each.there else "no") for each in files]))
    return cli.out.result("ok", Exit.DONE)
