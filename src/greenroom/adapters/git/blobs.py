"""Contents kept by git, many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from greenroom.adapters.git.files import told
from greenroom.adapters.git.house import House
from greenroom.core.ports.workspace import WorkspaceFault


async def keep(house: House, contents: Sequence[bytes]) -> list[str]:
    """Their names, in this order. They are copied first: what is read is what is kept."""
    if not contents:
        return []
    with house.temporary() as folder:
        names = await asyncio.to_thread(_written, folder, contents)
        said = await house.plain.ask(
            "hash-object", "-w", "--no-filters", "--stdin-paths", stdin="\n".join(names).encode()
        )
    return said.decode().split()


async def contents_of(house: House, blobs: Iterable[str]) -> dict[str, bytes]:
    """What is kept under these names."""
    wanted = sorted(set(blobs))
    if not wanted:
        return {}
    said = await house.plain.ask("cat-file", "--batch", stdin="".join(f"{one}\n" for one in wanted).encode())
    found, place = {}, 0
    for one in wanted:
        end = said.index(b"\n", place)
        head = said[place:end].decode().split(" ")
        if len(head) < 3:
            raise WorkspaceFault("repository", f"The repository misses {one}. Look at it with 'git fsck'.")
        size = int(head[2])
        found[one] = said[end + 1 : end + 1 + size]
        place = end + size + 2
    return found


async def merged(house: House, ours: str, base: str, theirs: str) -> str | None:
    """Three versions of a file as one; None where they do not go together."""
    three = await contents_of(house, (ours, base, theirs))
    with house.temporary() as folder:
        names = await asyncio.to_thread(_written, folder, [three[ours], three[base], three[theirs]])
        said = await house.plain.tried("merge-file", "-p", "-q", *names)
    return (await keep(house, [said.out]))[0] if said.code == 0 else None


def _written(folder: Path, contents: Sequence[bytes]) -> list[str]:
    names = []
    with told(str(folder)):
        for number, content in enumerate(contents):
            place = folder / f"{number}"
            place.write_bytes(content)
            names.append(str(place))
    return names
