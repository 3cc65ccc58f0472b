"""What a person's index has of some files: read, and set file by file."""

from __future__ import annotations

from collections.abc import Iterable

from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import Indexed
from greenroom.adapters.git.running import Git
from greenroom.adapters.git.seeding import joined, listing, split
from greenroom.adapters.git.states import NOTHING, State, state_in_tree


async def indexed_of(house: House, paths: Iterable[str]) -> tuple[Indexed, ...]:
    """What the person's index has of these files."""
    found = {one.path: one for one in await listing(house.refs)}
    rows = ((path, found.get(path)) for path in paths)
    return tuple(Indexed(path=path, mode=one.mode, blob=one.blob) if one else Indexed(path=path) for path, one in rows)


async def put_back(house: House, indexed: Iterable[Indexed], git: Git | None = None) -> None:
    """Make the person's index, or that of this `git`, have this of these files; everything else in it stays."""
    none = "0" * (64 if house.habits.hashes == "sha256" else 40)
    lines = [f"{one.mode or '0'} {one.blob or none}\t{one.path}" for one in indexed]
    if lines:
        await (git or house.refs).ask("update-index", "-z", "--index-info", stdin=joined(lines))


def state_of(one: Indexed) -> State:
    """As a tree would have it."""
    return state_in_tree(one.mode, one.blob) if one.mode else NOTHING


async def states_in(house: House, commit: str) -> dict[str, State]:
    """Every file of a commit."""
    found = dict[str, State]()
    for line in split(await house.plain.ask("ls-tree", "-r", "-z", "--full-tree", commit)):
        about, _, path = line.partition("\t")
        mode, _, blob = about.split(" ")
        found[path] = state_in_tree(mode, blob)
    return found
