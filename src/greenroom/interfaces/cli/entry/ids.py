"""The ID argument of the commands, and how a shell completes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias

import typer

from greenroom.app.lookup import LAST, possible
from greenroom.app.settings import home_folder
from greenroom.core.base.errors import WorldFault
from greenroom.interfaces.cli.asked.setup import setup_of


def complete(context: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """The ids that may be meant, newest first. A shell never sees an error."""
    try:
        home = home_folder(setup_of(context).home)
    except WorldFault:
        return
    for name in possible(home, incomplete):
        yield name, "the newest team" if name == LAST else "team"


OPTIONAL: Final = typer.Argument(
    metavar="ID", help="Only this team: the beginning of its id, or `last`.", autocompletion=complete
)
Id: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="ID", help="The beginning of a team's id, `last`, or TEAM/TASK.", autocompletion=complete),
]
