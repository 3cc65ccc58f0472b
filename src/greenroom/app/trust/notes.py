"""What a workspace tells whoever works in it (AGENTS.md, CLAUDE.md), as far as a person has agreed to it.

A clone brings them, and each request has them: whoever wrote them could give orders in a person's name.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from greenroom.app.settings.layers import for_everybody
from greenroom.app.trust.brought import Brought
from greenroom.app.trust.ledger import Trusted
from greenroom.app.workspace import Note, notes_of, workspace_notes
from greenroom.core.base.text import Labelled

LONG: Final = 120
"""Characters of its first line that has any words."""


def brought_notes(folder: Path) -> tuple[Brought, ...]:
    """The notes that count in a folder; a place like /tmp, where anybody may leave things, brings none."""
    return () if for_everybody(folder) else tuple(of_note(one) for one in reversed(notes_of(folder)) if one.text)


def of_note(note: Note) -> Brought:
    """A note as a person sees it: they agree to all of its words."""
    words = next(filter(None, (line.strip("# ") for line in note.text.splitlines())), "")
    shown = words if len(words) <= LONG else f"{words[: LONG - 1]}…"
    digest = hashlib.sha256(f"{note.name}\0{note.text}".encode("utf-8", "surrogateescape")).hexdigest()
    count = len(note.text.splitlines())
    return Brought(
        kind="notes", name=note.name, shown=f"{shown} · {count} line{'s' if count != 1 else ''}", digest=digest
    )


def agreed_notes(folder: Path, trusted: Trusted) -> Labelled:
    """What models are told of them there."""
    return workspace_notes(folder, lambda note: trusted(of_note(note)))
