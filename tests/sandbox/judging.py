"""Judge attempts: each runs without a sandbox first, and counts only if it succeeds there."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.sandbox.attempt import Attempt, Need
from tests.sandbox.holes import HOLES
from tests.sandbox.props import PROPS
from tests.sandbox.stage import staged
from tests.sandbox.trying import tried

TIERS: Final = ("bubblewrap", "landlock")
DEFAULT: Final = "bubblewrap"

Verdict = Literal["held", "escaped", "vacuous", "never began", "not possible here"]
"""*vacuous* fails even without a sandbox; *never began* was stopped by something other than what it tries."""

THERE: Final[Mapping[Need, bool]] = {
    "root": os.geteuid() == 0,
    "cc": shutil.which("cc") is not None,
    "cgroup v1": Path("/sys/fs/cgroup/freezer/release_agent").exists(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One attempt at one tier. `why` is the observation, or the output instead of a start."""

    attempt: Attempt
    tier: str
    verdict: Verdict
    why: str = ""

    @property
    def known(self) -> bool:
        """Return whether it is a documented hole."""
        return self.attempt.name in HOLES.get(self.tier, {}).get(self.attempt.kind, {})


async def judged(attempt: Attempt, tiers: Iterable[str]) -> list[Judged]:
    """Run the control, then each tier."""
    if needed := missing(attempt):
        return [_of(attempt, tier, "not possible here", f"it needs {', '.join(needed)}") for tier in tiers]
    if not await succeeds(attempt):
        return [_of(attempt, tier, "vacuous", "it does not succeed without walls either") for tier in tiers]
    return [await _at_tier(attempt, tier) for tier in tiers]


def missing(attempt: Attempt) -> list[Need]:
    """Return what its control needs and this machine lacks."""
    return [need for need in attempt.needs if not THERE[need]]


async def succeeds(attempt: Attempt) -> bool:
    """Return whether the control succeeds, without a sandbox."""
    _, seen = await _made(attempt, attempt.control)
    return bool(seen)


async def _at_tier(attempt: Attempt, tier: str) -> Judged:
    stopped, seen = await _made(attempt, tier)
    if seen:
        return _of(attempt, tier, "escaped", seen)
    return _of(attempt, tier, "never began", stopped) if stopped else _of(attempt, tier, "held")


def _of(attempt: Attempt, tier: str, verdict: Verdict, why: str = "") -> Judged:
    return Judged(attempt=attempt, tier=tier, verdict=verdict, why=why)


async def _made(attempt: Attempt, tier: str) -> tuple[str, str]:
    """Return why it did not start, and the observation of its success. Variables are refused before the start."""
    with staged(PROPS) as stage:
        made = await tried(attempt, tier, stage)
        seen = made.midway or await asyncio.to_thread(attempt.seen, stage, made)
    begun = made.begun or (made.refused and attempt.env)
    return "" if begun else made.refused or made.text[-500:] or "it printed nothing", seen


def counted(results: Iterable[Judged]) -> Counter[str]:
    """Count the verdicts."""
    return Counter(one.verdict for one in results)


def told(results: Iterable[Judged]) -> str:
    """Return one line for each unexpected result."""
    return "".join(
        f"\n    {one.tier}: {one.attempt}: {one.verdict}: {one.why}{' (known)' if one.known else ''}"
        for one in results
        if one.verdict != "held"
    )
