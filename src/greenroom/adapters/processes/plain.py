"""Commands of this machine, in a sandbox or without: then who lets an agent use them asks a person.

Their environment is what is let in by name, and the rules that keep them from asking anybody.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from greenroom.adapters.processes.confinement import Walls
from greenroom.adapters.processes.job import Job, SupervisorProcess
from greenroom.adapters.processes.supervisor import Asked
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Begun, Command, CommandEvent, Printed
from greenroom.core.ports.sandbox import Enclosed, Outlet, Wall
from greenroom.core.state.step import PROCESS, Prepared

PASSED: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT"),
        *("CARGO_HOME", "RUSTUP_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("LC_ALL", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER"),
        *("LC_NAME", "LC_ADDRESS", "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION"),
    }
)
"""What a command gets of our own environment. A key that nobody thought of stays out."""

RULES: Final[Mapping[str, str]] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "PYTHONUNBUFFERED": "1",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
"""Nobody sits there: no pager, no editor, no question, no colours. Not CI: builds do other things where it is set."""

GIT: Final[Mapping[str, str]] = {
    # Whoever can write files can write a folder that git takes for a repository, with a program in its settings that
    # every `git status` there would run.
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
}
"""Settings of git that are stronger than those of a file. Hooks are the person's own, and stay."""

MARK: Final = "GREENROOM_COMMAND"
"""Names the command in each of its processes, for people who wonder where one comes from."""

REFUSED: Final = re.compile(
    r"""(?: LD_.* | DYLD_.* | PYTHON.* | GIT_.* | BASH_.* | .*_PROXY | PERL5.* | RUBY(?:OPT|LIB)
        | ENV | SHELLOPTS | IFS | PS4 | PROMPT_COMMAND | ZDOTDIR | PATH | HOME | SHELL | EDITOR | VISUAL | .*PAGER
        | NODE_OPTIONS | NODE_PATH | JAVA_TOOL_OPTIONS | _JAVA_OPTIONS | JDK_JAVA_OPTIONS | LOCPATH | .*_ASKPASS
        | GREENROOM_.* )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Names with which a harmless command line runs something else than it says."""

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def environment(own: Mapping[str, str], added: Mapping[str, str], *, also: Collection[str] = ()) -> dict[str, str]:
    """What a command gets: of our own only what is let in (`also` by a person's settings), the rules, what is added."""
    for name in added:
        check(name, added[name])
    passed = {name: own[name] for name in own if name in PASSED or name in also}
    git = {"GIT_CONFIG_COUNT": str(len(GIT))}
    for number, (name, value) in enumerate(GIT.items()):
        git |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **RULES, **git, **added}


def check(name: str, value: str) -> None:
    """Refuse a variable that is none, or that would change what a command line means."""
    if not NAME.fullmatch(name) or "\0" in value:
        raise WorldFault(f"{name!r} is no variable that a command can be given.")
    if REFUSED.fullmatch(name):
        raise WorldFault(f"The variable {name!r} may not be given to a command: it changes what runs. Leave it out.")


T = TypeVar("T")

GRACE: Final = 0.2
"""Seconds between being told to end and being killed."""

LOOK: Final = 0.25
"""Seconds between two looks at how much is in the workspace."""

TAIL: Final = 4_000
"""Characters of a command's output that are looked at when it has ended."""

LONGEST: Final = 120_000
"""Bytes of one word: the system takes 131,072."""


