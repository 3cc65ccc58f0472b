"""The tool `search_history`: finds what was said and done before the window of a conversation. The log keeps it all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.read_output import present_text, read_whole_text
from greenroom.abilities.tools.tool import Arguments, CardedTool, build_schema, make_card, read_arguments
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import encode, record
from greenroom.core.base.text import add_fence
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.text_index import Document, TextIndex
from greenroom.core.state.origin import Labels, merge_labels
from greenroom.core.state.spec import SEARCH_HISTORY
from greenroom.core.state.step import Step
from greenroom.core.state.thread import Thread

PASSAGE_CHARS: Final = 1500
"""Characters of a passage. Long texts are split, so that a result shows the place that was found."""

DEFAULT_PASSAGES: Final = 5
MAX_PASSAGES: Final = 20
LEFT_OUT_SKILLS: Final = ("compact", "filter_tools")
"""Skills whose steps only repeat what others said."""

ReadSteps: TypeAlias = Callable[[TeamId, int, int], Awaitable[Sequence[Step]]]
"""Reads the ended steps of a thread: the team, the version of its last step, and the version to begin at."""


@record
class Passage:
    """A part of what a step said or returned."""

    step: StepId
    executor: str
    text: str
    origins: Labels = ()


class SearchHistoryArguments(Arguments, frozen=True):
    query: Annotated[str, Meta(min_length=1, description="Words of what you look for, in any order.")]
    limit: Annotated[
        int, Meta(ge=1, le=MAX_PASSAGES, description=f"How many passages; {DEFAULT_PASSAGES} if left out.")
    ] = DEFAULT_PASSAGES


class SearchHistoryTool(CardedTool):
    """Searches the steps of its conversation that ended before the window. Each is read from the log and indexed once.
    Pure: the log does not change."""

    card = make_card(
        SEARCH_HISTORY,
        "Search what was said, called and returned earlier in this conversation, before its summary. Use it when the "
        "summary lacks a detail: a name, a number, an error, a decision. Not for files: search_files finds those. "
        'Example: {"query": "port of the staging database"}.',
        build_schema(SearchHistoryArguments),
        group="read",
        pure=True,
    )

    def __init__(self, read_steps: ReadSteps | None, make_index: Callable[[], TextIndex]) -> None:
        self._read_steps = read_steps
        self._make_index = make_index
        self._index: TextIndex | None = None
        self._passages: dict[str, dict[str, Passage]] = {}
        self._indexed_to: dict[str, int] = {}
        self._lock = asyncio.Lock()

    async def run(self, context: StepContext) -> Outcome:
        """Search and return the best passages, each with its step."""
        asked = read_arguments(SearchHistoryArguments, context.step)
        thread, team = context.state.threads[context.step.thread_id], context.state.team.team_id
        if self._read_steps is None or not thread.window_from:
            raise ModelFault("Nothing is hidden: you still see the whole conversation.")
        collection = f"{team}/{thread.thread_id}"
        async with self._lock:
            index = self._index = self._index or self._make_index()
            await self._add_new_steps(context, collection, thread, index)
            found = await asyncio.to_thread(index.search, asked.query, limit=asked.limit, collections=(collection,))
        passages = [self._passages[collection][match.key] for match in found]
        if not passages:
            return Outcome(result={"output": f"Nothing before the summary has words of {asked.query!r}. Try others."})
        texts = [f"{passage.step} ({passage.executor}):\n{add_fence(passage.text)}" for passage in passages]
        origins = merge_labels((), (label for passage in passages for label in passage.origins))
        return Outcome(result=present_text("\n\n".join(texts), context.step.step_id), origins=origins)

    async def _add_new_steps(self, context: StepContext, collection: str, thread: Thread, index: TextIndex) -> None:
        """Index the steps that have left the window since the last search."""
        begin, passages = self._indexed_to.get(collection, 1), self._passages.setdefault(collection, {})
        if self._read_steps is None or begin >= thread.window_from:
            return
        new = list[Document]()
        for step in await self._read_steps(context.state.team.team_id, thread.last, begin):
            if step.ended_in < thread.window_from and step.work.executor not in LEFT_OUT_SKILLS:
                text = await render_step(step, context.blob)
                for number, part in enumerate(split_text(text)):
                    new.append(Document(key=f"{step.step_id}/{number}", text=part))
                    passages[new[-1].key] = Passage(
                        step=step.step_id, executor=step.work.executor, text=part, origins=step.origins
                    )
        await asyncio.to_thread(index.replace, collection, new)
        self._indexed_to[collection] = thread.window_from


async def render_step(step: Step, blob: Callable[[str], Awaitable[bytes]]) -> str:
    """Return what a step was asked, called with, and said or returned."""
    result = step.result or {}
    if step.work.type == "tool":
        arguments = encode(step.work.instruction_content or {}).decode()
        parts = (arguments, step.error, await read_whole_text(step, blob))
    else:
        parts = (str(result.get("asked", step.work.text_content)), str(result.get("text", "")), step.error)
    return "\n".join(part for part in parts if part)


def split_text(text: str) -> Iterator[str]:
    """Yield parts of a text, at line ends where possible."""
    start = 0
    while start < len(text):
        end = start + PASSAGE_CHARS
        cut = text.rfind("\n", start + 1, end) + 1 if end < len(text) else len(text)
        end = cut if cut > start + PASSAGE_CHARS // 2 else end
        yield text[start:end]
        start = end
