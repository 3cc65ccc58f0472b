"""`Agent`: who does the work."""

from __future__ import annotations

from collections.abc import AsyncIterator

from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.house import Greenroom, at_once, synchronously
from greenroom.app.library.results import Heard, Result, T
from greenroom.app.library.runs import Approve


class Agent(Blueprint[T]):
    """An agent: its name, what it is told, which tools and which other agents it may call, and what it answers with.

    `model` is a `provider:model`, a role (`strong`, `fast`), a group, a `Model` of one's own; none is the normal one.
    With `output_type` (a dataclass, a pydantic model, any type that JSON knows) its answer is a value of that type;
    what does not fit is asked for again, at most `repairs` times.
    """

    async def run(self, text: str, *, house: Greenroom | None = None, approve: Approve | None = None) -> Result[T]:
        """Give it something to do and wait for the result. It works in `house`, else in one kept in `.greenroom/`."""
        async with at_once(house) as here:
            return await here.run(self, text, approve=approve)

    async def stream(
        self, text: str, *, house: Greenroom | None = None, approve: Approve | None = None
    ) -> AsyncIterator[Heard[T]]:
        """The same, told as it happens: words, thoughts, calls and their results, and last of all the result."""
        async with at_once(house) as here:
            async for heard in here.stream(self, text, approve=approve):
                yield heard

    def run_sync(self, text: str, *, house: Greenroom | None = None, approve: Approve | None = None) -> Result[T]:
        """`run` for scripts and notebooks."""
        return synchronously(self.run(text, house=house, approve=approve))
