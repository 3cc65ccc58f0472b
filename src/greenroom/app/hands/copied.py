"""A workspace that is a copy of another one: known by that one's place, with tools of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from greenroom.core.ports.commands import Commands
from greenroom.core.ports.sandbox import Shown
from greenroom.core.ports.tool import ToolExecutor

Wrap: TypeAlias = Callable[[ToolExecutor], ToolExecutor]
Quiet: TypeAlias = Callable[[], Awaitable[Sequence[str]]]
"""Ends what agents have begun in the background, and says which those were."""

More: TypeAlias = Callable[[Commands, Quiet], Iterable[ToolExecutor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """`folder` has the files of the workspace `at`, and what is `lent` to it. Each tool is wrapped; there are `more` of
    them, which may need its commands, and that they are quiet; nobody is asked about those that are `known`, but for
    what they touch."""

    folder: Path
    at: Path
    lent: Sequence[Shown]
    wrap: Wrap
    more: More
    known: tuple[str, ...] = ()
