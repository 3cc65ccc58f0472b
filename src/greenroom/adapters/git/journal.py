"""What was applied, written down in the repository before it is done: with it, it is finished, undone or found again.

Each is a commit under a ref of its own. Its tree has the paper and every content that there was and will be, so that
git keeps them; its first line says how it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from greenroom.adapters.git.blobs import contents_of, keep
from greenroom.adapters.git.house import House
from greenroom.adapters.git.names import OURS, applied_id, applied_ref, applied_refs
from greenroom.adapters.git.planning import Change
from greenroom.adapters.git.refs import Ref, move, under, value_of
from greenroom.adapters.git.snapshots import commit_tree
from greenroom.adapters.git.trailers import message_of
from greenroom.adapters.git.writing import Folder, Moves
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Applied, WorkspaceFault

PAPER: Final = "paper"
OPEN: Final = ("applying", "undoing")
APPLIED: Final = "/@applied/"
"""In the names of refs to papers."""


@record
class Indexed:
    """What a person's index had of a file; no mode is nothing."""

    path: str
    mode: str = ""
    blob: str = ""


@record
class Paper:
    """One thing that was applied. `head` and `indexed` are what there was before its commit, and the same with
    `revert_` what there was before the one that takes it back, `reverted`."""

    id: str
    run: str
    base: str
    tip: str
    changes: tuple[Change, ...]
    leave: tuple[Folder, ...] = ()
    come: tuple[Folder, ...] = ()
    merged: tuple[str, ...] = ()
    state: Literal["applying", "applied", "undoing", "undone", "dropped"] = "applying"
    commit: str = ""
    head: str = ""
    indexed: tuple[Indexed, ...] = ()
    reverting: bool = False
    revert_head: str = ""
    revert_indexed: tuple[Indexed, ...] = ()
    reverted: str = ""

    @property
    def moves(self) -> Moves:
        """From before to after."""
        return Moves(changes=self.changes, leave=self.leave, come=self.come)

    @property
    def token(self) -> str:
        """What its drafts are called."""
        return self.tip[:12]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it is about."""
        return tuple(one.path for one in self.changes)

    def told(self) -> Applied:
        """As the port tells it."""
        return Applied(
            id=self.id,
            run=self.run,
            base=self.base,
            tip=self.tip,
            paths=self.paths,
            merged=self.merged,
            state=self.state,
            commit=self.commit,
        )


async def save(house: House, paper: Paper) -> None:
    """Write down how it stands."""
    data = json.dumps(msgspec.to_builtins(paper)).encode()
    named = (await keep(house, [data]))[0]
    states = [state for one in paper.changes for state in (one.before, one.after)]
    blobs = sorted({one.blob for one in states if one.blob and one.kind in ("file", "link")})
    lines = [f"100644 blob {named}\t{PAPER}", *(f"100644 blob {one}\t{one}" for one in blobs)]
    tree = await house.plain.text("mktree", stdin="\n".join(lines).encode())
    ref = applied_ref(paper.id)
    old = await value_of(house, ref)
    message = message_of(f"{paper.state} {paper.id}", {"run": paper.run})
    await move(house, ref, await commit_tree(house, tree, old, message), old)


async def load(house: House, applied: str) -> Paper:
    """What is written down about it."""
    commit = await value_of(house, applied_ref(applied))
    if not commit:
        raise WorkspaceFault(
            "name", f"Nothing was applied under the name {applied!r} in {str(house.repository.root)!r}."
        )
    (paper,) = await _read(house, [commit])
    return paper


async def _read(house: House, commits: Sequence[str]) -> list[Paper]:
    """All of them with one question: a repository may keep hundreds."""
    names = [f"{one}:{PAPER}" for one in commits]
    found = await contents_of(house, names)
    return [msgspec.convert(json.loads(found[one]), Paper) for one in names]


async def next_id(house: House, run: str) -> str:
    """The name of what is applied next of a run."""
    return applied_id(run, 1 + max([_number(one) for one, _, _ in await under(house, applied_refs(run))], default=0))


async def papers(house: House, run: str = "") -> list[Paper]:
    """All that was applied of a run, the first first; without a name of all runs."""
    return await papers_among(house, await under(house, applied_refs(run) if run else f"{OURS}/"))


async def papers_among(house: House, refs: Iterable[Ref]) -> list[Paper]:
    """What those of these refs lead to that are of something applied, run by run."""
    some = sorted((name.split("/")[2], _number(name), commit) for name, commit, _ in refs if APPLIED in name)
    return await _read(house, [commit for _, _, commit in some])


async def unfinished(house: House) -> list[Paper]:
    """Those in the middle of which somebody was killed."""
    found = await under(house, "refs/greenroom/")
    ids = [subject.partition(" ")[2] for name, _, subject in found if _is_open(name, subject)]
    return [await load(house, one) for one in ids]


def _is_open(name: str, subject: str) -> bool:
    return APPLIED in name and subject.partition(" ")[0] in OPEN


def _number(ref: str) -> int:
    return int(ref.rpartition("/")[2])
