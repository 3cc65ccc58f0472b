"""The person's tree as a commit: their index, refs and files stay as they are.

It begins with a copy of their index, which knows which files are as they were, so that few are read. An index keeps
what a filter or a change of line ends made of a file, it can have been told to look away from files, and in a merge it
has three versions of some: all that is put right here.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.adapters.git.process import Git
from greenroom.adapters.git.refs import base_ref, commit_tree, message_of, move, trailers_of, value_of
from greenroom.adapters.git.repository import Repository
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import LeftOut, Looked, Snapshot, WorkspaceFault

SUBJECT: Final = "The workspace as it was"
NAMED: Final = 50
"""Files that a snapshot names as left out, or as being merged."""

LARGEST: Final = 100 * 1024 * 1024
"""Bytes of a file that git does not know yet."""

MOST: Final = 1_000_000
"""Files that git does not know yet; more is a disk and no project."""

TRIES: Final = 3
SUBMODULE: Final = "160000"
CONVERTING: Final = ("filter", "working-tree-encoding")
UNNAMED: Final = frozenset({"unspecified", "unset", "set"})
VENV: Final = "pyvenv.cfg"
"""Lies in every virtual environment."""

MODULES: Final = "node_modules"

Named: TypeAlias = Callable[[str], bool]
"""Whether a path is of some sort, by its name."""


def nothing(_: str) -> bool:
    """No path is."""
    return False


@record
class Listed:
    """One file in an index. `tag` is a letter: H as usual, S looked away from, M in a merge; small: taken as it is."""

    tag: str
    mode: str
    blob: str
    path: str

    @property
    def is_submodule(self) -> bool:
        """Whether it is another repository, of which only the commit is known here."""
        return self.mode == SUBMODULE


async def take_snapshot(
    repository: Repository, run: str, *, largest: int = LARGEST, secret: Named = nothing
) -> Snapshot:
    """The snapshot of a run; made from what is there now, if it has none."""
    ref = base_ref(run)
    if found := await repository.objects.commit(ref):
        told = trailers_of(found.message)
        return Snapshot(
            commit=found.name,
            tree=found.tree,
            head=found.parent,
            within=repository.layout.within,
            conflicted=tuple(json.loads(told.get("merging", "[]"))),
            left_out=tuple(
                LeftOut(path=path, why=why, size=size) for path, why, size in json.loads(told.get("left", "[]"))
            ),
        )
    head = await value_of(repository, "HEAD")
    made = await look_at_tree(repository, largest=largest, secret=secret)
    left = [[item.path, item.why, item.size] for item in made.left_out]
    told = {"run": run, "left": _line(left), "merging": _line(made.conflicted)}
    commit = await commit_tree(repository, made.tree, head, message_of(SUBJECT, told))
    await move(repository, ref, commit, "")
    return Snapshot(
        commit=commit,
        tree=made.tree,
        head=head,
        within=repository.layout.within,
        conflicted=made.conflicted,
        left_out=made.left_out,
    )


def _line(rows: Sequence[object]) -> str:
    return json.dumps(rows[:NAMED], separators=(",", ":")).replace(" ", r"\u0020") if rows else ""


async def look_at_tree(repository: Repository, *, largest: int = LARGEST, secret: Named = nothing) -> Snapshot:
    """The person's tree as it lies there, without a commit of it."""
    root = repository.root
    with repository.temporary() as folder:
        index = folder / "index"
        git = repository.on(root, index)
        listed = await _copy_index(repository, git, index)
        submodules = [item.path for item in listed if item.is_submodule]
        untrue = () if repository.layout.own else await _find_untrue(repository, listed)
        staged = await stage(git, root, untrue=untrue, largest=largest, secret=secret, submodules=submodules)
        if repository.layout.own:
            await asyncio.to_thread(index.replace, repository.layout.git / "index")  # so that the next look is quick
    full = await asyncio.to_thread(lambda: [path for path in submodules if has_entries(root / path)])
    return Snapshot(
        commit="",
        tree=staged.tree,
        conflicted=tuple(dict.fromkeys(item.path for item in listed if item.tag == "M")),
        left_out=(*staged.left_out, *(LeftOut(path=path, why="submodule") for path in full)),
    )


def has_entries(place: Path) -> bool:
    """Whether it is a folder with something in it; no link is followed."""
    return place.is_dir() and not place.is_symlink() and any(place.iterdir())


async def _copy_index(repository: Repository, git: Git, index: Path) -> list[Listed]:
    """Make `index` a copy of the person's, with its date: git looks again at files that are as young as the index."""
    with suppress(FileNotFoundError):
        shutil.copy2(repository.layout.git / "index", index)
    try:
        listed = await list_index(git)
    except WorkspaceFault:  # one that only its own repository can read: split, or sparse
        await asyncio.to_thread(index.unlink)
        head = await value_of(repository, "HEAD")
        await git.ask("read-tree", *([head] if head else ["--empty"]))
        listed = await list_index(git)
    await look_again(git, repository.root, listed)
    return listed


