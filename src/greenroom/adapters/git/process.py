"""Run git in an environment of our own, so that nobody's settings make it run something else.

Most questions do not even read the repository's settings: they go through a git folder of ours (`repository.py`).
Where its settings are read, every setting that names a program is overruled here. A refusal of git becomes a
`WorkspaceFault` that says what to do.
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

from greenroom.core.base.records import record
from greenroom.core.ports.workspace import WorkspaceFault, WorkspaceReason

OLDEST: Final = (2, 38)
"""The first git with `merge-tree --write-tree`, which `apply` and `branch` need."""

PATIENCE: Final = 5.0
"""Seconds that another git may hold a lock."""

SECONDS: Final = 120.0
PATH: Final = "/usr/local/bin:/usr/bin:/bin"
NOWHERE: Final = os.devnull

ALONE: Final[Mapping[str, str]] = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": NOWHERE,
    "GIT_CONFIG_GLOBAL": NOWHERE,
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
"""What git is told for our own questions. Nobody's home is read, and nobody is fetched from."""

OVERRULED: Final[Mapping[str, str]] = {
    "core.hooksPath": NOWHERE,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.sparseCheckout": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.attributesFile": NOWHERE,
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


HELD: Final = re.compile(r"Unable to create '([^']+\.lock)': File exists")
LOCK: Final = re.compile(HELD.pattern + r"|cannot lock ref(?!.*(?:but expected|already exists|exists; cannot create))")
KNOWN: Final[Sequence[tuple[str, WorkspaceReason, str]]] = (
    ("but expected", "state", "Somebody else has moved it at this moment. Look how it stands, and try again."),
    ("exists; cannot create", "name", "Another name is in the way: git has no name below a name. Give another one."),
    ("already exists", "state", "Somebody else has made it at this moment. Look how it stands, and try again."),
    ("No space left on device", "disk", "The disk is full. Nothing was changed; make room and try again."),
    ("Disk quota exceeded", "disk", "The disk quota is used up. Nothing was changed; make room and try again."),
    ("Read-only file system", "disk", "The repository is on a read-only file system, so nothing can be kept in it."),
    ("insufficient permission", "disk", "This process may not write to the repository. Look who owns its files."),
    ("Permission denied", "disk", "This process may not write there, or not read it. Look who owns the files."),
    ("not a git repository", "repository", "The repository is broken or gone. Look at it with 'git status'."),
    ("bad config", "repository", "The repository's settings cannot be read. Look at them with 'git config --list'."),
    ("unknown repository extension", "git", "This git is too old for the repository. Update it."),
    (
        "index file",
        "repository",
        "The repository's index is broken. Remove it and run 'git reset' to have it made anew.",
    ),
    ("corrupt", "repository", "The repository is damaged. Look at it with 'git fsck'."),
    ("bad object", "repository", "The repository misses something. Look at it with 'git fsck'."),
    ("unable to read", "repository", "The repository misses something. Look at it with 'git fsck'."),
    ("missing", "repository", "The repository misses something. Look at it with 'git fsck'."),
)


Output: TypeAlias = int | BinaryIO


@record
class Answer:
    """What git said, and how it ended."""

    code: int
    out: bytes
    err: str


class Git:
    """One way to ask git: with these words first, in this environment, in this folder."""

    def __init__(self, program: str, *, words: Sequence[str], env: Mapping[str, str], folder: str = "/") -> None:
        self._program = program
        self._words = tuple(words)
        self._env = dict(env)
        self._folder = folder

    def also(self, *words: str, env: Mapping[str, str] | None = None) -> Git:
        """The same with more words in front, and more in the environment."""
        more = {**self._env, **(env or {})}
        return Git(self._program, words=(*self._words, *words), env=more, folder=self._folder)

    async def ask(self, *words: str, stdin: bytes = b"", seconds: float = SECONDS) -> bytes:
        """What it answers; a `WorkspaceFault` when it refuses. Another git that is at work is waited for a little."""
        end = time.monotonic() + PATIENCE
        while True:
            said = await self.tried(*words, stdin=stdin, seconds=seconds)
            if said.code == 0:
                return said.out
            if not is_locked(said.err) or time.monotonic() > end:
                raise fault_of(said.err, said.code, words)
            await asyncio.sleep(0.1)

    async def text(self, *words: str, stdin: bytes = b"") -> str:
        """The same as one line of text."""
        return os.fsdecode(await self.ask(*words, stdin=stdin)).strip()

    async def tried(self, *words: str, stdin: bytes = b"", seconds: float = SECONDS) -> Answer:
        """What it answers, also when it refuses. It ends, with all that it began, when its time is over or when the
        caller is cancelled."""
        # Files, because a program that a hook leaves running keeps a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.start(*words, stdout=out, stderr=err)
            try:
                await asyncio.to_thread(process.communicate, stdin, seconds)
            except subprocess.TimeoutExpired:
                _kill(process)
                close_pipes(process)
                why = f"'git {words[0]}' has not ended in {seconds:.0f} s, and was stopped. Look what keeps it."
                raise WorkspaceFault("slow", why) from None
            except asyncio.CancelledError:
                _kill(process)  # the thread that waits for it closes the pipe
                raise
            out.seek(0)
            err.seek(0)
            return Answer(code=process.returncode, out=out.read(), err=err.read().decode(errors="replace").strip())

    def start(self, *words: str, stdout: Output = PIPE, stderr: Output = PIPE) -> subprocess.Popen[bytes]:
        """A process to whose stdin the caller writes."""
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
            raise _gone(self._folder, self._program) from None
        except OSError as error:
            raise WorkspaceFault("git", f"{self._program!r} does not start: {error.strerror}.") from error


def hardened(program: str, *, env: Mapping[str, str], settings: Mapping[str, str], folder: str = "/") -> Git:
    """Git with nothing of anybody's settings but what stands in the repository, and that overruled."""
    words = [word for name, value in {**OVERRULED, **settings}.items() for word in ("-c", f"{name}={value}")]
    return Git(program, words=["--no-pager", *words], env={"PATH": PATH, **ALONE, **env}, folder=folder)


def program_of(env: Mapping[str, str], apart: Path) -> str:
    """The git to be used: one on the PATH, but never one that lies in the tree."""
    folders = [folder for folder in env.get("PATH", PATH).split(os.pathsep) if folder.startswith("/")]
    safe = [folder for folder in folders if not Path(folder).resolve().is_relative_to(apart)]
    found = shutil.which("git", path=os.pathsep.join(safe) or PATH)
    if found is None:
        install = "xcode-select --install" if sys.platform == "darwin" else "your package manager (apt install git …)"
        raise WorkspaceFault("git", f"There is no git here, and it is needed. Install it with {install}.")
    return found


async def check_version(git: Git) -> None:
    """Raise a `WorkspaceFault` for a git that is too old."""
    said = await git.text("version")
    numbers = re.search(r"(\d+)\.(\d+)", said)
    version = tuple(map(int, numbers.groups())) if numbers else (0,)
    if version < OLDEST:
        why = f"git is needed in version {'.'.join(map(str, OLDEST))} or later; this one says {said!r}. Update it."
        raise WorkspaceFault("git", why)


def _gone(folder: str, program: str) -> WorkspaceFault:
    if Path(folder).is_dir():
        return WorkspaceFault("git", f"{program!r} is not there any more. Install git again.")
    return WorkspaceFault("repository", f"{folder!r} is not there any more.")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it, with what it began."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close what leads to it and from it."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def is_locked(said: str) -> bool:
    """Whether another git is in the way."""
    return LOCK.search(said) is not None


def fault_of(said: str, code: int, words: Sequence[str]) -> WorkspaceFault:
    """The fault that this answer is."""
    if is_locked(said):
        held = HELD.search(said)
        return _locked(held[1] if held else "")
    last = said.splitlines()[-1][:300] if said else f"code {code}"
    for part, reason, why in KNOWN:
        if part in said:
            return WorkspaceFault(reason, f"{why} (git {words[0]}: {last})")
    return WorkspaceFault("git", f"git {words[0]} failed: {last}")


def _locked(name: str) -> WorkspaceFault:
    what = f"holds {name!r}" if name else "holds a lock"
    then = "Let it end, or remove that file if nothing runs, and try again."
    return WorkspaceFault("locked", f"Another git is at work in this repository ({what}). {then}")
