"""The story as a person reads it, and as a program does: each line, the command, what it printed, and what is true."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from greenroom.core.base.records import record
from greenroom.interfaces.cli.display.output import Console, harmless
from greenroom.interfaces.cli.runs.session import Desk
from greenroom.interfaces.cli.runs.story.stage import Stage
from greenroom.testing.story.facts import Fact

INDENT: Final = "   "
NARROWEST: Final = 30


@record
class Line:
    """A line of the story that was played: its number, what it is about, what was typed, and what was found."""

    number: int
    title: str
    commands: tuple[str, ...]
    facts: tuple[Fact, ...]

    @property
    def held(self) -> bool:
        """Whether all of it is true."""
        return all(one.held for one in self.facts)


@record
class Times:
    """Milliseconds: of everything, of what ran checks, of scripted replies and pauses."""

    whole: int
    checks: int
    waits: int

    @property
    def rest(self) -> int:
        """What Greenroom and git took themselves."""
        return max(self.whole - self.checks - self.waits, 0)


class Telling:
    """Tells it. `typed` is what was typed since the line began."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        console = Console(stderr=True)
        self._width = max(console.width, NARROWEST) if console.is_terminal else 0
        self.typed: list[str] = []

    def begin(self, number: int, title: str) -> None:
        """A line begins."""
        self.typed.clear()
        self._say("")
        self._say(title, first=f"{number:<{len(INDENT)}}", style="bold")

    def command(self, text: str) -> None:
        """Somebody types."""
        self.typed.append(text)
        self._say(f"$ {text}", style="cyan")

    def heard(self, text: str) -> None:
        """A command prints."""
        if text.strip():
            self._say(harmless(text), first=f"{INDENT}│ ", style="dim")

    def open(self, text: str, *, style: str = "") -> None:
        """The first words, before any line."""
        self._say(text, first="", style=style)

    def note(self, text: str) -> None:
        """The storyteller's own words."""
        self._say(text)

    def end(self, line: Line) -> None:
        """What is true of it."""
        for one in line.facts:
            mark, style = ("✓", "green") if one.held else ("✗", "bold red")
            self._say(one.text, first=f"{INDENT}{mark} ", style=style)
        facts = [{"held": one.held, "text": one.text} for one in line.facts]
        self._desk.out.item(
            "line",
            {
                "number": line.number,
                "title": line.title,
                "commands": list(line.commands),
                "held": line.held,
                "facts": facts,
            },
        )

    def _say(self, text: str, *, first: str = INDENT, style: str = "") -> None:
        for line in wrapped(text, first, self._width):
            self._desk.progress.note(line, style=style)


def wrapped(text: str, first: str, width: int) -> Iterator[str]:
    """The text in lines that fit; those after the first stand below it. Without a width nothing is cut."""
    if not width or len(first) + len(text) <= width:
        yield f"{first}{text}".rstrip()
        return
    hang = first if "│" in first else " " * len(first)
    own = text[: len(text) - len(text.lstrip())]
    yield from textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=f"{hang}{own}",
        break_on_hyphens=False,
        break_long_words=False,  # a path that is cut cannot be copied
    )


def fitting(texts: Iterable[str], width: int) -> Iterator[str]:
    """Sentences in lines that fit; without a width nothing is cut."""
    return (line for one in texts for line in wrapped(one.lstrip(), one[: len(one) - len(one.lstrip())], width))


def verdict(lines: Sequence[Line], total: int, times: Times) -> Iterator[str]:
    """How it ended, and what it took."""
    facts, wrong = sum(len(one.facts) for one in lines), next((one for one in lines if not one.held), None)
    if wrong is None:
        yield f"✓ The story held: {total} lines, {facts} facts, looked up in files, git and the log."
    else:
        yield f"✗ The story did not hold, in line {wrong.number} of {total}: {wrong.title}."
        yield from (f"  {one.text}" for one in wrong.facts if not one.held)
    yield (
        f"  {_seconds(times.whole)}: {_seconds(times.checks)} in steps that ran checks, "
        f"{_seconds(times.waits)} scripted replies and pauses, {_seconds(times.rest)} Greenroom and git themselves."
    )


def _seconds(millis: int) -> str:
    return f"{millis / 1000:.1f} s"


def to_type(stage: Stage, place: str) -> Iterator[str]:
    """What to type to look at all of it. Without a `place` nothing was applied."""
    yield f"cd {shlex.quote(str(stage.shop))}"
    yield from (
        f"export {name}={shlex.quote(value)}" for name, _, value in (one.partition("=") for one in stage.exports)
    )
    if "GREENROOM_CALLED_AS" in os.environ or not shutil.which("greenroom"):
        yield f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"'
    yield "git log --oneline --all        # a commit for each step"
    yield "greenroom show last            # who did what"
    yield "greenroom diff last            # the change"
    yield "greenroom replay last          # every moment of it"
    if place:
        yield "greenroom apply last           # take it over once more; `undo last` takes it back"
        yield f"greenroom blame {place:<15}# then: who wrote that line"
