"""Folders that other users may enter, and the marks of `later.EXPECTED_LATER`."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.later import EXPECTED_LATER


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the listed tests to fail."""
    for item in items:
        name = getattr(item, "originalname", item.name)
        if item.path.parent == Path(__file__).parent and name in EXPECTED_LATER:
            reason = f"new behaviour: {EXPECTED_LATER[name]}"
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))


@pytest.fixture(name="open_folder")
def _open_folder() -> Iterator[Path]:
    """A folder that every user may enter: root's commands run as another user in some sandboxes."""
    folder = Path(tempfile.mkdtemp(prefix="greenroom-acceptance-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
