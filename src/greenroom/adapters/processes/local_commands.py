"""Run commands of this machine, in a sandbox or without. Without a sandbox, callers must ask a person first.

The environment has only allowed variables, and settings that prevent interactive questions.
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
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from greenroom.adapters.processes.command_process import CommandProcess, SupervisorProcess
from greenroom.adapters.processes.confinement import SandboxJson
from greenroom.adapters.processes.supervisor import CommandRequest
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Command, CommandEnded, CommandEvent, CommandPrinted, CommandStarted
from greenroom.core.ports.sandbox import EgressGateway, Sandbox, SandboxedCommand
from greenroom.core.state.step import PROCESS_KIND, PreparedEffect

PASSED_VARIABLES: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT"),
        *("CARGO_HOME", "RUSTUP_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("LC_ALL", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER"),
        *("LC_NAME", "LC_ADDRESS", "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION"),
    }
)
"""Variables that a command gets from Greenroom's environment. All others, such as keys, are left out."""

FIXED_VARIABLES: Final[Mapping[str, str]] = {
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
"""Settings for commands without a user: no pager, editor, question or colour. CI is not set, because it changes builds.
"""

GIT_SETTINGS: Final[Mapping[str, str]] = {
    # A command that can write files can create a folder that git takes for a repository. Its settings can name programs
    # that every `git status` there would run.
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
}
"""Git settings that override those in files. The person's hooks stay active."""

MARK_VARIABLE: Final = "GREENROOM_COMMAND"
"""Identifies the command in each of its processes, for people who look at the process list."""

REFUSED_VARIABLE: Final = re.compile(
    r"""(?: LD_.* | DYLD_.* | PYTHON.* | GIT_.* | BASH_.* | .*_PROXY | PERL5.* | RUBY(?:OPT|LIB)
        | ENV | SHELLOPTS | IFS | PS4 | PROMPT_COMMAND | ZDOTDIR | PATH | HOME | SHELL | EDITOR | VISUAL | .*PAGER
        | NODE_OPTIONS | NODE_PATH | JAVA_TOOL_OPTIONS | _JAVA_OPTIONS | JDK_JAVA_OPTIONS | LOCPATH | .*_ASKPASS
        | GREENROOM_.* )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Variables that make a harmless command line run something else."""

VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def build_environment(
    environ: Mapping[str, str], added: Mapping[str, str], *, extra_names: Collection[str] = ()
) -> dict[str, str]:
    """Build the environment of a command: allowed variables, `extra_names` from the settings, and `added`."""
    for name in added:
        check_variable(name, added[name])
    passed = {name: environ[name] for name in environ if name in PASSED_VARIABLES or name in extra_names}
    git = {"GIT_CONFIG_COUNT": str(len(GIT_SETTINGS))}
    for number, (name, value) in enumerate(GIT_SETTINGS.items()):
        git |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **FIXED_VARIABLES, **git, **added}


def check_variable(name: str, value: str) -> None:
    """Raise `WorldFault` for an invalid variable, or one that changes what a command line means."""
    if not VARIABLE_NAME.fullmatch(name) or "\0" in value:
        raise WorldFault("processes.invalid_variable", name=name)
    if REFUSED_VARIABLE.fullmatch(name):
        raise WorldFault("processes.variable_not_allowed", name=name)


T = TypeVar("T")

KILL_GRACE_S: Final = 0.2
"""Seconds between SIGTERM and SIGKILL."""

OUTPUT_TAIL_CHARS: Final = 4_000
"""How many characters at the end of a command's output are examined."""

MAX_WORD_BYTES: Final = 120_000
"""Largest word in bytes. The system allows 131,072."""


class LocalCommands:
    """Runs commands in the workspace at `root`.

    `environ` is the environment from which only allowed variables are passed, `extra_names` the names that a person
    allows. With a `sandbox`, a command sees and reaches only what it allows; the sandbox is closed with this object. If
    `sandbox` is callable, it is called with the first command. `egress` gives a sandboxed command access to allowed
    hosts.
    """

    def __init__(
        self,
        root: Path,
        *,
        environ: Mapping[str, str] | None = None,
        extra_names: Collection[str] = (),
        sandbox: Sandbox | Callable[[], Awaitable[Sandbox | None]] | None = None,
        egress: EgressGateway | None = None,
    ) -> None:
        self._root = root
        self._open_sandbox = sandbox if callable(sandbox) else None
        self._sandbox = None if callable(sandbox) else sandbox
        self._egress = egress
        self._environ = os.environ if environ is None else environ
        self._extra_names = frozenset(extra_names)
        self._supervisor: SupervisorProcess | None = None
        self._closed = False

    async def run(self, command: Command) -> AsyncGenerator[CommandEvent, None]:
        """Run a command and yield its start, output and end. If the generator is closed or cancelled, all its processes
        are ended first."""
        request = self._make_request(command)
        if self._open_sandbox is not None:
            self._sandbox, self._open_sandbox = await self._open_sandbox(), None
        if self._sandbox is None:
            async with aclosing(self._run_process(command, request)) as events:
                async for event in events:
                    yield event
            return
        egress_socket = await self._egress.get_socket(command.hosts) if self._egress is not None else ""
        sandboxed = await _confine(self._sandbox, command, request, egress_socket)
        sandbox: SandboxJson = msgspec.to_builtins(sandboxed, str_keys=True)
        inside: CommandRequest = {
            **request,
            "words": [*sandboxed.words],
            "folder": sandboxed.folder,
            "env": sandboxed.env,
        }
        inside["sandbox"] = sandbox
        last_events = list[CommandEvent]()
        async with (
            _clean_up_after(self._sandbox, sandboxed, last_events),
            aclosing(self._run_process(command, inside, sandboxed)) as events,
        ):
            async for event in events:
                if isinstance(event, CommandEnded):
                    last_events.append(event)
                else:
                    yield event
        for event in last_events:
            yield event

    async def _run_process(
        self, command: Command, request: CommandRequest, sandboxed: SandboxedCommand | None = None
    ) -> AsyncGenerator[CommandEvent, None]:
        process = await CommandProcess.start(self._ensure_supervisor(), request)
        watch = None
        try:
            if self._egress is not None:
                self._egress.allow_hosts(process.supervisor_pid, command.hosts)
            yield CommandStarted(mark=mark_group(process.pid))
            process.go(command.seconds)
            if self._sandbox is not None and sandboxed is not None:
                watch = asyncio.create_task(
                    _watch_limits(self._sandbox, sandboxed, process), name=f"limits of {process.pid}"
                )
            printed = ""
            async for piece in process.read_output():
                printed = (printed + piece.text)[-OUTPUT_TAIL_CHARS:]
                yield piece
            ended = await process.wait_for_end()
            # The reason for its end and the refused hosts are appended to the output.
            why = watch.result() if watch is not None and watch.done() and not watch.cancelled() else ""
            remarks = (
                self._egress.describe_refusals(process.supervisor_pid, printed) if self._egress is not None else ""
            )
            if note := "\n".join(filter(None, (why, remarks))):
                yield CommandPrinted(text=f"\n{note}\n")
            yield ended
        finally:
            if watch is not None:
                watch.cancel()
            try:
                await _wait_uncancelled(asyncio.ensure_future(process.finish()))
            finally:
                if self._egress is not None:
                    self._egress.revoke_hosts(process.supervisor_pid)

    def close(self) -> None:
        """End all running commands and wait until they are dead."""
        self._closed = True
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None
        if self._sandbox is not None:
            self._sandbox.close()

    def _ensure_supervisor(self) -> SupervisorProcess:
        if self._closed:
            raise WorldFault("processes.commands_closed")
        if self._supervisor is not None and not self._supervisor.is_alive:
            self._supervisor.close()
            self._supervisor = None
        if self._supervisor is None:
            self._supervisor = SupervisorProcess(build_environment(self._environ, {}, extra_names=self._extra_names))
        return self._supervisor

    def _make_request(self, command: Command) -> CommandRequest:
        variables = build_environment(self._environ, command.env, extra_names=self._extra_names)
        _check_words(command.words, variables["PATH"])
        return CommandRequest(
            words=list(command.words),
            folder=str(self._resolve_folder(command.folder)),
            seconds=command.seconds,
            grace=KILL_GRACE_S,
            env={**variables, MARK_VARIABLE: secrets.token_hex(8)},
        )

    def _resolve_folder(self, name: str) -> Path:
        """Return the folder in which the command starts. Raise `WorldFault` if it is not in the workspace.

        Only the start is checked: a command can change its folder itself.
        """
        try:
            root = self._root.resolve(strict=True)
            folder = (root / name).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            raise WorldFault("processes.folder_not_found", name=name) from None
        if not folder.is_relative_to(root):
            raise WorldFault("processes.folder_outside_workspace", name=name)
        if not folder.is_dir():
            raise WorldFault("processes.not_a_folder", name=name)
        return folder


async def _confine(sandbox: Sandbox, command: Command, request: CommandRequest, egress_socket: str) -> SandboxedCommand:
    """Set up the sandbox in a thread. If cancelled, wait for the thread and clean up."""
    work = asyncio.ensure_future(
        asyncio.to_thread(sandbox.confine, command.words, request["folder"], request["env"], egress_socket)
    )
    try:
        await _wait_uncancelled(work)
    except asyncio.CancelledError:
        if work.exception() is None:
            await _clean_up(sandbox, work.result())
        raise
    return work.result()


@asynccontextmanager
async def _clean_up_after(
    sandbox: Sandbox, sandboxed: SandboxedCommand, last_events: list[CommandEvent]
) -> AsyncGenerator[None, None]:
    """Clean up after the block, and put what is to be said of it before the other last events."""
    try:
        yield
    finally:
        if note := await _clean_up(sandbox, sandboxed):
            last_events.insert(0, CommandPrinted(text=f"\n{note}\n"))


async def _clean_up(sandbox: Sandbox, sandboxed: SandboxedCommand) -> str:
    work = asyncio.ensure_future(asyncio.to_thread(sandbox.clean_up, sandboxed))
    await _wait_uncancelled(work)
    return work.result()


async def _watch_limits(sandbox: Sandbox, sandboxed: SandboxedCommand, process: CommandProcess) -> str:
    """Stop the command when it exceeds a limit, and return the reason."""
    while True:
        try:
            await asyncio.sleep(await asyncio.to_thread(sandbox.get_pause, process.supervisor_pid))
            why = await asyncio.to_thread(sandbox.find_exceeded_limit, sandboxed, process.supervisor_pid)
        except (OSError, ValueError, LookupError, WorldFault) as fault:
            why = f"Ended: its usage can no longer be measured ({fault})."
        if why:
            process.stop(at_once=True)
            return why


async def _wait_uncancelled(work: asyncio.Future[T]) -> None:
    """Wait until `work` is done, even if cancelled more than once."""
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
        raise WorldFault("processes.invalid_command_words")
    if max(len(word.encode(errors="replace")) for word in words) > MAX_WORD_BYTES:
        raise WorldFault("processes.command_too_long", max_word_bytes=MAX_WORD_BYTES)
    if "/" not in words[0] and shutil.which(words[0], path=path) is None:
        raise WorldFault("processes.program_not_found", words=words[0])


# ------------------------------------------------------------------------- process groups of a killed Greenroom

PROC: Final = Path("/proc")
DEATH_POLL_S: Final = 0.01
MAX_DEATH_POLLS: Final = 500


def mark_group(pid: int) -> PreparedEffect:
    """Return the record of a process group, saved before the group runs, so that a later process can find it."""
    return PreparedEffect(kind=PROCESS_KIND, key=str(pid), before=read_birth(pid))


def read_birth(pid: int) -> str:
    """Return a unique text for the start of a process; empty if there is none. Process ids alone are reused."""
    if PROC.is_dir():
        try:
            started = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
            boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        return f"{boot}:{started}"
    listed = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.strip()


async def end_leftover_groups(prepared: Sequence[PreparedEffect]) -> int:
    """End the process groups that a killed Greenroom left behind. Return how many there were.

    A group that cannot be proven to be ours is left alone.
    """
    marks = [mark for mark in prepared if mark.kind == PROCESS_KIND and mark.before]
    ours = [int(mark.key) for mark in marks if read_birth(int(mark.key)) == mark.before]
    for group in ours:
        await end_group(group)
    return len(ours)


async def end_group(group: int) -> None:
    """Kill a process group and wait until it is dead. Raise `WorldFault` if it does not die."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    for _ in range(MAX_DEATH_POLLS):
        if not is_alive(group):
            return
        await asyncio.sleep(DEATH_POLL_S)
    raise WorldFault("processes.group_survives_kill", group=group)


def is_alive(group: int) -> bool:
    """Return whether any member of the group still runs. Zombies do not count."""
    if not PROC.is_dir():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, 0)
            return True
        return False
    return any(_is_running_in(entry, group) for entry in PROC.iterdir() if entry.name.isdigit())


def _is_running_in(entry: Path, group: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        return int(fields[2]) == group and fields[0] not in ("Z", "X")
    return False
