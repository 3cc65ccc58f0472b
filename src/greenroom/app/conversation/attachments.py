"""Images and files that a program sends with a prompt. They are stored as blobs: a resumed run sends them again.

Text files become part of the prompt. Everything else is a part of its own, which the model must be able to take.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.app.conversation.chat_input import Attachment, build_message
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.log import Blobs
from greenroom.core.ports.model import Media, Model
from greenroom.core.state.step import StoredMedia

Attachments: TypeAlias = Sequence[str | Path | Media]
"""Paths of files, or `Media` with its bytes."""

MAX_ATTACHED_BYTES: Final = 20_000_000
"""How much may be attached to one prompt. Providers refuse requests of about 30 MB; base64 adds a third."""

MAX_TOKENS_PER_BYTE: Final = 2
"""Upper estimate for a file beside its first page. Files are compressed, and a page can count as text and as image."""


@record
class Prompt:
    """The `text` that the model reads, with its `media`. `typed` is the text that the program passed."""

    text: str
    typed: str = ""
    media: tuple[StoredMedia, ...] = ()


async def make_prompt(
    text: str, attachments: Attachments, model: Model, blobs: Blobs, files: Sequence[Media] = ()
) -> Prompt:
    """Store what is attached, with the `files` of the agent, and return the prompt. Raise `WorldFault` for what the
    model cannot take."""
    if not attachments and not files:
        return Prompt(text=text)
    if isinstance(attachments, str | Path | Media):
        attachments = [attachments]
    found: list[Media] = [*files]
    found += [item if isinstance(item, Media) else await asyncio.to_thread(_read_file, item) for item in attachments]
    size = sum(len(item.data) for item in found)
    if size > MAX_ATTACHED_BYTES:
        raise WorldFault("library.attached_too_much", size=size / 1_000_000, limit=MAX_ATTACHED_BYTES // 1_000_000)
    texts = {id(item): decoded for item in found if (decoded := decode_text(item)) is not None}
    text_files = [Attachment(text=texts[id(item)], name=item.name or "file") for item in found if id(item) in texts]
    media, room = [item for item in found if id(item) not in texts], model.card.window
    for item in media:
        is_image = item.media_type.startswith("image/")
        if not (model.card.images if is_image else model.card.files):
            code = "library.no_images" if is_image else "library.no_files"
            raise WorldFault(code, model=model.name, name=item.name or item.media_type or "?")
    stored: list[StoredMedia] = []
    for item in media:
        tokens, kind = min(room, _estimate_tokens(item, model)), item.media_type or "application/octet-stream"
        room -= tokens
        blob = await blobs.put_blob(item.data)
        stored.append(StoredMedia(blob=blob, media_type=kind, name=item.name, tokens=tokens))
    return Prompt(text=build_message(text, text_files), typed=text, media=tuple(stored))


def _read_file(source: str | Path) -> Media:
    path = Path(source)
    if "://" in str(source):
        raise WorldFault("library.attached_address", address=str(source))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ATTACHED_BYTES + 1)
    except OSError as error:
        raise WorldFault("library.attached_unreadable", path=str(path), why=error.strerror or str(error)) from None
    return Media(media_type=mimetypes.guess_type(path.name)[0] or "", data=data, name=path.name)


def decode_text(media: Media) -> str | None:
    """Return the text of a text file, or None."""
    if media.media_type.startswith(("image/", "audio/", "video/")) or b"\0" in media.data:
        return None
    try:
        return media.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _estimate_tokens(media: Media, model: Model) -> int:
    """Return the most that an image or a file counts."""
    is_image = media.media_type.startswith("image/")
    return model.card.image_tokens + (0 if is_image else MAX_TOKENS_PER_BYTE * len(media.data))
