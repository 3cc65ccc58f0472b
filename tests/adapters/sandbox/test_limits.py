"""Limits: memory, processes, sizes, what the workspace may hold; and that nothing is left of how they are kept."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from greenroom.adapters.sandbox.limits import Quota
from greenroom.core.ports.sandbox import CommandLimits, Sandbox
from tests.adapters.sandbox.walls import behind, landlocked, walled
from tests.conformance.running import ran, shell

MIB = 1024 * 1024
FORKS = (
    "import os, time\n"
    "made = 0\n"
    "try:\n"
    "    while made < 300:\n"
    "        if os.fork() == 0: time.sleep(30)\n"
    "        made += 1\n"
    "except OSError: pass\n"
    "print('made', made, flush=True)\n"
)


LIMITED = pytest.mark.parametrize("build", [walled, pytest.param(landlocked, marks=pytest.mark.prove)])
Limited = Callable[[Path, Path, CommandLimits], Sandbox]


async def test_there_are_no_more_processes_than_allowed(root: Path) -> None:
    async with behind(walled(root, root.parent / "scratch", CommandLimits(processes=60)), root) as commands:
        done = await ran(commands, shell(f'python3 -c "{FORKS}"', seconds=20))
    assert 10 < int(done.text.split()[-1]) <= 60


TAKES = "import time; x = b'x' * (200 * 1024 * 1024); print('had it', flush=True); time.sleep(20)"
BUSY = "while :; do timeout 0.3 bash -c 'while :; do :; done'; done"
SOME = CommandLimits(memory=96 * MIB, cpu_seconds=1, processes=60)


def small(build: str, root: Path) -> Sandbox:
    """With small limits."""
    build_wall = walled if build == "bubblewrap" else landlocked
    return build_wall(root, root.parent / "scratch", SOME)


@pytest.mark.parametrize(
    ("build", "script", "why"),
    [
        (
            "bubblewrap",
            f'for n in 1 2 3; do python3 -c "{TAKES.replace("200", "50")}" & done; wait',
            "of memory, which is",
        ),
        ("bubblewrap", BUSY, "used the processor"),
        ("bubblewrap", "(trap '' CHLD; for n in 1 2; do (while :; do :; done) & done; sleep 20)", "used the processor"),
        ("landlock", f'python3 -c "{TAKES}"', "of memory, which is all it may"),
        ("landlock", f'python3 -c "{FORKS}time.sleep(20)"', "more than 60 processes"),
    ],
    ids=["memory of several", "a relay", "whom nobody waits for", "memory", "processes"],
)
async def test_somebody_looks(build: str, script: str, why: str, root: Path) -> None:
    async with behind(small(build, root), root) as commands:
        made = await ran(commands, shell(script, seconds=30))
    assert made.ended.how == "cancelled"
    assert why in made.text


async def test_memory_that_processes_share_is_counted_once(root: Path) -> None:
    shares = (
        "import os, time; x = b'x' * (60 * 1024 * 1024)\nfor n in (1, 2, 3): os.fork() or time.sleep(2) or os._exit(0)"
    )
    async with behind(small("bubblewrap", root), root) as commands:
        made = await ran(commands, shell(f'python3 -c "{shares}\ntime.sleep(1)"; echo fine'))
    assert made.text == "fine\n"


@LIMITED
async def test_a_file_is_no_longer_than_allowed(build: Limited, root: Path) -> None:
    async with behind(build(root, root.parent / "scratch", CommandLimits(file_size=4 * MIB)), root) as commands:
        await ran(commands, shell("head -c 3145728 /dev/zero >fits; head -c 8388608 /dev/zero >long"))
    assert (root / "fits").stat().st_size == 3 * MIB
    assert (root / "long").stat().st_size == 4 * MIB


@LIMITED
async def test_a_workspace_that_is_too_full_ends_the_command(build: Limited, root: Path) -> None:
    script = "while :; do head -c 4194304 /dev/urandom >>full; sleep 0.05; done"
    async with behind(build(root, root.parent / "scratch", CommandLimits(quota=32 * MIB)), root) as commands:
        made = await ran(commands, shell(script, seconds=30))
    assert made.ended.how == "cancelled"
    assert "which is all it may hold" in made.text
    assert 30 * MIB < (root / "full").stat().st_size < 512 * MIB


QUOTA = 300 * MIB
FILLING = {
    "one file": "head -c 1G /dev/zero >big",
    "many files": "for n in $(seq 40); do head -c 25M /dev/zero >f$n; done",
    "files side by side": "for n in 1 2 3 4; do head -c 300M /dev/zero >p$n & done; wait",
    "small files": "python3 -c \"b = b'x' * 65536\nfor n in range(20000): open('s%d' % n, 'wb').write(b)\"",
    "deaf to signals": "trap '' TERM; for n in $(seq 40); do (trap '' TERM; head -c 25M /dev/zero >f$n); done",
    "reserved at once": "for n in 1 2 3 4; do fallocate -l 90M a$n || head -c 90M /dev/zero >a$n; done",
}


@pytest.fixture(name="_alone")
def fill_alone() -> Iterator[None]:
    """Let one test fill the disk at a time: what another one frees would hide what this one writes."""
    with Path(tempfile.gettempdir(), f"greenroom-test-quota-{os.getuid()}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def begin_with(root: Path, size: int) -> None:
    for old in root.iterdir():
        old.unlink()
    (root / "there").write_bytes(b"x" * size)


def blocks(root: Path) -> int:
    return sum(one.lstat().st_blocks * 512 for one in root.rglob("*"))


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("build", [walled, landlocked], ids=["bubblewrap", "landlock"])
@pytest.mark.parametrize("how", FILLING)
async def test_a_workspace_holds_at_most_a_tenth_more_than_its_quota(build: Limited, root: Path, how: str) -> None:
    held = 2 * QUOTA
    for _ in range(3):  # other programs on the machine only delay the measuring, so the best of three counts
        begin_with(root, 20 * MIB)
        async with behind(build(root, root.parent / "scratch", CommandLimits(quota=QUOTA)), root) as commands:
            made = await ran(commands, shell(FILLING[how], seconds=60))
        assert made.ended.how == "cancelled"
        assert "which is all it may hold" in made.text
        held = min(held, blocks(root))
        if held <= 1.1 * QUOTA:
            break
    assert 0.85 * QUOTA < held <= 1.1 * QUOTA


def test_what_grows_on_one_disk_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = tuple(tmp_path / name for name in ("work", "scratch", "layer"))
    for folder in folders:
        folder.mkdir()
    measured: list[Path] = []
    statvfs = os.statvfs

    def measure(folder: Path) -> os.statvfs_result:
        measured.append(folder)
        return statvfs(folder)

    monkeypatch.setattr(os, "statvfs", measure)
    assert Quota(folders, CommandLimits()).get_pause() > 0
    assert len(measured) == 1


async def test_holes_in_files_take_no_room(root: Path) -> None:
    script = "for n in 1 2 3; do truncate -s 90M s$n; done; sleep 0.5; echo fine"
    async with behind(walled(root, root.parent / "scratch", CommandLimits(quota=100 * MIB)), root) as commands:
        assert (await ran(commands, shell(script))).text == "fine\n"


async def test_too_many_files_end_the_command_too(root: Path) -> None:
    script = "for n in $(seq 100000); do : >f$n; done; echo all"
    async with behind(walled(root, root.parent / "scratch", CommandLimits(entries=400)), root) as commands:
        made = await ran(commands, shell(script, seconds=30))
    assert "files lie in the workspace" in made.text
