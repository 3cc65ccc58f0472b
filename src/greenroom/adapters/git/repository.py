"""One repository: where it lies, what its owner told git about files, and the ways in which we run git on it.

`plain` reads neither settings nor refs: its git folder is ours, with attributes that turn every conversion off, so that
what lies on the disk is what is kept, byte for byte, and no filter runs. `refs` is git in the repository itself, with
every setting overruled that names a program. `person` is git as its owner runs it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from greenroom.adapters.git.files import disk_faults, write_whole
from greenroom.adapters.git.objects import ObjectReader, write_object
from greenroom.adapters.git.process import PATH, Git, check_version, hardened, program_of
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Diff, WorkspaceFault

LINK: Final = "gitdir:"
LONGEST: Final = 4096
PARTS: Final = ("objects", "refs")
NO: Final = frozenset({"false", "no", "off", "0"})
YES: Final = frozenset({"true", "yes", "on", "1", "input"})

RAW: Final = "* -text -crlf -ident !eol !filter !working-tree-encoding !diff !merge\n"
"""Overrules the tree's own attributes: nothing is converted, and no change is hidden from a diff."""

ALWAYS_OUT: Final = ("node_modules/", ".venv/", "venv/", "__pycache__/", ".tox/", ".nox/", ".greenroom/")
"""What is ignored in a folder that is not a repository."""

OLD: Final = 24 * 3600.0
"""Seconds after which a temporary folder that a killed process left is removed."""

