"""Which walls there are on this machine: the strongest that were tried and hold. What was found out is kept."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.cgroups import Cgroups
from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.landlocked import LEAST, Landlocked, landlock_version
from greenroom.adapters.sandbox.numbers import MACHINES
from greenroom.adapters.sandbox.seatbelt import PROGRAM, Seatbelt
from greenroom.adapters.sandbox.selftest import ATTEMPTS, Open, Trial, tried
from greenroom.adapters.sandbox.standing import system_program
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import Limits, Tier, Wall

VERSION: Final = 1
"""Of what is kept: another one is not believed."""

CHANGES: Final = (
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/user/max_user_namespaces",
)
INSTALL: Final = (
    "bubblewrap is not installed (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap)"
)


@record
class Chosen:
    """The tier, and of each better one why it is not that."""

    tier: Tier
    why: tuple[str, ...] = ()


def wall_of(tier: Tier, ground: Ground, limits: Limits) -> Wall | None:
    """Walls of this tier; None for none."""
    match tier:
        case "walled":
            program = str(system_program("bwrap") or "bwrap")
            return Bubblewrap(ground, limits, cgroups=Cgroups(limits), program=program)
        case "landlocked":
            return Landlocked(ground, limits, cgroups=Cgroups(limits), version=landlock_version())
        case "seatbelt":
            return Seatbelt(ground, limits)
        case "none":
            return None


async def chosen(opened: Open, home: Path, cache: Path | None = None) -> Chosen:
    """Try what there is, the strongest first; with `cache` (a file) only if this machine is not known yet."""
    key = _machine()
    if cache is not None and (known := _read(cache, key)) is not None:
        return known
    found = await _tried(opened, home)
    if cache is not None:
        _write(cache, key, found)
    return found


async def _tried(opened: Open, home: Path) -> Chosen:
    why = list[str]()
    for tier, missing in _candidates():
        trial = Trial(why=missing) if missing else await tried(_builder(tier, home), opened)
        if not trial.why:
            return Chosen(tier=tier, why=tuple(why))
        why.append(f"{tier}: {trial.why}")
    return Chosen(tier="none", why=tuple(why))


def _builder(tier: Tier, home: Path) -> Callable[[Path, Path], Wall]:
    def build(root: Path, scratch: Path) -> Wall:
        wall = wall_of(tier, Ground(root=root, at=root, home=home, scratch=scratch), Limits())
        if wall is None:
            raise WorldFault("There are no walls to try.")
        return wall

    return build


def _candidates() -> list[tuple[Tier, str]]:
    """What may be there, the strongest first, and what is missing for it."""
    if sys.platform == "darwin":
        return [("seatbelt", "" if Path(PROGRAM).exists() else f"{PROGRAM} is not there")]
    if not sys.platform.startswith("linux"):
        return []
    if platform.machine() not in MACHINES:
        return [("walled", f"there is no filter of system calls for {platform.machine()}")]
    landlock = landlock_version()
    old = f"the kernel has Landlock {landlock}, and {LEAST} is the first that is enough" if landlock < LEAST else ""
    return [("walled", "" if system_program("bwrap") else INSTALL), ("landlocked", old)]


def _machine() -> str:
    """All that decides what holds: another kernel, another bubblewrap, another person are tried anew."""
    facts = [VERSION, platform.release(), platform.machine(), os.getuid(), landlock_version(), len(ATTEMPTS)]
    program = system_program("bwrap")
    with suppress(OSError):
        known = program.stat() if program is not None else None
        facts += [known.st_size, known.st_mtime_ns] if known is not None else []
    for name in CHANGES:
        with suppress(OSError):
            facts.append(Path(name).read_text(encoding="ascii").strip())
    return json.dumps(facts)


def _read(cache: Path, key: str) -> Chosen | None:
    """What is kept, if it is ours and of this machine. That there are no walls is not kept: tomorrow there may be."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        if cache.stat().st_uid == os.getuid():
            kept = json.loads(cache.read_text(encoding="utf-8"))
            if kept["key"] == key and kept["tier"] in ("walled", "landlocked", "seatbelt"):
                return Chosen(tier=kept["tier"], why=tuple(map(str, kept["why"])))
    return None


def _write(cache: Path, key: str, found: Chosen) -> None:
    if found.tier == "none":
        return
    with suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = cache.with_name(f"{cache.name}.{os.getpid()}")
        fresh.write_text(json.dumps({"key": key, "tier": found.tier, "why": found.why}), encoding="utf-8")
        fresh.replace(cache)
