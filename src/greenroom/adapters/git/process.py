"""Run git in a separate environment, so that no user's settings make it run another program.

Most calls do not read the repository's settings: they use Greenroom's own git folder (`repository.py`). Where its
settings are read, every setting that names a program is overridden here. An error of git becomes a `WorkspaceFault`
that says what to do.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from typing import BinaryIO, Final, TypeAlias

from greenroom.core.base.errors import translate
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import WorkspaceFault, WorkspaceReason

MIN_GIT_VERSION: Final = (2, 38)
"""The first version with `merge-tree --write-tree`, which `apply` and `branch` need."""

LOCK_TIMEOUT_S: Final = 5.0
"""How long to wait for a lock of another git process, in seconds."""

GIT_TIMEOUT_S: Final = 120.0
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
DEV_NULL: Final = os.devnull

ISOLATED_ENVIRONMENT: Final[Mapping[str, str]] = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": DEV_NULL,
    "GIT_CONFIG_GLOBAL": DEV_NULL,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_AUTHOR_NAME": "Greenroom",
    "GIT_AUTHOR_EMAIL": "greenroom@localhost",
    "GIT_COMMITTER_NAME": "Greenroom",
    "GIT_COMMITTER_EMAIL": "greenroom@localhost",
}
"""The environment of Greenroom's own git calls. They read no home folder and never fetch."""

OVERRIDDEN_SETTINGS: Final[Mapping[str, str]] = {
    "core.hooksPath": DEV_NULL,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.sparseCheckout": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.attributesFile": DEV_NULL,
    "core.quotePath": "false",
    "core.pager": "cat",
    "core.logAllRefUpdates": "false",
    "core.fsync": "committed,reference",
    "core.fsyncMethod": "batch",
    "commit.gpgSign": "false",
    "credential.helper": "",
    "diff.ignoreSubmodules": "all",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}


HELD_LOCK: Final = re.compile(r"Unable to create '([^']+\.lock)': File exists")
LOCK_ERROR: Final = re.compile(
    HELD_LOCK.pattern + r"|cannot lock ref(?!.*(?:but expected|already exists|exists; cannot create))"
)
KNOWN_ERRORS: Final[Sequence[tuple[str, WorkspaceReason, str]]] = (
    ("but expected", "state", "git.ref_moved"),
    ("exists; cannot create", "name", "git.ref_prefix"),
    ("already exists", "state", "git.ref_created"),
    ("No space left on device", "disk", "git.disk_full"),
    ("Disk quota exceeded", "disk", "git.quota_used"),
    ("Read-only file system", "disk", "git.read_only"),
    ("insufficient permission", "disk", "git.no_permission"),
    ("Permission denied", "disk", "git.permission_denied"),
    ("not a git repository", "repository", "git.repository_broken"),
    ("bad config", "repository", "git.bad_config"),
    ("unknown repository extension", "git", "git.too_old_for_repository"),
    (
        "index file",
        "repository",
        "git.index_broken",
    ),
    ("corrupt", "repository", "git.damaged"),
    ("bad object", "repository", "git.lacks_object"),
    ("unable to read", "repository", "git.lacks_object"),
    ("missing", "repository", "git.lacks_object"),
)


Output: TypeAlias = int | BinaryIO


@record
class GitResult:
    """The exit code and output of a git command."""

    code: int
    out: bytes
    err: str


