"""A commit in a person's name, of these files only, as they would make it: with their settings, hooks and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from greenroom.adapters.git.applying import ground_of
from greenroom.adapters.git.blobs import keep
from greenroom.adapters.git.comparing import Delta, delta
from greenroom.adapters.git.hooked import committed
from greenroom.adapters.git.house import House
from greenroom.adapters.git.indexing import indexed_of, put_back
from greenroom.adapters.git.journal import Indexed, Paper, save
from greenroom.adapters.git.parting import commit_apart, own_edits, settle
from greenroom.adapters.git.planning import Change
from greenroom.adapters.git.readiness import refuse_in_between
from greenroom.adapters.git.refs import is_here, value_of
from greenroom.adapters.git.seeding import joined
from greenroom.adapters.git.states import State
from greenroom.adapters.git.trailers import message_of, trailers_of
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Committed, WorkspaceFault

RECENT: Final = 50


async def commit(house: House, paper: Paper, message: str) -> Committed:
    """Make what was applied one commit: of whole files, and where a person has lines of their own in those, apart."""
    if house.repository.own:
        why = f"{str(house.repository.root)!r} is in no git repository, so nothing can be committed."
        raise WorkspaceFault("state", f"{why} The files are applied.")
    if found := await commit_here(house, paper):
        return await _again(house, evolve(paper, commit=found))
    if paper.state != "applied":
        raise WorkspaceFault("state", f"{paper.id!r} is {paper.state}, so there is nothing to commit.")
    refuse_in_between(house)
    head = await value_of(house, "HEAD")
    paper = evolve(paper, head=head, indexed=await indexed_of(house, paper.paths), commit="")
    await save(house, paper)
    mixed = await own_edits(house, head, _before(paper), paper.indexed)
    told = {"run": paper.run, "applied": paper.id, "base": paper.base, "tip": paper.tip}
    text = message_of(message, told)
    try:
        if mixed:
            made = await commit_apart(house, await _deltas(house, paper), text, paper.indexed)
        else:
            made = await commit_paths(house, paper.paths, text, paper.indexed)
    finally:
        paper = evolve(paper, changes=await _after_hooks(house, paper.changes))
        await save(house, paper)
    await save(house, evolve(paper, commit=made))
    return Committed(commit=made, mixed=mixed)


async def commit_here(house: House, paper: Paper) -> str:
    """The commit of this, if what is checked out has one: also one that nobody has written down, because we were killed
    in between, and one that was amended with its message kept."""
    return paper.commit if paper.commit and await is_here(house, paper.commit) else await _found(house, paper)


async def _again(house: House, paper: Paper) -> Committed:
    """A commit that is there: whatever a kill has left to be done about it is done."""
    await save(house, paper)
    mixed = await own_edits(house, paper.head, _before(paper), paper.indexed)
    if mixed:
        await settle(house, paper.head, paper.commit, await _deltas(house, paper), paper.indexed)
    return Committed(commit=paper.commit, mixed=mixed)


async def _deltas(house: House, paper: Paper) -> list[Delta]:
    return [one for one in await delta(house, paper.base, paper.tip) if one.path in paper.paths]


def _before(paper: Paper) -> dict[str, State]:
    return {one.path: one.before for one in paper.changes}


async def commit_paths(house: House, paths: Sequence[str], message: str, indexed: Sequence[Indexed]) -> str:
    """A new HEAD with these files as they lie there; if it is refused, the index is what it was."""
    known = {one.path for one in indexed if one.mode}
    there = {
        one for one in paths if (house.repository.root / one).is_symlink() or (house.repository.root / one).exists()
    }
    new = sorted(there - known)
    named = [one for one in paths if one in known or one in there]
    person = house.as_person()
    with house.temporary() as folder:
        listed = folder / "paths"
        if new:
            await asyncio.to_thread(listed.write_bytes, _named(new))
            await person.ask("add", "-N", "-f", "--sparse", f"--pathspec-from-file={listed}", "--pathspec-file-nul")
        await asyncio.to_thread(listed.write_bytes, _named(named))
        try:
            await committed(person, message, "--only", f"--pathspec-from-file={listed}", "--pathspec-file-nul")
        except WorkspaceFault:
            await put_back(house, [one for one in indexed if not one.mode])
            raise
    return await value_of(house, "HEAD")


def _named(paths: Iterable[str]) -> bytes:
    """Names that mean nothing else than themselves. Git could be told so for all, but then its hooks would be too."""
    return joined(f":(top,literal){one}" for one in paths)


async def _found(house: House, paper: Paper) -> str:
    """A commit of this that nobody has written down: we were killed in between."""
    if not await value_of(house, "HEAD"):
        return ""
    said = await house.refs.ask("log", "-z", f"-{RECENT}", "--no-show-signature", "--format=%H%n%B", "HEAD")
    for one in said.decode(errors="replace").split("\0"):
        name, _, message = one.partition("\n")
        if trailers_of(message).get("applied") == paper.id:
            return name
    return ""


async def _after_hooks(house: House, changes: Sequence[Change]) -> tuple[Change, ...]:
    """What hooks have made of the files counts as ours: a formatter is no edit of a person."""
    found = await asyncio.to_thread(_now, house, changes)
    await keep(house, [content for _, content in found])
    return tuple(
        evolve(one, after=state) if state.kind in ("file", "link", "none") else one
        for one, (state, _) in zip(changes, found, strict=True)
    )


def _now(house: House, changes: Sequence[Change]) -> list[tuple[State, bytes]]:
    ground, found = ground_of(house), list[tuple[State, bytes]]()
    for one in changes:
        with suppress(OSError):
            found.append(ground.look(one.path))
            continue
        found.append((State(kind="other"), b""))
    return found
