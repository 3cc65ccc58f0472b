"""Loading what is used when it is used: `--help` and a shell must not wait for what they do not run."""

from __future__ import annotations

import gc
import importlib
from typing import Final

ROOM: Final = "greenroom.interfaces.cli"


def load(module: str, name: str) -> object:
    """Something out of a module of this door.

    Nobody looks for garbage meanwhile: modules are none, and looking through them takes a tenth of the time.
    """
    looked = gc.isenabled()
    gc.disable()
    try:
        return getattr(importlib.import_module(f"{ROOM}.{module}"), name)
    finally:
        if looked:
            gc.enable()
