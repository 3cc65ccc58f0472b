"""Whoever swaps links while a path is opened wins nothing; against looking first and opening then, they win."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenroom.adapters.files.disk import ConfinedRoot, Disk
from greenroom.core.ports.files import FileFault, compute_digest
from tests.adapters.files.swapping import PLAIN, SECRET, can_exchange, swapping

SHORT, LONG = 2_000, 100_000
CONTROL = 200_000
"""Tries in which the unprotected way has to lose once; it loses about one in a hundred."""


@pytest.fixture
def arena() -> Iterator[Path]:
    """A workspace and something outside of it; in memory if possible, since each write waits for the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="greenroom-race-", dir=memory if memory.is_dir() else None) as name:
        arena = Path(name)
        if not can_exchange(arena):
            pytest.skip("this system cannot exchange two names")
        (arena / "work/folder").mkdir(parents=True)
        (arena / "work/folder/file").write_bytes(PLAIN)
        (arena / "outside").mkdir()
        (arena / "outside/file").write_bytes(SECRET)
        (arena / "work/link").symlink_to("../outside")
        (arena / "work/folder/way").symlink_to("../../outside/file")
        yield arena


@pytest.fixture
def local(arena: Path) -> Disk:
    return Disk(ConfinedRoot(arena / "work"))


@pytest.fixture(params=["the folder", "the file"])
def pair(request: pytest.FixtureRequest, arena: Path) -> tuple[Path, Path]:
    """What is swapped with a link out."""
    work = arena / "work"
    if request.param == "the folder":
        return work / "folder", work / "link"
    return work / "folder/file", work / "folder/way"


def reads(local: Disk, tries: int) -> tuple[int, int]:
    """(wins, how often it was read at all)."""
    wins = honest = 0
    for _ in range(tries):
        try:
            content = local.read("folder/file", 100)
        except FileFault:
            continue
        wins += content == SECRET
        honest += content == PLAIN
    return wins, honest


def writes(local: Disk, tries: int) -> int:
    """How often it was written."""
    done = 0
    for number in range(tries):
        expected = (compute_digest(PLAIN), compute_digest(SECRET), None)[number % 3]
        try:
            local.write("folder/file" if expected else f"folder/new{number}", PLAIN, expected)
        except FileFault:
            continue
        done += 1
    return done


def untouched(arena: Path) -> bool:
    """Whether all outside is as it was."""
    outside = arena / "outside"
    return [one.name for one in outside.iterdir()] == ["file"] and (outside / "file").read_bytes() == SECRET


def attacked(arena: Path, local: Disk, pair: tuple[Path, Path], tries: int) -> str:
    """Attack as many reads and as many writes; how it went."""
    with swapping(*pair):
        wins, honest = reads(local, tries)
        done = writes(local, tries)
    assert wins == 0
    assert untouched(arena)
    assert honest, "the attacker was always first, so nothing was tried"
    return f"{tries} reads ({honest} right), {tries} writes ({done} done), 0 wins"


@pytest.mark.req("G-6")
def test_who_swaps_links_wins_nothing(arena: Path, local: Disk, pair: tuple[Path, Path]) -> None:
    attacked(arena, local, pair, SHORT)


@pytest.mark.prove
@pytest.mark.timeout(1200)
def test_who_swaps_links_wins_nothing_in_a_hundred_thousand_tries(
    arena: Path, local: Disk, pair: tuple[Path, Path], request: pytest.FixtureRequest
) -> None:
    print(f"\n{request.node.callspec.id}: {attacked(arena, local, pair, LONG)}")


def looks_then_opens(root: Path) -> bytes:
    """What everybody writes first: resolve the path, see that it is inside, open it."""
    path = root / "folder/file"
    try:
        return path.read_bytes() if path.resolve().is_relative_to(root) else b""
    except OSError:
        return b""


def test_who_looks_first_and_opens_then_loses_to_the_same_attacker(arena: Path) -> None:
    root = (arena / "work").resolve()
    with swapping(root / "folder", root / "link"):
        lost = any(looks_then_opens(root) == SECRET for _ in range(CONTROL))
    assert lost, "this attacker proves nothing"
