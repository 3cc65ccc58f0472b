"""Changing a file of the person's: one of us at a time reads it, changes it and puts the new one in its place."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from greenroom.app.settings.keys import locked, replace
from greenroom.core.base.errors import WorldFault

OTHERS: Final = 0o022


def change(path: Path, made: Callable[[], str | None]) -> None:
    """Put what `made` makes in its place; None leaves it as it is. `made` reads the file itself, when it is its turn.

    `WorldFault` where nothing can be written. A link stays a link. What `made` raises is its own business.
    """
    with ExitStack() as turn:
        with _writing(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            turn.enter_context(locked(path.parent))
        text = made()
        with _writing(path):
            if text is not None:
                replace(path.resolve(), text)
            turn.close()


def refuse_writable(path: Path, mode: int, what: str) -> None:
    """`WorldFault` if others can write a file that says `what`."""
    if mode & OTHERS:
        told = f"chmod 600 {shlex.quote(str(path))}"
        raise WorldFault(f"{path} says {what}, and others can write it. Look at it, then type: {told}")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorldFault(f"{path} cannot be written: {error.strerror or error}. Nothing was changed.") from None
