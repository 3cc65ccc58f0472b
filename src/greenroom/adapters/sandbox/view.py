"""What a command sees in the sandbox: its workspace, the system's programs, and the tools of the user."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.files import PLACEHOLDER_NAMES
from greenroom.core.ports.sandbox import SandboxMount

SYSTEM_FOLDERS: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
)
"""Folders of the system's programs, without personal data."""

ETC_ENTRIES: Final = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "localtime", "timezone"),
    *("ssl", "pki", "ca-certificates", "ca-certificates.conf", "crypto-policies", "nsswitch.conf", "mime.types"),
    *("services", "protocols", "fonts", "terminfo", "os-release", "lsb-release", "debian_version", "magic"),
    *("java", "java-17-openjdk", "java-21-openjdk", "maven", "python3", "perl", "R", "php", "inputrc", "host.conf"),
    "magic.mime",
)
"""Entries of /etc that programs need. Other entries name users or hold keys."""

TOOL_HOMES: Final = frozenset(
    {
        *(".pyenv", ".nvm", ".cargo", ".rustup", ".asdf", ".volta", ".rbenv", ".sdkman", ".bun", ".deno", ".nodenv"),
        *(".fnm", ".juliaup", ".ghcup", ".opam", ".dotnet", ".jenv", ".goenv", ".tfenv", ".rye", ".pixi"),
        *("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".local/share/uv"),
    }
)
"""Folders with a user's own tools. They are visible as a whole and read-only."""

KERNEL_FOLDERS: Final = ("/etc", "/proc", "/sys")
WORLD_WRITABLE_FOLDERS: Final = ("/tmp", "/var/tmp", "/run", "/dev/shm")
"""World-writable folders. A workspace may be inside one, but must not contain it."""

TOOL_VARIABLES: Final = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOROOT", "CARGO_HOME", "RUSTUP_HOME"),
)
TOOL_DATA_FOLDERS: Final = (".local/share/uv", ".local/share/pipx", ".local/share/mise")
"""Folders that hold the programs behind `~/.local/bin`."""

SECRET_NAMES: Final = (
    *("credentials", "credentials.toml", "credentials.json", ".credentials", "auth.json", "auth.toml"),
    *(".netrc", ".npmrc", ".pypirc"),
)
"""Files and folders among tools that may hold secrets. They are hidden."""

VISIBLE_PROJECT_FILES: Final = (
    "config.toml",
    "config.local.toml",
    "permissions",
    "agents",
    "tools",
    "callbacks",
    ".gitignore",
)
"""Visible entries of the project's `.greenroom` folder. Conversations of agents stay hidden."""

PYVENV_HOME_KEY: Final = "home = "

UNUSED_ID: Final = 62_347
"""A user and group id that distributions assign to no user or service."""

COMMAND_USER: Final = "greenroom"
"""The user name of a command that does not run as the person."""


@record
class SandboxView:
    """What a command sees. The workspace is in `root` and visible at `at`. `hidden` is invisible, `protected` names
    cannot be changed. `visible_names` lists the visible entries of a folder. `mounts` come from elsewhere. With
    `read_only`, a command cannot change the workspace and its mounts.

    `scratch` holds the command's /tmp and home while the sandbox exists.
    """

    root: Path
    at: Path
    home: Path
    scratch: Path
    hidden: tuple[Path, ...] = ()
    protected: tuple[str, ...] = PLACEHOLDER_NAMES
    mounts: tuple[SandboxMount, ...] = ()
    read_only: bool = False
    visible_names: Mapping[str, tuple[str, ...]] = msgspec.field(
        default_factory=lambda: {".greenroom": VISIBLE_PROJECT_FILES}
    )

    def inside_path(self, folder: str) -> str:
        """Return the path at which a command sees a folder of the workspace."""
        return str(self.at / Path(folder).relative_to(self.root))


def check_view(view: SandboxView) -> SandboxView:
    """Return the view. Raise `WorldFault` if the workspace contains too much for a sandbox to be useful."""
    for place in (view.root, view.at):
        within = any(place.is_relative_to(folder) for folder in (*SYSTEM_FOLDERS, *KERNEL_FOLDERS))
        inside = (*SYSTEM_FOLDERS, *KERNEL_FOLDERS, *WORLD_WRITABLE_FOLDERS, view.home, view.scratch)
        if within or any(Path(folder).is_relative_to(place) for folder in inside):
            raise WorldFault("sandbox.folder_too_broad", place=str(place))
    return view


def find_tool_folders(env: Mapping[str, str], view: SandboxView) -> list[Path]:
    """Return the folders outside the system that the programs on the PATH need."""
    candidates = dict.fromkeys(_list_tool_folders(env, view))
    outside = [folder for folder in candidates if _must_be_shown(folder, view)]
    return [
        folder for folder in outside if not any(other != folder and folder.is_relative_to(other) for other in outside)
    ]


