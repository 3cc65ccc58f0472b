"""A change as a commit in the person's name: on what is checked out, with their hooks as git runs them, or on a branch.

`git commit --only` takes the files of the change and nothing else: what is staged elsewhere stays staged. A change that
touches what hooks run is committed without hooks, because hooks run as the person and in no sandbox.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.git.apply import (
    explain_conflicts,
    is_here,
    is_untouched,
    merge,
    refuse_in_between,
    set_entries,
)
from greenroom.adapters.git.diff import delta
from greenroom.adapters.git.journal import Paper, State, changes_of, entries, save
from greenroom.adapters.git.process import PATIENCE, Answer, fault_of, is_locked
from greenroom.adapters.git.refs import commit_of, commit_saying, commit_tree, message_of, tree_of, value_of
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import join
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Branched, Clashes, Committed, WorkspaceFault

HOOKS_S: Final = 900.0
"""Seconds that a person's hooks may take."""

TOLD: Final = 2000
"""Characters of what a hook says."""

HEADS: Final = "refs/heads/"
HOOK_FOLDERS: Final = (".husky",)
HOOK_FILES: Final = (".pre-commit-config", "lefthook", ".lefthook")
NAMELESS: Final = "Git does not know your name. Set user.name and user.email with 'git config'."
UNBORN: Final = "There is no commit here yet that it could follow."
KEPT: Final = (
    "The commit was refused, and the files stay applied. Mend what is wrong and commit them yourself, or take them "
    "back with `greenroom undo`."
)


async def hook_files(repository: Repository, base: str, tip: str) -> tuple[str, ...]:
    """Files of a change that set up hooks: they would run as the person at the next commit."""
    root, named = repository.root, repository.config.hooks_path
    place = Path(posixpath.normpath(root / named))
    set_up = [place.relative_to(root).as_posix()] if named and place.is_relative_to(root) else []
    folders = tuple(f"{folder}/" for folder in (*HOOK_FOLDERS, *set_up))
    changes = await delta(repository, await commit_of(repository, base), await commit_of(repository, tip))
    return tuple(
        item.path
        for item in changes
        if item.path.startswith(folders) or posixpath.basename(item.path).startswith(HOOK_FILES)
    )


async def commit(repository: Repository, paper: Paper, message: str, *, hooks: bool = True) -> Committed:
    """Make what was applied one commit."""
    if repository.layout.own:
        why = f"{str(repository.root)!r} is in no git repository, so nothing can be committed."
        raise WorkspaceFault("state", f"{why} The files are applied.")
    if not await value_of(repository, "HEAD"):
        raise WorkspaceFault("state", f"{UNBORN} The files are applied: commit them yourself.")
    if found := await find_commit(repository, paper):
        if not paper.commit:
            await _note(repository, paper, found)
        return Committed(commit=found)
    if paper.state != "applied":
        raise WorkspaceFault("state", f"{paper.id!r} is {paper.state}, so there is nothing to commit.")
    refuse_in_between(repository)
    paper = evolve(paper, head=await value_of(repository, "HEAD"), commit="")
    await save(repository, paper)
    told = {"run": paper.run, "applied": paper.id, "base": paper.base, "tip": paper.tip}
    before = entries(paper.changes, after=False)
    await commit_paths(repository, before, message_of(message, told), hooks=hooks, refused=KEPT)
    made = await commit_saying(repository, "applied", paper.id)
    if not made:
        head = await repository.objects.commit("HEAD")
        made = head.name if head is not None and head.parent == paper.head else ""
    if not made:
        gone = await is_untouched(repository, paper)
        await save(repository, evolve(paper, state="dropped" if gone else "applied"))
        now = "Nothing is applied" if gone else "The files are applied"
        raise WorkspaceFault("hook", f"{now}: the commit was made and is not there any more. A hook has moved HEAD.")
    await _note(repository, paper, made)
    return Committed(commit=made, fresh=True)


async def with_commit(repository: Repository, paper: Paper, commit: str) -> Paper:
    """The paper with its commit, and with what that really changed: a formatter may have run as a hook."""
    made = await repository.objects.commit(commit)
    head = made.parent if made is not None else ""
    old, new = await tree_of(repository, head), await tree_of(repository, commit)
    changes = changes_of(await delta(repository, old, new))
    return evolve(paper, commit=commit, head=head, old=old, new=new, changes=changes)


async def _note(repository: Repository, paper: Paper, commit: str) -> None:
    """Write down the commit of a paper."""
    done = await with_commit(repository, paper, commit)
    if paper.new and done.new != paper.new:  # then git has left in the index what was there before the hooks
        await set_entries(repository, repository.refs, entries(done.changes, after=True))
    await save(repository, done)


async def find_commit(repository: Repository, paper: Paper) -> str:
    """The commit of a paper, if HEAD has one: also one that is not written down, because we were killed in between,
    and one that was amended with its message kept."""
    if paper.commit and await is_here(repository, paper.commit):
        return paper.commit
    return await commit_saying(repository, "applied", paper.id)


