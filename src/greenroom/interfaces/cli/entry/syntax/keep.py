"""How to type what keeps the house tidy: `du`, `gc`, `forget`."""

from __future__ import annotations

from typing import Annotated

import typer

from greenroom.interfaces.cli.asked.orders import Du, Forget, Gc
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.entry.ids import Id


def du(context: typer.Context) -> int:
    """Say how much room each team takes."""
    return do(context, Du())


def gc(context: typer.Context) -> int:
    """Give back the room that nothing needs any more."""
    return do(context, Gc())


def forget(
    context: typer.Context,
    name: Id,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete a team with everything that was logged of it. It cannot be taken back."""
    return do(context, Forget(name=name, yes=yes))
