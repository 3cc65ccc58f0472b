"""The Landlock tier, for systems without user namespaces: a list of allowed files, no network, the system call filter.

Landlock does not cover modes and dates, not even in a read-only workspace, and cannot protect git's settings, which are
restored after the command. Of /proc a command sees facts about the system and its own first process, so it reads no
arguments of other processes. docs/howto/sandbox.md lists the other limits.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.layers import FolderLinks, find_editable_paths, list_readable_parts
from greenroom.adapters.sandbox.protection import find_outer_git
from greenroom.adapters.sandbox.seccomp import build_filter
from greenroom.adapters.sandbox.session import SandboxSession, list_public_paths
from greenroom.adapters.sandbox.view import (
    COMMAND_USER,
    ETC_ENTRIES,
    SYSTEM_FOLDERS,
    SandboxView,
    find_identity,
    find_secrets,
    refuse_unreachable,
)
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.sandbox import CommandLimits, LandlockRuleset, SandboxedCommand, Tier

MIN_VERSION: Final = 3
"""The first Landlock version that covers truncating files."""

NETWORK_VERSION: Final = 4
DEVICES_VERSION: Final = 5
SCOPES_VERSION: Final = 6

READ_RIGHTS: Final = 0b1101  # execute, read files, read folders
LIST_RIGHT: Final = 0b1000
ALL_FILE_RIGHTS: Final = 0x7FFF
DEVICE_RIGHT: Final = 0x8000
NETWORK_RIGHTS: Final = 0b11
ALL_SCOPES: Final = 0b11
DEVICE_FILE_RIGHTS: Final = 0b110 | 1 << 14

CREATE_RULESET: Final = 444
VERSION_FLAG: Final = 1

HARMLESS_DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
OPT_FOLDER: Final = "/opt"
OTHERS_READ_AND_ENTER: Final = 0o005
PROC_FILES: Final = (
    *("sys", "cpuinfo", "meminfo", "stat", "vmstat", "loadavg", "uptime", "version", "filesystems", "swaps", "devices"),
    *(
        f"self/{name}"
        for name in (
            *("status", "stat", "statm", "maps", "smaps", "smaps_rollup", "limits", "cgroup", "mounts", "mountinfo"),
            *("cmdline", "comm", "environ", "auxv", "io", "fd", "fdinfo", "oom_score", "oom_score_adj"),
        )
    ),
)
"""Readable entries of /proc: facts about the system, and about the process that becomes the command. Not `self/net` and
`self/task`, which show the connections of the machine."""

USER_DATABASE_FILES: Final = ("/etc/passwd", "/etc/group", "/etc/hosts")


class Landlock(SandboxSession):
    """A Landlock sandbox for one workspace; `version` is the kernel's Landlock version."""

    tier: Tier = "landlock"

    def __init__(self, view: SandboxView, limits: CommandLimits, *, version: int) -> None:
        if version < MIN_VERSION or view.at != view.root:
            raise WorldFault("sandbox.landlock_unusable")
        identity = find_identity(view.root, swaps=False)
        refuse_unreachable(view.root, identity)
        super().__init__(view, limits, identity, weak=True)
        self._version = version
        self.scratch.change_owner(identity)
        self._filter = build_filter(network=False)
        layers = [mount for mount in view.mounts if mount.layer]
        self._links = FolderLinks(view.root, layers)
        self._import_paths = list(find_editable_paths(view.root, layers))

    def build_command(
        self, token: str, words: tuple[str, ...], folder: str, env: Mapping[str, str], _: str
    ) -> SandboxedCommand:
        """Return the command with rules and limits, as the owner of the workspace and without capabilities."""
        # The system's git settings are not readable here, and git fails if it cannot read them.
        variables = {**env, "HOME": str(self.scratch.home), "TMPDIR": str(self.scratch.tmp), "GIT_CONFIG_NOSYSTEM": "1"}
        if self._import_paths:
            variables["PYTHONPATH"] = os.pathsep.join([*self._import_paths, *filter(None, [env.get("PYTHONPATH")])])
        return SandboxedCommand(
            words=words,
            folder=folder,
            env=variables
            | ({"USER": COMMAND_USER, "LOGNAME": COMMAND_USER} if self.identity.uid and self.identity.changes else {}),
            token=token,
            uid=self.identity.uid if self.identity.changes else None,
            gid=self.identity.gid if self.identity.changes else None,
            rlimits=self.rlimits,
            tasks=self.limits.processes,
            landlock=self._build_ruleset(env),
            seccomp=self._filter,
        )

    def close(self) -> None:
        """Remove the links and the scratch folder."""
        self._links.close()
        super().close()

    def _build_ruleset(self, env: Mapping[str, str]) -> LandlockRuleset:
        file_rights = ALL_FILE_RIGHTS | (DEVICE_RIGHT if self._version >= DEVICES_VERSION else 0)
        return LandlockRuleset(
            files=file_rights,
            network=NETWORK_RIGHTS if self._version >= NETWORK_VERSION else 0,
            scopes=ALL_SCOPES if self._version >= SCOPES_VERSION else 0,
            rules=tuple(self._list_rules(env, file_rights)),
        )

    def _list_rules(self, env: Mapping[str, str], file_rights: int) -> Iterator[tuple[str, int]]:
        yield str(self.view.root), READ_RIGHTS if self.view.read_only else file_rights
        for place in (self.scratch.home, self.scratch.tmp):
            yield str(place), file_rights
        for place in self._list_system_paths():
            yield str(place), READ_RIGHTS
        for place in self.find_tools(env):
            # Allow the folder or its entries: Landlock cannot exclude parts of an allowed folder.
            hidden = find_secrets(place)
            shown = [entry for entry in place.iterdir() if entry not in hidden] if hidden else [place]
            yield from ((str(entry), READ_RIGHTS) for entry in shown)
        for place in find_outer_git(self.view.root):
            yield str(place), READ_RIGHTS
        for mount in self.view.mounts:
            if mount.layer:
                yield mount.source, LIST_RIGHT
                yield from ((str(part), READ_RIGHTS) for part in list_readable_parts(Path(mount.source), mount.hidden))
        for name in HARMLESS_DEVICES:
            yield name, DEVICE_FILE_RIGHTS | READ_RIGHTS

    def _list_system_paths(self) -> Iterator[Path]:
        """Yield the system's programs and their data. For root, only paths that every user can read."""
        etc = [Path("/etc", name) for name in ETC_ENTRIES]
        if self.identity.uid != 0:
            yield from (*map(Path, SYSTEM_FOLDERS), *etc)
        else:
            yield from (Path(name) for name in SYSTEM_FOLDERS if name != OPT_FOLDER)
            entries = Path(OPT_FOLDER).iterdir() if Path(OPT_FOLDER).is_dir() else ()
            yield from (
                entry
                for entry in entries
                if entry.exists() and entry.stat().st_mode & OTHERS_READ_AND_ENTER == OTHERS_READ_AND_ENTER
            )
            for place in etc:
                yield from list_public_paths(place)
        yield from map(Path, (*USER_DATABASE_FILES, *(f"/proc/{name}" for name in PROC_FILES)))


def read_landlock_version() -> int:
    """Return the kernel's Landlock version; 0 if there is none."""
    return max(0, int(ctypes.CDLL(None).syscall(ctypes.c_long(CREATE_RULESET), None, ctypes.c_long(0), VERSION_FLAG)))
