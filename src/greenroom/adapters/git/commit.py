"""Commit a change in the person's name: on the checked-out branch with their hooks, or on a new branch.

`git commit --only` commits the files of the change; other staged files stay staged. A change to the hooks themselves is
committed without hooks, because hooks run as the person and outside the sandbox.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from greenroom.adapters.git.apply import (
    explain_conflicts,
    is_in_head,
    is_untouched,
    merge,
    refuse_in_progress,
    set_entries,
)
from greenroom.adapters.git.diff import list_deltas
from greenroom.adapters.git.integrate import list_parts
from greenroom.adapters.git.journal import FileState, JournalEntry, make_changes, save_entry, select_states
from greenroom.adapters.git.objects import GitCommit
from greenroom.adapters.git.process import LOCK_TIMEOUT_S, Git, GitResult, is_locked, make_fault
from greenroom.adapters.git.refs import (
    find_commit_with_trailer,
    find_ref,
    make_message,
    parse_trailers,
    resolve_commit,
    resolve_tree,
    write_commit,
)
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import join_names
from greenroom.core.base.errors import translate
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import BranchResult, CommitResult, Conflicts, WorkspaceFault

HOOK_TIMEOUT_S: Final = 900.0
"""How long the person's hooks may take, in seconds."""

MAX_HOOK_OUTPUT_CHARS: Final = 2000
"""How many characters of a hook's output are shown."""

HEADS_PREFIX: Final = "refs/heads/"
HOOK_FOLDERS: Final = (".husky",)
HOOK_FILES: Final = (".pre-commit-config", "lefthook", ".lefthook")


async def find_hook_files(repository: Repository, base: str, tip: str) -> tuple[str, ...]:
    """Return the files of a change that set up hooks. Those hooks would run as the person at the next commit."""
    root, hooks_path = repository.root, repository.config.hooks_path
    place = Path(posixpath.normpath(root / hooks_path))
    configured = [place.relative_to(root).as_posix()] if hooks_path and place.is_relative_to(root) else []
    folders = tuple(f"{folder}/" for folder in (*HOOK_FOLDERS, *configured))
    changes = await list_deltas(
        repository, await resolve_commit(repository, base), await resolve_commit(repository, tip)
    )
    return tuple(
        item.path
        for item in changes
        if item.path.startswith(folders) or posixpath.basename(item.path).startswith(HOOK_FILES)
    )


async def commit(
    repository: Repository,
    entry: JournalEntry,
    message: str,
    *,
    hooks: bool = True,
    local_hooks: bool = False,
    squash: bool = False,
) -> CommitResult:
    """Commit an applied change. The journal gets the commit last, so a kill leaves one that the next call finds."""
    if repository.layout.is_own:
        raise WorkspaceFault("state", "git.cannot_commit", root=str(repository.root))
    if not await find_ref(repository, "HEAD"):
        raise WorkspaceFault("state", "git.applied_without_commit")
    if existing := await find_commit(repository, entry):
        if not entry.commit:
            existing = await _save_commit(repository, entry, existing, squash=squash)
        return await _make_result(repository, entry, existing)
    if entry.state != "applied":
        raise WorkspaceFault("state", "git.nothing_to_commit", id=entry.id, state=entry.state)
    refuse_in_progress(repository)
    entry = evolve(entry, head=await find_ref(repository, "HEAD"), commit="")
    await save_entry(repository, entry)
    trailers = {"run": entry.run, "applied": entry.id, "base": entry.base, "tip": entry.tip}
    before = select_states(entry.changes, after=False)
    git = repository.git_as_owner(hooks=hooks, local_hooks=local_hooks)
    await commit_paths(repository, before, make_message(message, trailers), git=git, refusal="git.commit_refused")
    created = await find_commit_with_trailer(repository, "applied", entry.id)
    if not created:
        head = await repository.objects.read_commit("HEAD")
        created = head.name if head is not None and head.parent == entry.head else ""
    if not created:
        is_gone = await is_untouched(repository, entry)
        await save_entry(repository, evolve(entry, state="dropped" if is_gone else "applied"))
        raise WorkspaceFault("hook", "git.commit_and_files_gone" if is_gone else "git.commit_gone")
    created = await _save_commit(repository, entry, created, squash=squash)
    return evolve(await _make_result(repository, entry, created), fresh=True)


async def _make_result(repository: Repository, entry: JournalEntry, commit: str) -> CommitResult:
    return CommitResult(commit=commit, commits=len(await list_chain(repository, entry, commit)))


