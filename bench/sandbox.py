"""The cost of the sandbox: how long `true` takes in each tier, and without a sandbox."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.sandbox.choice import make_sandbox
from greenroom.adapters.sandbox.programs import find_programs
from greenroom.adapters.sandbox.view import SandboxView
from greenroom.core.ports.commands import Command
from greenroom.core.ports.sandbox import CommandLimits, Tier

TIERS: tuple[Tier, ...] = ("none", "landlock", "bubblewrap")
CACHE = user_cache_path("greenroom", appauthor=False)
ROUNDS = 60
LARGE = (2_000, 20_000)
FEW = 10
GOALS = {"bubblewrap over none, p50 (ms)": ("<=", 30.0), "bubblewrap over none, p95 (ms)": ("<=", 80.0)}


async def run() -> dict[str, float]:
    """Measure the tiers in turns under the same conditions, then the best tier in large workspaces."""
    with _open_folder() as folder:
        figures = _figures(await _run({tier: _commands(tier, folder / tier) for tier in TIERS}, ROUNDS))
        for folders in LARGE:
            took = await _run({"bubblewrap": _commands("bubblewrap", folder / str(folders), folders)}, FEW)
            figures[f"bubblewrap, {folders:,} folders, p50 (ms)"] = statistics.median(took["bubblewrap"])
    return figures


async def _run(commands: dict[Tier, LocalCommands], rounds: int) -> dict[Tier, list[float]]:
    try:
        return await _measured(commands, rounds)
    finally:
        for one in commands.values():
            await asyncio.to_thread(one.close)


@contextmanager
def _open_folder() -> Iterator[Path]:
    """Return a folder that other users can reach: as root, commands run as another user."""
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield folder


def _commands(tier: Tier, folder: Path, folders: int = 0) -> LocalCommands:
    root = folder / "work"
    root.mkdir(parents=True)
    for number in range(folders):
        (root / f"{number % 100}" / f"{number}").mkdir(parents=True)
    ground = SandboxView(root=root, at=root, home=Path.home(), scratch=folder / "scratch")
    return LocalCommands(
        root, sandbox=make_sandbox(tier, ground, CommandLimits(), next(iter(find_programs(CACHE)), None))
    )


async def _measured(commands: dict[Tier, LocalCommands], rounds: int) -> dict[Tier, list[float]]:
    took: dict[Tier, list[float]] = {tier: [] for tier in commands}
    for _ in range(rounds + 1):
        for tier, one in commands.items():
            began = time.perf_counter()
            async for _ in one.run(Command(words=("true",))):
                pass
            took[tier].append((time.perf_counter() - began) * 1000)
    return {tier: every[1:] for tier, every in took.items()}


def _figures(took: dict[Tier, list[float]]) -> dict[str, float]:
    figures = {}
    for tier, every in took.items():
        figures[f"{tier}, p50 (ms)"] = statistics.median(every)
        figures[f"{tier}, p95 (ms)"] = statistics.quantiles(every, n=20)[-1]
    for part in ("p50", "p95"):
        figures[f"bubblewrap over none, {part} (ms)"] = (
            figures[f"bubblewrap, {part} (ms)"] - figures[f"none, {part} (ms)"]
        )
    return figures
