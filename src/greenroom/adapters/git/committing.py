"""A commit in a person's name, of these files only, as they would make it: with their settings, hooks and keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.git.applying import ground_of
from greenroom.adapters.git.blobs import contents_of, keep
from greenroom.adapters.git.comparing import delta
from greenroom.adapters.git.faults import fault_of, is_locked
from greenroom.adapters.git.house import House
from greenroom.adapters.git.journal import Indexed, Paper, save
from greenroom.adapters.git.planning import Change
from greenroom.adapters.git.refs import value_of
from greenroom.adapters.git.running import PATIENCE, Answer
from greenroom.adapters.git.seeding import joined, listing
from greenroom.adapters.git.states import State
from greenroom.adapters.git.trailers import message_of, trailers_of
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Committed, WorkspaceFault

HOOKS: Final = 900.0
"""Seconds that a person's hooks may take."""

RECENT: Final = 50
TOLD: Final = 2000
GOING_ON: Final = {"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"}


async def commit(house: House, paper: Paper, message: str) -> Committed:
    """Make what was applied one commit."""
    if house.repository.own:
        why = f"{str(house.repository.root)!r} is in no git repository, so nothing can be committed."
        raise WorkspaceFault("state", f"{why} The files are applied.")
    mixed = await _mixed(house, paper)
    if found := paper.commit or await _found(house, paper):
        await save(house, evolve(paper, commit=found))
        return Committed(commit=found, mixed=mixed)
    if paper.state != "applied":
        raise WorkspaceFault("state", f"{paper.id!r} is {paper.state}, so there is nothing to commit.")
    indexed = await indexed_of(house, paper.paths)
    paper = evolve(paper, head=await value_of(house, "HEAD"), indexed=indexed)
    await save(house, paper)
    told = {"run": paper.run, "applied": paper.id, "base": paper.base, "tip": paper.tip}
    try:
        made = await commit_paths(house, paper.paths, message_of(message, told), indexed)
    finally:
        paper = evolve(paper, changes=await _after_hooks(house, paper.changes))
        await save(house, paper)
    await save(house, evolve(paper, commit=made))
    return Committed(commit=made, mixed=mixed)


async def commit_paths(house: House, paths: Sequence[str], message: str, indexed: Sequence[Indexed]) -> str:
    """A new HEAD with these files as they lie there; if it is refused, the index is what it was."""
    _refuse_in_between(house)
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
        said = await _waited(house, message, listed)
    if said.code == 0:
        return await value_of(house, "HEAD")
    await put_back(house, [one for one in indexed if not one.mode])
    raise _why(said)


async def indexed_of(house: House, paths: Iterable[str]) -> tuple[Indexed, ...]:
    """What the person's index has of these files."""
    found = {one.path: one for one in await listing(house.refs)}
    rows = ((path, found.get(path)) for path in paths)
    return tuple(Indexed(path=path, mode=one.mode, blob=one.blob) if one else Indexed(path=path) for path, one in rows)


async def put_back(house: House, indexed: Iterable[Indexed]) -> None:
    """Make the person's index have this of these files; everything else in it stays."""
    none = "0" * (64 if house.habits.hashes == "sha256" else 40)
    lines = [f"{one.mode or '0'} {one.blob or none}\t{one.path}" for one in indexed]
    if lines:
        await house.refs.ask("update-index", "-z", "--index-info", stdin=joined(lines))


def _named(paths: Iterable[str]) -> bytes:
    """Names that mean nothing else than themselves. Git could be told so for all, but then its hooks would be too."""
    return joined(f":(top,literal){one}" for one in paths)


async def _waited(house: House, message: str, listed: Path) -> Answer:
    """Git's answer, after another git that is at work has had a little time."""
    words = ("commit", "--only", "--no-status", "-F", "-", f"--pathspec-from-file={listed}", "--pathspec-file-nul")
    end = time.monotonic() + PATIENCE
    while True:
        said = await house.as_person().tried(*words, stdin=message.encode(), seconds=HOOKS)
        if said.code == 0 or not is_locked(said.err) or time.monotonic() > end:
            return said
        await asyncio.sleep(0.1)


def _refuse_in_between(house: House) -> None:
    for name, what in GOING_ON.items():
        if (house.repository.git / name).exists():
            why = f"A {what} is going on, in which git makes no commit of single files. They are applied: end it first."
            raise WorkspaceFault("state", why)


def _why(said: Answer) -> WorkspaceFault:
    text = f"{said.err}\n{said.out.decode(errors='replace')}".strip()
    if is_locked(said.err):
        return fault_of(said.err, said.code, ("commit",))
    if "tell me who you are" in text or "identity" in text:
        return WorkspaceFault("state", "Git does not know your name. Set user.name and user.email with 'git config'.")
    if "nothing to commit" in text or "no changes added" in text:
        return WorkspaceFault("state", "There is nothing to commit: the files are as in the newest commit already.")
    return WorkspaceFault(
        "hook", f"The commit was refused, and the files stay applied. Git or a hook says: {text[-TOLD:]}"
    )


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


async def _mixed(house: House, paper: Paper) -> tuple[str, ...]:
    """Files in which the person had changes that were in no commit: they are in this one."""
    head = paper.head or await value_of(house, "HEAD")
    mixed = set(paper.merged)
    if head:
        own = [one for one in await delta(house, head, paper.base) if one.path in paper.paths]
        texts = await contents_of(house, (blob for one in own for blob in (one.old, one.new) if int(blob, 16)))
        for one in own:
            before, after = (texts.get(blob, b"").replace(b"\r\n", b"\n") for blob in (one.old, one.new))
            mixed |= {one.path} if before != after else set()
    return tuple(sorted(mixed))


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
