"""Refs of a repository: read, and moved only from where we think they are.

A process for each question is what git costs, and most questions have only one answer for ever: what a full hash leads
to. Those are asked once. Where one of our own refs leads is read from its file, if it has one.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Final, TypeAlias

from greenroom.adapters.git.house import House
from greenroom.adapters.git.locks import alone
from greenroom.adapters.git.names import OURS
from greenroom.core.ports.workspace import WorkspaceFault

Ref: TypeAlias = tuple[str, str, str]
"""Name, commit, and that commit's first line."""

WHOLE: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SETTLED: Final = re.compile(rf"(?:{WHOLE.pattern})\^?(?:\^\{{(?:commit|tree)\}})?")
"""A full hash, and a way from it that we ask for: where that leads never changes. A branch's name may begin so too."""


async def value_of(house: House, ref: str) -> str:
    """The commit that a ref leads to; empty if there is none."""
    return await _leads(house, f"{_own(house, ref) or ref}^{{commit}}")


async def commit_of(house: House, name: str) -> str:
    """The same, where there has to be one."""
    found = "" if name.startswith("-") else await value_of(house, name)
    if not found:
        raise WorkspaceFault("name", f"There is no commit {name!r} in {str(house.repository.root)!r}.")
    return found


async def move(house: House, ref: str, new: str, old: str) -> None:
    """Lead it to `new`, if it leads to `old` (empty: nowhere). Locks that a killed git left on ours are cleared."""
    async with alone(house.folder / "refs.lock"):
        if ref.startswith(f"{OURS}/"):
            with suppress(OSError):
                (house.repository.common / f"{ref}.lock").unlink()
        await house.refs.ask("update-ref", "-m", "greenroom", ref, new, old or "0" * len(new))


async def under(house: House, prefix: str) -> list[Ref]:
    """Those below this one, by name."""
    said = await house.refs.ask("for-each-ref", "--format=%(refname)%00%(objectname)%00%(contents:subject)", prefix)
    lines = os.fsdecode(said).rstrip("\n").split("\n") if said else []
    found = [line.split("\0") for line in lines]
    return [(name, commit, subject) for name, commit, subject in found]


async def tree_of(house: House, commit: str) -> str:
    """The tree of a commit."""
    found = await _leads(house, f"{commit}^{{tree}}")
    if not found:
        raise WorkspaceFault("name", f"There is no commit {commit!r} in {str(house.repository.root)!r}.")
    return found


def learn(house: House, commit: str, tree: str, parent: str) -> None:
    """What is known of a commit without asking: who has made it, or read it, knows where it leads."""
    house.settled |= {
        f"{commit}^{{commit}}": commit,
        f"{commit}^{{tree}}": tree,
        f"{commit}^^{{commit}}": parent,
    }


async def is_here(house: House, commit: str) -> bool:
    """Whether what is checked out has this commit in its history."""
    return (await house.refs.tried("merge-base", "--is-ancestor", commit, "HEAD")).code == 0


async def branches_with(house: House, commit: str) -> list[str]:
    """The person's branches that have this commit; none for one that is gone."""
    said = await house.refs.tried("for-each-ref", "--format=%(refname)", "--contains", commit, "refs/heads")
    names = os.fsdecode(said.out).split("\n") if said.code == 0 else []
    return [one.removeprefix("refs/heads/") for one in names if one]


async def _leads(house: House, name: str) -> str:
    if name in house.settled:
        return house.settled[name]
    said = await house.refs.tried("rev-parse", "--verify", "--quiet", name)
    found = said.out.decode().strip() if said.code == 0 else ""
    if found and SETTLED.fullmatch(name):
        house.settled[name] = found
    return found


def _own(house: House, ref: str) -> str:
    """What the file of one of our refs says: git itself looks there first. Empty if it has none, or other words."""
    if not ref.startswith(f"{OURS}/"):
        return ""
    try:
        said = (house.repository.common / ref).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
    return said if WHOLE.fullmatch(said) else ""