class PlainCommands:
    """Commands in the workspace at `root`.

    `own` is the environment of which only what is let in reaches a command, `also` the names that a person lets in.
    Behind a `wall` a command sees and reaches only what is behind it too; it is closed with these. Who does not know
    yet whether there is one says how to find out: that happens with the first command. By the `outlet` a command gets
    out of its walls, if it may.
    """

    def __init__(
        self,
        root: Path,
        *,
        own: Mapping[str, str] | None = None,
        also: Collection[str] = (),
        wall: Wall | Callable[[], Awaitable[Wall | None]] | None = None,
        outlet: Outlet | None = None,
    ) -> None:
        self._root = root
        self._late = wall if callable(wall) else None
        self._wall = None if callable(wall) else wall
        self._outlet = outlet
        self._own = os.environ if own is None else own
        self._also = frozenset(also)
        self._supervisor: SupervisorProcess | None = None
        self._closed = False

    async def run(self, command: Command) -> AsyncGenerator[CommandEvent, None]:
        """Begun, printed, ended; closed or cancelled, it is ended and seen dead first."""
        asked = self._asked(command)
        if self._late is not None:
            self._wall, self._late = await self._late(), None
        if self._wall is None:
            async with aclosing(self._ran(command, asked)) as events:
                async for event in events:
                    yield event
            return
        door = await self._outlet.door(command.hosts) if self._outlet is not None else ""
        enclosed = await _around(self._wall, command, asked, door)
        walls: Walls = msgspec.to_builtins(enclosed, str_keys=True)
        inside: Asked = {**asked, "words": [*enclosed.words], "folder": enclosed.folder, "env": enclosed.env}
        try:
            async with aclosing(self._ran(command, {**inside, "walls": walls}, enclosed)) as events:
                async for event in events:
                    yield event
        finally:
            await _tidied(self._wall, enclosed)

    async def _ran(
        self, command: Command, asked: Asked, enclosed: Enclosed | None = None
    ) -> AsyncGenerator[CommandEvent, None]:
        job = await Job.begin(self._awake(), asked)
        watch = None
        try:
            if self._outlet is not None:
                self._outlet.let(job.guard, command.hosts)
            yield Begun(mark=mark_group(job.pid))
            job.go(command.seconds)
            if self._wall is not None and enclosed is not None:
                watch = asyncio.create_task(_watch(self._wall, enclosed, job), name=f"limits of {job.pid}")
            printed = ""
            async for piece in job.printed():
                printed = (printed + piece.text)[-TAIL:]
                yield piece
            ended = await job.ended()
            # Why it had to end, and whom it did not reach, is said beside what it printed.
            why = watch.result() if watch is not None and watch.done() and not watch.cancelled() else ""
            remarks = self._outlet.remarks(job.guard, printed) if self._outlet is not None else ""
            if said := "\n".join(filter(None, (why, remarks))):
                yield Printed(text=f"\n{said}\n")
            yield ended
        finally:
            if watch is not None:
                watch.cancel()
            try:
                await _to_the_end(asyncio.ensure_future(job.finish()))
            finally:
                if self._outlet is not None:
                    self._outlet.end(job.guard)

    def close(self) -> None:
        """End what still runs, and see it dead."""
        self._closed = True
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None
        if self._wall is not None:
            self._wall.close()

    def _awake(self) -> SupervisorProcess:
        if self._closed:
            raise WorldFault("No command can be run any more: the run is over.")
        if self._supervisor is not None and not self._supervisor.alive:
            self._supervisor.close()
            self._supervisor = None
        if self._supervisor is None:
            self._supervisor = SupervisorProcess(environment(self._own, {}, also=self._also))
        return self._supervisor

    def _asked(self, command: Command) -> Asked:
        variables = environment(self._own, command.env, also=self._also)
        _check_words(command.words, variables["PATH"])
        return Asked(
            words=list(command.words),
            folder=str(self._folder(command.folder)),
            seconds=command.seconds,
            grace=GRACE,
            env={**variables, MARK: secrets.token_hex(8)},
        )

    def _folder(self, name: str) -> Path:
        """Where it begins. A command can go elsewhere by itself; that what it is asked with says so is all we check."""
        try:
            root = self._root.resolve(strict=True)
            found = (root / name).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            raise WorldFault(f"There is no folder {name!r} in the workspace. Name one that is there.") from None
        if not found.is_relative_to(root):
            raise WorldFault(f"The folder {name!r} is outside the workspace. Name one inside it.")
        if not found.is_dir():
            raise WorldFault(f"{name!r} is no folder. Name one, or leave it out for the workspace's root.")
        return found


