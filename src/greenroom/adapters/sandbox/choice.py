"""Which sandbox this machine has: the strongest that was tried and holds. What was found out is kept."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.ground import Ground, checked
from greenroom.adapters.sandbox.landlock import LEAST, WITH_SCOPES, Landlock, landlock_version
from greenroom.adapters.sandbox.limits import Cgroups
from greenroom.adapters.sandbox.programs import Program, find_programs, installed, wheel_program
from greenroom.adapters.sandbox.seatbelt import PROGRAM, Seatbelt
from greenroom.adapters.sandbox.seccomp import MACHINES
from greenroom.adapters.sandbox.selftest import ATTEMPTS, LAYERED, SIGNALS, Open, Trial, tried
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import Limits, Tier, Wall

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
            return Bubblewrap(place, limits, cgroups=Cgroups(limits), program=program)
        case "landlock":
            return Landlock(ground, limits, cgroups=Cgroups(limits), version=landlock_version())
        case "seatbelt":
            return Seatbelt(ground, limits)
        case "none":
            return None


async def chosen(opened: Open, home: Path, cache: Path) -> Chosen:
    """Try what there is, the strongest first, unless `cache` (a file in a folder of ours) knows this machine."""
    key = _machine()
    if (known := _read(cache, key)) is not None:
        return known
    found = await _tried(opened, home, cache.parent)
    _write(cache, key, found)
    return found


async def _tried(opened: Open, home: Path, folder: Path) -> Chosen:
    why = list[str]()
    for tier, program, missing in _candidates(folder):
        trial = Trial(why=missing) if missing else await _trial(tier, program, opened, home)
        if not trial.why and program is not None and program.overlays and not trial.layers:
            trial = Trial(why=f"{program.path} cannot mount overlays here")
        if not trial.why:
            return Chosen(tier=tier, why=tuple(why), program=program)
        why.append(f"{tier}: {trial.why}")
    return Chosen(tier="none", why=tuple(dict.fromkeys(why)))


async def _trial(tier: Tier, program: Program | None, opened: Open, home: Path) -> Trial:
    spared = (SIGNALS,) if tier == "landlock" and landlock_version() < WITH_SCOPES else ()
    return await tried(_builder(tier, program, home), opened, spared)


def _builder(tier: Tier, program: Program | None, home: Path) -> Callable[[Path, Path], Wall]:
    def build(root: Path, scratch: Path) -> Wall:
        layered = replace(
            LAYERED, source=str(scratch.parent / LAYERED.source), layer=str(scratch.parent / LAYERED.layer)
        )
        lent = (layered,) if tier == "bubblewrap" else ()
        wall = wall_of(tier, Ground(root=root, at=root, home=home, scratch=scratch, lent=lent), Limits(), program)
        if wall is None:
            raise WorldFault("There is no sandbox to try.")
        return wall

    return build


def _candidates(folder: Path) -> list[tuple[Tier, Program | None, str]]:
    """What may be there, the strongest first, and what is missing for it."""
    if sys.platform == "darwin":
        return [("seatbelt", None, "" if Path(PROGRAM).exists() else f"{PROGRAM} is not there")]
    if not sys.platform.startswith("linux"):
        return []
    if platform.machine() not in MACHINES:
        return [("bubblewrap", None, f"there is no filter of system calls for {platform.machine()}")]
    landlock = landlock_version()
    old = f"the kernel has Landlock {landlock}, and {LEAST} is the first that is enough" if landlock < LEAST else ""
    return [*_programs(folder), ("landlock", None, old)]


def _programs(folder: Path) -> list[tuple[Tier, Program | None, str]]:
    try:
        programs = find_programs(folder)
    except (WorldFault, OSError) as fault:
        return [("bubblewrap", None, str(fault))]
    return [("bubblewrap", one, "") for one in programs] or [("bubblewrap", None, INSTALL)]


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


def _write(cache: Path, key: str, found: Chosen) -> None:
    if found.tier == "none":
        return
    with suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = cache.with_name(f"{cache.name}.{os.getpid()}")
        fresh.write_text(json.dumps({"key": key, "chosen": msgspec.to_builtins(found)}), encoding="utf-8")
        fresh.replace(cache)
