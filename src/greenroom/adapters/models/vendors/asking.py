"""Messages and tools as pydantic-ai has them. Each is mapped once and kept beside the one that it was made from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar, cast

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from greenroom.adapters.models.vendors.keepsakes import plain, recalled
from greenroom.core.ports.model import ChatMessage, Media, ModelCard, ToolSpec

KEPT: Final = 4096
"""Messages whose mapped form is kept; the others are mapped again."""

PDF: Final = "application/pdf"
TEXTS: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/toml"})
"""What is text, though it is not called so."""

Told = SystemPromptPart | UserPromptPart | ToolReturnPart
One = TypeVar("One")
Made = TypeVar("Made")


class Beside(Generic[One, Made]):
    """What was made of things, by their identity. It holds the things too, so an identity is never another's."""

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._made: OrderedDict[int, tuple[One, Made]] = OrderedDict()

    def of(self, one: One, make: Callable[[One], Made]) -> Made:
        """What was made of it, or is made of it now."""
        known = self._made.get(id(one))
        if known is None:
            known = self._made[id(one)] = (one, make(one))
            if len(self._made) > self._most:
                self._made.popitem(last=False)
        else:
            self._made.move_to_end(id(one))
        return known[1]


class Asking:
    """How conversations with one provider's model are put."""

    def __init__(self, provider: str, card: ModelCard) -> None:
        self._provider = provider
        self._card = card
        self._answers: Beside[ChatMessage, ModelResponse] = Beside()
        self._asked: Beside[ChatMessage, Told] = Beside()
        self._tools: Beside[ToolSpec, ToolDefinition] = Beside()

    def tools(self, tools: Iterable[ToolSpec]) -> list[ToolDefinition]:
        """The tools, if the model takes any."""
        return [self._tools.of(one, tool) for one in tools] if self._card.tools else []

    def messages(self, messages: Iterable[ChatMessage]) -> list[ModelMessage]:
        """The conversation: all that is said between two answers is one request."""
        found: list[ModelMessage] = []
        told: list[Told] = []
        names: dict[str, str] = {}
        leading = True
        for one in messages:
            leading = leading and one.role == "system"
            if one.role != "assistant":
                told.append(self._part(one, names, leading=leading))
                continue
            found += together(told)
            told = []
            names |= {call.call_id: call.name for call in one.calls}
            found.append(self._answers.of(one, lambda one: recalled(one, self._provider)))
        return found + together(told)

    def _part(self, one: ChatMessage, names: dict[str, str], *, leading: bool) -> Told:
        if one.role == "tool":
            name = names.get(one.call_id or "", "")
            return self._asked.of(one, lambda one: self._result(one, name))
        if one.role == "system":
            return self._asked.of(one, instruction if leading else later_instruction)
        return self._asked.of(one, lambda one: UserPromptPart(content=self._content(one)))

    def _result(self, one: ChatMessage, name: str) -> ToolReturnPart:
        return ToolReturnPart(tool_name=name, content=self._content(one), tool_call_id=one.call_id or "")

    def _content(self, one: ChatMessage) -> str | list[UserContent]:
        if not one.media:
            return one.content
        text: list[UserContent] = [one.content] if one.content else []
        return text + [shown(media, self._card) for media in one.media]


def together(told: list[Told]) -> list[ModelMessage]:
    """One request, or none: instructions first, then results, which have to follow their calls, then the rest."""
    order = {SystemPromptPart: 0, ToolReturnPart: 1, UserPromptPart: 2}
    return [ModelRequest(parts=sorted(told, key=lambda part: order[type(part)]))] if told else []


def instruction(one: ChatMessage) -> Told:
    """What stands before the conversation."""
    return SystemPromptPart(content=one.content)


def later_instruction(one: ChatMessage) -> Told:
    """What comes in the middle of it stays there: moved to the front it would make the cache useless."""
    return UserPromptPart(content=f"<system>\n{one.content}\n</system>")


def shown(media: Media, card: ModelCard) -> UserContent:
    """An image or a file; where the model takes none, that there is one. Never an address."""
    kind = media.media_type.partition(";")[0].strip().lower()
    if kind.startswith("image/") and card.images:
        return BinaryContent(data=media.data, media_type=kind)
    if kind == PDF and card.files:
        return BinaryContent(data=media.data, media_type=PDF)
    if card.files and (kind.startswith("text/") or kind in TEXTS) and is_utf8(media.data):
        return BinaryContent(data=media.data, media_type="text/plain")
    name = media.name or media.media_type
    return f"[{name}: {len(media.data)} bytes that this model cannot be shown]"


def is_utf8(data: bytes) -> bool:
    """Whether it can be read as text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def tool(one: ToolSpec) -> ToolDefinition:
    """A tool."""
    return ToolDefinition(
        name=one.name,
        description=one.description,
        parameters_json_schema=cast("dict[str, object]", plain(one.parameters)),
    )