async def _around(wall: Wall, command: Command, asked: Asked, door: str) -> Enclosed:
    """Put up in a thread. Whoever is cancelled meanwhile waits for it, and takes it down."""
    work = asyncio.ensure_future(asyncio.to_thread(wall.around, command.words, asked["folder"], asked["env"], door))
    try:
        await _to_the_end(work)
    except asyncio.CancelledError:
        if work.exception() is None:
            await _tidied(wall, work.result())
        raise
    return work.result()


async def _tidied(wall: Wall, enclosed: Enclosed) -> None:
    work = asyncio.ensure_future(asyncio.to_thread(wall.tidy, enclosed))
    await _to_the_end(work)
    work.result()


async def _watch(wall: Wall, enclosed: Enclosed, job: Job) -> str:
    """Stop the command when it is over a limit; returns why."""
    while True:
        await asyncio.sleep(LOOK)
        try:
            why = await asyncio.to_thread(wall.overrun, enclosed, job.guard)
        except (OSError, ValueError, LookupError, WorldFault) as fault:
            why = f"Ended: nobody can see any more how much it uses ({fault})."
        if why:
            job.stop()
            return why


async def _to_the_end(work: asyncio.Future[T]) -> None:
    """Wait for it whoever cancels us meanwhile: a second cancellation must not leave the first one's work undone."""
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _check_words(words: tuple[str, ...], path: str) -> None:
    if not words or not words[0] or any("\0" in word for word in words):
        raise WorldFault("A command needs a program's name, and none of its words can hold a NUL character.")
    if max(len(word.encode(errors="replace")) for word in words) > LONGEST:
        raise WorldFault(f"The command is longer than {LONGEST} bytes. Write it to a file and run that.")
    if "/" not in words[0] and shutil.which(words[0], path=path) is None:
        raise WorldFault(f"There is no program {words[0]!r} on this machine. Use another one.")


# ------------------------------------------------------------------------- process groups of an earlier life of ours

PROC: Final = Path("/proc")
LOOK_EVERY: Final = 0.01
LOOKS: Final = 500


def mark_group(pid: int) -> Prepared:
    """What is written down about a process group before it does anything, so that a later life of ours finds it."""
    return Prepared(kind=PROCESS, key=str(pid), before=birth_of(pid))


def birth_of(pid: int) -> str:
    """When the process with this id began, as text that no other process has: ids are used again. Empty for none."""
    if PROC.is_dir():
        try:
            started = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
            boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        return f"{boot}:{started}"
    listed = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.strip()


async def end_left_over(prepared: Sequence[Prepared]) -> int:
    """End what an earlier life of ours left running; returns how many groups there were. What cannot be proven to be
    ours is left alone."""
    marks = [mark for mark in prepared if mark.kind == PROCESS and mark.before]
    ours = [int(mark.key) for mark in marks if birth_of(int(mark.key)) == mark.before]
    for group in ours:
        await end_group(group)
    return len(ours)


async def end_group(group: int) -> None:
    """Kill a process group and see it dead; `WorldFault` if it does not die."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    for _ in range(LOOKS):
        if not is_alive(group):
            return
        await asyncio.sleep(LOOK_EVERY)
    raise WorldFault(f"The process group {group} does not die although it was killed.")


def is_alive(group: int) -> bool:
    """Whether any member of the group still runs; a zombie that nobody has waited for does not."""
    if not PROC.is_dir():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, 0)
            return True
        return False
    return any(_runs_in(entry, group) for entry in PROC.iterdir() if entry.name.isdigit())


def _runs_in(entry: Path, group: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        return int(fields[2]) == group and fields[0] not in ("Z", "X")
    return False
