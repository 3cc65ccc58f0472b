"""A repository: its layout, its owner's git settings, and the ways to run git on it.

`plain_git` reads neither settings nor refs. Its git folder belongs to Greenroom and turns off all conversions: contents
are stored byte for byte, and no filter runs. `refs_git` runs in the repository itself, with every setting that names a
program overridden. `git_as_owner` runs git as its owner does, but without the programs that only the repository's own
settings name.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from greenroom.adapters.git.files import translate_disk_errors, write_atomic
from greenroom.adapters.git.objects import ObjectReader, write_object
from greenroom.adapters.git.process import DEFAULT_PATH, Git, check_version, find_git, make_isolated_git
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Diff, WorkspaceFault

GITDIR_PREFIX: Final = "gitdir:"
MAX_LINK_BYTES: Final = 4096
REQUIRED_FOLDERS: Final = ("objects", "refs")
FALSE_WORDS: Final = frozenset({"false", "no", "off", "0"})
TRUE_WORDS: Final = frozenset({"true", "yes", "on", "1", "input"})

RAW_ATTRIBUTES: Final = "* -text -crlf -ident !eol !filter !working-tree-encoding !diff !merge\n"
"""Overrides the attributes of the tree: nothing is converted, and a diff shows every change."""

DEFAULT_IGNORES: Final = ("node_modules/", ".venv/", "venv/", "__pycache__/", ".tox/", ".nox/", ".greenroom/")
"""Ignore patterns for a folder that is not a repository."""

LEFTOVER_AGE_S: Final = 24 * 3600.0
"""Age in seconds at which a leftover temporary folder is removed."""

IDENTITY_VARIABLES: Final = frozenset(
    f"GIT_{role}_{part}" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
)
"""Environment variables that set a person's git identity."""

