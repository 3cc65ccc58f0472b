"""Handing an order over: only now is everything loaded that it takes to do it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

import typer

from greenroom.interfaces.cli.asked.orders import Order
from greenroom.interfaces.cli.asked.setup import Setup, setup_of
from greenroom.interfaces.cli.asked.table import Access, entry_of
from greenroom.interfaces.cli.loading import load

if TYPE_CHECKING:
    from greenroom.interfaces.cli.exits import Exit
    from greenroom.interfaces.cli.runs.session import Desk, Work


def do(context: typer.Context, order: Order) -> int:
    """Do it: the command that is called like the order gets it, with an open runtime if it wants one."""
    entry = entry_of(type(order).__name__.lower())
    command = cast("Callable[[Desk, Order], Awaitable[Exit]]", load(f"commands.{entry.module}", entry.function))
    run = cast("Callable[[Setup, Access, Work], int]", load("runs.session", "run"))
    return run(setup_of(context), entry.access, lambda desk: command(desk, order))
