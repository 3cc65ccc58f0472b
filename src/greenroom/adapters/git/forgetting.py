"""What a repository keeps of runs below refs/greenroom, and how it is deleted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias
from urllib.parse import unquote

from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import papers, papers_among
from greenroom.adapters.git.locks import alone
from greenroom.adapters.git.names import OURS, part
from greenroom.adapters.git.opening import TREES
from greenroom.adapters.git.refs import Ref, under
from greenroom.core.ports.workspace import Clash, Clashes, Kept, WorkspaceFault

Graph: TypeAlias = Mapping[str, tuple[Sequence[str], str]]
"""The parents and the first line of each commit."""


async def every(house: House) -> list[Kept]:
    """What is kept of each run, by name. Git is asked three times, however many runs there are."""
    return await _told(house, await under(house, f"{OURS}/"))


async def kept(house: House, run: str) -> Kept:
    """What is kept of one."""
    found = await _told(house, await _refs(house, run))
    return found[0] if found else Kept(run=run, base="")


async def unapplied(house: House, run: str, base: str, tips: Sequence[str]) -> Sequence[str]:
    """The first lines of the commits that lead to these and that nobody has yet."""
    applied = [one.tip for one in await papers(house, run) if one.state == "applied"]
    return _not_in(applied, await _graph(house, (*tips, *applied), [base]), tips)


async def _told(house: House, refs: Sequence[Ref]) -> list[Kept]:
    applied = [one for one in await papers_among(house, refs) if one.state == "applied"]
    bases = {_run(name): commit for name, commit, _ in refs if name.endswith("/@base")}
    tips = [(_run(name), commit) for name, commit, _ in refs if _is_work(name)]
    graph = await _graph(house, (*(commit for _, commit in tips), *(one.tip for one in applied)), bases.values())
    return [
        Kept(
            run=run,
            base=bases.get(run, ""),
            unapplied=_not_in(
                [one.tip for one in applied if one.run == run], graph, [commit for own, commit in tips if own == run]
            ),
            applied=tuple(one.id for one in applied if one.run == run),
        )
        for run in dict.fromkeys(_run(name) for name, _, _ in refs)
    ]


async def _graph(house: House, tips: Sequence[str], bases: Iterable[str]) -> Graph:
    """The commits that lead to these, as far as they were made since. One that git has cleared away leads nowhere."""
    if not tips:
        return {}
    wanted = "".join(f"{one}\n" for one in (*tips, *(f"^{one}" for one in bases if one)))
    words = ("log", "--no-show-signature", "--format=%H%x00%P%x00%s", "--ignore-missing", "--stdin")
    said = await house.plain.ask(*words, stdin=wanted.encode())
    rows = (line.split("\0") for line in said.decode(errors="replace").split("\n") if line)
    return {name: (parents.split(), subject) for name, parents, subject in rows}


def _not_in(applied: Iterable[str], graph: Graph, tips: Iterable[str]) -> tuple[str, ...]:
    """The first lines of what leads to these tips, and not to what was applied."""
    seen, todo = set[str](), [*applied]
    while todo:
        one = todo.pop()
        if one in graph and one not in seen:
            seen.add(one)
            todo += graph[one][0]
    found = list[str]()
    for tip in tips:
        one = tip
        while one in graph and one not in seen:
            seen.add(one)
            parents, subject = graph[one]
            found.append(subject)
            one = parents[0] if parents else ""
    return tuple(found)


async def forget(house: House, run: str, *, discard: bool) -> Kept | Clashes:
    """Delete all refs of a run."""
    standing = [one.name for one in (house.folder / TREES).glob(f"{part(run)}+*")]
    if standing:
        raise WorkspaceFault("state", f"There is still a worktree of {run!r} ({standing[0]}). Clean it first.")
    found = await kept(house, run)
    if found.unapplied and not discard:
        return Clashes(clashes=tuple(Clash(path="", why=f"not applied: {one}") for one in found.unapplied))
    refs = await _refs(house, run)
    async with alone(house.folder / "refs.lock"):
        for name, _, _ in refs:
            with suppress(OSError):
                (house.repository.common / f"{name}.lock").unlink()  # left by a git that was killed
        lines = "".join(f"delete {name}\n" for name, _, _ in refs)
        await house.refs.ask("update-ref", "-m", "greenroom", "--stdin", stdin=os.fsencode(lines))
    return found


async def _refs(house: House, run: str) -> list[Ref]:
    return await under(house, f"{OURS}/{part(run)}/")


def _run(ref: str) -> str:
    return unquote(ref.split("/")[2], errors="surrogateescape")


def _is_work(ref: str) -> bool:
    """Whether it is of a thread."""
    return not ref.split("/")[3].startswith("@")
