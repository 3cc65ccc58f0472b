"""Patterns for files as models write them: those of a .gitignore, with braces."""

from __future__ import annotations

import re
from typing import Final

from greenroom.core.base.errors import ModelFault

MOST: Final = 64
"""Patterns that braces may stand for."""

BRACES: Final = re.compile(r"\{([^{}]*)\}")


def expanded(glob: str) -> list[str]:
    """One pattern for each choice that its braces give; none for none."""
    found, waiting = [], [glob.strip()] if glob.strip() else []
    while waiting:
        pattern = waiting.pop()
        braces = BRACES.search(pattern)
        if braces is None:
            found.append(pattern)
            continue
        waiting += [pattern[: braces.start()] + one + pattern[braces.end() :] for one in braces[1].split(",")]
        if len(waiting) + len(found) > MOST:
            raise ModelFault(f"The pattern {glob[:100]!r} stands for more than {MOST} patterns. Use a simpler one.")
    return sorted(found)