def _must_be_shown(place: Path, view: SandboxView) -> bool:
    """Return whether a folder must be mounted: it exists, is not visible already, and contains no private data."""
    if not _is_readable_folder(place) or any(
        place.is_relative_to(folder) for folder in (*SYSTEM_FOLDERS, view.at, view.root)
    ):
        return False
    wide = (*KERNEL_FOLDERS, *WORLD_WRITABLE_FOLDERS, "/run/user", "/home", "/root", "/var", "/var/run", "/dev")
    private = (view.home, Path("/"), *map(Path, wide), *view.hidden)
    return not any(folder.is_relative_to(place) for folder in private) and not view.root.is_relative_to(place)


def _list_tool_folders(env: Mapping[str, str], view: SandboxView) -> Iterator[Path]:
    for name in TOOL_VARIABLES:
        if env.get(name, "").startswith("/"):
            yield Path(env[name])
    yield from (view.home / name for name in TOOL_DATA_FOLDERS)
    yield from _find_interpreter(view.root / ".venv", view.home)
    yield from _find_interpreter(view.root / "venv", view.home)
    for mount in view.mounts:
        yield from _find_interpreter(Path(mount.source), view.home)
    for word in env.get("PATH", "").split(os.pathsep):
        if word.startswith("/"):
            yield from _list_installations(Path(word), view.home)


def _list_installations(folder: Path, home: Path) -> Iterator[Path]:
    """Yield the folders that belong to a folder of programs: a tool home, an installation, or only itself."""
    yield folder
    with suppress(ValueError):
        inside = folder.relative_to(home).parts
        for depth in (1, 3):
            if "/".join(inside[:depth]) in TOOL_HOMES:
                yield Path(home, *inside[:depth])
    if folder.name == "bin" and _is_readable_folder(folder.parent / "lib"):
        if folder.parent not in (home, home / ".local", Path("/")):
            yield folder.parent
        yield from _find_interpreter(folder.parent, home)
    if (home / ".cargo") in folder.parents:
        yield home / ".rustup"


def _is_readable_folder(place: Path) -> bool:
    return os.access(place, os.R_OK | os.X_OK) and place.is_dir()


def find_secrets(place: Path) -> list[Path]:
    """Return the secrets in a folder of tools."""
    return [place / name for name in SECRET_NAMES if os.path.lexists(place / name)]


def _find_interpreter(environment: Path, home: Path) -> Iterator[Path]:
    """Yield the Python behind a virtual environment. A command can write `pyvenv.cfg`, so only a real Python outside
    hidden folders is shown."""
    with suppress(OSError, ValueError, RuntimeError):
        lines = (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
        installations = [
            Path(line.removeprefix(PYVENV_HOME_KEY).strip()).resolve().parent
            for line in lines
            if line.startswith(PYVENV_HOME_KEY)
        ]
        for place in installations:
            is_python = any(place.glob("bin/python3*")) and any(place.glob("lib*/python3.*/os.py"))
            if is_python and not _is_hidden(place, home.resolve()):
                yield place


def _is_hidden(place: Path, home: Path) -> bool:
    """Return whether a path is in a dot folder of the home that is not a tool home."""
    if not place.is_relative_to(home):
        return False
    parts = place.relative_to(home).parts
    is_tool_home = any("/".join(parts[:depth]) in TOOL_HOMES for depth in (1, 3))
    return not is_tool_home and any(part.startswith(".") for part in parts)


@record
class Identity:
    """The user of a command. `changes`: the supervisor switches to it. `swapped`: root's files in the workspace appear
    as its own, and belong to root outside."""

    uid: int
    gid: int
    changes: bool = False
    swapped: bool = False


def find_identity(root: Path, *, swaps: bool) -> Identity:
    """Return the user for commands: the current user. Root switches to the owner of the workspace.

    If root owns the workspace, use an unassigned id where owners can be swapped, else root without capabilities.
    """
    if os.geteuid() != 0:
        return Identity(uid=os.geteuid(), gid=os.getegid())
    owner = root.stat()
    if owner.st_uid == 0 and swaps:
        return Identity(uid=UNUSED_ID, gid=UNUSED_ID, changes=True, swapped=True)
    group = owner.st_gid or (UNUSED_ID if owner.st_uid else 0)
    return Identity(uid=owner.st_uid, gid=group, changes=True)


def refuse_unreachable(root: Path, identity: Identity) -> None:
    """Raise `WorldFault` if this user cannot reach the workspace."""
    for place in root.parents:
        status = place.stat()
        bit = 0o100 if status.st_uid == identity.uid else 0o010 if status.st_gid == identity.gid else 0o001
        if identity.changes and not status.st_mode & bit:
            raise WorldFault("sandbox.owner_cannot_enter", root=str(root), uid=identity.uid, place=str(place))
