"""The known holes: what escapes at which tier, and why. Delete the line when a hole is closed.

`docs/sandbox-results.md` describes each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.sandbox.attempt import Kind

NESTED: Final = {
    "a repository below": "a repository that a command makes is not looked at; runs work in a worktree, so this needs "
    "`--in-place` or `chat`",
    "a repository where there was none": "the same",
}
HOLES: Final[Mapping[str, Mapping[Kind, Mapping[str, str]]]] = {
    "bubblewrap": {"git": NESTED},
    "landlock": {
        "git": {
            **NESTED,
            "another folder for what is common, while it runs": "it can be written, and is removed "
            "within a quarter of a second",
        },
        "writes": {
            "mode": "Landlock does not know of modes, and the file is the person's own",
            "time": "nor of times",
        },
    },
}
