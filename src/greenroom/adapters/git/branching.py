"""Work on a branch: a commit on a person's HEAD that has only what the work changed.

Where that does not fit, because the person had changed the same lines and committed none of it, the branch has their
changes too, as a commit of its own below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from greenroom.adapters.git.blobs import contents_of, merged
from greenroom.adapters.git.comparing import Delta, delta
from greenroom.adapters.git.house import House
from greenroom.adapters.git.planning import Planned, planned
from greenroom.adapters.git.refs import commit_of, tree_of, value_of
from greenroom.adapters.git.seeding import joined, listing
from greenroom.adapters.git.snapshots import commit_tree
from greenroom.adapters.git.states import NOTHING, State, state_in_tree
from greenroom.adapters.git.trailers import message_of
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Branched, Clashes, WorkspaceFault


async def branch(house: House, name: str, base: str, tip: str, message: str) -> Branched:
    """Make it."""
    base, tip = await commit_of(house, base), await commit_of(house, tip)
    await _refuse_name(house, name)
    head = await value_of(house, "HEAD")
    text = message_of(message, {"base": base, "tip": tip})
    fitting = await _fitting(house, head, base, tip) if head else ""
    if fitting:
        commit = await _persons(house, fitting, head, text)
    else:
        commit = await _persons(house, await tree_of(house, tip), base, text)
    ref = f"refs/heads/{name}"
    await house.refs.also("-c", "core.logAllRefUpdates=true").ask("update-ref", ref, commit, "0" * len(commit))
    return Branched(name=name, commit=commit, whole=not fitting)


async def _refuse_name(house: House, name: str) -> None:
    said = await house.refs.tried("check-ref-format", f"refs/heads/{name}")
    if said.code or name.startswith("-"):
        raise WorkspaceFault("name", f"{name!r} is no name for a branch. Use letters, digits, '-' and '/'.")
    if await value_of(house, f"refs/heads/{name}"):
        raise WorkspaceFault("name", f"There is a branch {name!r} already. Give another name.")


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
        now = {one.path: _state(one.path, known) for one in deltas}
        plan = await planned(await _cleaned(house, deltas), now, partial(merged, house))
        if isinstance(plan, Clashes):
            return ""
        await git.ask("update-index", "-z", "--index-info", stdin=joined(_lines(plan, house)))
        return await git.text("write-tree", "--missing-ok")


def _state(path: str, known: Mapping[str, State]) -> State:
    if path in known:
        return known[path]
    above = path.split("/")[:-1]
    if any("/".join(above[:number]) in known for number in range(1, len(above) + 1)):
        return State(kind="blocked")
    return State(kind="folder") if any(one.startswith(f"{path}/") for one in known) else NOTHING


def _lines(plan: Planned, house: House) -> Sequence[str]:
    """What goes comes first: a file may stand where a folder was."""
    none = "0" * (64 if house.habits.hashes == "sha256" else 40)
    gone = [f"0 {none}\t{one.path}" for one in plan.changes if one.after.kind == "none"]
    return [*gone, *(f"{_mode(one.after)} {one.after.blob}\t{one.path}" for one in plan.changes if one.after.blob)]


def _mode(state: State) -> str:
    return "120000" if state.kind == "link" else "100755" if state.runs else "100644"


async def _cleaned(house: House, deltas: Sequence[Delta]) -> Sequence[Delta]:
    """The same as git keeps it: where a repository converts files, its commits have other bytes than its tree."""
    if house.repository.own:
        return deltas
    files = [one for one in deltas if one.old_mode.startswith("100") or one.new_mode.startswith("100")]
    texts = await contents_of(house, (blob for one in files for blob in _blobs(one)))
    kept = dict[tuple[str, str], str]()
    for one in files:
        for blob in _blobs(one):
            kept[one.path, blob] = await _clean(house, one.path, texts[blob])
    return [
        evolve(one, old=kept.get((one.path, one.old), one.old), new=kept.get((one.path, one.new), one.new))
        for one in deltas
    ]


def _blobs(one: Delta) -> list[str]:
    pairs = ((one.old_mode, one.old), (one.new_mode, one.new))
    return [blob for mode, blob in pairs if mode.startswith("100")]


async def _clean(house: House, path: str, content: bytes) -> str:
    """What `git add` would keep of it: the person asks for a commit, so their filters run as for any."""
    said = await house.as_person().ask("hash-object", "-w", "--stdin", f"--path={path}", stdin=content)
    return said.decode().strip()
