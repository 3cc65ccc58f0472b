"""What a repository keeps of runs below refs/greenroom, and how it is deleted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote

from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import papers
from greenroom.adapters.git.locks import alone
from greenroom.adapters.git.names import OURS, base_ref, part
from greenroom.adapters.git.opening import TREES
from greenroom.adapters.git.refs import under, value_of
from greenroom.core.ports.workspace import Clash, Clashes, Kept, WorkspaceFault


async def every(house: House) -> list[Kept]:
    """What is kept of each run, by name."""
    names = dict.fromkeys(name.split("/")[2] for name, _, _ in await under(house, f"{OURS}/"))
    return [await kept(house, unquote(one, errors="surrogateescape")) for one in names]


async def kept(house: House, run: str) -> Kept:
    """What is kept of one."""
    base = await value_of(house, base_ref(run))
    tips = [commit for name, commit, _ in await _refs(house, run) if _is_work(name)]
    applied = [one for one in await papers(house, run) if one.state == "applied"]
    return Kept(
        run=run,
        base=base,
        unapplied=tuple(await unapplied(house, run, base, tips)),
        applied=tuple(one.id for one in applied),
    )


async def unapplied(house: House, run: str, base: str, tips: Sequence[str]) -> Sequence[str]:
    """The first lines of the commits that lead to these and that nobody has yet."""
    if not tips:
        return ()
    applied = [one.tip for one in await papers(house, run) if one.state == "applied"]
    known = [f"^{one}" for one in (base, *applied) if one and await value_of(house, one)]
    words = ("log", "--first-parent", "--no-show-signature", "--format=%s", *tips, *known)
    return (await house.plain.text(*words)).splitlines()


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


async def _refs(house: House, run: str) -> list[tuple[str, str, str]]:
    return await under(house, f"{OURS}/{part(run)}/")


def _is_work(name: str) -> bool:
    """Whether a ref is of a thread."""
    return not name.split("/")[3].startswith("@")