async def list_chain(repository: Repository, entry: JournalEntry, commit: str) -> list[GitCommit]:
    """Return the commits of an applied change, newest first: this one, and those below it that name the entry."""
    chain, found = list[GitCommit](), await repository.objects.read_commit(commit)
    while found is not None and (not chain or parse_trailers(found.message).get("applied") == entry.id):
        chain.append(found)
        found = await repository.objects.read_commit(found.parent) if found.parent else None
    return chain


async def add_commit(repository: Repository, entry: JournalEntry, commit: str) -> JournalEntry:
    """Return the entry with its commit and the files it really changed: a hook may have run a formatter."""
    head = (await list_chain(repository, entry, commit))[-1].parent
    old, new = await resolve_tree(repository, head), await resolve_tree(repository, commit)
    changes = make_changes(await list_deltas(repository, old, new))
    return evolve(entry, commit=commit, head=head, old=old, new=new, changes=changes)


async def _save_commit(repository: Repository, entry: JournalEntry, commit: str, *, squash: bool) -> str:
    """Save the commit of an entry, split into one for each integrated thread. Return the newest."""
    if not squash:
        commit = await _split(repository, entry, commit)
    done = await add_commit(repository, entry, commit)
    if entry.new and done.new != entry.new:  # git left the index as it was before the hooks
        await set_entries(repository, repository.refs_git, select_states(done.changes, after=True))
    await save_entry(repository, done)
    return commit


async def _split(repository: Repository, entry: JournalEntry, commit: str) -> str:
    """Replace a commit that is HEAD by a chain with the same tree, and return its newest commit.

    Files and index stay as they are. A commit whose message a hook replaced stays whole: its chain could not be found.
    """
    chain = await list_chain(repository, entry, commit)
    whole, trailers = chain[0], parse_trailers(chain[0].message)
    if len(chain) > 1 or trailers.get("applied") != entry.id or await find_ref(repository, "HEAD") != commit:
        return commit
    start = await resolve_tree(repository, whole.parent)
    parts = await list_parts(repository, entry.base, entry.tip, start, whole.tree)
    if len(parts) < 2:
        return commit
    head = (await repository.objects.read_contents([commit]))[commit].partition(b"\n\n")[0]
    newest = await _write_chain(repository, parts, whole, trailers, is_signed=b"\ngpgsig" in head)
    words = ("update-ref", "-m", f"greenroom: {len(parts)} commits", "HEAD", newest, commit)
    await repository.refs_git.run(*words)
    return newest


async def _write_chain(
    repository: Repository,
    parts: Sequence[tuple[GitCommit, str]],
    whole: GitCommit,
    trailers: Mapping[str, str],
    *,
    is_signed: bool = False,
) -> str:
    """Write a commit for each part, in the person's name, on top of the parent of `whole`. Return the newest."""
    parent, about = whole.parent, whole.message.partition("\n")[0]
    for number, (part, tree) in enumerate(parts, start=1):
        title = part.message.partition("\n")[0]
        marks = trailers if number == len(parts) else {**trailers, "tip": part.name}
        text = make_message(f"{title}\n\n{about}", marks)
        parent = await _write_as_owner(repository, tree, parent, text, is_signed=is_signed)
    return parent


async def _write_as_owner(repository: Repository, tree: str, parent: str, text: str, *, is_signed: bool = False) -> str:
    """Write a commit in the person's name, or in Greenroom's if git has no name for them."""
    sign = "-S" if is_signed else "--no-gpg-sign"
    words = ("commit-tree", tree, "-p", parent, sign, "-F", "-")
    result = await repository.git_as_owner(hooks=False).run_unchecked(*words, stdin=text.encode(errors="replace"))
    if result.code == 0:
        return result.out.decode().strip()
    if is_signed:
        raise make_fault(result.err, result.code, words)
    return await write_commit(repository, tree, parent, text)


async def find_commit(repository: Repository, entry: JournalEntry) -> str:
    """Return the commit of a journal entry if HEAD contains it.

    This also finds a commit that a kill kept out of the journal, and an amended commit with the same trailers.
    """
    if entry.commit and await is_in_head(repository, entry.commit):
        return entry.commit
    return await find_commit_with_trailer(repository, "applied", entry.id)


async def commit_paths(
    repository: Repository, before: Mapping[str, FileState], message: str, *, git: Git, refusal: str
) -> None:
    """Commit only these files as they are on disk, with `git`. If that fails, restore the index."""
    names = join_names(before)
    new = _find_new_files(repository.root, before)
    pathspec_options = ("--pathspec-from-file=-", "--pathspec-file-nul")
    if new:
        await repository.git_as_owner(hooks=False).run(
            "add", "--force", "--intent-to-add", *pathspec_options, stdin=join_names(new)
        )
    end = time.monotonic() + LOCK_TIMEOUT_S
    with repository.open_temporary() as folder:
        (folder / "message").write_text(message, encoding="utf-8", errors="replace")
        words = ("commit", "--quiet", "--no-status", "--only", "-F", str(folder / "message"), *pathspec_options)
        while True:
            result = await git.run_unchecked(*words, stdin=names, seconds=HOOK_TIMEOUT_S)
            if result.code == 0:
                return
            if not is_locked(result.err) or time.monotonic() > end:
                break
            await asyncio.sleep(0.1)
    await set_entries(repository, repository.refs_git, before)
    raise _make_refusal_fault(result, refusal)


