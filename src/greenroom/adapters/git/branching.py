"""Work on a branch: a commit on a person's HEAD that has only what the work changed.

Where that does not fit, because the person had changed the same lines and committed none of it, the branch has their
changes too, as a commit of its own below.
"""

from __future__ import annotations

import os
from typing import Final

from greenroom.adapters.git.comparing import delta
from greenroom.adapters.git.fitting import entries_of, fitted
from greenroom.adapters.git.house import House
from greenroom.adapters.git.indexing import put_back
from greenroom.adapters.git.refs import commit_of, tree_of, value_of
from greenroom.adapters.git.seeding import listing
from greenroom.adapters.git.snapshots import commit_tree
from greenroom.adapters.git.states import state_in_tree
from greenroom.adapters.git.trailers import message_of
from greenroom.core.ports.workspace import Branched, Clashes, WorkspaceFault

WHOLE: Final = "refs/heads/"


async def branch(house: House, name: str, base: str, tip: str, message: str) -> Branched:
    """Make it."""
    base, tip = await commit_of(house, base), await commit_of(house, tip)
    await refuse_name(house, name)
    head = await value_of(house, "HEAD")
    text = message_of(message, {"base": base, "tip": tip})
    fitting = await _fitting(house, head, base, tip) if head else ""
    begin = head if fitting else await _begin(house, base)
    commit = await _persons(house, fitting or await tree_of(house, tip), begin, text)
    ref = f"refs/heads/{name}"
    await house.refs.also("-c", "core.logAllRefUpdates=true").ask("update-ref", ref, commit, "0" * len(commit))
    return Branched(name=name, commit=commit, whole=not fitting and begin == base)


async def _begin(house: House, base: str) -> str:
    """What work stands on that does not fit on HEAD: the commit of then, and the snapshot where that has more."""
    then = await value_of(house, f"{base}^")
    return then if then and await tree_of(house, then) == await tree_of(house, base) else base


async def refuse_name(house: House, name: str) -> None:
    """A *name* fault, if no new branch can be called so; a *repository* fault, if there can be none."""
    said = await house.refs.tried("check-ref-format", "--branch", name)
    if said.code or os.fsdecode(said.out).strip() != name or name == "HEAD" or "\n" in name:
        raise WorkspaceFault("name", f"{name!r} is no name for a branch. Use letters, digits, '-' and '/'.")
    if name.startswith(WHOLE):
        short = name.removeprefix(WHOLE) or "work"
        raise WorkspaceFault("name", f"{name!r} is the whole name of a branch. Say only the last part: {short!r}.")
    if house.repository.own:
        why = f"{str(house.repository.root)!r} is in no repository of git, so it can have no branch. Apply the work."
        raise WorkspaceFault("repository", why)
    for one in await _branches(house):
        if one == name:
            raise WorkspaceFault("name", f"There is a branch {name!r} already. Give another name.")
        if one.startswith(f"{name}/") or name.startswith(f"{one}/"):
            why = f"There is a branch {one!r}, and git can have none called {name!r} beside it. Give another name."
            raise WorkspaceFault("name", why)


async def _branches(house: House) -> list[str]:
    said = await house.refs.ask("for-each-ref", "--format=%(refname)", "refs/heads")
    return [one.removeprefix(WHOLE) for one in os.fsdecode(said).split("\n") if one]


async def _persons(house: House, tree: str, parent: str, message: str) -> str:
    """A commit in the person's name."""
    said = await house.as_person().tried(
        "-c", "commit.gpgSign=false", "commit-tree", tree, "-p", parent, "-F", "-", stdin=message.encode()
    )
    return said.out.decode().strip() if said.code == 0 else await commit_tree(house, tree, parent, message)


async def _fitting(house: House, head: str, base: str, tip: str) -> str:
    """The tree of HEAD with what the work changed; empty if it does not fit."""
    deltas = await delta(house, base, tip)
    with house.temporary() as folder:
        index = folder / "index"
        git = house.on(house.repository.root, index)
        await git.ask("read-tree", head)
        known = {one.path: state_in_tree(one.mode, one.blob) for one in await listing(git)}
        plan = await fitted(house, known, deltas)
        if isinstance(plan, Clashes):
            return ""
        await put_back(house, entries_of(plan), git)
        return await git.text("write-tree", "--missing-ok")
