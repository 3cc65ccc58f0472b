"""Where a person's own settings of git lead into the workspace: a folder of hooks, or more settings, that lie there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

NAMES: Final = ("config", "config.worktree")
SETTING: Final = re.compile(
    r'^\s*(?:\[[^\]\n]*\]\s*)?(hooksPath|path)\s*=\s*"?([^"\n#;]+?)"?\s*$', re.IGNORECASE | re.MULTILINE
)
LARGEST: Final = 1024 * 1024
DEEPEST: Final = 10


def led_to(root: Path, place: Path) -> dict[Path, bool]:
    """The files (False) and folders (True) of the workspace that git reads because a repository's settings say so."""
    work = place.parent if place.name == ".git" else place
    found: dict[Path, bool] = {}
    waiting = [place / name for name in NAMES]
    while waiting and len(found) < DEEPEST:
        settings = waiting.pop()
        for key, value in _settings(settings):
            hooks = key.lower() == "hookspath"
            target = Path((work if hooks else settings.parent) / value).absolute()
            with suppress(OSError, RuntimeError):
                target = target.resolve()
            if (
                target.is_relative_to(root)
                and target != root
                and target not in found
                and not target.is_relative_to(place)
            ):
                found[target] = hooks
                waiting += [] if hooks else [target]
    return found


def _settings(path: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        for one in SETTING.finditer(file.read(LARGEST)):
            yield one[1], one[2]
