"""The kits that this door can run: a team says in its log which one it needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from greenroom.app.kit import KitMaker
from greenroom.testing.demo import demo_kits

PACE: Final = "GREENROOM_DEMO_PACE"
"""The environment variable for how many seconds a scripted reply takes, in this process and in those it starts."""

WATCHABLE: Final = 0.4


def demo_pace() -> float:
    """The demo's pace: what the environment says, else one that can be watched."""
    try:
        return max(float(os.environ.get(PACE, WATCHABLE)), 0.0)
    except ValueError:
        return WATCHABLE


def kits(home: Path, *, fatal: str | None = None) -> Mapping[str, KitMaker]:
    """All kits by name."""
    return demo_kits(home, pace=demo_pace(), fatal=fatal)
