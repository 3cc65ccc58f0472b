"""How fast the demo's scripted agents are, in this process and in those it starts."""

from __future__ import annotations

import os
from typing import Final

PACE: Final = "GREENROOM_DEMO_PACE"
"""The environment variable for how many seconds a scripted reply takes."""

WATCHABLE: Final = 0.4


def demo_pace() -> float:
    """What the environment says, else a pace that can be watched."""
    try:
        return max(float(os.environ.get(PACE, WATCHABLE)), 0.0)
    except ValueError:
        return WATCHABLE
