"""A commit in a person's name, of these files only, as they would make it: with their settings, hooks and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from greenroom.adapters.git.applying import ground_of
from greenroom.adapters.git.blobs import keep
from greenroom.adapters.git.comparing import delta
from greenroom.adapters.git.hook_files import filter_files
from greenroom.adapters.git.hooked import AFTER, held_back, run_owed
from greenroom.adapters.git.house import House
from greenroom.adapters.git.indexing import indexed_of, states_in
from greenroom.adapters.git.journal import Paper, save
from greenroom.adapters.git.parting import (
    Wanted,
    commit_apart,
    commit_paths,
    first_after,
    is_committed,
    own_edits,
    settle,
)
from greenroom.adapters.git.planning import Change
from greenroom.adapters.git.readiness import refuse_in_between
from greenroom.adapters.git.refs import branches_with, is_here, value_of
from greenroom.adapters.git.states import NOTHING, State
from greenroom.adapters.git.trailers import message_of, trailers_of
from greenroom.adapters.git.writing import untouched
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Committed, WorkspaceFault

RECENT: Final = 50


async def commit(house: House, paper: Paper, message: str, *, hooks: bool = True) -> Committed:
    """Make what was applied one commit: of whole files, and where a person has lines of their own in those, apart."""
    if house.repository.own:
        why = f"{str(house.repository.root)!r} is in no git repository, so nothing can be committed."
        raise WorkspaceFault("state", f"{why} The files are applied.")
    if found := await commit_here(house, paper):
        return await _again(house, paper, found, hooks=hooks)
    if paper.state != "applied":
        raise WorkspaceFault("state", f"{paper.id!r} is {paper.state}, so there is nothing to commit.")
    refuse_in_between(house)
    if not hooks:
        await _refuse_filters(house, paper)
    head = await value_of(house, "HEAD")
    paper = evolve(paper, head=head, indexed=await indexed_of(house, paper.paths), commit="")
    await save(house, paper)
    mixed = await own_edits(house, head, _before(paper), paper.indexed)
    wanted = evolve(await _wanted(house, paper), message=_message(paper, message), hooks=hooks)
    async with held_back(house, paper.id, hooks=hooks) as folder:
        made = await (commit_apart if mixed else commit_paths)(house, evolve(wanted, hooks_in=folder))
    if not made:
        raise await _taken_away(house, paper)
    try:
        await settle(house, wanted, made)  # first of all: who commits before that takes the work back
    finally:
        paper = await _noted(house, paper, made)
    remark = await run_owed(house, paper.id)
    return Committed(commit=await _afterwards(house, paper), mixed=mixed, fresh=True, remark=remark)


async def _noted(house: House, paper: Paper, made: str) -> Paper:
    """With its commit, as it is written down from now on."""
    paper = evolve(paper, commit=made, changes=await _as_committed(house, paper.changes, made))
    await save(house, paper)
    return paper


async def _afterwards(house: House, paper: Paper) -> str:
    """Its commit now that all hooks are done: one of them may have amended it, or taken it away."""
    if await is_here(house, paper.commit):
        return paper.commit
    found = await commit_saying(house, "applied", paper.id) or await _made_anew(house, paper)
    if not found:
        raise await _taken_away(house, paper)
    return (await _noted(house, paper, found)).commit


async def _made_anew(house: House, paper: Paper) -> str:
    """A commit in its place that changes all that it changed, whatever its message says; empty for none."""
    found = await first_after(house, paper.head)
    if not found:
        return ""
    old = await states_in(house, paper.head) if paper.head else {}
    made, new = await states_in(house, paper.commit), await states_in(house, found)
    changed = [one for one in paper.paths if made.get(one) != old.get(one)]
    return found if all(new.get(one) != old.get(one) for one in changed) else ""


async def _taken_away(house: House, paper: Paper) -> WorkspaceFault:
    """What is so when a commit that was made is not there any more; that is written down too."""
    who, short = f"by your {AFTER} hook, or by somebody else at that moment", paper.commit[:10]
    if paper.commit and (names := await branches_with(house, paper.commit)):
        where = f"it is on {names[0]!r}, which is not checked out any more"
        back = f"'git switch {names[0]}' goes back there."
        return WorkspaceFault("hook", f"The commit {short} is made, but {where}: another was chosen {who}. {back}")
    gone = await asyncio.to_thread(untouched, ground_of(house), paper.changes)
    await save(house, evolve(paper, commit="", state="dropped" if gone else "applied"))
    why = f"{f'The commit {short}' if short else 'The commit'} was made and then taken away {who}"
    if gone:
        return WorkspaceFault("hook", f"Nothing is applied. {why}, with its files. Apply it again when that is mended.")
    now = "The files are applied: commit them yourself with 'git commit', or take them back with `greenroom undo`."
    return WorkspaceFault("hook", f"{why}. {now}")


async def commit_here(house: House, paper: Paper) -> str:
    """The commit of this, if what is checked out has one: also one that nobody has written down, because we were killed
    in between, and one that was amended with its message kept."""
    if paper.commit and await is_here(house, paper.commit):
        return paper.commit
    return await commit_saying(house, "applied", paper.id)


async def _again(house: House, paper: Paper, found: str, *, hooks: bool) -> Committed:
    """A commit that is there: whatever a kill has left to be done about it is done. Of one that was amended it stays
    written down what it was: what a person has put into it is theirs."""
    if not paper.commit:
        paper = evolve(paper, commit=found)
        await save(house, paper)
    await settle(house, await _wanted(house, paper), found)
    mixed = await own_edits(house, paper.head, _before(paper), paper.indexed)
    remark = await run_owed(house, paper.id) if hooks else ""
    return Committed(commit=await _afterwards(house, evolve(paper, commit=found)), mixed=mixed, remark=remark)


async def _wanted(house: House, paper: Paper) -> Wanted:
    every = await delta(house, paper.base, paper.tip)
    deltas = tuple(one for one in every if one.path in paper.paths)
    return Wanted(head=paper.head, message="", paths=paper.paths, deltas=deltas, indexed=paper.indexed)


def _message(paper: Paper, message: str) -> str:
    return message_of(message, {"run": paper.run, "applied": paper.id, "base": paper.base, "tip": paper.tip})


async def _refuse_filters(house: House, paper: Paper) -> None:
    """Nobody can commit without the filters that the files go through."""
    if found := await filter_files(house, paper.base, paper.tip):
        why = f"Git itself runs {', '.join(found)} when files are committed, and the work changes that."
        raise WorkspaceFault("hook", f"{why} The files are applied: look at them, and commit them yourself.")


def _before(paper: Paper) -> dict[str, State]:
    return {one.path: one.before for one in paper.changes}


async def commit_saying(house: House, word: str, value: str) -> str:
    """A commit of what is checked out whose message says this, if it is a new one: nobody may have written it down."""
    if not await value_of(house, "HEAD"):
        return ""
    said = await house.refs.ask("log", "-z", f"-{RECENT}", "--no-show-signature", "--format=%H%n%B", "HEAD")
    for one in said.decode(errors="replace").split("\0"):
        name, _, message = one.partition("\n")
        if trailers_of(message).get(word) == value:
            return name
    return ""


async def _as_committed(house: House, changes: Sequence[Change], commit: str) -> tuple[Change, ...]:
    """These changes, to what their commit has: what hooks have made of a file on the way into it counts as ours, for a
    formatter is no edit of a person. What lies there otherwise may be one, so it stays one."""
    found, known = await asyncio.to_thread(_now, house, changes), await states_in(house, commit)
    await keep(house, [content for _, content in found])
    return tuple(
        [
            evolve(one, after=now) if await is_committed(house, one.path, now, known.get(one.path, NOTHING)) else one
            for one, (now, _) in zip(changes, found, strict=True)
        ]
    )


def _now(house: House, changes: Sequence[Change]) -> list[tuple[State, bytes]]:
    ground, found = ground_of(house), list[tuple[State, bytes]]()
    for one in changes:
        with suppress(OSError):
            found.append(ground.look(one.path))
            continue
        found.append((State(kind="other"), b""))
    return found
