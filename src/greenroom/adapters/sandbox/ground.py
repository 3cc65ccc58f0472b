"""What a command finds behind the walls: its workspace, the programs of the machine, and what they are run with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import Shown

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
"""What the machine's programs are made of; nothing in it is anybody's own."""

ETC: Final = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "localtime", "timezone"),
    *("ssl", "pki", "ca-certificates", "ca-certificates.conf", "crypto-policies", "nsswitch.conf", "mime.types"),
    *("services", "protocols", "fonts", "terminfo", "os-release", "lsb-release", "debian_version", "magic"),
    *("java", "java-17-openjdk", "java-21-openjdk", "maven", "python3", "perl", "R", "php", "inputrc", "host.conf"),
    "magic.mime",
)
"""What programs need of /etc. The rest says who lives here, or has keys in it."""

HOMES: Final = frozenset(
    {
        *(".pyenv", ".nvm", ".cargo", ".rustup", ".asdf", ".volta", ".rbenv", ".sdkman", ".bun", ".deno", ".nodenv"),
        *(".fnm", ".juliaup", ".ghcup", ".opam", ".dotnet", ".jenv", ".goenv", ".tfenv", ".rye", ".pixi"),
        *("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".local/share/uv"),
    }
)
"""Folders in which people keep tools for themselves: they are seen as a whole, and cannot be changed."""

NOBODY_S: Final = ("/etc", "/proc", "/sys")
SHARED_BY_ALL: Final = ("/tmp", "/var/tmp", "/run", "/dev/shm")
"""Somebody may work in a folder there, but not in all of it."""

VARIABLES: Final = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOROOT", "CARGO_HOME", "RUSTUP_HOME"),
)
SHARED: Final = (".local/share/uv", ".local/share/pipx", ".local/share/mise")
"""Where programs in `~/.local/bin` really are."""

SECRETS: Final = (
    *("credentials", "credentials.toml", "credentials.json", ".credentials", "auth.json", "auth.toml"),
    *(".netrc", ".npmrc", ".pypirc"),
)
"""What lies among tools and is nobody's business: files, and folders as a whole."""

OURS: Final = ("config.toml", "config.local.toml", "permissions", "agents", "tools", "callbacks", ".gitignore")
"""What of a project's own folder is for everybody; what agents said lies beside it."""

MODELS: Final = "home = "

UNUSED_ID: Final = 62_347
"""A number that belongs to nobody: distributions give out no such one, neither to people nor to services."""

NAME: Final = "greenroom"
"""How a command is called that is not the person."""


@record
class Ground:
    """The workspace lies in `root` and is seen at `at`. Nothing of `hidden` is seen, `kept` names cannot be changed;
    of those in `shown` nothing else is seen. What is `lent` comes from elsewhere.

    `scratch` is where a command has its /tmp and its home, for as long as the walls stand.
    """

    root: Path
    at: Path
    home: Path
    scratch: Path
    hidden: tuple[Path, ...] = ()
    kept: tuple[str, ...] = (".greenroom", ".claude", ".mcp.json")
    lent: tuple[Shown, ...] = ()
    shown: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=lambda: {".greenroom": OURS})

    def seen(self, folder: str) -> str:
        """A folder of the workspace as a command sees it."""
        return str(self.at / Path(folder).relative_to(self.root))


def checked(ground: Ground) -> Ground:
    """The same; `WorldFault` where the workspace is so wide that walls around it would hold nothing."""
    for place in (ground.root, ground.at):
        within = any(place.is_relative_to(one) for one in (*SYSTEM, *NOBODY_S))
        inside = (*SYSTEM, *NOBODY_S, *SHARED_BY_ALL, ground.home, ground.scratch)
        if within or any(Path(one).is_relative_to(place) for one in inside):
            raise WorldFault(
                f"No walls can be put up around {str(place)!r}: too much of the machine lies in it. "
                "Work in a folder of its own."
            )
    return ground


def tools(env: Mapping[str, str], ground: Ground) -> list[Path]:
    """The folders, outside of the system's own, that the programs on the PATH are made of."""
    found = dict.fromkeys(_tools(env, ground))
    kept = [one for one in found if _is_apart(one, ground)]
    return [one for one in kept if not any(other != one and one.is_relative_to(other) for other in kept)]


