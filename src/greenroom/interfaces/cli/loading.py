"""Loading what is used when it is used: `--help` and a shell must not wait for what they do not run."""

from __future__ import annotations

import importlib
from typing import Final

ROOM: Final = "greenroom.interfaces.cli"


def load(module: str, name: str) -> object:
    """Something out of a module of this door."""
    return getattr(importlib.import_module(f"{ROOM}.{module}"), name)
