"""The rule for long results: whole where it can be read later, thirty lines of either end where it is read now."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.tool import Arguments, CardedTool, given, make_card, schema_of
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.text import seen
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import SHOWN, WHOLE
from greenroom.core.state.step import Step

ENDS: Final = 30
"""Lines that are shown of the beginning, and of the end."""

WORDS: Final = 700
"""Bytes for what is said about what is left out."""


def presented(text: str, handle: str, shown: int = SHOWN) -> dict[str, object]:
    """The part of a result that a tool's text makes: `output`, and of a long one `whole`. Nothing in it is obeyed.

    `handle` is the id of the step whose result it is.
    """
    return shaped(seen(text), handle, shown)


def shaped(text: str, handle: str, shown: int = SHOWN) -> dict[str, object]:
    """The same for text in which nothing unseen is left."""
    if len(text) <= shown and len(text.encode(errors="replace")) <= shown:
        return {"output": text}
    return {"output": _ends(text, handle, max(shown - WORDS, WORDS)), WHOLE: text}


def _ends(text: str, handle: str, room: int) -> str:
    """Its first and last lines, within so many bytes."""
    count = lines_of(text)
    if count <= 2 * ENDS:
        lines = text.splitlines()
        told = "\n".join(cut(line, room // count) for line in lines)
        return f"{told}\n[… Long lines are cut. {_how_to(handle, 1)} …]"
    # The text may be very long, and is not taken apart for it.
    head, tail = text.split("\n", ENDS)[:ENDS], text.removesuffix("\n").rsplit("\n", ENDS)[-ENDS:]
    bound = room // (2 * ENDS)
    missing = len(text) - len("\n".join((*head, *tail)))
    between = (
        f"[… {count - 2 * ENDS} of {count} lines ({missing} characters) are left out. {_how_to(handle, ENDS + 1)} …]"
    )
    return "\n".join((*(cut(line, bound) for line in head), between, *(cut(line, bound) for line in tail)))


def _how_to(handle: str, line: int) -> str:
    return (
        f'read_output(handle="{handle}", from_line={line}) reads on, '
        f'read_output(handle="{handle}", pattern="error") finds lines.'
    )


def lines_of(text: str) -> int:
    """How many lines it has; what comes after the last line end counts if it is anything."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def cut(line: str, most: int) -> str:
    """A line of so many bytes at most (and what is said about the rest): its beginning, and some of its end."""
    if 4 * len(line) <= most:
        return line
    data = line.encode(errors="replace")
    if len(data) <= most:
        return line
    back = most // 4
    begin, end = data[: most - back].decode(errors="ignore"), data[len(data) - back :].decode(errors="ignore")
    return f"{begin}[… {len(data) - most} bytes …]{end}"


LINES: Final = 100
MOST: Final = 1000
LONGEST: Final = 2000
"""Bytes of a line, where several are read."""

AROUND: Final = 300
"""Characters on either side of what was looked for, in a line that is too long."""


FromLine: TypeAlias = Annotated[int, Meta(ge=1, description="The first line to read; 1 is the first of all.")]
Lines: TypeAlias = Annotated[int, Meta(ge=1, le=MOST, description=f"How many lines; {LINES} if left out.")]
Pattern: TypeAlias = Annotated[
    str,
    Meta(
        description="Only lines with this text in them, whatever its case; several texts with | between. "
        "It is no regular expression."
    ),
]


class Page(Arguments, frozen=True):
    """What is to be read: `pattern` is text to look for, several of them with `|` between."""

    from_line: FromLine = 1
    lines: Lines = LINES
    pattern: Pattern = ""


