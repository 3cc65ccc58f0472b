"""Scripted answers of a fake server, and the parts of a request that shape them."""

from __future__ import annotations

import re
from typing import Final

from msgspec import field

from greenroom.core.base.records import Data, encode, record

BYTES_PER_TOKEN: Final = 4
"""Makes the reported usage equal to a client's estimate by request size."""

_WORDS: Final = re.compile(r"\S*\s+|\S+")


@record
class Call:
    """A native tool call. `arguments` as a string are sent unchanged. Without an `id` it gets `call_1`, `call_2`, …
    `extra` are additional vendor fields of the call."""

    name: str
    arguments: Data | str = field(default_factory=dict)
    id: str = ""
    extra: Data | None = None

    @property
    def written(self) -> str:
        """Return the arguments as sent."""
        return self.arguments if isinstance(self.arguments, str) else encode(self.arguments).decode()


@record
class Answer:
    """A good answer. `usage` in OpenAI's format; None: computed from the request's size. Without `finish`, the reason
    follows from the content.

    Streamed text and arguments are cut into pieces of `chunk` characters (0: the server's default), with `pace` seconds
    between them. `reasoning_name` is the field for the reasoning, which differs between vendors.
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
        """Return its finish_reason."""
        return self.finish or ("tool_calls" if self.calls else "stop")


@record
class Asked:
    """What shapes the answer: the size of the request in bytes, and the form of the answer."""

    model: str = "fake"
    streaming: bool = True
    usage: bool = False
    size: int = 0
    chunk: int = 0


def cut(text: str, size: int) -> list[str]:
    """Cut the text into pieces of `size` characters; into words for 0."""
    if size <= 0:
        return _WORDS.findall(text)
    return [text[start : start + size] for start in range(0, len(text), size)]


def tokens(size: int) -> int:
    """Return the reported tokens for this many bytes."""
    return max(1, size // BYTES_PER_TOKEN)


def usage(answer: Answer, asked: Asked) -> Data:
    """Return the reported usage of the answer."""
    if answer.usage is not None:
        return answer.usage
    read = tokens(asked.size)
    said = (answer.text, answer.reasoning, *(call.name + call.written for call in answer.calls))
    written = tokens(sum(map(len, said)))
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
