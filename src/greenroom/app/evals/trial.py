"""A trial: one task, one model, what it did and how that is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from greenroom.app.library.agent import Agent
from greenroom.core.base.records import Data


@dataclass(slots=True)
class Scratch:
    """What the tools of a task work on, and what they were called with."""

    files: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, Data]] = field(default_factory=list)

    def note(self, tool: str, /, **arguments: object) -> None:
        """A tool was called."""
        self.calls.append((tool, arguments))

    def called(self, name: str) -> list[Data]:
        """What it was called with, each time."""
        return [arguments for one, arguments in self.calls if one == name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a trial. `error` is why there is no output."""

    output: object
    text: str
    error: str
    scratch: Scratch

    @property
    def said(self) -> str:
        """All that a person reads, in small letters."""
        return f"{self.text} {self.error}".lower()


Judge = Callable[[Played], Mapping[str, bool]]
"""What must hold, by a sentence; all of it, or the task is not passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalTask:
    """A task. `make` gives the agent its tools on a new scratch."""

    name: str
    about: str
    question: str
    make: Callable[[Scratch, str], Agent[Any]]
    judge: Judge
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a trial went: `missed` are the sentences that do not hold."""

    task: str
    about: str
    missed: Sequence[str]
    error: str
    seconds: float
    money: int
    tokens: int

    @property
    def passed(self) -> bool:
        """Whether all holds."""
        return not self.missed
