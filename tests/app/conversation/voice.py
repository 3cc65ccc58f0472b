"""A chat for tests: a model that says what it is told to, can be held in the middle, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.conversation.chat import Chat, Turn
from greenroom.app.conversation.kits import talk_kits
from greenroom.app.conversation.start import ASSISTANT, Cast, cast_of
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCall,
    Usage,
)
from greenroom.core.state.spec import AgentSpec

PATIENCE = 20.0
HELD = "…"
"""A reply that is not whole before the test lets it go on."""

Reply = str | Failed | ToolCall


class Voice:
    """Replies in order; after the last one it says what it heard last."""

    name = "test:voice"
    card = ModelCard(family="test", window=1_000_000)

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.called: list[str] = []
        self.speaks = asyncio.Event()
        self.goes_on = asyncio.Event()

    def named(self, name: str) -> Voice:
        """The same, whatever it is called."""
        self.called.append(name)
        return self

    def price(self, read: int, written: int) -> int | None:
        """Nothing."""
        return 0 * (read + written)

    @property
    def heard(self) -> list[str]:
        """The messages of the last request, without the first one."""
        return [f"{one.role}: {one.content}" for one in self.requests[-1].messages[1:]]

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next reply."""
        self.requests.append(request)
        reply = self._replies.pop(0) if self._replies else f"Heard: {request.messages[-1].content}"
        if isinstance(reply, Failed):
            yield reply
            return
        yield reply if isinstance(reply, ToolCall) else TextDelta(text=reply)
        if reply == HELD:
            self.speaks.set()
            await self.goes_on.wait()
        yield Usage(input=10, output=5, money=7)
        yield Finished(reason="calls" if isinstance(reply, ToolCall) else "stop")


def cast(spec: AgentSpec = ASSISTANT) -> Cast:
    """Who is talked to."""
    return cast_of(spec, {}, str, model="test:voice")


class Talked:
    """A chat that is held, and what it is held with."""

    def __init__(self, runtime: Runtime, chat: Chat, voice: Voice) -> None:
        self.runtime = runtime
        self.chat = chat
        self.voice = voice

    async def say(self, text: str, *, limits: Limits | None = None) -> Turn:
        """Say something and wait for what comes of it."""
        await self.begin(text, limits=limits)
        return await self.over()

    async def begin(self, text: str, *, limits: Limits | None = None) -> None:
        """Say something."""
        if self.chat.team is None:
            await self.chat.found(cast(), text, limits=limits or Limits())
            await self.chat.open()
        else:
            await self.chat.say(text)

    async def over(self) -> Turn:
        """Wait for what comes of it."""
        async with asyncio.timeout(PATIENCE):
            return await self.chat.over()

    async def interrupted(self) -> Turn:
        """Stop what is being said."""
        async with asyncio.timeout(PATIENCE):
            await self.voice.speaks.wait()
        await self.chat.interrupt()
        return await self.over()


@asynccontextmanager
async def talked(replies: Sequence[Reply] = (), *, notes: str = "") -> AsyncIterator[Talked]:
    """A chat in memory."""
    voice = Voice(*replies)
    runtime = Runtime(MemoryLog(), kits=talk_kits(voice, lambda: notes))
    chat = Chat(runtime, agent=cast().first)
    try:
        yield Talked(runtime, chat, voice)
    finally:
        chat.close()
        await runtime.close()
