"""What only a real disk can get wrong: it is full, read-only, gone, or somebody else is at it."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from greenroom.adapters.files import disk, local_files
from greenroom.adapters.files.disk import DRAFT_PREFIX, ConfinedRoot, Disk
from greenroom.adapters.files.local_files import FileWalker, IgnoreRules, LocalFiles
from greenroom.core.ports.files import FileFault, compute_digest

OLD, NEW = b"old\n", b"new\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "work"
    found.mkdir()
    (found / "a.txt").write_bytes(OLD)
    return found


@pytest.fixture
def local(root: Path) -> Disk:
    return Disk(ConfinedRoot(root))


def names(root: Path) -> list[str]:
    return sorted(one.name for one in root.iterdir())


@contextmanager
def failing(call: str, number: int) -> Iterator[None]:
    """A system in which one call fails."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with patch.object(os, call, fail):
        yield


@pytest.mark.req("MA-52", "MA-53", "AG-68")
@pytest.mark.parametrize("call", ["write", "fsync", "fchmod", "rename"])
@pytest.mark.parametrize(
    ("number", "reason", "why"),
    [
        (errno.ENOSPC, "disk", "The disk is full. 'a.txt' is as it was; make room and try again."),
        (errno.EDQUOT, "disk", "The disk quota is used up."),
        (errno.EROFS, "read_only", "'a.txt' is on a read-only file system."),
        (errno.EACCES, "read_only", "This process has no right to 'a.txt'."),
        (errno.EIO, "disk", "'a.txt' cannot be used: Input/output error."),
    ],
)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    root: Path, local: Disk, call: str, number: int, reason: str, why: str
) -> None:
    with failing(call, number), pytest.raises(FileFault) as caught:
        local.write("a.txt", NEW, compute_digest(OLD))
    assert caught.value.reason == reason
    assert str(caught.value).startswith(why)
    assert (root / "a.txt").read_bytes() == OLD
    assert names(root) == ["a.txt"]


def test_what_a_crash_left_of_a_draft_is_taken_over(root: Path, local: Disk) -> None:
    with failing("unlink", errno.ENOENT), failing("rename", errno.EIO), pytest.raises(FileFault):
        local.write("a.txt", NEW, compute_digest(OLD))
    assert [name.startswith(DRAFT_PREFIX) for name in names(root)] == [True, False]
    local.write("a.txt", NEW, compute_digest(OLD))
    assert names(root) == ["a.txt"]


def test_a_draft_is_never_written_through_a_planted_link(root: Path, local: Disk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"theirs")
    with failing("unlink", errno.ENOENT), failing("rename", errno.EIO), pytest.raises(FileFault):
        local.write("a.txt", NEW, compute_digest(OLD))
    draft = next(one for one in root.iterdir() if one.name.startswith(DRAFT_PREFIX))
    draft.unlink()
    draft.symlink_to(outside)
    local.write("a.txt", NEW, compute_digest(OLD))
    assert (outside.read_bytes(), (root / "a.txt").read_bytes()) == (b"theirs", NEW)


def test_who_edits_while_the_new_content_is_written_wins(root: Path, local: Disk) -> None:
    real = os.fsync

    def edited(file: int) -> None:
        (root / "a.txt").write_bytes(b"theirs\n")
        real(file)

    with patch.object(os, "fsync", edited), pytest.raises(FileFault, match="it was changed meanwhile"):
        local.write("a.txt", NEW, compute_digest(OLD))
    assert (root / "a.txt").read_bytes() == b"theirs\n"


def test_who_makes_the_file_first_wins(root: Path, local: Disk) -> None:
    real = os.fsync

    def made(file: int) -> None:
        (root / "b.txt").write_bytes(b"theirs\n")
        real(file)

    with patch.object(os, "fsync", made), pytest.raises(FileFault, match="is there already"):
        local.write("b.txt", NEW, None)
    assert (root / "b.txt").read_bytes() == b"theirs\n"
    assert names(root) == ["a.txt", "b.txt"]


def test_a_new_file_is_refused_over_another_also_without_renameat2(root: Path) -> None:
    local = Disk(ConfinedRoot(root))
    with patch.object(ctypes, "CDLL", lambda *_, **__: object()):
        local.write("b.txt", NEW, None)
        folder = os.open(root, os.O_RDONLY)
        with pytest.raises(FileExistsError):
            disk.rename_without_replacing(folder, "b.txt", "a.txt")
        os.close(folder)
    assert (root / "b.txt").read_bytes() == NEW
    assert names(root) == ["a.txt", "b.txt"]