class Git:
    """A git program with fixed options, environment and folder."""

    def __init__(self, program: str, *, words: Sequence[str], env: Mapping[str, str], folder: str = "/") -> None:
        self._program = program
        self._words = tuple(words)
        self._env = dict(env)
        self._folder = folder

    def with_options(self, *words: str, env: Mapping[str, str] | None = None) -> Git:
        """Return a copy with more options and environment variables."""
        merged_env = {**self._env, **(env or {})}
        return Git(self._program, words=(*self._words, *words), env=merged_env, folder=self._folder)

    async def run(self, *words: str, stdin: bytes = b"", seconds: float = GIT_TIMEOUT_S) -> bytes:
        """Run a command and return its output. Retry briefly while another git holds a lock.

        Raise `WorkspaceFault` if the command fails.
        """
        end = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            result = await self.run_unchecked(*words, stdin=stdin, seconds=seconds)
            if result.code == 0:
                return result.out
            if not is_locked(result.err) or time.monotonic() > end:
                raise make_fault(result.err, result.code, words)
            await asyncio.sleep(0.1)

    async def read_line(self, *words: str, stdin: bytes = b"") -> str:
        """Run a command and return its output as one stripped line."""
        return os.fsdecode(await self.run(*words, stdin=stdin)).strip()

    async def run_unchecked(self, *words: str, stdin: bytes = b"", seconds: float = GIT_TIMEOUT_S) -> GitResult:
        """Run a command and return its result, even if it fails.

        The process and its children are killed when the time is over or the caller is cancelled.
        """
        # Files, not pipes: a program that a hook leaves running keeps a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.start(*words, stdout=out, stderr=err)
            try:
                await asyncio.to_thread(process.communicate, stdin, seconds)
            except subprocess.TimeoutExpired:
                _kill(process)
                close_pipes(process)
                raise WorkspaceFault("slow", "git.too_slow", word=words[0], seconds=seconds) from None
            except asyncio.CancelledError:
                _kill(process)
                close_pipes(process)  # the thread may not have begun
                raise
            out.seek(0)
            err.seek(0)
            return GitResult(code=process.returncode, out=out.read(), err=err.read().decode(errors="replace").strip())

    def start(self, *words: str, stdout: Output = PIPE, stderr: Output = PIPE) -> subprocess.Popen[bytes]:
        """Start a process whose stdin the caller writes to."""
        try:
            return subprocess.Popen(
                (self._program, *self._words, *words),
                stdin=PIPE,
                stdout=stdout,
                stderr=stderr,
                env=self._env,
                cwd=self._folder,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise _make_missing_fault(self._folder, self._program) from None
        except OSError as error:
            raise WorkspaceFault("git", "git.not_started", program=self._program, strerror=error.strerror) from error


def make_isolated_git(program: str, *, env: Mapping[str, str], settings: Mapping[str, str], folder: str = "/") -> Git:
    """Return git that ignores the user's settings and overrides those of the repository."""
    words = [word for name, value in {**OVERRIDDEN_SETTINGS, **settings}.items() for word in ("-c", f"{name}={value}")]
    return Git(
        program, words=["--no-pager", *words], env={"PATH": DEFAULT_PATH, **ISOLATED_ENVIRONMENT, **env}, folder=folder
    )


def find_git(env: Mapping[str, str], tree: Path) -> str:
    """Find git on the PATH, but never inside the tree `tree`."""
    folders = [folder for folder in env.get("PATH", DEFAULT_PATH).split(os.pathsep) if folder.startswith("/")]
    safe = [folder for folder in folders if not Path(folder).resolve().is_relative_to(tree)]
    path = shutil.which("git", path=os.pathsep.join(safe) or DEFAULT_PATH)
    if path is None:
        install = "xcode-select --install" if sys.platform == "darwin" else translate("git.package_manager")
        raise WorkspaceFault("git", "git.not_installed", install=install)
    return path


async def check_version(git: Git) -> None:
    """Raise `WorkspaceFault` if git is too old."""
    line = await git.read_line("version")
    numbers = re.search(r"(\d+)\.(\d+)", line)
    version = tuple(map(int, numbers.groups())) if numbers else (0,)
    if version < MIN_GIT_VERSION:
        raise WorkspaceFault("git", "git.too_old", needed=".".join(map(str, MIN_GIT_VERSION)), line=line)


def _make_missing_fault(folder: str, program: str) -> WorkspaceFault:
    if Path(folder).is_dir():
        return WorkspaceFault("git", "git.program_gone", program=program)
    return WorkspaceFault("repository", "git.folder_gone", folder=folder)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def is_locked(stderr: str) -> bool:
    """Return whether git failed because another process holds a lock."""
    return LOCK_ERROR.search(stderr) is not None


def make_fault(stderr: str, code: int, words: Sequence[str]) -> WorkspaceFault:
    """Return the fault for an error of git."""
    if is_locked(stderr):
        held_lock = HELD_LOCK.search(stderr)
        return _make_locked_fault(held_lock[1] if held_lock else "")
    last = stderr.splitlines()[-1][:300] if stderr else translate("git.exit_code", code=code)
    for part, reason, why in KNOWN_ERRORS:
        if part in stderr:
            return WorkspaceFault(reason, "git.with_output", why=translate(why), word=words[0], last=last)
    return WorkspaceFault("git", "git.failed", word=words[0], last=last)


def _make_locked_fault(name: str) -> WorkspaceFault:
    return WorkspaceFault("locked", "git.locked" if name else "git.locked_somewhere", path=name)
