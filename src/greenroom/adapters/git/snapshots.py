"""A person's tree as a commit: their index, their refs and their files stay as they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from greenroom.adapters.git.house import House
from greenroom.adapters.git.names import base_ref
from greenroom.adapters.git.refs import learn, move, value_of
from greenroom.adapters.git.seeding import seed
from greenroom.adapters.git.staging import LARGEST, Named, nothing, stage
from greenroom.adapters.git.submodules import full
from greenroom.adapters.git.trailers import message_of, trailers_of
from greenroom.core.ports.workspace import LeftOut, Snapshot

SUBJECT: Final = "The workspace as it was"
LEFT: Final = "left"
MERGING: Final = "merging"
TOLD: Final = 50
"""Files that are named among those that are not in it, or in a merge."""


async def is_taken(house: House, run: str) -> bool:
    """Whether this run has looked before."""
    return bool(await value_of(house, base_ref(run)))


async def snapshot(house: House, run: str, *, largest: int = LARGEST, secret: Named = nothing) -> Snapshot:
    """What is there now; what was there, if this run has looked before."""
    ref = base_ref(run)
    if found := await value_of(house, ref):
        about, _, said = (await house.plain.text("show", "--no-patch", "--format=%T %P%n%B", found)).partition("\n")
        tree, _, parent = about.partition(" ")
        learn(house, found, tree, parent)
        told = trailers_of(said)
        return Snapshot(
            commit=found,
            tree=tree,
            head=parent,
            within=house.repository.within,
            conflicted=tuple(json.loads(told.get(MERGING, "[]"))),
            left_out=tuple(
                LeftOut(path=path, why=why, size=size) for path, why, size in json.loads(told.get(LEFT, "[]"))
            ),
        )
    head = await value_of(house, "HEAD")
    with house.temporary() as folder:
        made = await _looked(house, folder / "index", largest, secret)
    left = [[one.path, one.why, one.size] for one in made.left_out]
    told = {"run": run, LEFT: _written(left), MERGING: _written(made.conflicted)}
    commit = await commit_tree(house, made.tree, head, message_of(SUBJECT, told))
    await move(house, ref, commit, "")
    return Snapshot(
        commit=commit,
        tree=made.tree,
        head=head,
        within=house.repository.within,
        conflicted=made.conflicted,
        left_out=made.left_out,
    )


async def commit_tree(house: House, tree: str, parent: str, message: str, *, name: str = "") -> str:
    """A commit that nothing leads to yet."""
    who = {f"GIT_{part}_NAME": f"{name} (Greenroom)" for part in ("AUTHOR", "COMMITTER")} if name else {}
    parents = ("-p", parent) if parent else ()
    made = await house.plain.also(env=who).text("commit-tree", tree, *parents, "-F", "-", stdin=message.encode())
    learn(house, made, tree, parent)
    return made


def _written(rows: Sequence[object]) -> str:
    """What there is to know about it, on one line of its message: who comes later has to know too."""
    return json.dumps(rows[:TOLD], separators=(",", ":")).replace(" ", r"\u0020") if rows else ""


async def _looked(house: House, index: Path, largest: int, secret: Named) -> Snapshot:
    seeds = await seed(house, index)
    root = house.repository.root
    staged = await stage(house.on(root, index), root, untrue=seeds.untrue, largest=largest, secret=secret)
    if house.repository.own:
        await asyncio.to_thread(index.replace, house.repository.git / "index")  # so that the next look is quick
    others = [LeftOut(path=one, why="submodule") for one in await asyncio.to_thread(full, root, seeds.submodules)]
    left_out = (*staged.left_out, *others)
    return Snapshot(commit="", tree=staged.tree, conflicted=seeds.conflicted, left_out=left_out)
