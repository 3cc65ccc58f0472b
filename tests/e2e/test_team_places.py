"""Where an organisation is: a folder that was moved, copied, made anew or is another one, and one that is over."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.organised import TEA, Company, new
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import Ended, greenroom


class Places:
    """A person with several folders."""

    def __init__(self, folder: Path, more: dict[str, str]) -> None:
        self._home, self._more = folder / "home", more
        self.old, self.other = folder / "old", folder / "other"
        self.old.mkdir()
        new(self._home, self.old, "--person", "ann", **more)
        self.team = str(self.types(self.old, "talk", "--say", "Tea.", "--output-format", "json").json["team"])

    def types(self, folder: Path, *words: str) -> Ended:
        return greenroom(self._home, *words, cwd=str(folder), **self._more)

    def said(self, folder: Path, *words: str) -> str:
        """All that is told to a person, in one line."""
        ended = self.types(folder, *words)
        assert ended.code == 0, ended.err
        return " ".join(f"{ended.out} {ended.err}".split())


@pytest.fixture(name="places")
def _places(tmp_path: Path) -> Iterator[Places]:
    with provider(Company(TEA)) as server:
        yield Places(tmp_path, reached(server))


def test_a_folder_that_was_made_anew_is_said_to_have_the_old_organisation(places: Places) -> None:
    shutil.rmtree(places.old)
    places.old.mkdir()
    said = places.said(places.old, "team", "new", "tea", "--person", "kim")
    assert f"tea was founded here before ({places.team}), and goes on with this file." in said
    assert f"greenroom cancel {places.team}" in said
    said = places.said(places.old, "talk", "--as", "kim", "--say", "Tea.")
    assert f"belonged to tea ({places.team}) so far, but ann." in said
    assert "belonged to tea" not in places.said(places.old, "talk", "--as", "kim", "--say", "Tea.")


def test_one_that_was_cancelled_is_over_and_the_next_start_founds_another(places: Places) -> None:
    assert "founded here before" not in places.said(places.old, "team", "new", "coffee", "--person", "ann")
    assert places.types(places.old, "cancel", places.team).code == 0
    assert "is over; a start founds another" in places.said(places.old, "team", "list")
    found = places.types(places.old, "team", "list", "--output-format", "json").json["teams"]
    assert isinstance(found, list)
    assert {one["name"]: one["stands"] for one in found} == {"tea": "gone", "coffee": "new"}
    assert places.types(places.old, "talk", "tea", "--say", "Tea.").code == 0
    assert "is over" not in places.said(places.old, "team", "list")
