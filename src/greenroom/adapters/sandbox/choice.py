"""Which sandbox this machine has: the strongest that was tried and holds. What was found out is kept.

Trying is a command that wants to get out, in the sandbox and without it. What works without and not in it is shown to
be held. What does not even work without shows nothing, and then no sandbox is trusted.
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
from greenroom.adapters.sandbox.ground import Ground, checked
from greenroom.adapters.sandbox.landlock import LEAST, WITH_SCOPES, Landlock, landlock_version
from greenroom.adapters.sandbox.programs import Program, find_programs, installed, wheel_program
from greenroom.adapters.sandbox.seatbelt import PROGRAM, Seatbelt
from greenroom.adapters.sandbox.seccomp import MACHINES
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.commands import Command, Commands, Printed
from greenroom.core.ports.sandbox import Limits, Shown, Tier, Wall

ATTEMPTS: Final = """\
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
TRACES: Final = """\
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
"""For a Python: the address is one of the other process. PTRACE_SEIZE stops nothing, and ends with its caller."""

WORKS: Final = "work"
SURE: Final = frozenset(
    {
        "write outside of the workspace",
        "read what it was not shown",
        "signal other processes",
        "reach the network",
        "make a program that runs as its owner",
    }
)
"""What works for everybody without a sandbox. The rest works for some, and must not work for anybody in one."""

SIGNALS: Final = "signal other processes"
"""Older kernels cannot keep Landlock's commands from it: a known limit."""

LAYERS: Final = "write into a layer"

SECONDS: Final = 10.0
LAYERED: Final = Shown(source="below", at="layered", layer="layer", hidden=("hidden",))
"""Its folders are those of the trial."""

Open = Callable[[Path, Wall | None], Commands]
Build = Callable[[Path, Path], Wall]
Candidate = tuple[Tier, Program | None, str]
"""A tier, the bubblewrap for it, and what is missing for it."""


@record
class Trial:
    """What came of it: `why` it is not trusted, empty if it is; whether `layers` work in it."""

    why: str = ""
    layers: bool = False


async def tried(build: Build, opened: Open, spared: Collection[str] = ()) -> Trial:
    """Whether a sandbox holds, but for what is `spared`. `build` makes it around a workspace, with a folder for
    itself; it may show `LAYERED` of that folder's parent."""
    with _outside() as (outside, port):
        try:
            held, free = await asyncio.gather(
                _got_out(opened, build, outside, port), _got_out(opened, None, outside, port)
            )
        except (WorldFault, OSError) as fault:
            return Trial(why=str(fault))
        for name in ("held", "free"):  # nothing is left of a program that would run as its owner
            (outside / name / "ids" / "one").unlink(missing_ok=True)
        kept = not (outside / LAYERED.source / "made").exists()
        why = _judged(held - set(spared), free) if kept else "a command could write through a layer"
        return Trial(why=why, layers=LAYERS in held)


def _judged(reached: set[str], open_: set[str]) -> str:
    if not open_ >= SURE:
        missing = ", ".join(sorted(SURE - open_))
        return f"nothing is shown by trying: without walls a command could not {missing} either"
    if escaped := sorted(reached - {WORKS, LAYERS}):
        return f"a command could still {escaped[0]}" if escaped[0] in open_ | SURE else f"it said {escaped[0][:200]!r}"
    return "" if WORKS in reached else "a command could not work in its workspace"


@contextmanager
def _outside() -> Iterator[tuple[Path, int]]:
    """A place that everybody can reach, and a port of this machine that answers."""
    folder = Path(tempfile.mkdtemp(prefix="greenroom-trial-")).resolve()
    with socket.create_server(("127.0.0.1", 0)) as server:
        try:
            folder.chmod(0o755)
            (folder / "secret").write_text("secret\n", encoding="utf-8")
            (folder / "secret").chmod(0o644)
            (folder / LAYERED.source).mkdir()
            (folder / LAYERED.source / "seen").write_text("below\n", encoding="utf-8")
            (folder / LAYERED.source / "hidden").write_text("secret\n", encoding="utf-8")
            (folder / "drop").mkdir()
            (folder / "drop").chmod(0o777)
            yield folder, server.getsockname()[1]
        finally:
            shutil.rmtree(folder, ignore_errors=True)


async def _got_out(opened: Open, build: Build | None, outside: Path, port: int) -> set[str]:
    """What a command says that it could do."""
    root = outside / ("held" if build is not None else "free")
    root.mkdir()
    said = list[str]()
    commands = opened(root, build(root, outside / "scratch") if build is not None else None)
    try:
        memory = ctypes.create_string_buffer(b"memory")
        given = (outside, os.getpid(), port, TRACES, ctypes.addressof(memory))
        words = ("bash", "-c", ATTEMPTS, "trial", *map(str, given))
        async with aclosing(commands.run(Command(words=words, seconds=SECONDS))) as events:
            async for event in events:
                said.append(event.text if isinstance(event, Printed) else "")
        if build is not None and (root / "made").stat().st_uid != root.stat().st_uid:
            said.append("leave files that are not the person's\n")
        return set("".join(said).splitlines())
    except FileNotFoundError:
        return set("".join(said).splitlines())
    finally:
        await asyncio.to_thread(commands.close)


