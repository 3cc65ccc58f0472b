"""A commit that never was: the newest of a thread, with some files as they were before."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.adapters.git.house import House
from greenroom.adapters.git.refs import commit_of
from greenroom.adapters.git.seeding import joined, split
from greenroom.adapters.git.snapshots import commit_tree
from greenroom.adapters.git.trailers import message_of

SUBJECT = "Some files put back as they were"


async def put_back(house: House, tip: str, base: str, paths: Sequence[str]) -> str:
    """Make it; no ref leads to it."""
    tip, base = await commit_of(house, tip), await commit_of(house, base)
    named = frozenset(paths)
    none = "0" * len(tip)
    before = [one for one in split(await house.plain.ask("ls-tree", "-r", "-z", base)) if _path(one) in named]
    with house.temporary() as folder:
        git = house.on(house.repository.root, folder / "index")
        await git.ask("read-tree", tip)
        gone = [f"0 {none}\t{path}" for path in sorted(named)]
        await git.ask("update-index", "-z", "--index-info", stdin=joined([*gone, *before]))
        tree = await git.text("write-tree", "--missing-ok")
    return await commit_tree(house, tree, tip, message_of(SUBJECT, {"base": base}))


def _path(listed: str) -> str:
    return listed.partition("\t")[2]