def _find_new_files(root: Path, before: Mapping[str, FileState]) -> list[str]:
    return [path for path, state in before.items() if not state.entry and os.path.lexists(root / path)]


def _make_refusal_fault(result: GitResult, refusal: str) -> WorkspaceFault:
    text = f"{result.err}\n{result.out.decode(errors='replace')}".strip()
    if is_locked(result.err):
        return make_fault(result.err, result.code, ("commit",))
    if "Please tell me who you are" in text or "empty ident name" in text:
        return WorkspaceFault("state", "git.no_identity")
    code, why = "git.hook_output" if text else "git.hook_silent", translate(refusal)
    return WorkspaceFault("hook", code, why=why, output=text[-MAX_HOOK_OUTPUT_CHARS:], exit_code=result.code)


async def check_can_commit(repository: Repository) -> None:
    """Raise a *state* fault if a commit would be refused now."""
    if repository.layout.is_own:
        raise WorkspaceFault("state", "git.nothing_committed", root=str(repository.root))
    if not await find_ref(repository, "HEAD"):
        raise WorkspaceFault("state", "git.no_commit_yet")
    refuse_in_progress(repository)
    for role in () if repository.config.named else ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        if (await repository.git_as_owner().run_unchecked("var", role)).code:
            raise WorkspaceFault("state", "git.no_identity_unchanged")


async def branch(repository: Repository, name: str, base: str, tip: str, message: str) -> BranchResult | Conflicts:
    """Create a branch with only the change: on HEAD, or else on the commit that the run started from.

    Return the conflicts if it merges with neither.
    """
    base, tip = await resolve_commit(repository, base), await resolve_commit(repository, tip)
    await check_branch_name(repository, name)
    head = await find_ref(repository, "HEAD")
    text = make_message(message, {"base": base, "tip": tip})
    tree, start = await resolve_tree(repository, tip), head or base
    merged = await merge(repository, base, await resolve_tree(repository, head), tree) if head else tree
    base_parent = await find_ref(repository, f"{base}^") if not isinstance(merged, str) else ""
    if base_parent and not isinstance(merged, str):
        start, conflicts = base_parent, merged
        merged = await merge(repository, base, await resolve_tree(repository, base_parent), tree)
        merged = merged if isinstance(merged, str) else conflicts
    if not isinstance(merged, str):
        return await explain_conflicts(repository, merged)
    parts = await list_parts(repository, base, tip, await resolve_tree(repository, start), merged)
    if len(parts) > 1:
        whole = GitCommit(name="", tree=merged, parents=(start,), message=text)
        created = await _write_chain(repository, parts, whole, parse_trailers(text))
    else:
        created = await _write_as_owner(repository, merged, start, text)
    ref = f"{HEADS_PREFIX}{name}"
    await repository.refs_git.with_options("-c", "core.logAllRefUpdates=true").run(
        "update-ref", ref, created, "0" * len(created)
    )
    return BranchResult(name=name, commit=created)


async def check_branch_name(repository: Repository, name: str) -> None:
    """Raise a *name* fault for an invalid or taken branch name, a *repository* fault outside a repository."""
    result = await repository.refs_git.run_unchecked("check-ref-format", "--branch", name)
    if result.code or os.fsdecode(result.out).strip() != name or name == "HEAD" or "\n" in name:
        raise WorkspaceFault("name", "git.bad_branch_name", name=name)
    if name.startswith(HEADS_PREFIX):
        short = name.removeprefix(HEADS_PREFIX) or "work"
        raise WorkspaceFault("name", "git.full_ref_name", name=name, short=short)
    if repository.layout.is_own:
        raise WorkspaceFault("repository", "git.no_branches", root=str(repository.root))
    listed = await repository.refs_git.run("for-each-ref", "--format=%(refname)", "refs/heads")
    for other in (line.removeprefix(HEADS_PREFIX) for line in os.fsdecode(listed).split("\n") if line):
        if other == name:
            raise WorkspaceFault("name", "git.branch_exists", name=name)
        if other.startswith(f"{name}/") or name.startswith(f"{other}/"):
            raise WorkspaceFault("name", "git.branch_in_the_way", other=other, name=name)
