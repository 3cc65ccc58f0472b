"""A person with a plain repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.git.person import Person
from tests.adapters.git.shapes import plain


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    plain(person)
    return person
