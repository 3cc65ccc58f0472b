"""Choose the sandbox of this machine: the strongest tier that passes a trial. The result is cached.

The trial runs a command that tries to escape, with and without the sandbox. An attempt that works only without it
proves that the sandbox holds. An attempt that fails in both cases proves nothing, and then no sandbox is trusted.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.landlock import MIN_VERSION, SCOPES_VERSION, Landlock, read_landlock_version
from greenroom.adapters.sandbox.programs import (
    BubblewrapProgram,
    copy_wheel_program,
    describe_installed_programs,
    find_programs,
)
from greenroom.adapters.sandbox.seatbelt import SANDBOX_EXEC, Seatbelt
from greenroom.adapters.sandbox.seccomp import MACHINES
from greenroom.adapters.sandbox.view import SandboxView, check_view
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.commands import Command, CommandPrinted, CommandRunner
from greenroom.core.ports.sandbox import CommandLimits, Sandbox, SandboxMount, Tier

ESCAPE_SCRIPT: Final = """\
outside=$1 house=$2 port=$3
(echo x >"$outside/drop/written") 2>/dev/null && echo "write outside of the workspace"
(read -r line <"$outside/secret" && [ -n "$line" ]) 2>/dev/null && echo "read what it was not shown"
kill -0 "$house" 2>/dev/null && echo "signal other processes"
(exec 5<"/proc/$house/mem") 2>/dev/null && echo "open the memory of other processes"
(read -r -d "" line <"/proc/$house/environ") 2>/dev/null && echo "read the environment of other processes"
command -v python3 >/dev/null && python3 -I -S -c "$4" "$house" "$5" 2>/dev/null
[ -e layered ] && (grep -qs below layered/seen && [ ! -s layered/hidden ] && echo x >layered/made) 2>/dev/null &&
    echo "write into a layer"
