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
from greenroom.core.ports.log import Blobs
from greenroom.core.ports.model import Media, Model
from greenroom.core.state.step import StoredMedia

Attachments: TypeAlias = Sequence[str | Path | Media]
"""Paths of files, or `Media` with its bytes."""

MAX_ATTACHED_BYTES: Final = 20_000_000
"""How much may be attached to one prompt. Providers refuse requests of about 30 MB; base64 adds a third."""


async def make_prompt(
    text: str, attachments: Attachments, model: Model, blobs: Blobs
) -> tuple[str, tuple[StoredMedia, ...]]:
    """Store what is attached. Return the text and the media. Raise `WorldFault` for what the model cannot take."""
    if not attachments:
        return text, ()
    if isinstance(attachments, str | Path | Media):
        attachments = [attachments]
    found = [item if isinstance(item, Media) else await asyncio.to_thread(_read_file, item) for item in attachments]
    size = sum(len(item.data) for item in found)
    if size > MAX_ATTACHED_BYTES:
        raise WorldFault("library.attached_too_much", size=size / 1_000_000, limit=MAX_ATTACHED_BYTES // 1_000_000)
    texts = [(item, _decode_text(item)) for item in found]
    files = [Attachment(text=decoded, name=item.name or "file") for item, decoded in texts if decoded is not None]
    media = tuple([await _store(item, model, blobs) for item, decoded in texts if decoded is None])
    return build_message(text, files), media


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


def _decode_text(media: Media) -> str | None:
    """Return the text of a text file, or None."""
    if media.media_type.startswith(("image/", "audio/", "video/")) or b"\0" in media.data:
        return None
    try:
        return media.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


async def _store(media: Media, model: Model, blobs: Blobs) -> StoredMedia:
    """Store the bytes. An image costs what its model charges at most; a file can fill the whole window."""
    card, is_image = model.card, media.media_type.startswith("image/")
    if not (card.images if is_image else card.files):
        code = "library.no_images" if is_image else "library.no_files"
        raise WorldFault(code, model=model.name, name=media.name or media.media_type or "?")
    return StoredMedia(
        blob=await blobs.put_blob(media.data),
        media_type=media.media_type or "application/octet-stream",
        name=media.name,
        tokens=min(card.image_tokens, card.window) if is_image else card.window,
    )