VERSION: Final = 2
"""Of what is kept: another one is not believed."""

CHANGES: Final = (
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/user/max_user_namespaces",
)
INSTALL: Final = (
    "bubblewrap is not installed (in a clone: ./go uv tool install '.[sandbox]'; Debian, Ubuntu: apt-get install "
    "bubblewrap; Fedora: dnf install bubblewrap)"
)


@record
class Chosen:
    """The tier, of each better one why it is not that, and the bubblewrap that is used."""

    tier: Tier
    why: tuple[str, ...] = ()
    program: Program | None = None


def wall_of(tier: Tier, ground: Ground, limits: Limits, program: Program | None = None) -> Wall | None:
    """A sandbox of this tier; None for none."""
    match tier:
        case "bubblewrap":
            place = checked(ground)
            if program is None:
                raise WorldFault(INSTALL)
            return Bubblewrap(place, limits, program=program)
        case "landlock":
            return Landlock(ground, limits, version=landlock_version())
        case "seatbelt":
            return Seatbelt(ground, limits)
        case "none":
            return None


async def chosen(opened: Open, home: Path, cache: Path) -> Chosen:
    """Try what there is, the strongest first, unless `cache` (a file in a folder of ours) knows this machine."""
    key = _machine()
    if (known := _read(cache, key)) is not None:
        return known
    found = await _try_all(opened, home, cache.parent)
    if found.tier != "none":
        with suppress(OSError):
            cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = cache.with_name(f"{cache.name}.{os.getpid()}")
            fresh.write_text(json.dumps({"key": key, "chosen": msgspec.to_builtins(found)}), encoding="utf-8")
            fresh.replace(cache)
    return found


async def _try_all(opened: Open, home: Path, folder: Path) -> Chosen:
    why = list[str]()
    for tier, program, missing in _candidates(folder):
        spared = (SIGNALS,) if tier == "landlock" and landlock_version() < WITH_SCOPES else ()
        build = partial(_build, tier, program, home)
        trial = Trial(why=missing) if missing else await tried(build, opened, spared)
        if not trial.why and program is not None and program.overlays and not trial.layers:
            trial = Trial(why=f"{program.path} cannot mount overlays here")
        if not trial.why:
            return Chosen(tier=tier, why=tuple(why), program=program)
        why.append(f"{tier}: {trial.why}")
    return Chosen(tier="none", why=tuple(dict.fromkeys(why)))


def _build(tier: Tier, program: Program | None, home: Path, root: Path, scratch: Path) -> Wall:
    """A sandbox to be tried, which shows `LAYERED` where it can."""
    source, layer = str(scratch.parent / LAYERED.source), str(scratch.parent / LAYERED.layer)
    lent = (replace(LAYERED, source=source, layer=layer),) if tier == "bubblewrap" else ()
    wall = wall_of(tier, Ground(root=root, at=root, home=home, scratch=scratch, lent=lent), Limits(), program)
    if wall is None:
        raise WorldFault("There is no sandbox to try.")
    return wall


def _candidates(folder: Path) -> list[Candidate]:
    """What may be there, the strongest first, and what is missing for it."""
    if sys.platform == "darwin":
        return [("seatbelt", None, "" if Path(PROGRAM).exists() else f"{PROGRAM} is not there")]
    if not sys.platform.startswith("linux"):
        return []
    if platform.machine() not in MACHINES:
        return [("bubblewrap", None, f"there is no filter of system calls for {platform.machine()}")]
    landlock = landlock_version()
    old = f"the kernel has Landlock {landlock}, and {LEAST} is the first that is enough" if landlock < LEAST else ""
    candidates: list[Candidate] = []
    missing = INSTALL
    try:
        candidates += [("bubblewrap", program, "") for program in find_programs(folder)]
    except (WorldFault, OSError) as fault:
        missing = str(fault)
    return [*(candidates or [("bubblewrap", None, missing)]), ("landlock", None, old)]


def _machine() -> str:
    """All that decides what holds: another kernel, another bubblewrap, another user are tried anew."""
    facts = [VERSION, platform.release(), platform.machine(), os.getuid(), landlock_version(), len(ATTEMPTS)]
    facts += installed()
    for name in CHANGES:
        with suppress(OSError):
            facts.append(Path(name).read_text(encoding="ascii").strip())
    return json.dumps(facts)


def _read(cache: Path, key: str) -> Chosen | None:
    """What is kept, if it is ours and of this machine. That there is none is not kept: tomorrow there may be."""
    with suppress(OSError, ValueError, msgspec.ValidationError):
        if cache.stat().st_uid == os.getuid():
            kept = json.loads(cache.read_text(encoding="utf-8"))
            if isinstance(kept, dict) and kept.get("key") == key:
                found = msgspec.convert(kept.get("chosen"), Chosen)
                return found if _is_there(found) else None
    return None


def _is_there(found: Chosen) -> bool:
    """The wheel's program is compared again before each use: a copy that is not what we know is not run."""
    if found.program is None:
        return found.tier in ("landlock", "seatbelt")
    if not found.program.folder:
        return Path(found.program.path).is_file()
    with suppress(WorldFault):
        wheel = wheel_program(Path(found.program.folder).parent)
        return wheel is not None and wheel.path == found.program.path
    return False
