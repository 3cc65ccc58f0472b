"""Bring a change to the person's tree: merged by git onto HEAD, written down, and written by git, all or nothing.

A file that the person has changed and not committed is never written: then nothing is done, and the files are named.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.adapters.git.diff import delta
from greenroom.adapters.git.files import is_no_folder
from greenroom.adapters.git.journal import FileChange, Paper, State, changes_of, entries, next_id, papers, save
from greenroom.adapters.git.objects import Delta
from greenroom.adapters.git.process import Git
from greenroom.adapters.git.refs import (
    applied_ref,
    branches_with,
    commit_of,
    commit_tree,
    is_ancestor,
    tree_of,
    value_of,
)
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import Named, join, look_at_tree, split
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.files import is_protected
from greenroom.core.ports.workspace import Applied, Clash, Clashes, WorkspaceFault

UNCOMMITTED: Final = "you have changed it and not committed that"
UNKNOWN: Final = "a file that git does not know is in its place"
SAME_LINES: Final = "you and the work changed the same lines"
PROTECTED: Final = "it belongs to git or greenroom, and is never written"
SINCE: Final = "it was edited since"
IN_PROGRESS: Final = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "bisect",
}
REFUSED: Final = re.compile(
    r"(?:Entry|file|Updating|path) '([^']+)'|Updating the following directories[^\n]*\n\s+(\S.*)"
)
"""How `read-tree` names a file that it will not write over."""

MADE_UP: Final = re.compile(r"~[0-9a-f]{40,64}(?:_\d+)?$")
"""What `merge-tree` puts behind a name that both sides use for different things."""

CALM: Final = {
    "core.sparseCheckout": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "index.sparse": "false",
    "diff.autoRefreshIndex": "true",
    "submodule.recurse": "false",
}
CONVERTING: Final = ("text", "crlf", "eol", "filter", "ident", "working-tree-encoding")
NAMED: Final = 5
"""Files that a sentence names."""

Filled: TypeAlias = tuple[Git, list[str]]
"""Git with an index that is filled with what a move begins with, and the files that lie there otherwise."""


class HalfwayFault(WorkspaceFault):
    """It could not be done, and what was done by then could not be taken back: it stays written down as begun."""


@record
class Move:
    """From one tree to another, which differ in `changes`. A `raw` one has contents as they lie on the disk."""

    old: str
    new: str
    changes: tuple[FileChange, ...]
    raw: bool = False

    def back(self) -> Move:
        """The other way round."""
        turned = (FileChange(path=change.path, before=change.after, after=change.before) for change in self.changes)
        return Move(old=self.new, new=self.old, changes=tuple(turned), raw=self.raw)


async def apply(repository: Repository, run: str, base: str, tip: str, *, secret: Named) -> Applied | Clashes:
    """Bring what changed from one commit to another to the person's tree."""
    base, tip = await commit_of(repository, base), await commit_of(repository, tip)
    earlier = [
        paper
        for paper in await papers(repository, run)
        if (paper.base, paper.tip, paper.state) == (base, tip, "applied")
    ]
    for paper in earlier:
        if paper.commit and not await is_here(repository, paper.commit):
            await _refuse_on_branch(repository, paper.commit)
        if not await is_untouched(repository, paper):
            return paper.applied
    refuse_in_between(repository)
    head = await value_of(repository, "HEAD")
    ours = await tree_of(repository, head) if head else (await look_at_tree(repository, secret=secret)).tree
    merged = await merge(repository, base, ours, await tree_of(repository, tip))
    if not isinstance(merged, str):
        return await explain_conflicts(repository, merged)
    changes = await delta(repository, ours, merged)
    if not changes:
        return Applied(id="", run=run, base=base, tip=tip, paths=())
    both = {item.path for item in await delta(repository, base, ours)} & {item.path for item in changes}
    paper = Paper(
        id=await next_id(repository, run),
        run=run,
        base=base,
        tip=tip,
        changes=changes_of(changes),
        merged=tuple(sorted(both)),
        old=ours,
        new=merged,
    )
    async with fill_index(repository, await move_of(repository, paper)) as filled:
        clashes = await find_clashes(repository, changes, filled[1])
        if clashes:
            return Clashes(clashes=clashes)
        for other in earlier:
            await save(repository, evolve(other, state="dropped"))
        await save(repository, paper)
        return await finish(repository, paper, filled=filled)


