"""Work fitted on another tree than the one it was done in: a person's newest commit, or what they have staged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from greenroom.adapters.git.blobs import contents_of, merged
from greenroom.adapters.git.comparing import Delta
from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import Indexed
from greenroom.adapters.git.planning import Planned, planned
from greenroom.adapters.git.states import NOTHING, State
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Clashes


async def fitted(house: House, known: Mapping[str, State], deltas: Sequence[Delta]) -> Planned | Clashes:
    """What these changes make of the files that a tree of git has."""
    now = {one.path: _state(one.path, known) for one in deltas}
    return await planned(await _cleaned(house, deltas), now, partial(merged, house))


def _state(path: str, known: Mapping[str, State]) -> State:
    if path in known:
        return known[path]
    above = path.split("/")[:-1]
    if any("/".join(above[:number]) in known for number in range(1, len(above) + 1)):
        return State(kind="blocked")
    return State(kind="folder") if any(one.startswith(f"{path}/") for one in known) else NOTHING


def entries_of(plan: Planned) -> Sequence[Indexed]:
    """What an index has of it afterwards."""
    return [entry_of(one.path, one.after) for one in plan.changes]


def entry_of(path: str, state: State) -> Indexed:
    """A file or a link as an index has it; nothing of it where there is none."""
    if not state.blob:
        return Indexed(path=path)
    mode = "120000" if state.kind == "link" else "100755" if state.runs else "100644"
    return Indexed(path=path, mode=mode, blob=state.blob)


async def _cleaned(house: House, deltas: Sequence[Delta]) -> Sequence[Delta]:
    """The same as git keeps it: where a repository converts files, its commits have other bytes than its tree."""
    files = [one for one in deltas if one.old_mode.startswith("100") or one.new_mode.startswith("100")]
    texts = await contents_of(house, (blob for one in files for blob in _blobs(one)))
    kept = dict[tuple[str, str], str]()
    for one in files:
        for blob in _blobs(one):
            kept[one.path, blob] = await clean(house, one.path, texts[blob])
    return [
        evolve(one, old=kept.get((one.path, one.old), one.old), new=kept.get((one.path, one.new), one.new))
        for one in deltas
    ]


def _blobs(one: Delta) -> list[str]:
    pairs = ((one.old_mode, one.old), (one.new_mode, one.new))
    return [blob for mode, blob in pairs if mode.startswith("100")]


async def clean(house: House, path: str, content: bytes) -> str:
    """What `git add` would keep of it: the person asks for a commit, so their filters run as for any."""
    said = await house.as_person().ask("hash-object", "-w", "--stdin", f"--path={path}", stdin=content)
    return said.decode().strip()
