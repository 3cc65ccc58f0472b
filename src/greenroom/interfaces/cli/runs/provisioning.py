"""Making the provisions. This file is loaded by name, because what it imports takes a third of a second."""

from __future__ import annotations

from greenroom.app.model_registry import Provisions


def provisions() -> Provisions:
    """Those of this process: its environment, its current folder."""
    return Provisions()