async def finish(
    repository: Repository, paper: Paper, *, force: bool = False, filled: Filled | None = None
) -> Applied | Clashes:
    """Do what is written down; where a file was edited at this moment, nothing is done."""
    try:
        edited = await switch(repository, await move_of(repository, paper), paper, force=force, filled=filled)
    except HalfwayFault:
        raise
    except WorkspaceFault:
        await save(repository, evolve(paper, state="dropped"))
        raise
    if edited:
        await save(repository, evolve(paper, state="dropped"))
        return clashes_at(edited, UNCOMMITTED)
    done = evolve(paper, state="applied")
    await save(repository, done)
    return evolve(done.applied, fresh=True)


async def _refuse_on_branch(repository: Repository, commit: str) -> None:
    """Work that is on a branch of the person's is not brought a second time: they would merge it with itself."""
    if names := await branches_with(repository, commit):
        short = commit[:10]
        why = f"It is applied already, as commit {short} on {names[0]!r}, which is not checked out here."
        raise WorkspaceFault("state", f"{why} Nothing was changed; 'git cherry-pick {short}' brings it here too.")


def clashes_at(paths: Iterable[str], why: str) -> Clashes:
    """Files that are in the way, all for one reason."""
    return Clashes(clashes=tuple(Clash(path=path, why=why) for path in paths))


async def is_here(repository: Repository, commit: str) -> bool:
    """Whether HEAD has a commit."""
    return await value_of(repository, "HEAD") == commit or await is_ancestor(repository, commit, "HEAD")


def refuse_in_between(repository: Repository) -> None:
    """A *state* fault while the person is in the middle of a merge, rebase …"""
    git = repository.layout.git
    if what := next((what for name, what in IN_PROGRESS.items() if (git / name).exists()), ""):
        raise WorkspaceFault("state", f"A {what} is in progress. Nothing was changed: end it first ('git status').")


async def merge(
    repository: Repository, base: str, ours: str, theirs: str, *, kept: bool = False
) -> str | tuple[str, ...]:
    """The tree `ours` with what changed from the commit `base` to the tree `theirs`; the files that conflict, if any.
    Those two have the bytes of the disk, unless they are `kept` by git."""
    if not kept:
        base, theirs = await _clean(repository, base, theirs)
    if await tree_of(repository, base) == ours:
        return theirs
    left = await commit_tree(repository, ours, base, "ours")
    right = await commit_tree(repository, theirs, base, "theirs")
    said = await repository.plain.tried("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", left, right)
    if said.code not in (0, 1):
        raise WorkspaceFault("git", f"git merge-tree failed: {said.err[-300:]}")
    tree, *conflicts = split(said.out)
    if not said.code:
        return tree
    return tuple(dict.fromkeys(MADE_UP.sub("", path) for path in conflicts))


async def _clean(repository: Repository, base: str, theirs: str) -> tuple[str, str]:
    """The same commit and tree as git keeps it: snapshots have the bytes of the disk, where line ends may differ and
    filters may have been. The person's filters run, as for any commit."""
    changes = await delta(repository, base, theirs)
    files = {item.path for item in changes if "100" in (item.old_mode[:3], item.new_mode[:3])}
    if repository.layout.own or not files or not await value_of(repository, "HEAD"):
        return base, theirs
    person = repository.person(hooks=False)
    if not repository.config.converts:
        said = split(await person.ask("check-attr", "-z", "--stdin", *CONVERTING, stdin=join(sorted(files))))
        rows = (said[place : place + 3] for place in range(0, len(said) - 2, 3))
        files = {path for path, _, value in rows if value not in ("unspecified", "unset")}
    if not files:
        return base, theirs
    trees = []
    for tree, side in (
        (base, [(item.path, item.old_mode, item.old) for item in changes]),
        (theirs, [(item.path, item.new_mode, item.new) for item in changes]),
    ):
        kept = [row for row in side if row[0] in files and row[1].startswith("100")]
        texts = await repository.objects.contents(blob for _, _, blob in kept)
        cleaned = dict[str, State]()
        for path, mode, blob in kept:
            words = ("hash-object", "-w", "--stdin", f"--path={path}")
            made = (await person.ask(*words, stdin=texts[blob])).decode().strip()
            cleaned[path] = State(kind="file", blob=made, mode=int(mode[-3:], 8))
        trees.append(await tree_with(repository, tree, cleaned))
    return await commit_tree(repository, trees[0], "", "base"), trees[1]


