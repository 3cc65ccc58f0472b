"""Names that stand in what is delivered: asked only where a model speaks of something that no check has run."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, Protocol

from greenroom.abilities.checks.looking import LONGEST

AT_ONCE: Final = 500
"""Files that are read at once."""

MOST: Final = 20_000
"""Files that are read at most: where there are more, nobody knows."""

WORDS: Final = (".md", ".rst", ".txt", ".adoc", ".html", ".lock", ".svg", ".csv")
"""How files end that speak of tests and have none."""


class Tree(Protocol):
    """Whoever can show the files of a commit."""

    async def paths(self, commit: str) -> Sequence[str]:
        """All of them."""
        ...

    async def contents(self, commit: str, paths: Sequence[str]) -> Mapping[str, bytes]:
        """What is in these."""
        ...


async def delivered_names(names: Collection[str], tree: Tree, commit: str) -> frozenset[str]:
    """Those of these names that a file or a folder of it has, or that stand in one as a word."""
    left = set(names)
    paths = await tree.paths(commit) if left else ()
    for path in paths:
        left -= {part.partition(".")[0] for part in PurePosixPath(path).parts}
    read = [one for one in paths if not one.lower().endswith(WORDS)]
    if len(read) > MOST:
        return frozenset(names)
    for at in range(0, len(read), AT_ONCE):
        if not left:
            break
        pattern = re.compile(rb"\b(?:" + b"|".join(re.escape(one.encode()) for one in left) + rb")\b")
        for content in (await tree.contents(commit, read[at : at + AT_ONCE])).values():
            left -= {one.decode() for one in pattern.findall(content[:LONGEST])}
    return frozenset(names) - left
