"""Long results: the first and last thirty lines are shown, and `read_output` reads the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.tool import Arguments, CardedTool, build_schema, make_card, read_arguments
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.text import remove_control_characters
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import MAX_RESULT_BYTES, WHOLE_KEY
from greenroom.core.state.step import Step

END_LINES: Final = 30
"""Number of lines that are shown from the beginning and from the end."""

NOTICE_BYTES: Final = 700
"""Bytes that are reserved for the notice about omitted lines."""


def present_text(text: str, handle: str, shown: int = MAX_RESULT_BYTES) -> dict[str, object]:
    """Return a tool's text as part of a result: `output`, and for a long text also `whole`. Escape sequences and
    invisible characters are removed. `handle` is the id of the step."""
    return shape_text(remove_control_characters(text), handle, shown)


def shape_text(text: str, handle: str, shown: int = MAX_RESULT_BYTES) -> dict[str, object]:
    """Do the same for text that has no invisible characters."""
    if len(text) <= shown and len(text.encode(errors="replace")) <= shown:
        return {"output": text}
    return {"output": _render_ends(text, handle, max(shown - NOTICE_BYTES, NOTICE_BYTES)), WHOLE_KEY: text}


def _render_ends(text: str, handle: str, room: int) -> str:
    """Render the first and last lines in at most `room` bytes."""
    count = count_lines(text)
    if count <= 2 * END_LINES:
        lines = text.splitlines()
        told = "\n".join(cut_line(line, room // count) for line in lines)
        return f"{told}\n[… Long lines are cut. {_describe_read_on(handle, 1)} …]"
    # The text may be very long, so do not split all of it.
    head, tail = text.split("\n", END_LINES)[:END_LINES], text.removesuffix("\n").rsplit("\n", END_LINES)[-END_LINES:]
    bound = room // (2 * END_LINES)
    missing = len(text) - len("\n".join((*head, *tail)))
    between = (
        f"[… {count - 2 * END_LINES} of {count} lines ({missing} characters) are left out. "
        f"{_describe_read_on(handle, END_LINES + 1)} …]"
    )
    return "\n".join((*(cut_line(line, bound) for line in head), between, *(cut_line(line, bound) for line in tail)))


def _describe_read_on(handle: str, line: int) -> str:
    return (
        f'read_output(handle="{handle}", from_line={line}) reads on, '
        f'read_output(handle="{handle}", pattern="error") finds lines.'
    )


def count_lines(text: str) -> int:
    """Count the lines, including a last line without a line ending."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def cut_line(line: str, max_bytes: int) -> str:
    """Cut a line to `max_bytes`, plus a notice: keep its beginning and part of its end."""
    if 4 * len(line) <= max_bytes:
        return line
    data = line.encode(errors="replace")
    if len(data) <= max_bytes:
        return line
    back = max_bytes // 4
    begin, end = data[: max_bytes - back].decode(errors="ignore"), data[len(data) - back :].decode(errors="ignore")
    return f"{begin}[… {len(data) - max_bytes} bytes …]{end}"


DEFAULT_LINES: Final = 100
MAX_LINES: Final = 1000
MAX_LINE_BYTES: Final = 2000
"""Maximum bytes of a line when several lines are read."""

CONTEXT_CHARS: Final = 300
"""Characters that are shown on each side of a match in a long line."""


FromLine: TypeAlias = Annotated[int, Meta(ge=1, description="The first line to read; 1 is the first of all.")]
Lines: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_LINES, description=f"How many lines; {DEFAULT_LINES} if left out.")]
Pattern: TypeAlias = Annotated[
    str,
    Meta(
        description="Only lines with this text in them, in any case; several texts with | between. "
        "It is not a regular expression."
    ),
]


class OutputPage(Arguments, frozen=True):
    """The page to read. `pattern` is a text to search for, or several separated by `|`."""

    from_line: FromLine = 1
    lines: Lines = DEFAULT_LINES
    pattern: Pattern = ""


