"""The `files` of an agent file: they go with the first message of a task, as text or as an upload."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Final

from greenroom.abilities.skills.conversation.transcript import BYTES_PER_TOKEN
from greenroom.app.conversation.attachments import MAX_ATTACHED_BYTES, Prompt, decode_text, make_prompt
from greenroom.app.conversation.chat_input import is_secret
from greenroom.app.messages import translate
from greenroom.app.settings.home import read_inside
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.log import Blobs
from greenroom.core.ports.model import Media, Model, ModelCard
from greenroom.core.state.spec import AgentSpec

TEXT_DIVISOR: Final = 2
"""All text files together may take this fraction (1/2) of the model's window."""


@record
class AgentFiles:
    """The files that go with a message. `notes` says which are left out, and why."""

    media: tuple[Media, ...] = ()
    notes: tuple[str, ...] = ()


def read_agent_files(spec: AgentSpec, root: Path, card: ModelCard) -> AgentFiles:
    """Read the files of an agent in the workspace `root`, as far as a model with this `card` takes them.

    Raise `WorldFault` for a file that cannot be read or may hold a secret.
    """
    media, notes = list[Media](), list[str]()
    text_room, room = card.window * BYTES_PER_TOKEN // TEXT_DIVISOR, MAX_ATTACHED_BYTES
    for name in spec.files:
        file = _read_file(spec, root, name)
        size, is_text, is_image = len(file.data), decode_text(file) is not None, file.media_type.startswith("image/")
        if not is_text and not (card.images if is_image else card.files):
            notes.append(translate("agents.file_not_taken", path=name))
        elif size > min(room, text_room if is_text else room):
            notes.append(translate("agents.file_too_long", path=name))
        else:
            media.append(file)
            room, text_room = room - size, text_room - (size if is_text else 0)
    return AgentFiles(media=tuple(media), notes=tuple(notes))


def _read_file(spec: AgentSpec, root: Path, name: str) -> Media:
    path = root / name
    if not path.exists():
        raise WorldFault("agents.file_unusable", agent=spec.name, path=name, why=translate("agents.file_missing"))
    try:
        content = read_inside(path, root, MAX_ATTACHED_BYTES)
    except WorldFault as fault:
        raise WorldFault("agents.file_unusable", agent=spec.name, path=name, why=fault) from None
    if is_secret(path.resolve().relative_to(root.resolve())):
        raise WorldFault("agents.file_unusable", agent=spec.name, path=name, why=translate("agents.file_secret"))
    return Media(media_type=mimetypes.guess_type(path.name)[0] or "", data=content, name=name)


async def add_agent_files(
    spec: AgentSpec, root: Path, text: str, model: Model, blobs: Blobs
) -> tuple[Prompt, tuple[str, ...]]:
    """Return the first message with the agent's files, and notes about those that are left out."""
    found = read_agent_files(spec, root, model.card)
    return await make_prompt(text, (), model, blobs, found.media), found.notes