async def list_index(git: Git) -> list[Listed]:
    """What is in an index."""
    found = []
    for line in split(await git.ask("ls-files", "-z", "-v", "--stage")):
        about, _, path = line.partition("\t")
        tag, mode, blob, _ = about.split(" ")
        found.append(Listed(tag=tag, mode=mode, blob=blob, path=path))
    return found


async def look_again(git: Git, root: Path, listed: Iterable[Listed]) -> None:
    """Have git look at files that it was told not to look at; those that a sparse checkout leaves out stay so."""
    odd = [item for item in listed if item.tag not in ("H", "M")]
    gone = set(absent(root, odd))
    await _flag(git, "--no-assume-unchanged", [item.path for item in odd if item.tag.islower()])
    skipped = [item.path for item in odd if item.tag.upper() == "S" and item.path not in gone]
    await _flag(git, "--no-skip-worktree", skipped)


def absent(root: Path, listed: Iterable[Listed]) -> list[str]:
    """Files that the index is told not to miss, and that are not there."""
    return [item.path for item in listed if item.tag.upper() == "S" and not os.path.lexists(root / item.path)]


async def skip(git: Git, paths: Sequence[str]) -> None:
    """Have git not miss these files."""
    await _flag(git, "--skip-worktree", paths)


async def _flag(git: Git, flag: str, paths: Sequence[str]) -> None:
    if paths:
        await git.ask("update-index", flag, "-z", "--stdin", stdin=join(paths))


async def _find_untrue(repository: Repository, listed: Sequence[Listed]) -> list[str]:
    """Files of which git may keep something else than what lies on the disk: another length, or through a filter."""
    files = [item for item in listed if item.mode.startswith("100") and item.tag not in ("S", "s", "M")]
    if not repository.config.converts and not _has_attributes(repository, files):
        return []
    blobs = "".join(f"{item.blob}\n" for item in files).encode()
    sizes = (await repository.plain.ask("cat-file", "--batch-check=%(objectsize)", stdin=blobs)).split(b"\n")
    names = join(item.path for item in files)
    told = repository.refs.also("-c", f"core.attributesFile={repository.config.attributes or os.devnull}")
    said = split(await told.ask("check-attr", "-z", "--stdin", *CONVERTING, stdin=names))
    filtered = [said[place] for place in range(0, len(said) - 2, 3) if said[place + 2] not in UNNAMED]
    other = [item.path for item, size in zip(files, sizes, strict=False) if not _is_size(repository.root, item, size)]
    return list(dict.fromkeys([*other, *filtered]))


def _has_attributes(repository: Repository, files: Iterable[Listed]) -> bool:
    own = repository.layout.common / "info" / "attributes"
    if repository.config.attributes or own.exists() or (repository.root / ".gitattributes").exists():
        return True
    return any(item.path.endswith(".gitattributes") for item in files)


def _is_size(root: Path, item: Listed, size: bytes) -> bool:
    try:
        return (root / item.path).lstat().st_size == int(size)
    except (OSError, ValueError):
        return True  # gone, or not there to compare: the look at the disk finds it


async def stage(
    git: Git,
    root: Path,
    *,
    untrue: Sequence[str] = (),
    largest: int = LARGEST,
    whole: bool = False,
    secret: Named = nothing,
    ignored: Named = nothing,
    submodules: Collection[str] = (),
    excludes: Path | None = None,
    last: str = "",
) -> Looked:
    """Bring an index in line with the files below `root`, and make a tree of it.

    Files may come and go meanwhile: then it is looked at again. Of `untrue` files the index keeps something else than
    lies there, so they are read. A `whole` tree has every file's content in the repository, which in a partial clone
    is not so. What git does not know and is `secret` by its name is left out; what is `ignored`, or matches a pattern
    in the file `excludes`, is as good as not there. `last` is the tree of the index, where that is known.
    """
    for attempt in range(1, TRIES + 1):
        try:
            changed, unknown = await _list_changes(git, excludes)
            changed = [path for path in changed if path not in submodules]
            inside = tuple(f"{path}/" for path in submodules)
            known = [path for path in unknown if not path.startswith(inside) and not ignored(path)]
            sorted_out = _sort_out(git, root, changed, known, untrue, largest=largest, secret=secret)
            gone, there, left_out = await sorted_out
            if gone:
                await git.ask("update-index", "-z", "--force-remove", "--stdin", stdin=join(gone))
            if there:
                await git.ask("update-index", "-z", "--add", "--replace", "--stdin", stdin=join(there))
            if gone or there or not last:
                last = await git.text("write-tree", *(() if whole else ("--missing-ok",)))
            return Looked(tree=last, left_out=tuple(left_out))
        except WorkspaceFault as fault:
            last = ""
            if attempt == TRIES or fault.reason not in ("git", "repository"):
                raise
    raise AssertionError("the last try returns or raises")


