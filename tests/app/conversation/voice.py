"""A conversation for tests: a scripted model that can be held in the middle and records its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.conversation.chat import Chat, TurnOutcome
from greenroom.app.conversation.factories import make_conversation_factories
from greenroom.app.conversation.start import ASSISTANT, Participants, select_participants
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
    ToolCall,
    Usage,
)
from greenroom.core.state.spec import AgentSpec

PATIENCE = 20.0
HELD = "…"
"""A reply that is incomplete until the test releases it."""

Reply = str | Failed | ToolCall


class Voice:
    """Replies in order. After the last reply it repeats the last message that it got."""

    name = "test:voice"
    card = ModelCard(family="test", window=1_000_000)

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.called: list[str] = []
        self.speaks = asyncio.Event()
        self.goes_on = asyncio.Event()

    def get_model(self, name: str) -> Voice:
        """Return this model for every name."""
        self.called.append(name)
        return self

    def price(self, read: int, written: int) -> int | None:
        """Return a price of 0."""
        return 0 * (read + written)

    @property
    def heard(self) -> list[str]:
        """Return the messages of the last request, without the first."""
        return [f"{one.role}: {one.content}" for one in self.requests[-1].messages[1:]]

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Stream the next reply."""
        self.requests.append(request)
        reply = self._replies.pop(0) if self._replies else f"Heard: {request.messages[-1].content}"
        if isinstance(reply, Failed):
            yield reply
            return
        yield reply if isinstance(reply, ToolCall) else ModelTextDelta(text=reply)
        if reply == HELD:
            self.speaks.set()
            await self.goes_on.wait()
        yield Usage(input=10, output=5, money=7)
        yield Finished(reason="calls" if isinstance(reply, ToolCall) else "stop")


def cast(spec: AgentSpec = ASSISTANT) -> Participants:
    """Return the agents of the conversation."""
    return select_participants(spec, {}, str, model="test:voice")


class Talked:
    """A conversation, and what it was opened with."""

    def __init__(self, runtime: Runtime, chat: Chat, voice: Voice) -> None:
        self.runtime = runtime
        self.chat = chat
        self.voice = voice

    async def say(self, text: str, *, limits: Limits | None = None) -> TurnOutcome:
        """Send a message and wait for the turn to end."""
        await self.begin(text, limits=limits)
        return await self.over()

    async def begin(self, text: str, *, limits: Limits | None = None) -> None:
        """Send a message."""
        if self.chat.team is None:
            await self.chat.create_team(cast(), text, limits=limits or Limits())
            await self.chat.open()
        else:
            await self.chat.send(text)

    async def over(self) -> TurnOutcome:
        """Wait for the turn to end."""
        async with asyncio.timeout(PATIENCE):
            return await self.chat.wait()

    async def interrupted(self) -> TurnOutcome:
        """Interrupt the reply."""
        async with asyncio.timeout(PATIENCE):
            await self.voice.speaks.wait()
        await self.chat.interrupt()
        return await self.over()


@asynccontextmanager
async def talked(replies: Sequence[Reply] = (), *, notes: str = "") -> AsyncIterator[Talked]:
    """Open a conversation in memory."""
    voice = Voice(*replies)
    runtime = Runtime(MemoryLog(), capability_factories=make_conversation_factories(voice, lambda: notes))
    chat = Chat(runtime, agent=cast().first)
    try:
        yield Talked(runtime, chat, voice)
    finally:
        chat.close()
        await runtime.close()
