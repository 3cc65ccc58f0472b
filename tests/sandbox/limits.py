"""The sandbox limits of the suite: small, so that exceeding them is quick."""

from __future__ import annotations

from typing import Final

from greenroom.core.ports.sandbox import CommandLimits

MIB: Final = 1024 * 1024

LIMITS: Final = CommandLimits(
    memory=256 * MIB,
    processes=100,
    file_size=64 * MIB,
    open_files=1024,
    cpu_seconds=2,
    temporary=64 * MIB,
    quota=128 * MIB,
    entries=5000,
)