WHO: Final = frozenset(f"GIT_{role}_{part}" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL"))
"""Who a person is, if their environment says so."""

HOOKLESS: Final = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")


@record
class Layout:
    """Where a repository lies: its files in `root`, what git knows of this tree in `git`, of all its trees in `common`.

    `within` is the workspace's path in it. An `own` one is ours, for a folder that is in no repository.
    """

    root: Path
    git: Path
    common: Path
    within: str = ""
    own: bool = False

    @property
    def key(self) -> str:
        """A name for what we keep about it."""
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", self.root.name).strip("-")[:32] or "root"
        return f"{plain}-{hashlib.sha256(str(self.root).encode(errors='surrogateescape')).hexdigest()[:12]}"


OWN: Final = "own.git"


def own_layout(root: Path, folder: Path) -> Layout:
    """A repository of ours in `folder`, for files in `root` that are in none."""
    return Layout(root=root, git=folder / OWN, common=folder / OWN, own=True)


def locate(folder: Path, *, home: Path | None = None) -> Layout | None:
    """The repository that a folder is in, not that of the person's whole home; None if there is none.

    It is found by looking: asking git would read settings first.
    """
    here = folder.resolve()
    for place in (here, *here.parents):
        if place != here and place == home:
            return None
        if (place / ".git").exists() or (place / ".git").is_symlink():
            return _read_layout(place, str(here.relative_to(place)))
    return None


def _read_layout(root: Path, within: str) -> Layout:
    git = _git_folder(root / ".git")
    named = git / "commondir"
    common = (git / _first_bytes(named).strip()).resolve() if named.is_file() else git
    if not (git / "HEAD").is_file() or not all((common / name).is_dir() for name in PARTS):
        why = f"{str(root / '.git')!r} is no repository that can be used. Look at it with 'git status'."
        raise WorkspaceFault("repository", why)
    return Layout(root=root, git=git, common=common, within="" if within == "." else within)


def _git_folder(named: Path) -> Path:
    """The folder that a `.git` is, or names."""
    if not named.is_file():
        return named.resolve()
    text = _first_bytes(named)
    if not text.startswith(LINK):
        raise WorkspaceFault("repository", f"{str(named)!r} names no repository.")
    return (named.parent / text.removeprefix(LINK).strip()).resolve()


def _first_bytes(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST).decode(errors="surrogateescape")
    except OSError as error:
        raise WorkspaceFault("repository", f"{str(file)!r} cannot be read ({error.strerror}).") from error


@record
class GitConfig:
    """What a person has told git. `disk` is how their disk is, by settings of `core`, `converts` that line ends may
    differ from what git keeps, `named` that git knows who they are."""

    disk: Mapping[str, bool] = {}
    converts: bool = False
    sparse: bool = False
    hashes: str = "sha1"
    excludes: str = ""
    attributes: str = ""
    hooks_path: str = ""
    named: bool = False


async def read_config(git: Git, env: Mapping[str, str]) -> GitConfig:
    """The settings that `git`, which reads the person's, lists."""
    told = dict[str, str]()
    for line in os.fsdecode(await git.ask("config", "--list", "-z", "--includes")).split("\0"):
        name, given, value = line.partition("\n")
        told[name.lower()] = value if given else "true"
    home = Path(env.get("HOME") or "/nonexistent")
    own = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    return GitConfig(
        disk={
            **{name: told.get(f"core.{name}", "true").lower() not in NO for name in ("filemode", "symlinks")},
            **{name: told.get(f"core.{name}", "").lower() in YES for name in ("ignorecase", "precomposeunicode")},
        },
        converts=told.get("core.autocrlf", "false").lower() in YES,
        sparse=told.get("core.sparsecheckout", "false").lower() in YES,
        hashes=told.get("extensions.objectformat", "sha1").lower(),
        excludes=_config_path(told.get("core.excludesfile"), own / "ignore", home),
        attributes=_config_path(told.get("core.attributesfile"), own / "attributes", home),
        hooks_path=told.get("core.hookspath", ""),
        named=bool(told.get("user.name") and told.get("user.email")) or all(env.get(name) for name in WHO),
    )


def _config_path(named: str | None, usual: Path, home: Path) -> str:
    place = usual if named is None else home / named[2:] if named.startswith("~/") else Path(named)
    return str(place) if place.is_absolute() and place.is_file() else ""


class Repository:
    """A repository with what we keep about it in `folder`, in the user's cache."""

    def __init__(self, layout: Layout, folder: Path, program: str, env: Mapping[str, str]) -> None:
        self.layout = layout
        self.folder = folder
        self.env = env
        self.config = GitConfig()
        self._program = program
        self._git = folder / "git"
        self.objects = ObjectReader(self.refs)
        self.diffs = dict[tuple[str, str, int], Diff]()

    @classmethod
    async def open(cls, layout: Layout, folder: Path, env: Mapping[str, str]) -> Repository:
        """With everything made that we need beside it."""
        program = program_of(env, layout.root)
        repository = cls(layout, folder, program, env)
        await asyncio.to_thread(repository._make_folder)
        await check_version(hardened(program, env={}, settings={}))
        if layout.own and not (layout.git / "HEAD").exists():
            bare = ("init", "--bare", "--quiet", "--template=", str(layout.git))
            await hardened(program, env={}, settings={}).ask(*bare)
        repository.config = await read_config(repository.person().also(env={"GIT_DIR": str(layout.git)}), env)
        await asyncio.to_thread(repository.prepare)
        return repository

    @property
    def root(self) -> Path:
        """The folder of its files."""
        return self.layout.root

    @property
    def plain(self) -> Git:
        """For trees, files and commits."""
        told = {"GIT_DIR": str(self._git), "GIT_OBJECT_DIRECTORY": str(self.layout.common / "objects")}
        shallow = self.layout.common / "shallow"
        if shallow.is_file():
            told["GIT_SHALLOW_FILE"] = str(shallow)
        return hardened(self._program, env=told, settings={"core.excludesFile": self.config.excludes or os.devnull})

    @property
    def refs(self) -> Git:
        """For the repository's own: refs, and who wrote what."""
        told = {"GIT_DIR": str(self.layout.git)}
        if not self.layout.own:
            told["GIT_WORK_TREE"] = str(self.root)
        return hardened(self._program, env=told, settings={}, folder=str(self.root))

    @property
    def shared(self) -> Git:
        """For what all trees of the repository share."""
        return hardened(self._program, env={"GIT_DIR": str(self.layout.common)}, settings={})

    def on(self, tree: Path, index: Path) -> Git:
        """Like `plain`, with a tree of files and an index of its own."""
        return self.plain.also(env={"GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(index)})

    def person(self, *, hooks: bool = True) -> Git:
        """Git as its owner runs it in the tree: with their settings, hooks, filters and keys; nobody is asked."""
        own = {name: value for name, value in self.env.items() if name in WHO or not name.startswith("GIT_")}
        calm = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_PAGER": "cat", "LC_ALL": "C.UTF-8"}
        words = ("--no-pager", "--literal-pathspecs", *(() if hooks else HOOKLESS))
        env = {"PATH": PATH, **own, **calm}
        return Git(self._program, words=words, env=env, folder=str(self.root))

    async def write(self, kind: Literal["blob", "tree", "commit"], content: bytes) -> str:
        """Write an object; its name."""
        return await asyncio.to_thread(write_object, self.layout.common / "objects", self.config.hashes, kind, content)

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """A folder that is gone afterwards."""
        with tempfile.TemporaryDirectory(dir=self.folder / "temporary", ignore_cleanup_errors=True) as name:
            yield Path(name)

    def excludes(self) -> bytes:
        """What git ignores here without a file in the tree that says so."""
        if self.layout.own:
            return "\n".join(ALWAYS_OUT).encode()
        try:
            return (self.layout.common / "info" / "exclude").read_bytes()
        except OSError:
            return b""

    def settings(self) -> str:
        """The settings of a git folder of ours: how the person's disk is."""
        told = {"bare": False, **self.config.disk}
        core = "".join(f"\t{name} = {str(value).lower()}\n" for name, value in told.items())
        return f"[core]\n\trepositoryformatversion = 1\n{core}[extensions]\n\tobjectformat = {self.config.hashes}\n"

    def _make_folder(self) -> None:
        with disk_faults(str(self.folder)):
            (self.folder / "temporary").mkdir(parents=True, exist_ok=True, mode=0o700)
            for left in (self.folder / "temporary").iterdir():
                if time.time() - left.lstat().st_mtime > OLD:
                    shutil.rmtree(left, ignore_errors=True)

    def prepare(self) -> None:
        """Make what we need beside it, as it has to be now."""
        self._make_folder()
        for name in ("objects", "refs", "info"):
            (self._git / name).mkdir(parents=True, exist_ok=True)
        write_whole(self._git / "HEAD", b"ref: refs/heads/none\n")
        write_whole(self._git / "config", self.settings().encode())
        write_whole(self._git / "info" / "attributes", RAW.encode())
        write_whole(self._git / "info" / "exclude", self.excludes())