def test_a_folder_that_stays_locked_is_not_waited_for_for_ever(
    root: Path, local: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "LOCK_TIMEOUT_S", 0.05)
    held = os.open(root, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(FileFault, match="Another program has kept the folder"):
        local.write("a.txt", NEW, compute_digest(OLD))
    os.close(held)
    local.write("a.txt", NEW, compute_digest(OLD))


def test_a_disk_without_locks_is_written_without(root: Path, local: Disk) -> None:
    with patch.object(fcntl, "flock", side_effect=OSError(errno.ENOLCK, "no locks")):
        local.write("a.txt", NEW, compute_digest(OLD))
    assert (root / "a.txt").read_bytes() == NEW


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_of_a_file_is_kept(root: Path, local: Disk) -> None:
    os.chown(root / "a.txt", 1234, 1235)
    local.write("a.txt", NEW, compute_digest(OLD))
    status = (root / "a.txt").stat()
    assert (status.st_uid, status.st_gid) == (1234, 1235)


def test_a_new_content_does_not_keep_the_right_to_act_as_the_owner(root: Path, local: Disk) -> None:
    (root / "a.txt").chmod(0o4755)
    local.write("a.txt", NEW, compute_digest(OLD))
    assert (root / "a.txt").stat().st_mode & 0o7777 == 0o755


def test_a_workspace_that_is_gone_is_said_to_be_missing(tmp_path: Path) -> None:
    gone = Disk(ConfinedRoot(tmp_path / "gone"))
    with pytest.raises(FileFault, match=r"There is no 'a\.txt'"):
        gone.read("a.txt", 10)


def test_a_folder_that_is_moved_out_meanwhile_is_not_written(root: Path, tmp_path: Path) -> None:
    (root / "sub").mkdir()
    ground = ConfinedRoot(root)
    with ground.open_place("sub/b.txt") as place:
        (root / "sub").rename(tmp_path / "moved")
        with pytest.raises(FileFault, match="is no longer in the workspace"):
            ground.refuse_protected(place, "sub/b.txt")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells which descriptors are open")
def test_no_descriptor_is_left_open(root: Path) -> None:
    (root / "out").symlink_to("/etc")
    (root / "round").symlink_to("round")
    before = descriptors()
    disk = Disk(ConfinedRoot(root))
    for path in ("a.txt", "out/passwd", "round", "no/such", "a.txt/x", "n" * 300, f"{'n' * 300}/x"):
        with pytest.raises(FileFault):
            disk.read(path, 1)
        with pytest.raises(FileFault):
            disk.write(path, NEW, compute_digest(NEW))
    assert descriptors() == before


def test_a_walk_that_takes_too_long_ends_with_what_it_has(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_files, "WALK_TIMEOUT_S", -1.0)
    assert not asyncio.run(LocalFiles(root).walk(limit=10)).whole


def test_a_walk_goes_only_so_deep(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_files, "MAX_DEPTH", 3)
    (root / "1/2/3/4/5").mkdir(parents=True)
    (root / "1/2/3/here").touch()
    (root / "1/2/3/4/not").touch()
    found = asyncio.run(LocalFiles(root).walk(limit=10))
    assert [one.path for one in found.entries] == ["1/2/3/here", "a.txt"]
    assert not found.whole


def test_a_hostile_gitignore_does_not_hold_up_a_walk(root: Path) -> None:
    (root / ".gitignore").write_text("*a" * 60 + "*b\n*.txt\n")
    (root / ("a" * 250)).touch()
    found = asyncio.run(asyncio.wait_for(LocalFiles(root).walk(limit=10), 10))
    assert [one.path for one in found.entries] == [".gitignore", "a" * 250]


def test_a_gitignore_that_is_a_link_is_not_read(root: Path) -> None:
    (root / "rules").write_text("*.txt\n")
    (root / ".gitignore").symlink_to("rules")
    found = asyncio.run(LocalFiles(root).walk(limit=10))
    assert "a.txt" in [one.path for one in found.entries]


async def test_who_cancels_a_write_waits_until_it_is_over(root: Path) -> None:
    going, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    real = os.fsync

    def slow(file: int) -> None:
        loop.call_soon_threadsafe(going.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(10)
        real(file)

    with patch.object(os, "fsync", slow):
        write = asyncio.create_task(LocalFiles(root).write("a.txt", NEW, expected=compute_digest(OLD)))
        await asyncio.wait_for(going.wait(), 10)
        write.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await write
        assert (root / "a.txt").read_bytes() == NEW


@pytest.mark.parametrize("flat", [True, False])
def test_a_walk_sees_only_so_much(root: Path, monkeypatch: pytest.MonkeyPatch, flat: bool) -> None:
    monkeypatch.setattr(local_files, "MAX_ENTRIES", 10)
    for number in range(30):
        (root / str(number)).mkdir()
        (root / (f"f{number}" if flat else f"{number}/f")).touch()
    found = asyncio.run(LocalFiles(root).walk(limit=1000))
    assert (found.whole, found.cut) == (False, True)
    assert len(found.entries) <= 10


async def test_who_cancels_a_walk_does_not_wait_for_its_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, began, go_on = list[str](), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slowly(self: FileWalker, folder: str, rules: IgnoreRules) -> IgnoreRules:
        seen.append(folder)
        loop.call_soon_threadsafe(began.set)
        assert go_on.wait(10)
        return rules

    monkeypatch.setattr(FileWalker, "_add_gitignore", slowly)
    for number in range(50):
        (root / f"folder{number}").mkdir()
    walk = asyncio.create_task(LocalFiles(root).walk(limit=10))
    await asyncio.wait_for(began.wait(), 10)
    walk.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(walk, 10)
    assert seen == [""], "it did not go on"
