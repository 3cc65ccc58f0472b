"""What a fake server can be told to answer, and what it was asked as far as that shapes the answer."""

from __future__ import annotations

import re
from typing import Final

from msgspec import field

from greenroom.core.base.records import Data, encode, record

BYTES_PER_TOKEN: Final = 4
"""A client that estimates tokens by the size of its request finds the usage that it expects."""

_WORDS: Final = re.compile(r"\S*\s+|\S+")


@record
class Call:
    """A native tool call. `arguments` as a string go out as they are; without an `id` it gets `call_1`, `call_2`, …

    `extra` are further fields of the call, as some vendors send them.
    """

    name: str
    arguments: Data | str = field(default_factory=dict)
    id: str = ""
    extra: Data | None = None

    @property
    def written(self) -> str:
        """The arguments as they go over the wire."""
        return self.arguments if isinstance(self.arguments, str) else encode(self.arguments).decode()


@record
class Answer:
    """A good answer. `usage` in OpenAI's words; None: reckoned from the request's size. No `finish`: what fits.

    Streamed, text and arguments are cut into pieces of `chunk` characters (0: as the server does), with `pace` seconds
    between them. `reasoning_name` is the field for the reasoning: vendors do not agree on it.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    usage: Data | None = None
    finish: str = ""
    chunk: int = 0
    pace: float = 0.0
    reasoning_name: str = "reasoning_content"

    @property
    def ending(self) -> str:
        """Its finish_reason."""
        return self.finish or ("tool_calls" if self.calls else "stop")


@record
class Asked:
    """What shapes the answer: the size of the request in bytes, and how the answer is to come."""

    model: str = "fake"
    streaming: bool = True
    usage: bool = False
    size: int = 0
    chunk: int = 0


def cut(text: str, size: int) -> list[str]:
    """The text in pieces of so many characters; of words for 0."""
    if size <= 0:
        return _WORDS.findall(text)
    return [text[start : start + size] for start in range(0, len(text), size)]


def tokens(size: int) -> int:
    """How many tokens so many bytes are said to be."""
    return max(1, size // BYTES_PER_TOKEN)


def usage(answer: Answer, asked: Asked) -> Data:
    """What the answer is said to have used."""
    if answer.usage is not None:
        return answer.usage
    read = tokens(asked.size)
    said = (answer.text, answer.reasoning, *(call.name + call.written for call in answer.calls))
    written = tokens(sum(map(len, said)))
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
