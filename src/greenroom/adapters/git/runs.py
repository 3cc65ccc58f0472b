"""What a repository keeps of runs below refs/greenroom: listed, adopted by another run, and deleted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote

from greenroom.adapters.git.apply import tree_with
from greenroom.adapters.git.diff import delta
from greenroom.adapters.git.files import lock
from greenroom.adapters.git.journal import changes_of, entries, papers, papers_among
from greenroom.adapters.git.refs import (
    OURS,
    Ref,
    base_ref,
    commit_of,
    commit_tree,
    escape_name,
    is_ancestor,
    list_refs,
    message_of,
    move,
    thread_ref,
    update_refs,
    value_of,
)
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.worktree import TREES
from greenroom.core.ports.workspace import Clash, Clashes, Kept, WorkspaceFault


async def every(repository: Repository) -> list[Kept]:
    """What is kept of each run, by name."""
    return await _told(repository, await list_refs(repository, f"{OURS}/"))


async def kept(repository: Repository, run: str) -> Kept:
    """What is kept of one."""
    found = await _told(repository, await _refs(repository, run))
    return found[0] if found else Kept(run=run, base="")


async def unapplied(repository: Repository, run: str, base: str, tips: Sequence[str]) -> Sequence[str]:
    """The first lines of the commits that lead to these and that nobody has yet."""
    applied = [paper.tip for paper in await papers(repository, run) if paper.state == "applied"]
    return await _subjects(repository, tips, [base, *applied])


async def _told(repository: Repository, refs: Sequence[Ref]) -> list[Kept]:
    applied = [paper for paper in await papers_among(repository, refs) if paper.state == "applied"]
    bases = {_run(name): commit for name, commit, _ in refs if name.endswith("/@base")}
    found = list[Kept]()
    for run in dict.fromkeys(_run(name) for name, _, _ in refs):
        tips = [commit for name, commit, _ in refs if _run(name) == run and name.split("/")[3][0] != "@"]
        own, base = [paper for paper in applied if paper.run == run], bases.get(run, "")
        left = await _subjects(repository, tips, [base, *(paper.tip for paper in own)])
        found.append(Kept(run=run, base=base, unapplied=left, applied=tuple(paper.id for paper in own)))
    return found


async def _subjects(repository: Repository, tips: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The first lines of what leads to these tips, and not to what is known. A commit that git has cleared away leads
    nowhere."""
    wanted = "".join(f"{name}\n" for name in (*tips, *(f"^{name}" for name in known if name)))
    words = ("log", "--no-show-signature", "--format=%s", "--ignore-missing", "--stdin")
    said = await repository.plain.ask(*words, stdin=wanted.encode()) if tips else b""
    return tuple(said.decode(errors="replace").split("\n")[:-1])


async def forget(repository: Repository, run: str, *, discard: bool) -> Kept | Clashes:
    """Delete all refs of a run."""
    standing = [one.name for one in (repository.folder / TREES).glob(f"{escape_name(run)}+*")]
    if standing:
        raise WorkspaceFault("state", f"There is still a worktree of {run!r} ({standing[0]}). Clean it first.")
    found = await kept(repository, run)
    if found.unapplied and not discard:
        return Clashes(clashes=tuple(Clash(path="", why=f"not applied: {one}") for one in found.unapplied))
    refs = await _refs(repository, run)
    async with lock(repository.folder / "refs.lock"):
        for name, _, _ in refs:
            with suppress(OSError):
                (repository.layout.common / f"{name}.lock").unlink()  # left by a git that was killed
        await update_refs(repository, [f"delete {name}" for name, _, _ in refs])
    return found


async def _refs(repository: Repository, run: str) -> list[Ref]:
    return await list_refs(repository, f"{OURS}/{escape_name(run)}/")


def _run(ref: str) -> str:
    return unquote(ref.split("/")[2], errors="surrogateescape")


async def adopt(repository: Repository, run: str, thread: str, origin: str, tip: str) -> None:
    """Give a run the base of its origin, and a thread of it this newest commit."""
    async with lock(repository.folder / "open.lock"):
        if await value_of(repository, base_ref(run)):
            return
        base = await value_of(repository, base_ref(origin))
        if not base:
            raise _lost(repository, origin, "what it began with")
        if tip and not await is_ancestor(repository, base, tip):
            raise _lost(repository, origin, f"its commit {tip[:12]}")
        if tip and tip != base:
            ref = thread_ref(run, thread)
            await move(repository, ref, tip, await value_of(repository, ref))
        await move(repository, base_ref(run), base, "")


def _lost(repository: Repository, origin: str, what: str) -> WorkspaceFault:
    root = str(repository.root)
    why = f"The files of {origin!r} as they were then cannot be had again: {root!r} does not keep {what} any more."
    return WorkspaceFault("name", f"{why} Begin something new.")


async def put_back(repository: Repository, tip: str, base: str, paths: Sequence[str]) -> str:
    """A commit that is `tip`, but for these files: they are as `base` has them. No ref leads to it."""
    tip, base, named = await commit_of(repository, tip), await commit_of(repository, base), frozenset(paths)
    changes = changes_of(item for item in await delta(repository, tip, base) if item.path in named)
    tree = await tree_with(repository, tip, entries(changes, after=True))
    return await commit_tree(repository, tree, tip, message_of("Some files put back as they were", {"base": base}))
