"""Integrate threads of a run: merge the commits of one thread into another, without a person's files.

Each integration can become a commit of its own when the change is applied.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from greenroom.adapters.git.apply import MERGE_SUFFIX, merge, merge_trees, write_tree_with
from greenroom.adapters.git.journal import FileState
from greenroom.adapters.git.objects import GitCommit
from greenroom.adapters.git.refs import (
    MAX_STEPS_SEARCHED,
    find_ref,
    find_step,
    is_ancestor,
    make_base_ref,
    make_step_message,
    make_thread_ref,
    move_ref,
    parse_trailers,
    resolve_commit,
    resolve_tree,
    write_commit,
)
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.worktree import GitWorktree, find_worktree, lock_thread
from greenroom.core.ports.workspace import (
    MAIN_THREAD,
    NO_CONTENTS,
    CommitInfo,
    Conflict,
    Conflicts,
    StepCommit,
    WorkspaceFault,
)

MAX_INTEGRATIONS: Final = 10_000
"""How many commits of a thread are searched for integrations."""


async def integrate(
    repository: Repository, run: str, thread: str, into: str, info: CommitInfo
) -> StepCommit | Conflicts:
    """Merge `thread` into `into`. The order of the steps: the commit, the ref, the files of a worktree of `into`."""
    async with _lock_target(repository, run, into) as target:
        merged = await merge_thread(repository, run, thread, target.tip, info, into=into)
        if isinstance(merged, StepCommit) and merged.commit:
            await target.advance(merged.commit)
        return merged


async def merge_thread(
    repository: Repository,
    run: str,
    thread: str,
    onto: str,
    info: CommitInfo,
    contents: Mapping[str, bytes | None] = NO_CONTENTS,
    *,
    tip: str = "",
    into: str = MAIN_THREAD,
) -> StepCommit | Conflicts:
    """Write the commit that merges `thread`, or its commits up to `tip`, onto a commit.

    Return the one with the same key if it is there.
    """
    base = await resolve_commit(repository, make_base_ref(run))
    if existing := await find_step(repository, run, info.key, onto, base):
        return StepCommit(commit=existing, tree=await resolve_tree(repository, existing))
    other = tip or await find_ref(repository, make_thread_ref(run, thread)) or base
    fork = await _find_common(repository, other, onto, base)
    if fork == other:
        return StepCommit(commit="", tree=await resolve_tree(repository, onto))
    tree, names = await merge_trees(repository, onto, other)
    paths = list(dict.fromkeys(MERGE_SUFFIX.sub("", name) for name in names))
    if not all(path in contents for path in paths):
        clashes = await _explain_conflicts(repository, paths, onto, into, _name_side(thread, info.agent))
        return Conflicts(clashes=clashes, base=fork, left=onto, right=other)
    if paths:
        states = {name: FileState() for name in names}
        for path in paths:
            states[path] = await _store(repository, tree, path, contents[path])
        tree = await write_tree_with(repository, tree, states)
    message = make_step_message(info, thread=thread)
    return StepCommit(
        commit=await write_commit(repository, tree, onto, message, name=info.agent, merged=other), tree=tree
    )


async def _store(repository: Repository, tree: str, path: str, content: bytes | None) -> FileState:
    """Store a resolved file, as executable as it is in the tree. Return its state; without content it is removed."""
    if content is None:
        return FileState()
    row = await repository.refs_git.read_line("ls-tree", "--full-tree", tree, "--", path)
    mode = 0o755 if row.startswith("100755") else 0o644
    return FileState(kind="file", blob=await repository.write_object("blob", content), mode=mode)


@dataclass(frozen=True, slots=True)
class _Target:
    """A thread that takes the commits of others: its ref, the commit there, its newest commit, and its worktree."""

    repository: Repository
    ref: str
    old: str
    tip: str
    worktree: GitWorktree | None

    async def advance(self, commit: str) -> None:
        """Move to a commit on top of the tip, unless the thread has it."""
        made = await self.repository.objects.read_commit(commit)
        if made is not None and made.parent == self.tip:
            moves = self.worktree.move(commit, self.old) if self.worktree is not None else None
            await (moves or move_ref(self.repository, self.ref, commit, self.old))
        elif commit != self.tip and not await is_ancestor(self.repository, commit, self.tip):
            raise WorkspaceFault("state", "git.moved_meanwhile", commit=commit[:12])


@asynccontextmanager
async def _lock_target(repository: Repository, run: str, thread: str) -> AsyncIterator[_Target]:
    ref = make_thread_ref(run, thread)
    async with lock_thread(repository, run, thread):
        base = await resolve_commit(repository, make_base_ref(run))
        worktree = find_worktree(repository, run, thread)
        if worktree is not None:
            await worktree.recover()
        old = await find_ref(repository, ref)
        yield _Target(repository, ref, old, old or base, worktree)


async def advance(repository: Repository, run: str, thread: str, commit: str) -> None:
    """Move a thread to a commit on top of it. Raise a *state* fault if it moved elsewhere meanwhile."""
    async with _lock_target(repository, run, thread) as target:
        await target.advance(await resolve_commit(repository, commit))


async def find_fork(repository: Repository, run: str, tip: str, other: str) -> str:
    """Return the newest common commit of two commits of a run."""
    return await _find_common(repository, tip, other, await resolve_commit(repository, make_base_ref(run)))


async def _find_common(repository: Repository, tip: str, onto: str, base: str) -> str:
    """Return the newest common commit of a thread and the one that it is merged onto.

    Most often one of them started at a commit of the other, or took it in. Then git is not asked.
    """
    places = {base}
    for commit in await repository.objects.list_history(onto, limit=MAX_STEPS_SEARCHED, until=base):
        places |= {commit.name, *commit.parents[1:]}
    names = [tip]
    for commit in await repository.objects.list_history(tip, limit=MAX_STEPS_SEARCHED, until=base):
        names += (*commit.parents[1:], commit.parent)
    for name in names:
        if name in places:
            return name
    return await repository.refs_git.read_line("merge-base", onto, tip)


async def _explain_conflicts(
    repository: Repository, paths: Sequence[str], tip: str, into: str, new_side: str
) -> tuple[Conflict, ...]:
    """Return the conflicts, each with its sides: the thread that changed the file last, and the new one."""
    clashes = list[Conflict]()
    for path in paths:
        words = ("log", "-1", "--no-show-signature", "--first-parent", "--format=%B", tip, "--", path)
        trailers = parse_trailers((await repository.plain_git.run(*words)).decode())
        earlier = _name_side(trailers.get("thread", into), trailers.get("agent", ""))
        thread = trailers.get("thread", "")
        clashes.append(Conflict(path=path, why=f"{earlier}, {new_side}", thread=thread))
    return tuple(clashes)


def _name_side(thread: str, agent: str) -> str:
    return f"{thread} ({agent})" if agent and agent != thread else thread


async def list_parts(
    repository: Repository, base: str, tip: str, start: str, final: str
) -> list[tuple[GitCommit, str]]:
    """Return the integrations from `base` to `tip`, oldest first, each with its tree on top of the tree `start`.

    The last one has the tree `final`. What changes nothing is left out, and what does not merge is part of the next.
    """
    history = await repository.objects.list_history(tip, limit=MAX_INTEGRATIONS, until=base)
    integrations = [commit for commit in reversed(history) if len(commit.parents) > 1]
    parts, last = list[tuple[GitCommit, str]](), start
    for commit in integrations:
        is_last = commit is integrations[-1]
        tree = final if is_last else await merge(repository, base, start, commit.tree)
        if isinstance(tree, str) and tree != last:
            parts.append((commit, tree))
            last = tree
    return parts
