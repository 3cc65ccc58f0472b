"""Commands: one run is a stream of output and an end. No third-party type crosses this port.

Whether a command is confined depends on the sandbox of its workspace; callers do not see the difference. A background
command is the same stream, read by a task that does not wait for its end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from greenroom.core.base.records import record
from greenroom.core.state.step import PreparedEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command. `words` are a program and its arguments; `folder` is relative to the workspace root, and inside it.

    `seconds` is the time limit. `env` adds to the environment of every command; names that change which program runs
    are refused. `hosts` are allowed hosts for this command only, even if the sandbox has no other network.
    """

    words: tuple[str, ...]
    folder: str = "."
    seconds: float = 120.0
    env: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()


@record
class CommandStarted:
    """The command is ready and has done nothing yet. It starts when the next event is requested.

    `mark` is recorded before the start, so that a later process can find its processes; None if that is impossible.
    """

    mark: PreparedEffect | None = None


@record
class CommandPrinted:
    """A piece of output, stdout and stderr in order of arrival.

    `missing` is the number of bytes lost because they were not read in time.
    """

    text: str
    missing: int = 0


@record
class CommandEnded:
    """The command has ended, and so has every process that it started.

    *exited* has a `code`, *signalled* a `signal`; *cancelled* means that it was stopped from outside. After *lost* its
    progress is unknown, because its supervisor was killed. `strays` counts the processes it left running. `contained`
    means that all its processes could be found; otherwise only its process group is known to have ended.
    """

    how: Literal["exited", "signalled", "timed_out", "cancelled", "lost"]
    code: int | None = None
    signal: int = 0
    seconds: float = 0.0
    strays: int = 0
    contained: bool = True


CommandEvent = CommandStarted | CommandPrinted | CommandEnded


class CommandRunner(Protocol):
    """Runs commands in a workspace."""

    def run(self, command: Command) -> AsyncGenerator[CommandEvent, None]:
        """Yield `CommandStarted`, then the output, then `CommandEnded`. Raise `WorldFault` if the command cannot start.

        When the stream is closed or its reader cancelled, all processes are ended before that returns.
        """

    def close(self) -> None:
        """End all running commands. None can be run afterwards."""
