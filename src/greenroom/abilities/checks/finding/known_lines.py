"""Recipes that only run what is known better by its own name: their words are compared with those of other checks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from greenroom.abilities.checks.command_lines import DEEP, commands
from greenroom.core.ports.checks import Check

PYTHON: Final = re.compile(r"python[\d.]*|\$[({]\w+[)}]")
"""A Python, also one that somebody has put into a variable, as `-m` after it tells."""

RUNNERS: Final = frozenset({"uv", "poetry", "pdm", "pipenv", "rye", "hatch", "bundle"})
DO: Final = frozenset({"run", "exec"})
NODES: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
SAYS: Final = frozenset({"echo", "printf", "true", ":", "set", "mkdir", "touch", "rm", "date", "pwd"})
"""Programs that find nothing wrong with anything."""

PREPARES: Final = frozenset(
    {
        *(("pip", "install"), ("pip3", "install"), ("venv",), ("uv", "sync"), ("uv", "venv"), ("uv", "pip")),
        *(("poetry", "install"), ("pdm", "install"), ("pdm", "sync"), ("pipenv", "install"), ("pipenv", "sync")),
        *(("npm", "ci"), ("npm", "install"), ("pnpm", "install"), ("yarn", "install"), ("bun", "install")),
        *(("bundle", "install"), ("go", "mod"), ("cargo", "fetch")),
    }
)
"""How commands begin that only install what others need; checks have it installed, or it is set up before them."""

HOW: Final = re.compile(
    r"-[qvsxl]+|-r[A-Za-z]+|--(?:verbose|quiet|silent|offline|exitfirst|maxfail|no-header|disable-warnings|no-summary)"
    r"|--(?:tb|color|durations|cov|cov-report|junitxml|junit-xml|maxfail)(?:=.*)?|--no-cov|--color=\w+|--progress"
)
"""Options that only say how something is shown, or that it ends sooner."""

HERE: Final = "."
USUAL: Final = frozenset({HERE, "tests", "test", "src"})
"""Folders that a check looks at by itself."""


def only_runs(lines: Sequence[str], known: Sequence[Check]) -> bool:
    """Whether each command of a recipe is one that a known check runs, and there is one."""
    theirs = [_plain(one.words) for check in known for one in commands(check.line)]
    every = [(one.folder, _plain(one.words)) for one in commands("\n".join(lines), depth=DEEP)]
    telling = [(folder, words) for folder, words in every if not _finds_nothing(words)]
    return bool(telling) and all(
        folder == HERE and any(_is_part(words, other) for other in theirs) for folder, words in telling
    )


def _plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """Without what only says where a program is: `.venv/bin/python -m pytest` and `uv run pytest` are `pytest`."""
    left = list(words)
    while len(left) > 1:
        first = PurePosixPath(left[0]).name
        run = next((at for at, word in enumerate(left) if word in DO), 0) if first in RUNNERS else 0
        if run:
            left = left[run + 1 :]
            left = left[next((at for at, word in enumerate(left) if not word.startswith("-")), len(left)) :]
        elif left[1] == "-m" and PYTHON.fullmatch(first):
            left = left[2:]
        else:
            break
    program = PurePosixPath(left[0]).name if left else ""
    return (program, *(word for word in left[1:] if word not in DO or program not in NODES))


def _finds_nothing(words: tuple[str, ...]) -> bool:
    return words[0] in SAYS or words[:1] in PREPARES or words[:2] in PREPARES


def _is_part(words: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Whether a known command does all that this one does: it has the same words, and looks at no less."""
    needed = [one for one in known[1:] if not one.startswith("-") and one not in USUAL]
    return (
        words[0] == known[0]
        and all(one in words for one in needed)
        and all(one in known or HOW.fullmatch(one) or _is_below(one, known) for one in words[1:])
    )


def _is_below(word: str, known: tuple[str, ...]) -> bool:
    path = word.rstrip("/")
    return path in USUAL or (HERE in known and not word.startswith(("-", "/", "..")))