def read_page(text: str, page: OutputPage, shown: int = MAX_RESULT_BYTES) -> str:
    """Return the page with line numbers, and where to continue."""
    lines = text.splitlines()
    wanted = [word.lower() for word in page.pattern.split("|") if word.strip()]
    numbered = enumerate(lines[page.from_line - 1 :], page.from_line)
    found = _find_matching_lines(numbered, wanted) if wanted else numbered
    told, last, more = _fit_lines(found, page.lines, max(shown - NOTICE_BYTES, NOTICE_BYTES))
    if not told and page.pattern:
        return f"[No line from {page.from_line} on has {page.pattern!r} in it. There are {len(lines)} lines.]"
    if not told:
        return f"[There is no line {page.from_line}: there are {len(lines)}.]"
    rest = f"There is more: from_line={last + 1}." if more else "That was the last."
    what = f"Lines with {page.pattern!r}" if wanted else f"Lines {page.from_line} to {last}"
    return "\n".join((*told, f"[{what}, of {len(lines)}. {rest}]"))


def _find_matching_lines(numbered: Iterable[tuple[int, str]], wanted: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in numbered:
        low = line.lower()
        places = [place for word in wanted if (place := low.find(word)) >= 0]
        if places:
            yield number, _cut_around(line, min(places))


def _cut_around(line: str, place: int) -> str:
    """Cut a very long line around the first match."""
    if len(line) <= MAX_LINE_BYTES // 4:
        return line
    begin, end = max(0, place - CONTEXT_CHARS), place + CONTEXT_CHARS
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"


def _fit_lines(numbered: Iterable[tuple[int, str]], max_lines: int, room: int) -> tuple[list[str], int, bool]:
    """Return as many requested lines as fit, the number of the last, and whether there are more."""
    told: list[str] = []
    last = 0
    bound = room - 100 if max_lines == 1 else MAX_LINE_BYTES
    for number, line in numbered:
        numbered_line = f"{number}: {cut_line(line, bound)}"
        room -= len(numbered_line.encode(errors="replace")) + 1
        if len(told) == max_lines or room < 0:
            return told, last, True
        told.append(numbered_line)
        last = number
    return told, last, False


FindStep: TypeAlias = Callable[[TeamId, StepId], Awaitable[Step | None]]
"""Finds an ended step anywhere in the team by its id, or returns None."""


class ReadOutputArguments(OutputPage, frozen=True, kw_only=True):
    handle: Annotated[str, Meta(description="As the placeholder names it.")]


class ReadOutputTool(CardedTool):
    """Reads more of a long result. Pure: results do not change. Without `find` it finds only steps of its own
    conversation."""

    card = make_card(
        "read_output",
        "Read more of a result that was too long to be shown whole. Its placeholder names the handle. "
        "Look for a pattern first when you know what you need. Not for files: they have tools of their own. "
        'Example: {"handle": "coder#12", "pattern": "error|failed"} or {"handle": "coder#12", "from_line": 31}.',
        build_schema(ReadOutputArguments),
        group="read",
        pure=True,
    )

    def __init__(self, find: FindStep | None = None) -> None:
        self._find = find

    async def run(self, context: StepContext) -> Outcome:
        """Read the requested page."""
        asked = read_arguments(ReadOutputArguments, context.step)
        step = await self._find_step(context, asked.handle)
        text = await read_whole_text(step, context.blob)
        # Searching millions of characters takes a while: do not block the event loop.
        page = await asyncio.to_thread(read_page, text, asked, self.card.shown)
        return Outcome(result={"output": page}, origins=step.origins)

    async def _find_step(self, context: StepContext, handle: str) -> Step:
        step = next((past_step for past_step in await context.history() if past_step.step_id == handle), None)
        if step is None and self._find is not None:
            step = await self._find(context.state.team.team_id, StepId(handle))
        if step is None or step.result is None:
            raise ModelFault(
                f"There is no output {handle!r} in this team. A handle stands in the placeholder of a long result: "
                "copy it from there."
            )
        return step


async def read_whole_text(step: Step, blob: Callable[[str], Awaitable[bytes]]) -> str:
    """Return the whole text of an ended step's result. `blob` reads blobs of the log."""
    result = step.result or {}
    digest = result.get("blob")
    if isinstance(digest, str) and digest in step.blobs:
        result = await asyncio.to_thread(json.loads, await blob(digest))
    return remove_control_characters(str(result.get(WHOLE_KEY, result.get("output", ""))))
