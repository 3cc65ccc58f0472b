"""A platform: a conversation with a model of one provider. Subclass it to add a platform of one's own.

Retries with their time limit are in the model that it asks (one place for all), so here an answer is an answer and a
fault is a fault.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from greenroom.adapters.models.catalog.catalog import split
from greenroom.core.base.errors import Bug, WorldFault
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    Media,
    Model,
    ModelCard,
    ModelRequest,
    Purpose,
    Retried,
    TextDelta,
    Usage,
)

Make = Callable[[str], Model]
LONGEST_ANSWER: Final = 8192
LARGEST_FILE: Final = 20_000_000
CHARS_PER_TOKEN: Final = 3
"""A cautious guess; Chinese has fewer, and is cut earlier than it would have to be."""

SHARE: Final = 2
"""One message may take the second part of a window: the rest is for the conversation and the answer."""

SHOWN: Final = 1000
"""Characters of a message that are said when the whole is in a file."""


class LLMContext:
    """What was said, oldest first, cut to its last turns; a system message stands before it and stays. It keeps
    the very messages that it is given, and so their bytes. A turn is what a person says and all up to the next time."""

    def __init__(self, context_size: int = 20) -> None:
        if context_size < 0:
            raise Bug(f"A history of {context_size} turns cannot be kept. Give 0 or more.")
        self.context_size = context_size
        self._history: list[ChatMessage] = []

    def add_message(self, message: ChatMessage) -> None:
        """Something more was said."""
        self._history.append(message)

    def remove_last_message(self) -> ChatMessage | None:
        """Take the newest message back."""
        return self._history.pop() if self._history else None

    def set_history(self, messages: Iterable[ChatMessage]) -> None:
        """Another history in the place of this one."""
        self._history = list(messages)

    def get_history(self) -> tuple[ChatMessage, ...]:
        """All messages, oldest first."""
        return tuple(self._history)

    def clear(self) -> None:
        """Forget everything, the system message too."""
        self._history.clear()

    def trim_history(self) -> None:
        """Keep the last `context_size` turns and every system message. A call is never parted from its result."""
        starts = self._turns()
        if len(starts) <= self.context_size:
            return
        first = starts[-self.context_size] if self.context_size else len(self._history)
        self._history = [
            message for place, message in enumerate(self._history) if place >= first or message.role == "system"
        ]

    def _turns(self) -> Sequence[int]:
        """Where turns begin: where a person speaks and no call waits for its result."""
        starts: list[int] = []
        waiting: set[str] = set()
        for place, message in enumerate(self._history):
            if message.role == "user" and not waiting:
                starts.append(place)
            elif message.role == "assistant":
                waiting = {call.call_id for call in message.calls}
            elif message.role == "tool":
                waiting.discard(message.call_id or "")
        return starts


def fitted(text: str, card: ModelCard) -> tuple[str, tuple[Media, ...]]:
    """What is said, and what is shown with it."""
    most = card.window * CHARS_PER_TOKEN // SHARE
    if len(text) <= most:
        return text, ()
    if card.files:
        file = Media(media_type="text/plain", data=text.encode(), name="message.txt")
        return f"The whole message is in the file message.txt. It begins:\n{text[:SHOWN]}", (file,)
    left = len(text) - most
    half = most // 2
    return f"{text[:half]}\n[… {left:,} characters are left out here …]\n{text[-half:]}", ()


class BasePlatform:
    """A conversation (an `LLMContext`) over the model that `make` gives for a name.

    A platform of one's own sets `platform` and overrides `model_named`, or whole methods.
    """

    platform: ClassVar[str] = ""

    def __init__(
        self, make: Make, *, groups: Mapping[str, Sequence[str]] | None = None, context: LLMContext | None = None
    ) -> None:
        self._make: Final = make
        self._groups: Final = groups or {}
        self._context = context or LLMContext()
        self._model: Model | None = None
        self._system: ChatMessage | None = None
        self._waiting: tuple[Media, ...] = ()
        self._turns = 0
        self._one_at_a_time: Final = asyncio.Lock()

    # ------------------------------------------------------------------------------------------------ who answers

    @classmethod
    def platform_name(cls) -> str:
        """The name of the platform: for a built-in one the provider's."""
        return cls.platform

    def name(self) -> str:
        """The model's name, without the provider; empty while there is none."""
        return "" if self._model is None else self._model.name.partition(":")[2]

    def model_named(self, name: str) -> Model:
        """The model of this name at this platform."""
        return self._make(name)

    def set_model_name(self, name: str) -> None:
        """Speak with this model from now on; `WorldFault` if it cannot be had."""
        self._model = self.model_named(name)

    def set_model_group(self, group: str) -> None:
        """Speak with the first model of a group that this platform serves."""
        models = [split(name, also=(self.platform_name(),)) for name in self._groups.get(group, ())]
        ours = [model for platform, model in models if platform == self.platform_name()]
        if not ours:
            raise WorldFault(
                f"The group {group!r} has no model of {self.platform_name()!r}. "
                f"Add one to it, or take another platform."
            )
        self.set_model_name(ours[0])

    @property
    def model(self) -> Model:
        """Who answers."""
        if self._model is None:
            raise WorldFault(f"{self.platform_name()!r} was given no model. Choose one with `set_model_name`.")
        return self._model

    # ------------------------------------------------------------------------------------------ what is talked of

    @property
    def context(self) -> LLMContext:
        """What was said so far."""
        return self._context

    def set_system_prompt(self, text: str) -> None:
        """What the model is told before everything else; an empty text takes it back."""
        self._system = ChatMessage(role="system", content=text) if text else None

    def reset(self) -> None:
        """A new conversation: nothing was said, no file is waiting. The system prompt stays."""
        self._context.clear()
        self._waiting = ()

    @property
    def can_upload(self) -> bool:
        """Whether files can be shown to this model; if not, show it a summary."""
        return self.model.card.files or self.model.card.images

    async def upload_files(self, paths: Sequence[str | Path]) -> bool:
        """Show files with the next message: all of them, or none and False."""
        kinds = [mimetypes.guess_type(str(path))[0] or "application/octet-stream" for path in paths]
        card = self.model.card
        if not all(card.images if kind.startswith("image/") else card.files for kind in kinds):
            return False
        try:
            data = await asyncio.to_thread(lambda: [read_file(Path(path)) for path in paths])
        except OSError as error:
            logging.getLogger(__name__).warning("No file was uploaded: %s", error)
            return False
        self._waiting += tuple(
            Media(media_type=kind, data=one, name=Path(path).name)
            for path, kind, one in zip(paths, kinds, data, strict=True)
        )
        return True

    # --------------------------------------------------------------------------------------------------- talking

    async def chat_until_success(self, message: str) -> str:
        """Say something and get the answer. The model retries within its time limit; `WorldFault` after that."""
        return await self.call(message, self._context)

    async def call(self, prompt: str, context: LLMContext) -> str:
        """The same in another conversation. Without an answer the question counts as not asked."""
        async with self._one_at_a_time:
            before, shown = context.get_history(), self._waiting
            context.trim_history()
            said, attached = fitted(prompt, self.model.card)
            context.add_message(ChatMessage(role="user", content=said, media=(*shown, *attached)))
            try:
                text = await self._answer(context)
            except BaseException:
                context.set_history(before)
                raise
            self._waiting = self._waiting[len(shown) :]
            context.add_message(ChatMessage(role="assistant", content=text))
            context.trim_history()
            return text

    async def _answer(self, context: LLMContext) -> str:
        self._turns += 1
        text, spent = "", Usage()
        async for event in self.model.stream(self._request(context)):
            match event:
                case TextDelta(text=more):
                    text += more
                case Retried():
                    text = ""
                case Usage():
                    spent = event
                case Failed(why=why):
                    raise WorldFault(f"{self.model.name}: {why}", spent=spent.spent)
                case Finished():
                    if not text.strip():
                        logging.getLogger(__name__).warning("%s gave an empty answer", self.model.name)
                    return text if text.strip() else ""
                case _:
                    pass
        raise WorldFault(f"{self.model.name} stopped without an end. Ask again.", spent=spent.spent)

    def _request(self, context: LLMContext) -> ModelRequest:
        history = context.get_history()
        purpose = Purpose(
            agent=AgentId("platform"),
            skill="chat",
            step=StepId(f"platform#{self._turns}"),
            thread=ThreadId(self.platform_name()),
            turn=self._turns,
            answering=True,
        )
        return ModelRequest(
            purpose=purpose,
            messages=history if self._system is None else (self._system, *history),
            max_output=min(self.model.card.output, LONGEST_ANSWER),
        )


def read_file(path: Path) -> bytes:
    """A whole file that is not too large to be sent."""
    if path.stat().st_size > LARGEST_FILE:
        raise OSError(f"{path} is larger than {LARGEST_FILE:,} bytes")
    return path.read_bytes()
