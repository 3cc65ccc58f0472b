"""The copy of a damaged store: which file a fault names, and what is left behind."""

import errno
import shutil
import sqlite3
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite import salvage
from greenroom.core.base.errors import StoreFault, StoreFull


def put(home: Path, text: bytes = b"no database") -> Path:
    (home / "blobs" / "ab").mkdir(parents=True)
    (home / "blobs" / "ab" / "abc").write_bytes(b"blob")
    (home / "greenroom.db").write_bytes(text * 100)
    return home


@pytest.mark.parametrize("file", ["greenroom.db", "abc"])
def test_a_full_disk_is_that_of_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    original = shutil.copyfile

    def copy(source: Path, target: Path) -> Path:
        if source.name == file:
            raise OSError(errno.ENOSPC, "No space left on device", str(source))
        return original(source, target)

    monkeypatch.setattr(shutil, "copyfile", copy)
    home, target = put(tmp_path / "home"), tmp_path / "copy"
    with pytest.raises(StoreFull) as caught:
        salvage.copy_readable(home, target)
    assert (str(target) in str(caught.value), str(home) in str(caught.value)) == (True, False)
    assert not target.exists()


def test_a_disk_that_is_full_while_rows_are_written_is_that_of_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(salvage, "create_database", fail)
    home, target = put(tmp_path / "home"), tmp_path / "copy"
    with pytest.raises(StoreFull) as caught:
        salvage.copy_readable(home, target)
    assert (str(target) in str(caught.value), str(home) in str(caught.value)) == (True, False)
    assert not target.exists()


def test_a_database_that_cannot_be_read_is_named_and_not_its_copy(tmp_path: Path) -> None:
    home, target = put(tmp_path / "home"), tmp_path / "copy"
    with pytest.raises(StoreFault) as caught:
        salvage.copy_readable(home, target)
    assert (str(home / "greenroom.db") in str(caught.value), str(target) in str(caught.value)) == (True, False)
    assert not target.exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_an_empty_folder_that_was_there_stays(tmp_path: Path, is_there: bool) -> None:
    home, target = tmp_path / "home", tmp_path / "copy"
    target.mkdir()
    if is_there:
        put(home)
    with pytest.raises(StoreFault) as caught:
        salvage.copy_readable(home, target)
    assert str(home / "greenroom.db") in str(caught.value)
    assert list(target.iterdir()) == []
