"""One attempt to escape: a small script, and how its success is observed from outside.

The script's own claim never counts. Success is a changed file outside, a reached canary, a secret in the output that
the script was not given, or a process that should be dead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from tests.sandbox.stage import Stage

Kind = Literal[
    "writes",
    "reads",
    "environment",
    "processes",
    "network",
    "kernel",
    "git",
    "greenroom",
    "persistence",
    "resources",
    "outliving",
    "afterwards",
]

MEANING: Final[Mapping[Kind, str]] = {
    "writes": "writes outside the workspace",
    "reads": "reads of secrets outside it",
    "environment": "Greenroom's environment and keys",
    "processes": "processes of the host",
    "network": "network and sockets",
    "kernel": "the kernel's surface",
    "git": "git's metadata",
    "greenroom": "Greenroom's own metadata",
    "persistence": "what a person runs later",
    "resources": "more than its share",
    "outliving": "living on",
    "afterwards": "what Greenroom does afterwards",
}

Need = Literal["root", "cc", "cgroup v1"]
"""What the control needs from the machine. Without it the attempt proves nothing and is not counted."""

Control = Literal["plain", "bare"]
"""Without a sandbox: `LocalCommands`, or a bare subprocess for attempts that those already stop."""

Ending = Literal["by itself", "in time", "closed", "house killed"]
"""How the command ends. Greenroom's process can be killed with -9 in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The result of an attempt: its output, the observation midway, and the live processes."""

    text: str = ""
    midway: str = ""
    refused: str = ""
    alive: tuple[int, ...] = ()

    @property
    def begun(self) -> bool:
        """Return whether the script started to try: its first line is there."""
        return BEGINS in self.text


BEGINS: Final = "it begins"
HOLDING: Final = "it holds still"

Seen = Callable[[Stage, Tried], str]
"""The observation from outside in words, or ""."""

Midway = Callable[[Stage, tuple[int, ...]], str]
"""The same while the script pauses, with its processes."""


Ready = Callable[[Stage], None]
"""Prepares the stage before the attempt."""


def nothing(_stage: Stage) -> None:
    """Prepare nothing."""


def unseen(_stage: Stage, _tried: Tried) -> str:
    """Return "": everything was observed midway."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt. The stage fills in `@names@` in `script`. `env` are additional variables of the command."""

    kind: Kind
    name: str
    script: str
    seen: Seen = unseen
    midway: Midway | None = None
    language: Literal["python3", "bash"] = "python3"
    ready: Ready = nothing
    needs: tuple[Need, ...] = ()
    control: Control = "plain"
    ending: Ending = "by itself"
    env: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 30.0

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"
