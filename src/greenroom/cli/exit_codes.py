"""Exit codes, in one place: what a script learns from a run without reading its words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from greenroom.core.base.errors import ModelFault, ProviderFault, Refused, WorldFault
from greenroom.core.ports.workspace import WorkspaceFault


class Exit(IntEnum):
    """What the process says when it ends. 128 + n: ended by signal n."""

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


_STANDINGS: Final[Mapping[str, Exit]] = {
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


def of_standings(words: Iterable[str]) -> Exit:
    """The code of a run whose tasks stand like this: the worst of them."""
    codes = {_STANDINGS.get(word, Exit.FAILED) for word in words}
    return next((code for code in _WORST_FIRST if code in codes), Exit.DONE)


def of_error(error: BaseException) -> Exit:
    """The code of a command that an error ended. A store or an owner in the way is a matter of configuration."""
    match error:
        case Refused() | WorkspaceFault(reason="name"):  # what was typed names nothing
            return Exit.USAGE
        case ModelFault() | ProviderFault():
            return Exit.PROVIDER
        case WorldFault() | TimeoutError():
            return Exit.CONFIG
        case _:
            return Exit.FAILED


def of_signal(number: int) -> Exit:
    """The code of a process that a signal ended."""
    return Exit(128 + number)
