"""The sandbox of this machine, for tests that need one."""

import shutil
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from greenroom.app.toolset.sandbox import TIER_CACHE_FILE, find_strongest_sandbox

HERE = user_cache_path("greenroom", appauthor=False) / TIER_CACHE_FILE
"""Where the working sandbox of this machine is cached."""


@cache
def has_bubblewrap() -> bool:
    """Return whether commands can run in bubblewrap: the system's, or that of the wheel."""
    return find_strongest_sandbox("auto").tier == "bubblewrap"


def keep_known(caches: Path) -> None:
    """Copy the cached result to another XDG_CACHE_HOME: finding it out takes longer than most tests."""
    if HERE.exists() and not (caches / "greenroom" / TIER_CACHE_FILE).exists():
        (caches / "greenroom").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE, caches / "greenroom" / TIER_CACHE_FILE)
