"""Which sandbox this machine has, for tests that need one."""

import shutil
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from greenroom.app.toolset.sandbox import KNOWN, strongest

HERE = user_cache_path("greenroom", appauthor=False) / KNOWN
"""Where it is kept which sandbox holds on this machine."""


@cache
def has_bubblewrap() -> bool:
    """Whether commands can run in bubblewrap: the system's, or the one of the wheel."""
    return strongest("auto").tier == "bubblewrap"


def keep_known(caches: Path) -> None:
    """Keep it in another XDG_CACHE_HOME too: to find it out takes longer than most tests."""
    if HERE.exists() and not (caches / "greenroom" / KNOWN).exists():
        (caches / "greenroom").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE, caches / "greenroom" / KNOWN)
