"""What a server sends, before the SDK reads it: one tool that is out of form must not cost all the others of its page.

Also what is not wanted is dropped here: a shape that a server promises for its results would have to be checked with a
stranger's regular expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import anyio
from mcp.client._transport import ReadStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from greenroom.adapters.mcp.offers import LeftOut
from greenroom.adapters.mcp.schemas import Unfit, tidy
from greenroom.adapters.mcp.words import one_line

HINTS: Final = ("readOnlyHint", "destructiveHint")


class Sieve:
    """Stands before a stream of messages. `left_out` are the tools that were taken out since it was last emptied."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception]) -> None:
        self._stream = stream
        self.left_out: list[LeftOut] = []

    async def receive(self) -> SessionMessage | Exception:
        """The next message, with its tools sifted."""
        message = await self._stream.receive()
        if isinstance(message, SessionMessage) and isinstance(message.message, JSONRPCResponse):
            tools = message.message.result.get("tools")
            if isinstance(tools, list):
                message.message.result["tools"] = self._sifted(tools)
        return message

    def _sifted(self, tools: list[object]) -> list[dict[str, object]]:
        kept = []
        for tool in tools:
            try:
                kept.append(sifted(tool))
            except Unfit as unfit:
                name = tool.get("name") if isinstance(tool, Mapping) else tool
                self.left_out.append(LeftOut(name=one_line(str(name), 80), why=str(unfit)))
        return kept

    async def aclose(self) -> None:
        """Close what is behind it."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


def sifted(tool: object) -> dict[str, object]:
    """A tool with only what is used of it; `Unfit` is a sentence about what is wrong with its form."""
    if not isinstance(tool, Mapping):
        raise Unfit("It is no table.")
    name, description, schema = tool.get("name"), tool.get("description"), tool.get("inputSchema")
    if not isinstance(name, str):
        raise Unfit("Its name is no text.")
    if not isinstance(description, str | None):
        raise Unfit("Its description is no text.")
    try:
        tidy(schema)
    except Unfit as unfit:
        raise Unfit(f"Its schema {unfit}.") from None
    assert isinstance(schema, Mapping)
    hints = tool.get("annotations")
    told = hints if isinstance(hints, Mapping) else {}
    return {
        "name": name,
        "description": description or "",
        "inputSchema": {"type": "object", **schema},
        "annotations": {hint: told[hint] for hint in HINTS if isinstance(told.get(hint), bool)},
    }