def read(text: str, page: Page, shown: int = SHOWN) -> str:
    """The page, with the numbers of its lines and where to go on."""
    lines = text.splitlines()
    wanted = [one.lower() for one in page.pattern.split("|") if one.strip()]
    numbered = enumerate(lines[page.from_line - 1 :], page.from_line)
    found = _matching(numbered, wanted) if wanted else numbered
    told, last, more = _fitted(found, page.lines, max(shown - WORDS, WORDS))
    if not told and page.pattern:
        return f"[No line from {page.from_line} on has {page.pattern!r} in it. There are {len(lines)} lines.]"
    if not told:
        return f"[There is no line {page.from_line}: there are {len(lines)}.]"
    rest = f"There is more: from_line={last + 1}." if more else "That was the last."
    what = f"Lines with {page.pattern!r}" if wanted else f"Lines {page.from_line} to {last}"
    return "\n".join((*told, f"[{what}, of {len(lines)}. {rest}]"))


def _matching(numbered: Iterable[tuple[int, str]], wanted: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in numbered:
        low = line.lower()
        places = [place for one in wanted if (place := low.find(one)) >= 0]
        if places:
            yield number, _around(line, min(places))


def _around(line: str, place: int) -> str:
    """Of a very long line what stands around the first thing that was looked for."""
    if len(line) <= LONGEST // 4:
        return line
    begin, end = max(0, place - AROUND), place + AROUND
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"


def _fitted(numbered: Iterable[tuple[int, str]], most: int, room: int) -> tuple[list[str], int, bool]:
    """As many lines as are asked for and have room, the number of the last, and whether there are more."""
    told: list[str] = []
    last = 0
    bound = room - 100 if most == 1 else LONGEST
    for number, line in numbered:
        numbered_line = f"{number}: {cut(line, bound)}"
        room -= len(numbered_line.encode(errors="replace")) + 1
        if len(told) == most or room < 0:
            return told, last, True
        told.append(numbered_line)
        last = number
    return told, last, False


FindStep: TypeAlias = Callable[[TeamId, StepId], Awaitable[Step | None]]
"""An ended step of a team, wherever in it; None when it has none of that name."""


class ReadOutputArguments(Page, frozen=True, kw_only=True):
    """Which result, and what of it."""

    handle: Annotated[str, Meta(description="As the placeholder names it.")]


class ReadOutput(CardedTool):
    """Pure: what a step has made does not change. Without `find` it knows the steps of its own conversation."""

    card = make_card(
        "read_output",
        "Read more of a result that was too long to be shown whole. Its placeholder names the handle. "
        "Look for a pattern first when you know what you need. Not for files: they have tools of their own. "
        'Example: {"handle": "coder#12", "pattern": "error|failed"} or {"handle": "coder#12", "from_line": 31}.',
        schema_of(ReadOutputArguments),
        group="read",
        pure=True,
    )

    def __init__(self, find: FindStep | None = None) -> None:
        self._find = find

    async def run(self, bench: Bench) -> Outcome:
        """Read the page that was asked for."""
        asked = given(ReadOutputArguments, bench.step)
        step = await self._step(bench, asked.handle)
        text = await whole_text(step, bench.blob)
        # Searching millions of characters takes a while, and others have things to do.
        page = await asyncio.to_thread(read, text, asked, self.card.shown)
        return Outcome(result={"output": page}, origins=step.origins)

    async def _step(self, bench: Bench, handle: str) -> Step:
        step = next((one for one in await bench.history() if one.step_id == handle), None)
        if step is None and self._find is not None:
            step = await self._find(bench.world.team.team_id, StepId(handle))
        if step is None or step.result is None:
            raise ModelFault(
                f"There is no output {handle!r} in this team. A handle stands in the placeholder of a long result: "
                "copy it from there."
            )
        return step


async def whole_text(step: Step, blob: Callable[[str], Awaitable[bytes]]) -> str:
    """The text of an ended step's result, whole; `blob` reads what the log keeps beside it."""
    result = step.result or {}
    digest = result.get("blob")
    if isinstance(digest, str) and digest in step.blobs:
        result = await asyncio.to_thread(json.loads, await blob(digest))
    return seen(str(result.get(WHOLE, result.get("output", ""))))
