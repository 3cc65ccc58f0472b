"""Which sandbox this machine has, for tests that need one."""

from functools import cache

from greenroom.app.toolset.sandbox import strongest


@cache
def has_bubblewrap() -> bool:
    """Whether commands can run in bubblewrap: the system's, or the one of the wheel."""
    return strongest("auto").tier == "bubblewrap"
