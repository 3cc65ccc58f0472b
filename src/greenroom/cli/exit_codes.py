"""Exit codes of all commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from greenroom.core.base.errors import ModelFault, ProviderFault, RefusedError, WorldFault
from greenroom.core.ports.workspace import WorkspaceFault


class Exit(IntEnum):
    """Exit code of the process. 128 + n: ended by signal n."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    CONFIG = 3
    PROVIDER = 4
    LIMIT = 5
    WAITING = 6
    UNVERIFIED = 7
    HUNG_UP = 129
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


EXIT_MEANINGS: Final[Mapping[Exit, str]] = {
    Exit.DONE: "done",
    Exit.FAILED: "failed",
    Exit.USAGE: "wrong usage, or an unknown name",
    Exit.CONFIG: "a problem with the settings, the log or the machine",
    Exit.PROVIDER: "the model or its provider failed",
    Exit.LIMIT: "a limit was reached",
    Exit.WAITING: "waiting for a person",
    Exit.UNVERIFIED: "finished, but not verified",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
}
"""What a code means in help texts, unless a command says it more exactly."""


_STATUS_CODES: Final[Mapping[str, Exit]] = {
    "finished": Exit.DONE,
    "failed": Exit.FAILED,
    "cancelled": Exit.FAILED,
    "idle": Exit.FAILED,
    "limit": Exit.LIMIT,
    "provider": Exit.PROVIDER,
    "unverified": Exit.UNVERIFIED,
    "waiting": Exit.WAITING,
    "paused": Exit.WAITING,
}

_WORST_FIRST: Final = (Exit.FAILED, Exit.PROVIDER, Exit.LIMIT, Exit.WAITING, Exit.UNVERIFIED, Exit.DONE)


def exit_for_statuses(words: Iterable[str]) -> Exit:
    """Return the exit code of the worst of these task statuses."""
    codes = {_STATUS_CODES.get(word, Exit.FAILED) for word in words}
    return next((code for code in _WORST_FIRST if code in codes), Exit.DONE)


def exit_for_error(error: BaseException) -> Exit:
    """Return the exit code for an error. A store fault, or a team that another process runs, is `CONFIG`."""
    match error:
        case RefusedError() | WorkspaceFault(reason="name"):  # the typed name is unknown
            return Exit.USAGE
        case WorldFault() if error.code.startswith("plan."):  # the typed request or plan has a fault
            return Exit.USAGE
        case ModelFault() | ProviderFault():
            return Exit.PROVIDER
        case WorldFault() | TimeoutError():
            return Exit.CONFIG
        case _:
            return Exit.FAILED


def exit_for_signal(number: int) -> Exit:
    """Return the exit code of a process that this signal ended."""
    return Exit(128 + number)
