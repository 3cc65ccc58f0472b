"""The difference between two commits: changed files and the text of the diff."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from greenroom.adapters.git.objects import FileDelta
from greenroom.adapters.git.refs import resolve_commit, resolve_tree
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import SUBMODULE_MODE, split_names
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import MAX_DIFF_BYTES, Diff, PathChange

LINK_MODE: Final = "120000"
ChangeKind = Literal["added", "changed", "deleted", "renamed", "mode", "submodule"]
CHANGE_KINDS: Final[Mapping[str, ChangeKind]] = {"A": "added", "C": "added", "D": "deleted", "R": "renamed"}
DIFF_OPTIONS: Final = ("--no-ext-diff", "--no-textconv", "--no-color", "-r")


async def list_deltas(repository: Repository, base: str, tip: str) -> Sequence[FileDelta]:
    """Return every file that differs between two commits or trees, without detecting renames."""
    pair = (await resolve_tree(repository, base), await resolve_tree(repository, tip))
    if pair[0] == pair[1]:
        return ()
    words = (*DIFF_OPTIONS, "--raw", "-z", "--no-renames", "--no-abbrev")
    fields = split_names(await repository.plain_git.run("diff-tree", *words, *pair))
    rows = ((fields[place].lstrip(":").split(" "), fields[place + 1]) for place in range(0, len(fields) - 1, 2))
    return [
        FileDelta(path=path, old_mode=old_mode, old=old, new_mode=new_mode, new=new)
        for (old_mode, new_mode, old, new, _), path in rows
    ]


async def read_diff(
    repository: Repository, base: str, tip: str, *, limit: int = MAX_DIFF_BYTES, paths: Sequence[str] = ()
) -> Diff:
    """Return the changes between two commits, or of these `paths`, with renames. The diff text is only made if `limit`
    is above zero."""
    pair = (await resolve_commit(repository, base), await resolve_commit(repository, tip))
    if paths:
        return await _build_diff(repository, pair, limit, paths)
    if (*pair, limit) not in repository.diffs:
        repository.diffs.clear()  # the same pair is often requested several times in a row
        repository.diffs[*pair, limit] = await _build_diff(repository, pair, limit)
    return repository.diffs[*pair, limit]


async def _build_diff(repository: Repository, pair: tuple[str, str], limit: int, paths: Sequence[str] = ()) -> Diff:
    if pair[0] == pair[1]:
        return Diff(changes=(), text="", cut=False)
    words = (*DIFF_OPTIONS, "--raw", "--numstat", *(("-p",) if limit else ()), "-z", "-M", "--no-abbrev")
    facts, _, text = (await repository.plain_git.run("diff-tree", *words, *pair, "--", *paths)).partition(b"\0\0")
    fields = split_names(facts)
    changes, links, end = _parse_changes(fields)
    counts = _parse_counts(fields[end:])
    targets = await repository.objects.read_contents(links.values())
    link_targets = {path: os.fsdecode(targets[blob]) for path, blob in links.items()}
    counted_changes = tuple(
        _add_counts(change, counts.get(change.path, (0, 0, False)), link_targets.get(change.path, ""))
        for change in changes
    )
    cut = len(text) > limit if limit else bool(counted_changes)
    return Diff(changes=counted_changes, text=text[:limit].decode(errors="replace"), cut=cut)


async def read_patch(repository: Repository, base: str, tip: str) -> bytes:
    """Return the changes between two commits as a patch for `git apply`."""
    pair = (await resolve_commit(repository, base), await resolve_commit(repository, tip))
    return await repository.plain_git.run("diff-tree", *DIFF_OPTIONS, "-p", "-M", "--binary", "--full-index", *pair)


def _parse_changes(fields: list[str]) -> tuple[list[PathChange], dict[str, str], int]:
    """Parse the raw part of a diff.

    Return the changes, the blob of each link's target, and the position after the last raw field.
    """
    changes, links, place = list[PathChange](), dict[str, str](), 0
    while place < len(fields) and fields[place].startswith(":"):
        old_mode, new_mode, old, new, letter = fields[place].lstrip(":").split(" ")
        names = fields[place + 1 : place + (3 if letter[0] in "RC" else 2)]
        is_same = old == new and letter[0] == "M"
        kind: ChangeKind = "mode" if is_same else CHANGE_KINDS.get(letter[0], "changed")
        kind = "submodule" if SUBMODULE_MODE in (old_mode, new_mode) else kind
        changes.append(PathChange(path=names[-1], kind=kind, before=names[0] if len(names) > 1 else ""))
        if new_mode == LINK_MODE:
            links[names[-1]] = new
        place += 1 + len(names)
    return changes, links, place


def _parse_counts(fields: list[str]) -> dict[str, tuple[int, int, bool]]:
    """Return added and removed lines by path, and whether the file is binary. A rename has an empty path, then both
    names."""
    counts, place = {}, 0
    while place < len(fields):
        added, removed, path = fields[place].split("\t", 2)
        place += 1
        if not path:
            path, place = fields[place + 1], place + 2
        binary = added == "-"
        counts[path] = (0, 0, True) if binary else (int(added), int(removed), False)
    return counts


def _add_counts(change: PathChange, counts: tuple[int, int, bool], target: str) -> PathChange:
    added, removed, binary = counts
    return evolve(change, added=added, removed=removed, binary=binary, target=target)
