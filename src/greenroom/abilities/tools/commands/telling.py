"""What is told of a command that has ended, or was cut off: in words for the model, in figures for everybody else."""

from __future__ import annotations

import signal
from typing import Final

from greenroom.abilities.tools.commands.kept import Kept
from greenroom.abilities.tools.output.long import shaped
from greenroom.core.base.records import Data
from greenroom.core.ports.commands import Ended
from greenroom.core.ports.executor import Outcome
from greenroom.core.ports.tool import SHOWN

NOTHING: Final = "It printed nothing."
STATUS: Final = 400
"""Bytes for how it ended."""


def outcome(ended: Ended, kept: Kept, *, seconds: int, handle: str) -> Outcome:
    """The outcome of a step that ran a command. A command that failed is a step that was done: the model reads why."""
    if ended.how == "lost":
        error = (
            "What looked after the command was killed, so it is not known how far it came, nor that all its processes "
            "are dead. Look before you run it again."
        )
        return Outcome(state="uncertain", error=error, result=_result(kept, "cut off", handle, ended))
    return Outcome(result=_result(kept, status(ended, seconds), handle, ended))


def cancelled(kept: Kept, handle: str) -> Outcome:
    """What is left of one that somebody cancelled."""
    return Outcome(result=_result(kept, "cancelled", handle, None))


def status(ended: Ended, seconds: int) -> str:
    """How it ended, in a sentence or two. How long it took is not told: the same run reads the same."""
    told = _how(ended, seconds)
    if ended.strays:
        told += f"\n({ended.strays} of its processes still ran and were ended; what is to go on needs background=true.)"
    if not ended.contained:
        told += "\n(On this system a process that left the command's process group would not be found.)"
    return told


def _how(ended: Ended, seconds: int) -> str:
    dead = "all its processes are dead" if ended.contained else "its process group is dead"
    match ended.how:
        case "exited":
            return f"exit code {ended.code}"
        case "signalled":
            return f"killed by signal {ended.signal} ({_name(ended.signal)})"
        case "timed_out":
            return f"timed out after {seconds} s; {dead}"
        case "cancelled" | "lost":
            return f"stopped before its end; {dead}"


def _result(kept: Kept, told: str, handle: str, ended: Ended | None) -> Data:
    parts = shaped(kept.text, handle, SHOWN - STATUS)
    parts["output"] = f"{told}\n{parts['output'] or NOTHING}"
    if ended is None:
        return {**parts}
    return {**parts, "exit_code": ended.code, "how": ended.how, "seconds": ended.seconds}


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
