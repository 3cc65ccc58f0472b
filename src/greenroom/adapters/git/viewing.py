"""What commands in a worktree see of git: a repository of their own, on top of the person's commits.

They look at history, compare and commit there as they like; nothing of it is the person's, and we never read it. The
person's commits are shown to be read only.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Final

from greenroom.adapters.git.files import told, write_whole
from greenroom.adapters.git.house import House, settings_of
from greenroom.adapters.git.seeding import listing, skip
from greenroom.core.ports.sandbox import Shown

SEEN_AT: Final = "/greenroom/git"
OBJECTS: Final = "/greenroom/objects"
HERE: Final = "view"
MASKS: Final = b"\n.mcp.json\n"
"""What stands behind walls in the place of a file that nobody may make there."""


async def view(house: House, place: Path, begin: str) -> tuple[Shown, ...]:
    """The repository for the commands of a worktree, as it was left; made when there is none."""
    if not (place / HERE / "HEAD").exists():
        refs = await house.refs.ask("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
        await asyncio.to_thread(_made, house, place, refs)
        await _narrowed(house, place)
        write_whole(place / HERE / "HEAD", f"{begin}\n".encode())
    objects = house.repository.common / "objects"
    return (
        Shown(source=str(place / HERE / "link"), at=".git"),
        Shown(source=str(place / HERE), at=SEEN_AT, writable=True),
        Shown(source=str(objects), at=OBJECTS),
    )


async def _narrowed(house: House, place: Path) -> None:
    """Commands in a part of the repository see no other part: git is not to miss what lies there."""
    within = house.repository.within
    if within:
        git = house.on(place / "tree", place / HERE / "index")
        await skip(git, [one.path for one in await listing(git) if not one.path.startswith(f"{within}/")])


def _made(house: House, place: Path, refs: bytes) -> None:
    """All but `HEAD`, which is written last: without it there is none."""
    folder = place / HERE
    with told(str(folder)):
        for name in ("objects/info", "refs/heads", "info"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place / "index", folder / "index")
    write_whole(folder / "info" / "exclude", house.excluded() + MASKS)
    write_whole(folder / "config", settings_of(house.habits).encode())
    write_whole(folder / "objects" / "info" / "alternates", f"{OBJECTS}\n".encode())
    write_whole(folder / "packed-refs", b"# pack-refs with: peeled fully-peeled sorted\n" + refs)
    write_whole(folder / "link", f"gitdir: {SEEN_AT}\n".encode())
