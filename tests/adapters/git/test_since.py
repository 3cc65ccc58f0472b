"""What was done to a file since, told to whoever wants to undo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from greenroom.adapters.git.since import EDITED, PERMITTED, what_changed
from greenroom.adapters.git.states import State
from greenroom.core.ports.workspace import Clash, Clashes
from tests.adapters.git.person import Person
from tests.adapters.git.shapes import plain
from tests.adapters.git.test_committing import brought


def _edited(path: Path) -> None:
    path.write_text(path.read_text().replace("line 7\n", "mine\n").replace("line 9\n", "mine\n"))


def _replaced(path: Path) -> None:
    path.unlink()
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("name", "act", "why"),
    [
        ("a.txt", _edited, "it was edited since, first in line 7"),
        ("a.txt", lambda path: path.write_text(path.read_text() + "more\n"), "it was edited since, first in line 31"),
        ("a.txt", lambda path: path.write_bytes(b"\0"), "it was edited since"),
        ("a.txt", Path.unlink, "it was deleted since"),
        ("a.txt", _replaced, "something else stands in its place since"),
        ("a.txt", lambda path: path.chmod(0o755), "who may run it was changed since"),
        ("go/old.txt", lambda path: path.write_text("mine\n"), "the work deleted it, and it was made anew since"),
    ],
)
async def test_what_stands_in_the_way_of_an_undo_is_said(
    tmp_path: Path, name: str, act: Callable[[Path], object], why: str
) -> None:
    person = Person(tmp_path / "tree")
    plain(person)
    workspace, _, applied = await brought(person)
    (person.root / name).parent.mkdir(exist_ok=True)
    act(person.root / name)
    assert await workspace.undo(applied.id) == Clashes(clashes=(Clash(path=name, why=why),))


@pytest.mark.parametrize(("mode", "why"), [(0o600, EDITED), (0o755, PERMITTED)])
def test_a_file_that_was_put_back_at_this_moment_is_not_said_to_have_another_right(mode: int, why: str) -> None:
    then, now = State(kind="file", blob="b", mode=0o644), State(kind="file", blob="b", mode=mode)
    assert what_changed(then, b"", now, b"") == why