async def _list_changes(git: Git, excludes: Path | None) -> tuple[list[str], list[str]]:
    """Files that git knows and that changed or went, and files that it does not know and does not ignore."""
    more = () if excludes is None else (f"--exclude-from={excludes}",)
    words = ("ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard", *more)
    lines = split(await git.ask(*words))
    unknown = [line[2:] for line in lines if line.startswith("? ")]
    if len(unknown) > MOST:
        why = (
            f"There are {len(unknown):,} files here that git does not know, too many to copy. Name some in .gitignore."
        )
        raise WorkspaceFault("too_large", why)
    return list(dict.fromkeys(line[2:] for line in lines if not line.startswith("? "))), unknown


async def _sort_out(
    git: Git,
    root: Path,
    changed: Sequence[str],
    unknown: Sequence[str],
    untrue: Sequence[str],
    *,
    largest: int,
    secret: Named,
) -> tuple[list[str], list[str], list[LeftOut]]:
    """Which files are gone, which are there, and what is left out. What git knows is never too large, unless it keeps
    something else of it."""
    environments = await find_environments(git, unknown)
    shown = [path for path in unknown if not any(path.startswith(f"{folder}/") for folder in environments)]
    hidden = [path for path in shown if secret(path)]
    shown = [path for path in shown if path not in hidden] if hidden else shown
    again = dict.fromkeys(untrue)
    left_out = [LeftOut(path=path, why="secret") for path in hidden]
    left_out += [LeftOut(path=folder, why="environment") for folder in environments]
    limits = [*((path, None) for path in changed if path not in again), *((path, largest) for path in (*again, *shown))]
    gone, there, others = await asyncio.to_thread(_look_at_files, root, limits)
    return [*gone, *(path for path in there if path in again)], there, [*others, *left_out]


async def find_environments(git: Git, unknown: Iterable[str]) -> list[str]:
    """Folders among files that git does not know that are a virtual environment, or a node_modules of which git knows
    nothing: nobody wants those in a commit."""
    found = dict[str, None]()
    for path in unknown:
        parts = path.split("/")
        if parts[-1] == VENV and len(parts) > 1:
            found["/".join(parts[:-1])] = None
        elif MODULES in parts[:-1]:
            found["/".join(parts[: parts.index(MODULES) + 1])] = None
    vendored = [folder for folder in found if folder.endswith(MODULES) and await git.ask("ls-files", "--", folder)]
    return [folder for folder in found if folder not in vendored]


def _look_at_files(root: Path, limits: Iterable[tuple[str, int | None]]) -> tuple[list[str], list[str], list[LeftOut]]:
    gone, there, left_out = list[str](), list[str](), list[LeftOut]()
    links = dict[str, bool]()
    for path, largest in dict(limits).items():
        said = not _is_behind_link(root, path, links) and _look_at_file(root / path, path, largest)
        if isinstance(said, LeftOut):
            left_out.append(said)
        else:
            (there if said else gone).append(path)
    return gone, there, left_out


def _is_behind_link(root: Path, path: str, links: dict[str, bool]) -> bool:
    """Whether a part of the way is a link: what lies behind it is no file of this tree."""
    above = path.rstrip("/").rpartition("/")[0]
    if above and above not in links:
        links[above] = (root / above).is_symlink() or _is_behind_link(root, above, links)
    return bool(above) and links[above]


def _look_at_file(place: Path, path: str, largest: int | None) -> LeftOut | bool:
    """Whether a file is there, or why it is left out."""
    if path.endswith("/"):
        return LeftOut(path=path.rstrip("/"), why="repository")
    try:
        status = os.lstat(place)
    except OSError:
        return False
    if stat.S_ISDIR(status.st_mode):
        return False
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
        return LeftOut(path=path, why="other")
    if largest is not None and status.st_size > largest:
        return LeftOut(path=path, why="too_large", size=status.st_size)
    if stat.S_ISREG(status.st_mode) and not os.access(place, os.R_OK):
        return LeftOut(path=path, why="unreadable", size=status.st_size)
    return True


def split(said: bytes) -> list[str]:
    """What git lists with a zero after each."""
    return [os.fsdecode(item) for item in said.split(b"\0") if item]


def join(names: Iterable[str]) -> bytes:
    """The other way round."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)
