from pathlib import Path

import pytest

from tests.abilities.tools.files.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return an agent's thread in an empty workspace."""
    root = tmp_path / "work"
    root.mkdir()
    return Desk(root)