async def commit_paths(
    repository: Repository, before: Mapping[str, State], message: str, *, hooks: bool, refused: str
) -> None:
    """Commit these files as they lie there, and nothing else. If that fails, the index is as it was."""
    person, names = repository.person(hooks=hooks), join(before)
    new = _new_files(repository.root, before)
    every = ("--pathspec-from-file=-", "--pathspec-file-nul")
    if new:
        await repository.person(hooks=False).ask("add", "--force", "--intent-to-add", *every, stdin=join(new))
    end = time.monotonic() + PATIENCE
    with repository.temporary() as folder:
        (folder / "message").write_text(message, encoding="utf-8", errors="replace")
        words = ("commit", "--quiet", "--no-status", "--only", "-F", str(folder / "message"), *every)
        while True:
            said = await person.tried(*words, stdin=names, seconds=HOOKS_S)
            if said.code == 0:
                return
            if not is_locked(said.err) or time.monotonic() > end:
                break
            await asyncio.sleep(0.1)
    await set_entries(repository, repository.refs, before)
    raise _refusal(said, refused)


def _new_files(root: Path, before: Mapping[str, State]) -> list[str]:
    return [path for path, state in before.items() if not state.entry and os.path.lexists(root / path)]


def _refusal(said: Answer, refused: str) -> WorkspaceFault:
    text = f"{said.err}\n{said.out.decode(errors='replace')}".strip()
    if is_locked(said.err):
        return fault_of(said.err, said.code, ("commit",))
    if "Please tell me who you are" in text or "empty ident name" in text:
        return WorkspaceFault("state", NAMELESS)
    silent = f"A hook said no without a word (git ended with code {said.code}): run it by hand to see why."
    return WorkspaceFault("hook", f"{refused} {f'Git or a hook says: {text[-TOLD:]}' if text else silent}")


async def expect_commit(repository: Repository) -> None:
    """A *state* fault for what a commit would be refused for now."""
    if repository.layout.own:
        raise WorkspaceFault("state", f"{str(repository.root)!r} is in no git repository, so nothing is committed.")
    if not await value_of(repository, "HEAD"):
        raise WorkspaceFault("state", f"{UNBORN} Nothing was changed.")
    refuse_in_between(repository)
    for role in () if repository.config.named else ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        if (await repository.person().tried("var", role)).code:
            raise WorkspaceFault("state", f"{NAMELESS} Nothing was changed.")


async def branch(repository: Repository, name: str, base: str, tip: str, message: str) -> Branched | Clashes:
    """Make a branch that has only what the work changed: on HEAD, or where it does not fit there on the commit that
    the run began with; the files that conflict, if it fits on neither."""
    base, tip = await commit_of(repository, base), await commit_of(repository, tip)
    await refuse_branch(repository, name)
    head = await value_of(repository, "HEAD")
    text = message_of(message, {"base": base, "tip": tip})
    tree, begin = await tree_of(repository, tip), head or base
    merged = await merge(repository, base, await tree_of(repository, head), tree) if head else tree
    then = await value_of(repository, f"{base}^") if not isinstance(merged, str) else ""
    if then and not isinstance(merged, str):
        begin, conflicts = then, merged
        merged = await merge(repository, base, await tree_of(repository, then), tree)
        merged = merged if isinstance(merged, str) else conflicts
    if not isinstance(merged, str):
        return await explain_conflicts(repository, merged)
    words = ("-c", "commit.gpgSign=false", "commit-tree", merged, "-p", begin, "-F", "-")
    said = await repository.person(hooks=False).tried(*words, stdin=text.encode())
    made = said.out.decode().strip() if said.code == 0 else await commit_tree(repository, merged, begin, text)
    ref = f"{HEADS}{name}"
    await repository.refs.also("-c", "core.logAllRefUpdates=true").ask("update-ref", ref, made, "0" * len(made))
    return Branched(name=name, commit=made)


async def refuse_branch(repository: Repository, name: str) -> None:
    """A *name* fault, if no new branch can be called so; a *repository* fault, if there can be none."""
    said = await repository.refs.tried("check-ref-format", "--branch", name)
    if said.code or os.fsdecode(said.out).strip() != name or name == "HEAD" or "\n" in name:
        raise WorkspaceFault("name", f"{name!r} is no name for a branch. Use letters, digits, '-' and '/'.")
    if name.startswith(HEADS):
        short = name.removeprefix(HEADS) or "work"
        raise WorkspaceFault("name", f"{name!r} is the whole name of a branch. Say only the last part: {short!r}.")
    if repository.layout.own:
        why = f"{str(repository.root)!r} is in no repository of git, so it can have no branch. Apply the work."
        raise WorkspaceFault("repository", why)
    listed = await repository.refs.ask("for-each-ref", "--format=%(refname)", "refs/heads")
    for other in (line.removeprefix(HEADS) for line in os.fsdecode(listed).split("\n") if line):
        if other == name:
            raise WorkspaceFault("name", f"There is a branch {name!r} already. Give another name.")
        if other.startswith(f"{name}/") or name.startswith(f"{other}/"):
            why = f"There is a branch {other!r}, and git can have none called {name!r} beside it. Give another name."
            raise WorkspaceFault("name", why)
