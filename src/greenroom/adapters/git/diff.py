"""The difference of two commits: what happened to which file, and the text of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from greenroom.adapters.git.objects import Delta
from greenroom.adapters.git.refs import commit_of, tree_of
from greenroom.adapters.git.repository import Repository
from greenroom.adapters.git.snapshot import SUBMODULE, split
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import UNIFIED, Change, Diff

LINK: Final = "120000"
Kind = Literal["added", "changed", "deleted", "renamed", "mode", "submodule"]
KINDS: Final[Mapping[str, Kind]] = {"A": "added", "C": "added", "D": "deleted", "R": "renamed"}
QUIET: Final = ("--no-ext-diff", "--no-textconv", "--no-color", "-r")


async def delta(repository: Repository, base: str, tip: str) -> Sequence[Delta]:
    """Every file that differs in two commits or trees, each under its own name."""
    pair = (await tree_of(repository, base), await tree_of(repository, tip))
    if pair[0] == pair[1]:
        return ()
    words = (*QUIET, "--raw", "-z", "--no-renames", "--no-abbrev")
    said = split(await repository.plain.ask("diff-tree", *words, *pair))
    rows = ((said[place].lstrip(":").split(" "), said[place + 1]) for place in range(0, len(said) - 1, 2))
    return [
        Delta(path=path, old_mode=old_mode, old=old, new_mode=new_mode, new=new)
        for (old_mode, new_mode, old, new, _), path in rows
    ]


async def diff(repository: Repository, base: str, tip: str, *, limit: int = UNIFIED) -> Diff:
    """What changed from one commit to another, with files that got another name. The text is only made for who wants
    some of it."""
    pair = (await commit_of(repository, base), await commit_of(repository, tip))
    if (*pair, limit) not in repository.diffs:
        repository.diffs.clear()  # of one pair often several ask, one after the other
        repository.diffs[*pair, limit] = await _diff(repository, pair, limit)
    return repository.diffs[*pair, limit]


async def _diff(repository: Repository, pair: tuple[str, str], limit: int) -> Diff:
    if pair[0] == pair[1]:
        return Diff(changes=(), text="", cut=False)
    words = (*QUIET, "--raw", "--numstat", *(("-p",) if limit else ()), "-z", "-M", "--no-abbrev")
    facts, _, text = (await repository.plain.ask("diff-tree", *words, *pair)).partition(b"\0\0")
    said = split(facts)
    changes, links, end = _changes(said)
    counts = _counts(said[end:])
    targets = await repository.objects.contents(links.values())
    leads = {path: os.fsdecode(targets[blob]) for path, blob in links.items()}
    told = tuple(_counted(one, counts.get(one.path, (0, 0, False)), leads.get(one.path, "")) for one in changes)
    cut = len(text) > limit if limit else bool(told)
    return Diff(changes=told, text=text[:limit].decode(errors="replace"), cut=cut)


async def patch(repository: Repository, base: str, tip: str) -> bytes:
    """What changed from one commit to another, as `git apply` takes it."""
    pair = (await commit_of(repository, base), await commit_of(repository, tip))
    return await repository.plain.ask("diff-tree", *QUIET, "-p", "-M", "--binary", "--full-index", *pair)


def _changes(said: list[str]) -> tuple[list[Change], dict[str, str], int]:
    """What happened to each file; of those that are links now the blob that says where they lead; and where that ends:
    no count begins with a colon."""
    found, links, place = list[Change](), dict[str, str](), 0
    while place < len(said) and said[place].startswith(":"):
        old_mode, new_mode, old, new, letter = said[place].lstrip(":").split(" ")
        names = said[place + 1 : place + (3 if letter[0] in "RC" else 2)]
        same = old == new and letter[0] == "M"
        kind: Kind = "mode" if same else KINDS.get(letter[0], "changed")
        kind = "submodule" if SUBMODULE in (old_mode, new_mode) else kind
        found.append(Change(path=names[-1], kind=kind, before=names[0] if len(names) > 1 else ""))
        if new_mode == LINK:
            links[names[-1]] = new
        place += 1 + len(names)
    return found, links, place


def _counts(said: list[str]) -> dict[str, tuple[int, int, bool]]:
    """Lines added and removed by file, and whether it has none. For one with two names both follow, after nothing."""
    found, place = {}, 0
    while place < len(said):
        added, removed, path = said[place].split("\t", 2)
        place += 1
        if not path:
            path, place = said[place + 1], place + 2
        binary = added == "-"
        found[path] = (0, 0, True) if binary else (int(added), int(removed), False)
    return found


def _counted(change: Change, counts: tuple[int, int, bool], target: str) -> Change:
    added, removed, binary = counts
    return evolve(change, added=added, removed=removed, binary=binary, target=target)
