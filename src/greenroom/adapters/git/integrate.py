"""Integrate threads of a run: merge the commits of one thread into another, without a person's files.

Each integration can become a commit of its own when the change is applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.adapters.git.apply import merge, merge_commits
from greenroom.adapters.git.objects import GitCommit
from greenroom.adapters.git.refs import (
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
from greenroom.adapters.git.worktree import find_worktree, lock_thread
from greenroom.core.ports.workspace import CommitInfo, Conflict, Conflicts, StepCommit

MAX_INTEGRATIONS: Final = 10_000
"""How many commits of a thread are searched for integrations."""


async def integrate(
    repository: Repository, run: str, thread: str, into: str, info: CommitInfo
) -> StepCommit | Conflicts:
    """Merge `thread` into `into`. The order of the steps: the commit, the ref, the files of a worktree of `into`."""
    ref = make_thread_ref(run, into)
    async with lock_thread(repository, run, into):
        base = await resolve_commit(repository, make_base_ref(run))
        worktree = find_worktree(repository, run, into)
        if worktree is not None:
            await worktree.recover()
        old = await find_ref(repository, ref)
        tip, other = old or base, await find_ref(repository, make_thread_ref(run, thread)) or base
        if existing := await find_step(repository, run, info.key, tip, base):
            return StepCommit(commit=existing, tree=await resolve_tree(repository, existing))
        if await is_ancestor(repository, other, tip):
            return StepCommit(commit="", tree=await resolve_tree(repository, tip))
        tree = await merge_commits(repository, tip, other)
        if not isinstance(tree, str):
            return await _explain_conflicts(repository, tree, tip, into, _name_side(thread, info.agent))
        message = make_step_message(info, thread=thread)
        commit = await write_commit(repository, tree, tip, message, name=info.agent, merged=other)
        await (worktree.move(commit, old) if worktree is not None else move_ref(repository, ref, commit, old))
        return StepCommit(commit=commit, tree=tree)


async def _explain_conflicts(
    repository: Repository, paths: Sequence[str], tip: str, into: str, new_side: str
) -> Conflicts:
    """Return the conflicts, each with its sides: the thread that changed the file last, and the new one."""
    clashes = list[Conflict]()
    for path in paths:
        words = ("log", "-1", "--no-show-signature", "--first-parent", "--format=%B", tip, "--", path)
        trailers = parse_trailers((await repository.plain_git.run(*words)).decode())
        earlier = _name_side(trailers.get("thread", into), trailers.get("agent", ""))
        clashes.append(Conflict(path=path, why=f"{earlier}, {new_side}"))
    return Conflicts(clashes=tuple(clashes))


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