OWNER_VARIABLES: Final = IDENTITY_VARIABLES | {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
"""Environment variables of git that its owner sets, and that say nothing about one repository."""

NO_HOOKS_OPTIONS: Final = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
REMOTE_COMMAND: Final = re.compile(r"remote\..+\.(?:uploadpack|receivepack|vcs)", re.DOTALL)
"""Settings that name a program of a remote. Of two values git takes the first, so they cannot be overridden."""

HOOKS_PATH: Final = "core.hookspath"
LOCAL_SCOPES: Final = ("local", "worktree")
FILTER_COMMAND: Final = re.compile(r"filter\.(.+)\.(?:clean|smudge|process)", re.DOTALL)
COMMAND_SETTINGS: Final[Mapping[str, str]] = {
    r"core\.fsmonitor|gpg\.ssh\.defaultkeycommand": "false",
    r"core\.(?:hookspath|askpass|alternaterefscommand|gitproxy)|diff\.external|merge\..+\.driver": "",
    r"core\.pager|pager\..+|interactive\.difffilter": "cat",
    r"core\.editor|sequence\.editor": "true",
    r"core\.sshcommand": "ssh",
    r"credential\.(?:.+\.)?helper|trailer\..+\.(?:command|cmd)|diff\..+\.(?:command|textconv)": "",
    r"gpg\.(?:openpgp\.)?program": "gpg",
    r"gpg\.x509\.program": "gpgsm",
    r"gpg\.ssh\.program": "ssh-keygen",
    r"protocol\.ext\.allow": "never",
    r"protocol\.(?:.+\.)?allow": "user",
    FILTER_COMMAND.pattern: "",
}
"""Settings that name a program or let one run, as patterns, with what stands in for a value of the repository's own."""


@record
class RepositoryLayout:
    """Where a repository is: files in `root`, git data of this worktree in `git`, shared git data in `common`.

    `within` is the path of the workspace inside it. With `is_own`, Greenroom made the repository for a folder without
    one.
    """

    root: Path
    git: Path
    common: Path
    within: str = ""
    is_own: bool = False

    @property
    def key(self) -> str:
        """The name of the folder in the cache."""
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", self.root.name).strip("-")[:32] or "root"
        return f"{plain}-{hashlib.sha256(str(self.root).encode(errors='surrogateescape')).hexdigest()[:12]}"


OWN_REPOSITORY: Final = "own.git"


def make_own_layout(root: Path, folder: Path) -> RepositoryLayout:
    """Return the layout of Greenroom's own repository in `folder`, for files in `root` without a repository."""
    return RepositoryLayout(root=root, git=folder / OWN_REPOSITORY, common=folder / OWN_REPOSITORY, is_own=True)


def find_layout(folder: Path, *, home: Path | None = None) -> RepositoryLayout | None:
    """Find the repository that contains a folder, but not one that is the person's whole home; None if there is none.

    This reads the file system, because git would read settings first.
    """
    here = folder.resolve()
    for place in (here, *here.parents):
        if place != here and place == home:
            return None
        if (place / ".git").exists() or (place / ".git").is_symlink():
            return _read_layout(place, str(here.relative_to(place)))
    return None


def _read_layout(root: Path, within: str) -> RepositoryLayout:
    git = _resolve_git_folder(root / ".git")
    commondir = git / "commondir"
    common = (git / _read_start(commondir).strip()).resolve() if commondir.is_file() else git
    if not (git / "HEAD").is_file() or not all((common / name).is_dir() for name in REQUIRED_FOLDERS):
        raise WorkspaceFault("repository", "git.unusable_repository", root=str(root / ".git"))
    return RepositoryLayout(root=root, git=git, common=common, within="" if within == "." else within)


def _resolve_git_folder(path: Path) -> Path:
    """Return the folder that a `.git` is or points to."""
    if not path.is_file():
        return path.resolve()
    text = _read_start(path)
    if not text.startswith(GITDIR_PREFIX):
        raise WorkspaceFault("repository", "git.points_nowhere", path=str(path))
    return (path.parent / text.removeprefix(GITDIR_PREFIX).strip()).resolve()


def _read_start(file: Path) -> str:
    try:
        with file.open("rb") as handle:
            return handle.read(MAX_LINK_BYTES).decode(errors="surrogateescape")
    except OSError as error:
        raise WorkspaceFault("repository", "git.not_readable", file=str(file), strerror=error.strerror) from error


@record
class GitConfig:
    """The person's git settings. `disk` holds file-system settings of `core`. `converts`: line endings may be
    converted. `named`: git has a name and an e-mail address.

    `overrides` replace settings that name programs and that the repository itself sets: by the person's own value, or
    by a harmless one. With `offline`, git reaches no remote. Only the repository defines the filters `local_filters`,
    and names the hooks in `local_hooks`.
    """

    disk: Mapping[str, bool] = {}
    converts: bool = False
    sparse: bool = False
    hashes: str = "sha1"
    excludes: str = ""
    attributes: str = ""
    hooks_path: str = ""
    named: bool = False
    overrides: Mapping[str, str] = {}
    offline: bool = False
    local_filters: frozenset[str] = frozenset()
    local_hooks: str = ""


async def read_config(git: Git, env: Mapping[str, str], layout: RepositoryLayout) -> GitConfig:
    """Read the person's settings with `git config --list`."""
    settings, owned, local = dict[str, str](), dict[str, str](), dict[str, str]()
    fields = os.fsdecode(await git.run("config", "--list", "-z", "--includes", "--show-scope")).split("\0")
    for scope, line in zip(fields[::2], fields[1::2], strict=False):
        name, given, value = line.partition("\n")
        settings[name.lower()] = value if given else "true"
        (local if scope in LOCAL_SCOPES else owned)[name] = value if given else "true"
    default_hooks = layout.common / "hooks"
    if (layout.root / local.get(HOOKS_PATH, "")).resolve() == default_hooks.resolve():
        del local[HOOKS_PATH]
    overrides = _override_commands(local, {HOOKS_PATH: str(default_hooks), **owned})
    home = Path(env.get("HOME") or "/nonexistent")
    config_folder = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    return GitConfig(
        disk={
            **{
                name: settings.get(f"core.{name}", "true").lower() not in FALSE_WORDS
                for name in ("filemode", "symlinks")
            },
            **{
                name: settings.get(f"core.{name}", "").lower() in TRUE_WORDS
                for name in ("ignorecase", "precomposeunicode")
            },
        },
        converts=settings.get("core.autocrlf", "false").lower() in TRUE_WORDS,
        sparse=settings.get("core.sparsecheckout", "false").lower() in TRUE_WORDS,
        hashes=settings.get("extensions.objectformat", "sha1").lower(),
        excludes=_resolve_config_path(settings.get("core.excludesfile"), config_folder / "ignore", home),
        attributes=_resolve_config_path(settings.get("core.attributesfile"), config_folder / "attributes", home),
        hooks_path=settings.get(HOOKS_PATH, ""),
        named=bool(settings.get("user.name") and settings.get("user.email"))
        or all(env.get(name) for name in IDENTITY_VARIABLES),
        overrides=overrides,
        offline=any(map(REMOTE_COMMAND.fullmatch, local)),
        local_filters=frozenset(
            found[1] for name in overrides if name not in owned and (found := FILTER_COMMAND.fullmatch(name))
        ),
        local_hooks=local.get(HOOKS_PATH, ""),
    )


def _override_commands(local: Mapping[str, str], owned: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that replace those of the repository which name programs."""
    overrides = dict[str, str]()
    for name in local:
        for pattern, harmless in COMMAND_SETTINGS.items():
            if re.fullmatch(pattern, name, re.DOTALL):
                overrides[name] = owned.get(name, harmless)
                break
    if any(name.startswith("protocol.") for name in overrides):
        overrides.setdefault("protocol.ext.allow", owned.get("protocol.ext.allow", "never"))
    return overrides


def _resolve_config_path(configured: str | None, default: Path, home: Path) -> str:
    place = (
        default if configured is None else home / configured[2:] if configured.startswith("~/") else Path(configured)
    )
    return str(place) if place.is_absolute() and place.is_file() else ""


class Repository:
    """A repository; Greenroom's data about it is in `folder` in the user's cache."""

    def __init__(self, layout: RepositoryLayout, folder: Path, program: str, env: Mapping[str, str]) -> None:
        self.layout = layout
        self.folder = folder
        self.env = env
        self.config = GitConfig()
        self._program = program
        self._git = folder / "git"
        self.objects = ObjectReader(self.refs_git)
        self.diffs = dict[tuple[str, str, int], Diff]()

    @classmethod
    async def open(cls, layout: RepositoryLayout, folder: Path, env: Mapping[str, str]) -> Repository:
        """Open a repository and create everything that Greenroom needs beside it."""
        program = find_git(env, layout.root)
        repository = cls(layout, folder, program, env)
        await asyncio.to_thread(repository._make_folder)
        await check_version(make_isolated_git(program, env={}, settings={}))
        if layout.is_own and not (layout.git / "HEAD").exists():
            bare = ("init", "--bare", "--quiet", "--template=", str(layout.git))
            await make_isolated_git(program, env={}, settings={}).run(*bare)
        repository.config = await read_config(
            repository.git_as_owner().with_options(env={"GIT_DIR": str(layout.git)}), env, layout
        )
        await asyncio.to_thread(repository.prepare)
        return repository

    @property
    def root(self) -> Path:
        """The top folder of its files."""
        return self.layout.root

    @property
    def plain_git(self) -> Git:
        """Git for trees, files and commits."""
        variables = {"GIT_DIR": str(self._git), "GIT_OBJECT_DIRECTORY": str(self.layout.common / "objects")}
        shallow = self.layout.common / "shallow"
        if shallow.is_file():
            variables["GIT_SHALLOW_FILE"] = str(shallow)
        return make_isolated_git(
            self._program, env=variables, settings={"core.excludesFile": self.config.excludes or os.devnull}
        )

    @property
    def refs_git(self) -> Git:
        """Git for the repository's own data: refs, index and history."""
        variables = {"GIT_DIR": str(self.layout.git)}
        if not self.layout.is_own:
            variables["GIT_WORK_TREE"] = str(self.root)
        return make_isolated_git(self._program, env=variables, settings={}, folder=str(self.root))

    @property
    def common_git(self) -> Git:
        """Git for data that all worktrees of the repository share."""
        return make_isolated_git(self._program, env={"GIT_DIR": str(self.layout.common)}, settings={})

    def git_for(self, tree: Path, index: Path) -> Git:
        """Return `plain_git` with this tree and this index."""
        return self.plain_git.with_options(env={"GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(index)})

    def git_as_owner(self, *, hooks: bool = True, local_hooks: bool = False) -> Git:
        """Return git as its owner runs it: with their settings, hooks, filters and keys, but without prompts.

        Programs that only the repository's own settings name do not run, except its hooks with `local_hooks`.
        """
        variables = {
            name: value for name, value in self.env.items() if name in OWNER_VARIABLES or not name.startswith("GIT_")
        }
        fixed = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_PAGER": "cat", "LC_ALL": "C.UTF-8"}
        words = ("--no-pager", "--literal-pathspecs", *(() if hooks else NO_HOOKS_OPTIONS))
        settings = [
            pair for pair in self.config.overrides.items() if not local_hooks or pair[0] != HOOKS_PATH
        ]  # not by `-c`: the name of a filter may contain `=`
        for number, (name, value) in enumerate(settings):
            fixed |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        if self.config.offline:
            fixed["GIT_ALLOW_PROTOCOL"] = "none"
        env = {"PATH": DEFAULT_PATH, **variables, **fixed, "GIT_CONFIG_COUNT": str(len(settings))}
        return Git(self._program, words=words, env=env, folder=str(self.root))

    def refuse_local_filters(self, attributes: Sequence[str]) -> None:
        """Raise a *repository* fault if a file needs a filter that only the repository's own settings define.

        `attributes` is what `check-attr -z` prints: a path, the name of an attribute and its value, and so on.
        """
        for path, name, value in zip(attributes[::3], attributes[1::3], attributes[2::3], strict=False):
            if name == "filter" and value in self.config.local_filters:
                raise WorkspaceFault("repository", "git.local_filter", path=path, name=value)

    async def write_object(self, kind: Literal["blob", "tree", "commit"], content: bytes) -> str:
        return await asyncio.to_thread(write_object, self.layout.common / "objects", self.config.hashes, kind, content)

    @contextmanager
    def open_temporary(self) -> Iterator[Path]:
        """Yield a temporary folder and remove it afterwards."""
        with tempfile.TemporaryDirectory(dir=self.folder / "temporary", ignore_cleanup_errors=True) as name:
            yield Path(name)

    def read_excludes(self) -> bytes:
        """Return the ignore patterns that are not in a file of the tree."""
        if self.layout.is_own:
            return "\n".join(DEFAULT_IGNORES).encode()
        try:
            return (self.layout.common / "info" / "exclude").read_bytes()
        except OSError:
            return b""

    def render_settings(self) -> str:
        """Return the config file for Greenroom's own git folder."""
        core_settings = {"bare": False, **self.config.disk}
        core = "".join(f"\t{name} = {str(value).lower()}\n" for name, value in core_settings.items())
        return f"[core]\n\trepositoryformatversion = 1\n{core}[extensions]\n\tobjectformat = {self.config.hashes}\n"

    def _make_folder(self) -> None:
        with translate_disk_errors(str(self.folder)):
            (self.folder / "temporary").mkdir(parents=True, exist_ok=True, mode=0o700)
            for leftover in (self.folder / "temporary").iterdir():
                if time.time() - leftover.lstat().st_mtime > LEFTOVER_AGE_S:
                    shutil.rmtree(leftover, ignore_errors=True)

    def prepare(self) -> None:
        """Create or update Greenroom's own git folder."""
        self._make_folder()
        for name in ("objects", "refs", "info"):
            (self._git / name).mkdir(parents=True, exist_ok=True)
        write_atomic(self._git / "HEAD", b"ref: refs/heads/none\n")
        write_atomic(self._git / "config", self.render_settings().encode())
        write_atomic(self._git / "info" / "attributes", RAW_ATTRIBUTES.encode())
        write_atomic(self._git / "info" / "exclude", self.read_excludes())