async def tree_with(repository: Repository, tree: str, states: Mapping[str, State]) -> str:
    """A tree with some files changed, or gone."""
    with repository.temporary() as folder:
        git = repository.on(repository.root, folder / "index")
        await git.ask("read-tree", tree)
        await set_entries(repository, git, states)
        return await git.text("write-tree", "--missing-ok")


async def set_entries(repository: Repository, git: Git, states: Mapping[str, State]) -> None:
    """Make the index of `git` have this of these files; everything else in it stays."""
    none = "0" * (64 if repository.config.hashes == "sha256" else 40)
    gone = [f"0 {none}\t{path}" for path, state in states.items() if not state.entry]
    there = [f"{state.entry} {state.blob}\t{path}" for path, state in states.items() if state.entry]
    if states:
        await git.ask("update-index", "-z", "--index-info", stdin=join((*gone, *there)))


async def explain_conflicts(repository: Repository, paths: Sequence[str]) -> Clashes:
    """Why these files do not merge: most often the person has not committed what the work builds on."""
    head = await value_of(repository, "HEAD")
    said = await repository.person(hooks=False).tried(
        "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"
    )
    dirty = {line[3:] for line in split(said.out)} if head and not repository.layout.own and not said.code else set()
    return Clashes(clashes=tuple(Clash(path=path, why=UNCOMMITTED if path in dirty else SAME_LINES) for path in paths))


async def find_clashes(repository: Repository, changes: Sequence[Delta], edited: Sequence[str]) -> tuple[Clash, ...]:
    """Files that are not to be written, and why: protected ones, those with something in their place, staged ones and
    edited ones."""
    paths = {item.path for item in changes}
    found = [Clash(path=path, why=PROTECTED) for path in sorted(paths) if _is_protected(path)]
    found += [Clash(path=path, why=UNKNOWN) for path in await asyncio.to_thread(_in_the_way, repository.root, changes)]
    if not repository.layout.own and await value_of(repository, "HEAD"):
        said = split(await repository.refs.ask("diff-index", "--cached", "--raw", "-z", "--no-renames", "HEAD"))
        rows = [(said[place].split(" ")[4], said[place + 1]) for place in range(0, len(said) - 1, 2)]
        if any(letter == "U" for letter, _ in rows):
            raise WorkspaceFault(
                "state", "Some files are in conflict. Nothing was changed: resolve them first ('git status')."
            )
        found += [Clash(path=path, why=UNCOMMITTED) for _, path in rows if path in paths]
    known = {clash.path for clash in found}
    found += [Clash(path=path, why=UNCOMMITTED) for path in edited if path not in known]
    return tuple(sorted(found, key=lambda clash: clash.path))


def _is_protected(path: str) -> bool:
    return any(is_protected(part) or part in ("", "..", ".") for part in path.split("/"))


def _in_the_way(root: Path, changes: Sequence[Delta]) -> list[str]:
    """Files that are to be made where something lies, or below what is no folder, that does not go itself."""
    gone = {item.path for item in changes if item.new_mode == "000000"}
    found = []
    for path in (item.path for item in changes if item.old_mode == "000000"):
        above = [parent.as_posix() for parent in Path(path).parents if parent.name]
        blocked = [place for place in above if place not in gone and is_no_folder(root / place)]
        kept = _lies_there(root, path, gone)
        if blocked or (kept and not any(place in gone for place in above)):
            found.append(path)
    return found


