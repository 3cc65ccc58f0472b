"""Where a person's own settings of git lead into the workspace: a folder of hooks, or more settings, that lie there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

NAMES: Final = ("config", "config.worktree")
SETTING: Final = re.compile(
    r'^\s*(?:\[[^\]\n]*\]\s*)?(hooksPath|path)\s*=\s*((?:"(?:[^"\\\n]|\\.)*"|\\.|[^"\\\n#;])*)',
    re.IGNORECASE | re.MULTILINE,
)
PERSONAL: Final = (".gitconfig", ".config/git/config")
"""A person's settings for all repositories, in their home."""

LARGEST: Final = 1024 * 1024
MOST: Final = 100


def led_to(root: Path, place: Path, home: Path) -> dict[Path, bool]:
    """The files (False) and folders (True) of the workspace that git reads because settings of the repository, or of
    the person, say so."""
    work = place.parent if place.name == ".git" else place
    found: dict[Path, bool] = {}
    waiting = [*(place / name for name in NAMES), *(home / name for name in PERSONAL)]
    while waiting and len(found) < MOST:
        settings = waiting.pop()
        for key, value in _settings(settings):
            hooks = key.lower() == "hookspath"
            target = _target(work if hooks else settings.parent, value, home)
            if target not in found and _is_between(target, root, place):
                found[target] = hooks
                waiting += [] if hooks else [target]
    return found


def _target(folder: Path, value: str, home: Path) -> Path:
    target = (home / value[2:] if value.startswith("~/") else folder / value).absolute()
    with suppress(OSError, RuntimeError):
        return target.resolve()
    return target


def _is_between(target: Path, root: Path, place: Path) -> bool:
    """In the workspace, but not in the repository: what is there is kept anyway."""
    return target.is_relative_to(root) and target != root and not target.is_relative_to(place)


def _settings(path: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        for one in SETTING.finditer(file.read(LARGEST)):
            if value := re.sub(r"\\(.)", r"\1", one[2].replace('"', "")).strip():
                yield one[1], value
