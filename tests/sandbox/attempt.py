"""One attempt to get out: a small script, and how somebody outside sees that it succeeded.

Whether it did is never what the script says of itself: a file outside has changed, a canary was reached, a secret that
the script was not given is in its output, a process is alive that should be dead.
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
    "environment": "the house's environment and keys",
    "processes": "processes of the host",
    "network": "network and sockets",
    "kernel": "the kernel's surface",
    "git": "git's metadata",
    "greenroom": "Greenroom's own metadata",
    "persistence": "what a person runs later",
    "resources": "more than its share",
    "outliving": "living on",
    "afterwards": "what the house does afterwards",
}

Need = Literal["root", "cc", "cgroup v1"]
"""What the control needs of the machine; without it the attempt shows nothing, and is not counted."""

Control = Literal["plain", "bare"]
"""Without walls: `PlainCommands`, or, for what those hold already, a bare subprocess as most programs use one."""

Ending = Literal["by itself", "in time", "closed", "house killed"]
"""How the command comes to its end; the house can be killed with -9 in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of it: what it printed, what was seen midway, who is alive."""

    text: str = ""
    midway: str = ""
    refused: str = ""
    alive: tuple[int, ...] = ()

    @property
    def begun(self) -> bool:
        """Whether the script got so far as to try: its first line is there."""
        return BEGINS in self.text


BEGINS: Final = "it begins"
HOLDING: Final = "it holds still"

Seen = Callable[[Stage, Tried], str]
"""What was seen from outside, in words; empty if nothing."""

Midway = Callable[[Stage, tuple[int, ...]], str]
"""The same while the script holds still, with its processes."""


Ready = Callable[[Stage], None]
"""What is there before it."""


def nothing(_stage: Stage) -> None:
    """Nothing to get ready."""


def unseen(_stage: Stage, _tried: Tried) -> str:
    """Whatever there was to see was seen midway."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """`script` may have `@names@` in it, which the stage fills in. `env` is what the command is given on top."""

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
