"""Folders that others have closed are opened, so that what they left can be taken away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenroom.adapters.git.closed_folders import open_above, remove_tree
from greenroom.adapters.git.states import Ground
from greenroom.core.ports.workspace import SCRATCH
from tests.adapters.git.person import Person

SHUT = 0o555


@pytest.fixture(name="shut")
def _shut(tmp_path: Path) -> Iterator[Path]:
    """Two folders, one in the other, in which nobody may write."""
    deep = tmp_path / "shut" / "deep"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    for one in (deep, deep.parent):
        one.chmod(SHUT)
    yield deep.parent
    for one in (deep.parent, deep):
        if one.exists():
            one.chmod(0o755)


def mode(place: Path) -> int:
    return place.stat().st_mode & 0o777


def as_anybody(patch: pytest.MonkeyPatch, *shut: Path) -> None:
    """Let no tree be removed as long as one of these is closed, as is so for everybody but the superuser."""
    removes = shutil.rmtree

    def refused(name: Path, ignore_errors: bool = False, *, dir_fd: int | None = None) -> None:
        if not ignore_errors and any(one.exists() and mode(one) == SHUT for one in shut):
            raise PermissionError(13, "Permission denied")
        removes(name, ignore_errors, dir_fd=dir_fd)

    patch.setattr(shutil, "rmtree", refused)


def test_every_folder_above_a_file_is_opened_and_no_other(shut: Path) -> None:
    beside = shut.parent / "beside"
    beside.mkdir()
    beside.chmod(SHUT)
    open_above(Ground(shut.parent, "sha1"), ("shut/deep/file", "none/at/all", "beside/"))
    assert (mode(shut), mode(shut / "deep"), mode(beside)) == (0o755, 0o755, SHUT)


def test_nothing_is_opened_behind_a_link(shut: Path) -> None:
    (shut.parent / "link").symlink_to(shut)
    open_above(Ground(shut.parent, "sha1"), ("link/deep/file",))
    assert (mode(shut), mode(shut / "deep")) == (SHUT, SHUT)


def test_a_tree_in_which_nobody_may_write_is_removed(shut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = shut.parent / "outside"
    outside.mkdir(mode=SHUT)
    shut.chmod(0o755)
    (shut / "link").symlink_to(outside)
    shut.chmod(SHUT)
    as_anybody(monkeypatch, shut, shut / "deep")
    remove_tree(shut)
    assert (shut.exists(), mode(outside)) == (False, SHUT)


async def test_a_copy_with_such_a_folder_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person(tmp_path / "repo")
    person.root.mkdir()
    workspace = await person.workspace()
    worktree = await workspace.open("r1", SCRATCH, (await workspace.snapshot("r1")).commit)
    shut = Path(worktree.folder) / "shut"
    shut.mkdir(mode=SHUT)
    as_anybody(monkeypatch, shut)
    await workspace.close("r1", SCRATCH)
    assert not shut.parent.exists()


def test_what_cannot_be_opened_either_is_refused(shut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(shutil, "rmtree", refused)
    monkeypatch.setattr(os, "fchmod", refused)
    open_above(Ground(shut.parent, "sha1"), ("shut/deep/file",))
    with pytest.raises(PermissionError):
        remove_tree(shut)
    assert (shut / "deep" / "file").exists()
