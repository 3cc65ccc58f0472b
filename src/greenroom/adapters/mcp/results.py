"""What a server answered, in words: texts joined, all else described with its size, and kept where that helps."""

from __future__ import annotations

import json
from typing import Final

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from greenroom.adapters.mcp.link import Answer, Part
from greenroom.adapters.mcp.words import NOTE, one_line
from greenroom.core.base.text import seen

BEGINNING: Final = 15_000_000
END: Final = 1_000_000
"""Characters that are kept of an answer. Of these whoever shows it to a model shows some."""

KEPT: Final = 8_000_000
"""Characters of images and files that are kept with one answer; what comes on top is only told of."""

COMPARED: Final = 200_000
"""Characters of a text that is read to see whether it says the same as a structure."""

NOTHING: Final = "It answered with nothing."


def told(result: CallToolResult) -> Answer:
    """The answer as an agent reads it."""
    texts: list[str] = []
    parts: list[Part] = []
    for block in result.content:
        part = _part(block, KEPT - sum(len(one.data) for one in parts))
        if part is not None:
            parts.append(part)
        texts.append(_words(block, part))
    if "structured_content" in result.model_fields_set and result.structured_content is not None:
        texts += _structure(result.structured_content, texts)
    text = bounded("\n".join(one for one in texts if one)) or NOTHING
    return Answer(text=text, failed=result.is_error, parts=tuple(parts))


def bounded(text: str) -> str:
    """The text without anything unseen, its beginning and its end if it is too long."""
    if len(text) > BEGINNING + END:
        left = NOTE.format(left=len(text) - BEGINNING - END)
        text = f"{text[:BEGINNING]}\n{left}\n{text[-END:]}"
    return seen(text)


def _part(block: ContentBlock, room: int) -> Part | None:
    match block:
        case ImageContent() | AudioContent():
            kind, data = block.mime_type, block.data
        case EmbeddedResource(resource=BlobResourceContents() as file):
            kind, data = file.mime_type or "application/octet-stream", file.blob
        case _:
            return None
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return Part(media_type=one_line(kind, 80), bytes=size, data=data if len(data) <= room else "")


def _words(block: ContentBlock, part: Part | None) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent() if part is not None:
            return f"[{block.type} {part.media_type}, {part.bytes} bytes: it cannot be shown here]"
        case ResourceLink():
            return f"[link to {one_line(block.uri)}: {one_line(block.name, 80)}, not fetched]"
        case EmbeddedResource() if part is not None:
            return (
                f"[file {one_line(block.resource.uri)}, {part.media_type}, {part.bytes} bytes: it cannot be shown here]"
            )
        case EmbeddedResource():
            return f"[file {one_line(block.resource.uri)}]\n{getattr(block.resource, 'text', '')}"
        case _:
            return ""


def _structure(content: object, texts: list[str]) -> list[str]:
    """The structure as JSON, unless the texts are just that: servers are asked to say it twice."""
    return [] if _is_said(content, texts) else [json.dumps(content, ensure_ascii=False, indent=1)]


def _is_said(content: object, texts: list[str]) -> bool:
    """Python's SDK wraps what is no object, says it plainly too, and a list item by item."""
    bare = content["result"] if isinstance(content, dict) and content.keys() == {"result"} else content
    if isinstance(bare, list) and len(bare) == len(texts) and all(map(_same, texts, bare)):
        return True
    return any(_same(text, one) for text in texts for one in (content, bare))


def _same(text: str, value: object) -> bool:
    if isinstance(value, str) or len(text) > COMPARED:
        return value == text
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False
