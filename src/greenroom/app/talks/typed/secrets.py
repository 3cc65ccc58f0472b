"""Files that nobody shows to a model by accident: keys, passwords, what a tool keeps to log in with."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from greenroom.abilities.permission import secrets

PRIVATE_KEY: Final = "PRIVATE KEY-----"


def is_secret(path: PurePath) -> bool:
    """Whether its name or a folder on the way to it says that it is nobody else's business."""
    return secrets.is_secret(tuple(part.lower() for part in path.parts))


def holds_key(text: str) -> bool:
    """Whether a private key is in it, whatever it is called."""
    return "-----BEGIN " in text and PRIVATE_KEY in text
