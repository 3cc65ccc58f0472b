"""A log whose connection can be made to fail."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from tests.adapters.storage.faulty import Faulty
from tests.adapters.storage.read_only import make_writable


@pytest.fixture
def faults() -> Iterator[type[Faulty]]:
    yield Faulty
    Faulty.before, Faulty.after = {}, {}


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder for `make_read_only`; it can be deleted afterwards."""
    home = tmp_path / "home"
    home.mkdir()
    yield home
    make_writable(home)


@pytest.fixture
async def log(tmp_path: Path, faults: type[Faulty]) -> AsyncIterator[SqliteLog]:
    log = await SqliteLog.open(tmp_path / "home", connection=faults)
    await log.create("s", 1)
    yield log
    faults.before, faults.after = {}, {}
    await log.close()