async def move_of(repository: Repository, paper: Paper) -> Move:
    """What a paper is about, from before to after."""
    if not paper.old:
        raise WorkspaceFault("state", f"An older Greenroom has applied {paper.id!r}. Take it back with git.")
    raw = repository.layout.own or (not paper.commit and not await value_of(repository, "HEAD"))
    return Move(old=paper.old, new=paper.new, changes=paper.changes, raw=raw)


async def is_untouched(repository: Repository, paper: Paper) -> bool:
    """Whether every file is as it was before."""
    return not await find_edited(repository, await move_of(repository, paper))


async def find_edited(repository: Repository, move: Move) -> list[str]:
    """Files that are not as they are before this move."""
    async with fill_index(repository, move) as (_, edited):
        return edited


async def switch(
    repository: Repository, move: Move, paper: Paper, *, force: bool = False, filled: Filled | None = None
) -> list[str]:
    """Make the person's tree have `move.new`, all of it or nothing; files that were edited are named, and nothing is
    done then. With `force`, after a kill, what is done already is passed over, and so is what was edited since. An
    index that is `filled` is used: git itself refuses to write over what was edited after that."""
    async with fill_index(repository, move) if filled is None else nullcontext(filled) as (git, edited):
        if edited and not force:
            return edited
        after = entries(move.changes, after=True)
        await set_entries(repository, git, {path: after[path] for path in edited})
        said = await git.tried("read-tree", "-m", "-u", "--no-sparse-checkout", move.old, move.new, seconds=600)
    gone = [path for path, state in after.items() if not state.entry and path not in edited]
    left = [path for path in gone if _lies_there(repository.root, path, after)]
    if said.code == 0 and not left:
        return []
    found = REFUSED.search(said.err)
    if found and not force and "unable to" not in said.err:
        return [found[1] or found[2]]
    if force:
        raise HalfwayFault("disk", _halfway(paper, said.err))
    why = said.err.splitlines()[0] if said.err else f"{left[0]!r} cannot be removed"
    await switch(repository, move.back(), paper, force=True)
    raise WorkspaceFault("disk", f"Your files cannot be written. Nothing was changed; mend it and try again. ({why})")


def _halfway(paper: Paper, said: str) -> str:
    more = f" and {len(paper.paths) - NAMED} more" if len(paper.paths) > NAMED else ""
    some = ", ".join(map(repr, paper.paths[:NAMED])) + more
    return (
        f"Your files cannot be written, neither on nor back: some of {some} may be changed already. "
        f"Nothing is lost, both versions are kept in the repository ({applied_ref(paper.id)}). Make room or give the "
        f"right: the next `apply`, `undo` or `run` here brings it to an end. (git: {said[-300:]})"
    )


@asynccontextmanager
async def fill_index(repository: Repository, move: Move) -> AsyncIterator[Filled]:
    """Git that writes the person's files, with an index that has those of a move as they are before it; and those that
    lie there otherwise. None of the person's hooks runs."""
    with repository.temporary() as folder:
        if move.raw:
            git = repository.on(repository.root, folder / "index")
        else:
            git = repository.person(hooks=False).also(env={"GIT_INDEX_FILE": str(folder / "index")})
        git = git.also(*(word for name, value in CALM.items() for word in ("-c", f"{name}={value}")))
        before = entries(move.changes, after=False)
        # An index that has nothing in it would be a first checkout to git, of all files: so it has one that is nowhere.
        empty = hashlib.new(repository.config.hashes, b"blob 0\0", usedforsecurity=False).hexdigest()
        await set_entries(repository, git, {**before, ".greenroom-none": State(kind="file", blob=empty)})
        words = ("diff", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=all")
        differ, root = {*split(await git.ask(*words))}, repository.root
        differ |= {path for path, state in before.items() if not state.entry and _lies_there(root, path, before)}
        yield git, sorted(differ & before.keys())


def _lies_there(root: Path, path: str, before: Collection[str]) -> bool:
    """Whether a file lies where there is to be none; a folder may stand there whose files all go."""
    place = root / path
    if not os.path.lexists(place):
        return False
    if place.is_symlink() or not place.is_dir():
        return True
    files = (Path(here, name) for here, _, names in os.walk(place) for name in names)
    return any(file.relative_to(root).as_posix() not in before for file in files)
