"""The ID argument of the commands, and how a shell completes it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from greenroom.app.lookup import LAST
from greenroom.app.runtime import Runtime
from greenroom.app.settings import home_folder
from greenroom.core.base.errors import GreenroomError
from greenroom.interfaces.cli.setup import setup_of


def complete(context: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """The ids that may be meant, newest first. A shell never sees an error."""
    home = home_folder(setup_of(context).home)
    try:
        names = asyncio.run(_names(home)) if home.is_dir() else []
    except (GreenroomError, OSError):
        names = []
    for name in ([LAST] if names else []) + names:
        if name.startswith(incomplete):
            yield name, "the newest team" if name == LAST else "team"


async def _names(home: Path) -> list[str]:
    runtime = await Runtime.open(home)
    try:
        return [info.stream for info in reversed(await runtime.log.streams())]
    finally:
        await runtime.close()


Id: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="ID", help="The beginning of a team's id, `last`, or TEAM/TASK.", autocompletion=complete),
]