def _is_apart(place: Path, ground: Ground) -> bool:
    """Whether it has to be shown: it is there, is not seen anyway, and does not show what is nobody's business."""
    if not _is_folder(place) or any(place.is_relative_to(one) for one in (*SYSTEM, ground.at, ground.root)):
        return False
    wide = (*NOBODY_S, *SHARED_BY_ALL, "/run/user", "/home", "/root", "/var", "/var/run", "/dev")
    own = (ground.home, Path("/"), *map(Path, wide), *ground.hidden)
    return not any(one.is_relative_to(place) for one in own) and not ground.root.is_relative_to(place)


def _tools(env: Mapping[str, str], ground: Ground) -> Iterator[Path]:
    for name in VARIABLES:
        if env.get(name, "").startswith("/"):
            yield Path(env[name])
    yield from (ground.home / name for name in SHARED)
    yield from _interpreter(ground.root / ".venv", ground.home)
    yield from _interpreter(ground.root / "venv", ground.home)
    for one in ground.lent:
        yield from _interpreter(Path(one.source), ground.home)
    for word in env.get("PATH", "").split(os.pathsep):
        if word.startswith("/"):
            yield from _of_folder(Path(word), ground.home)


def _of_folder(folder: Path, home: Path) -> Iterator[Path]:
    """What a folder of programs belongs to: a home of tools, an installation, or only itself."""
    yield folder
    with suppress(ValueError):
        inside = folder.relative_to(home).parts
        for depth in (1, 3):
            if "/".join(inside[:depth]) in HOMES:
                yield Path(home, *inside[:depth])
    if folder.name == "bin" and _is_folder(folder.parent / "lib"):
        if folder.parent not in (home, home / ".local", Path("/")):
            yield folder.parent
        yield from _interpreter(folder.parent, home)
    if (home / ".cargo") in folder.parents:
        yield home / ".rustup"


def _is_folder(place: Path) -> bool:
    """Whether it is one that we can look into."""
    return os.access(place, os.R_OK | os.X_OK) and place.is_dir()


def secrets_in(place: Path) -> list[Path]:
    """What of a folder of tools is not shown."""
    return [place / name for name in SECRETS if os.path.lexists(place / name)]


def _interpreter(environment: Path, home: Path) -> Iterator[Path]:
    """The Python that a virtual environment is made from. A command can write there what it likes: so only what really
    is a Python is shown, and none that lies among what a person hides."""
    with suppress(OSError, ValueError, RuntimeError):
        lines = (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
        named = [Path(one.removeprefix(MODELS).strip()).resolve().parent for one in lines if one.startswith(MODELS)]
        for place in named:
            is_python = any(place.glob("bin/python3*")) and any(place.glob("lib*/python3.*/os.py"))
            if is_python and not _is_hidden(place, home.resolve()):
                yield place


def _is_hidden(place: Path, home: Path) -> bool:
    """Whether it lies in a folder of the home whose name begins with a dot, and which is no home of tools."""
    if not place.is_relative_to(home):
        return False
    parts = place.relative_to(home).parts
    known = any("/".join(parts[:depth]) in HOMES for depth in (1, 3))
    return not known and any(one.startswith(".") for one in parts)


@record
class Identity:
    """Who a command is; `changes` says that we have to become it. `swapped`: what is root's in the workspace is seen as
    its own, and root's again outside."""

    uid: int
    gid: int
    changes: bool = False
    swapped: bool = False


def identity(root: Path, *, swaps: bool) -> Identity:
    """Ourselves. As root: the owner of the workspace; if that is root too, a number of its own where owners can be
    swapped, else root without capabilities."""
    if os.geteuid() != 0:
        return Identity(uid=os.geteuid(), gid=os.getegid())
    owner = root.stat()
    if owner.st_uid == 0 and swaps:
        return Identity(uid=UNUSED_ID, gid=UNUSED_ID, changes=True, swapped=True)
    group = owner.st_gid or (UNUSED_ID if owner.st_uid else 0)
    return Identity(uid=owner.st_uid, gid=group, changes=True)


def refuse_unreachable(root: Path, who: Identity) -> None:
    """`WorldFault` where this user cannot get to the workspace."""
    for place in root.parents:
        known = place.stat()
        bit = 0o100 if known.st_uid == who.uid else 0o010 if known.st_gid == who.gid else 0o001
        if who.changes and not known.st_mode & bit:
            raise WorldFault(f"the owner of {str(root)!r} (uid {who.uid}) cannot pass {str(place)!r}")
