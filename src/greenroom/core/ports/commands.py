"""Commands: one run, an asynchronous stream of what it prints and how it ends. No third-party type crosses this port.

A plain implementation runs them as they are, a sandboxed one behind walls; whoever runs one does not see which. A
command in the background is the same stream, read by somebody who does not wait for its end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from greenroom.core.base.records import record
from greenroom.core.state.step import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`words` are a program and its arguments; `folder` is seen from the workspace's root, and inside it.

    `seconds` is how long it may take. `env` comes on top of what every command gets; names that would change which
    program runs are refused. `hosts` were allowed for this one: it reaches them while it runs, also where something
    keeps others from the network.
    """

    words: tuple[str, ...]
    folder: str = "."
    seconds: float = 120.0
    env: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()


@record
class Begun:
    """It stands ready and has done nothing yet: it goes when the next event is asked for.

    `mark` is what is to be written down before, so that a later life finds its processes; None where it cannot.
    """

    mark: Prepared | None = None


@record
class Printed:
    """A piece of its output, stdout and stderr in the order they came.

    `missing` bytes that came with it are lost, because nobody listened in time.
    """

    text: str
    missing: int = 0


@record
class Ended:
    """It is over, and every process that it began is dead.

    *exited* has a `code`, *signalled* a `signal`; *cancelled* means that it was stopped from outside. After *lost*
    nobody knows how far it came: whoever looked after it was killed. `strays` are processes that it had left running.
    `contained` says that all its processes could be found; if not, only those of its process group are known to be
    dead.
    """

    how: Literal["exited", "signalled", "timed_out", "cancelled", "lost"]
    code: int | None = None
    signal: int = 0
    seconds: float = 0.0
    strays: int = 0
    contained: bool = True


CommandEvent = Begun | Printed | Ended


class Commands(Protocol):
    """Something that runs commands in a workspace."""

    def run(self, command: Command) -> AsyncGenerator[CommandEvent, None]:
        """First `Begun`, then what it prints, last `Ended`; `WorldFault` where it cannot even begin.

        When the stream is closed or its reader cancelled, everything is ended and seen dead before that returns.
        """

    def close(self) -> None:
        """End whatever still runs, and see it dead; nothing can be run any more."""