(exec 5<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && echo "reach the network"
(mkdir ids; : >ids/one; chmod u+s ids/one) 2>/dev/null && echo "make a program that runs as its owner"
while read -r name bits; do
    case $name in CapInh:|CapPrm:|CapEff:|CapAmb:) [ $((16#$bits)) = 0 ] || echo "keep capabilities" ;; esac
done </proc/self/status
(: >>/proc/sys/kernel/core_pattern) 2>/dev/null && echo "change the kernel's settings"
command -v unshare >/dev/null && unshare --user true 2>/dev/null && echo "make namespaces"
mkdir made && echo x >made/file && cat made/file >/dev/null && echo "work"
"""
TRACE_SCRIPT: Final = """\
import ctypes, sys
libc, pid, word = ctypes.CDLL(None), int(sys.argv[1]), ctypes.create_string_buffer(8)
class Part(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))
ours, theirs = Part(ctypes.addressof(word), 8), Part(int(sys.argv[2]), 8)
if libc.process_vm_readv(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0) > 0:
    print("copy the memory of other processes")
if libc.ptrace(0x4206, pid, None, None) == 0:
    print("trace other processes")
"""
"""A Python script; its address belongs to the other process. PTRACE_SEIZE does not stop that process and ends with its
caller."""

CAN_WORK: Final = "work"
ALWAYS_POSSIBLE_OUTSIDE: Final = frozenset(
    {
        "write outside of the workspace",
        "read what it was not shown",
        "signal other processes",
        "reach the network",
        "make a program that runs as its owner",
    }
)
"""Attempts that always work without a sandbox. The others work for some users, but must never work in a sandbox."""

CAN_SIGNAL: Final = "signal other processes"
"""A known limit: on older kernels, Landlock cannot prevent this."""

CAN_WRITE_LAYER: Final = "write into a layer"

TRIAL_TIMEOUT_S: Final = 10.0
TRIAL_LAYER: Final = SandboxMount(source="below", at="layered", layer="layer", hidden=("hidden",))
"""The mount with a layer for the trial; its folders belong to the trial."""

OpenCommands = Callable[[Path, Sandbox | None], CommandRunner]
BuildSandbox = Callable[[Path, Path], Sandbox]
Candidate = tuple[Tier, BubblewrapProgram | None, str]
"""A tier, its bubblewrap, and what is missing for it."""


@record
class TierTrial:
    """The result of a trial: `why` the sandbox is not trusted (empty if it is), and whether `layers` work."""

    why: str = ""
    layers: bool = False


async def try_sandbox(build: BuildSandbox, open_commands: OpenCommands, ignored: Collection[str] = ()) -> TierTrial:
    """Try whether a sandbox holds, ignoring the attempts in `ignored`.

    `build` creates the sandbox for a workspace and a scratch folder. It may mount `TRIAL_LAYER` from the scratch
    folder's parent.
    """
    with _open_trial_folder() as (outside, port):
        try:
            inside, unconfined = await asyncio.gather(
                _try_to_escape(open_commands, build, outside, port), _try_to_escape(open_commands, None, outside, port)
            )
        except (WorldFault, OSError) as fault:
            return TierTrial(why=str(fault))
        for name in ("held", "free"):  # remove the set-id program
            (outside / name / "ids" / "one").unlink(missing_ok=True)
        is_source_untouched = not (outside / TRIAL_LAYER.source / "made").exists()
        why = (
            _find_weakness(inside - set(ignored), unconfined)
            if is_source_untouched
            else "a command could write through a layer"
        )
        return TierTrial(why=why, layers=CAN_WRITE_LAYER in inside)


def _find_weakness(inside: set[str], unconfined: set[str]) -> str:
    if not unconfined >= ALWAYS_POSSIBLE_OUTSIDE:
        missing = ", ".join(sorted(ALWAYS_POSSIBLE_OUTSIDE - unconfined))
        return f"the trial proves nothing: without a sandbox a command could not {missing} either"
    if escaped := sorted(inside - {CAN_WORK, CAN_WRITE_LAYER}):
        if escaped[0] in unconfined | ALWAYS_POSSIBLE_OUTSIDE:
            return f"a command could still {escaped[0]}"
        return f"it said {escaped[0][:200]!r}"
    return "" if CAN_WORK in inside else "a command could not work in its workspace"


@contextmanager
def _open_trial_folder() -> Iterator[tuple[Path, int]]:
    """Yield a folder that every user can reach, and a local port that answers."""
    folder = Path(tempfile.mkdtemp(prefix="greenroom-trial-")).resolve()
    with socket.create_server(("127.0.0.1", 0)) as server:
        try:
            folder.chmod(0o755)
            (folder / "secret").write_text("secret\n", encoding="utf-8")
            (folder / "secret").chmod(0o644)
            (folder / TRIAL_LAYER.source).mkdir()
            (folder / TRIAL_LAYER.source / "seen").write_text("below\n", encoding="utf-8")
            (folder / TRIAL_LAYER.source / "hidden").write_text("secret\n", encoding="utf-8")
            (folder / "drop").mkdir()
            (folder / "drop").chmod(0o777)
            yield folder, server.getsockname()[1]
        finally:
            shutil.rmtree(folder, ignore_errors=True)


async def _try_to_escape(open_commands: OpenCommands, build: BuildSandbox | None, outside: Path, port: int) -> set[str]:
    """Run the escape script and return what it could do."""
    root = outside / ("held" if build is not None else "free")
    root.mkdir()
    output = list[str]()
    commands = open_commands(root, build(root, outside / "scratch") if build is not None else None)
    try:
        memory = ctypes.create_string_buffer(b"memory")
        arguments = (outside, os.getpid(), port, TRACE_SCRIPT, ctypes.addressof(memory))
        words = ("bash", "-c", ESCAPE_SCRIPT, "trial", *map(str, arguments))
        async with aclosing(commands.run(Command(words=words, seconds=TRIAL_TIMEOUT_S))) as events:
            async for event in events:
                output.append(event.text if isinstance(event, CommandPrinted) else "")
        if build is not None and (root / "made").stat().st_uid != root.stat().st_uid:
            output.append("leave files that are not the person's\n")
        return set("".join(output).splitlines())
    except FileNotFoundError:
        return set("".join(output).splitlines())
    finally:
        await asyncio.to_thread(commands.close)


CACHE_VERSION: Final = 2
"""Version of the cache file. Other versions are ignored."""

KERNEL_SETTINGS: Final = (
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/user/max_user_namespaces",
)
INSTALL_HINT: Final = (
    "bubblewrap is not installed (in a clone: ./go uv tool install '.[sandbox]'; Debian, Ubuntu: apt-get install "
    "bubblewrap; Fedora: dnf install bubblewrap)"
)


@record
class SandboxChoice:
    """The chosen tier, why each stronger one was rejected, and the bubblewrap to use."""

    tier: Tier
    why: tuple[str, ...] = ()
    program: BubblewrapProgram | None = None


def make_sandbox(
    tier: Tier, view: SandboxView, limits: CommandLimits, program: BubblewrapProgram | None = None
) -> Sandbox | None:
    """Create a sandbox of this tier; None for the tier `none`."""
    match tier:
        case "bubblewrap":
            checked_view = check_view(view)
            if program is None:
                raise WorldFault(INSTALL_HINT)
            return Bubblewrap(checked_view, limits, program=program)
        case "landlock":
            return Landlock(view, limits, version=read_landlock_version())
        case "seatbelt":
            return Seatbelt(view, limits)
        case "none":
            return None


async def choose_sandbox(open_commands: OpenCommands, home: Path, cache: Path) -> SandboxChoice:
    """Try the tiers, strongest first, unless the file `cache` has a result for this machine."""
    key = _describe_machine()
    if (cached := _read_cache(cache, key)) is not None:
        return cached
    choice = await _try_all(open_commands, home, cache.parent)
    if choice.tier != "none":
        with suppress(OSError):
            cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = cache.with_name(f"{cache.name}.{os.getpid()}")
            fresh.write_text(json.dumps({"key": key, "chosen": msgspec.to_builtins(choice)}), encoding="utf-8")
            fresh.replace(cache)
    return choice


async def _try_all(open_commands: OpenCommands, home: Path, folder: Path) -> SandboxChoice:
    why = list[str]()
    for tier, program, missing in _list_candidates(folder):
        ignored = (CAN_SIGNAL,) if tier == "landlock" and read_landlock_version() < SCOPES_VERSION else ()
        build = partial(_build, tier, program, home)
        trial = TierTrial(why=missing) if missing else await try_sandbox(build, open_commands, ignored)
        if not trial.why and program is not None and program.overlays and not trial.layers:
            trial = TierTrial(why=f"{program.path} cannot mount overlays here")
        if not trial.why:
            return SandboxChoice(tier=tier, why=tuple(why), program=program)
        why.append(f"{tier}: {trial.why}")
    return SandboxChoice(tier="none", why=tuple(dict.fromkeys(why)))


def _build(tier: Tier, program: BubblewrapProgram | None, home: Path, root: Path, scratch: Path) -> Sandbox:
    """Create a sandbox for the trial, with `TRIAL_LAYER` if the tier supports it."""
    source, layer = str(scratch.parent / TRIAL_LAYER.source), str(scratch.parent / TRIAL_LAYER.layer)
    mounts = (replace(TRIAL_LAYER, source=source, layer=layer),) if tier == "bubblewrap" else ()
    sandbox = make_sandbox(
        tier, SandboxView(root=root, at=root, home=home, scratch=scratch, mounts=mounts), CommandLimits(), program
    )
    if sandbox is None:
        raise WorldFault("sandbox.none_to_try")
    return sandbox


def _list_candidates(folder: Path) -> list[Candidate]:
    """Return the possible tiers, strongest first, and what is missing for each."""
    if sys.platform == "darwin":
        return [("seatbelt", None, "" if Path(SANDBOX_EXEC).exists() else f"{SANDBOX_EXEC} is missing")]
    if not sys.platform.startswith("linux"):
        return []
    if platform.machine() not in MACHINES:
        return [("bubblewrap", None, f"there is no system call filter for {platform.machine()}")]
    landlock = read_landlock_version()
    too_old = (
        f"the kernel has Landlock {landlock}, but {MIN_VERSION} or later is needed" if landlock < MIN_VERSION else ""
    )
    candidates: list[Candidate] = []
    missing = INSTALL_HINT
    try:
        candidates += [("bubblewrap", program, "") for program in find_programs(folder)]
    except (WorldFault, OSError) as fault:
        missing = str(fault)
    return [*(candidates or [("bubblewrap", None, missing)]), ("landlock", None, too_old)]


def _describe_machine() -> str:
    """Return everything that affects the result. Another kernel, bubblewrap or user needs a new trial."""
    facts = [
        CACHE_VERSION,
        platform.release(),
        platform.machine(),
        os.getuid(),
        read_landlock_version(),
        len(ESCAPE_SCRIPT),
    ]
    facts += describe_installed_programs()
    for name in KERNEL_SETTINGS:
        with suppress(OSError):
            facts.append(Path(name).read_text(encoding="ascii").strip())
    return json.dumps(facts)


def _read_cache(cache: Path, key: str) -> SandboxChoice | None:
    """Return the cached result if it is ours and for this machine. The result `none` is not cached, because it may
    change."""
    with suppress(OSError, ValueError, msgspec.ValidationError):
        if cache.stat().st_uid == os.getuid():
            cached = json.loads(cache.read_text(encoding="utf-8"))
            if isinstance(cached, dict) and cached.get("key") == key:
                choice = msgspec.convert(cached.get("chosen"), SandboxChoice)
                return choice if _is_usable(choice) else None
    return None


def _is_usable(choice: SandboxChoice) -> bool:
    """Return whether the chosen program still exists. The wheel's program is verified before each use."""
    if choice.program is None:
        return choice.tier in ("landlock", "seatbelt")
    if not choice.program.folder:
        return Path(choice.program.path).is_file()
    with suppress(WorldFault):
        wheel = copy_wheel_program(Path(choice.program.folder).parent)
        return wheel is not None and wheel.path == choice.program.path
    return False
