"""A conversation far longer than its model's window goes on, and what left the window is found again."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from greenroom import Agent, Greenroom, tool
from greenroom.core.ports.model import (
    ChatMessage,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
    ToolCall,
    Usage,
)
from greenroom.core.state.step import Step

FACT = "The vault of 上海 opens with 7391."
WINDOW = 32_768
PAGE_BYTES = 28_000
BYTES_PER_TOKEN = 4
WORDS = [f"word{number}" for number in range(5000)]


@tool(effect="pure")
def read_page(number: int) -> str:
    """Read a page."""
    words, noise = list[str](), random.Random(number)
    while len(words) * 9 < PAGE_BYTES:
        words += noise.choices(WORDS, k=12)
        words.append("\n")
    if number == 0:
        words.insert(700, f"\n{FACT}\n")
    return " ".join(words)[:PAGE_BYTES]


@dataclass
class Reader:
    """A model that reads pages, asks the history for a fact, and answers with what it finds there."""

    pages: int
    query: str = "opens vault"
    name: str = "fake:reader"
    card: ModelCard = field(default_factory=lambda: ModelCard(output=1000, window=WINDOW))
    read: int = 0
    sizes: list[int] = field(default_factory=list)
    offered: list[bool] = field(default_factory=list)
    facts_seen: list[int] = field(default_factory=list)

    def price(self, _: int, __: int) -> int:
        return 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Reply to a request. Its size is what counts against the window."""
        size = sum(len(message.content.encode()) for message in request.messages) // BYTES_PER_TOKEN
        self.sizes.append(size)
        yield self._reply(request)
        yield Usage(input=size, output=10)
        yield Finished()

    def _reply(self, request: ModelRequest) -> ModelTextDelta | ToolCall:
        if request.purpose.skill == "compact":
            return ModelTextDelta(text="Pages were read.")
        self.offered.append("search_history" in {spec.name for spec in request.tools})
        newest = request.messages[-1]
        if newest.role == "tool" and "(read_page)" in newest.content:
            return ModelTextDelta(text=next(line for line in newest.content.splitlines() if "7391" in line))
        if any(FACT in message.content for message in request.messages):
            self.facts_seen.append(self.read)
        if self.read < self.pages:
            self.read += 1
            return call("read_page", number=self.read - 1)
        return call("search_history", query=self.query)


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(call_id=f"{name}-{time.monotonic_ns()}", name=name, arguments=arguments)


async def read_all(reader: Reader, home: Path | None = None) -> tuple[str, list[Step]]:
    """Let an agent read these pages. Return its answer and all its steps."""
    agent = Agent("ann", "You read.", model=reader, tools=[read_page], max_turns=100_000)
    async with Greenroom(home=home, in_memory=home is None) as greenroom:
        result = await greenroom.run(agent, "Read all pages, then say how the vault opens.")
        steps = [step async for step in greenroom.runtime.archive(result.run_id, "step") if isinstance(step, Step)]
    return result.text, steps


@pytest.mark.req("AG-3", "AG-35", "AG-182")
@pytest.mark.parametrize("query", ["opens vault", "上海"])
async def test_a_fact_from_the_beginning_comes_back_as_the_result_of_a_search_step(query: str) -> None:
    reader = Reader(pages=20, query=query)
    answer, steps = await read_all(reader)
    assert answer == FACT
    assert max(reader.sizes) < WINDOW
    assert reader.offered[0] is False, "as long as nothing is hidden, it is not offered"
    assert reader.offered[-1] is True
    assert reader.facts_seen
    assert max(reader.facts_seen) < 5, "the fact has left the window long before the search"
    (search,) = [step for step in steps if step.work.executor == "search_history"]
    assert FACT in str((search.result or {})["output"])
    assert sum(step.work.executor == "compact" for step in steps) >= 5


async def test_what_is_not_there_is_said_so_and_the_newest_steps_are_searched_too() -> None:
    class Twice(Reader):
        """Searches for nothing, reads on, and then searches for the fact."""

        def _reply(self, request: ModelRequest) -> ModelTextDelta | ToolCall:
            newest: ChatMessage = request.messages[-1]
            if self.query == "xyzzy" and "has words of" not in newest.content:
                return super()._reply(request)
            if self.query == "xyzzy":
                self.query, self.pages = "opens vault", self.pages + 5
            return super()._reply(request)

    answer, steps = await read_all(Twice(pages=8, query="xyzzy"))
    assert answer == FACT
    first, second = [step for step in steps if step.work.executor == "search_history"]
    assert "Nothing before the summary has words of 'xyzzy'. Try others." in str((first.result or {})["output"])
    assert FACT in str((second.result or {})["output"])


@pytest.mark.prove
async def test_two_million_tokens_go_through_a_small_window(tmp_path: Path) -> None:
    reader = Reader(pages=2_300_000 * BYTES_PER_TOKEN // PAGE_BYTES)
    begin = time.monotonic()
    answer, steps = await read_all(reader, tmp_path)
    read = sum(len(str((step.result or {}).get("output", ""))) for step in steps) // BYTES_PER_TOKEN
    compactions = sum(step.work.executor == "compact" for step in steps)
    took, largest = time.monotonic() - begin, max(reader.sizes)
    print(f"{read:,} tokens of results, {compactions} compactions, largest request {largest:,} tokens, {took:.1f} s")
    assert answer == FACT
    assert read >= 2_000_000
    assert largest < WINDOW
