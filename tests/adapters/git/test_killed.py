"""Kill -9 in the middle of apply, commit and undo: no file is torn, and afterwards it is all done or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import pytest

from greenroom.core.ports.workspace import UndoResult
from tests.adapters.git.killed import Act, acted, copied, live, prepared
from tests.adapters.git.person import Person
from tests.conformance.workspace_case import tree_of

Tree = dict[str, tuple[str, bytes]]
ACTS: tuple[Act, ...] = get_args(Act)


class Story:
    """What there is before and after one act; and killing it."""

    def __init__(self, act: Act, root: Path, pair: tuple[str, str]) -> None:
        self.act = act
        self.root = root
        self.pair = pair
        self.before: Tree = tree_of(root)
        self.after: Tree = {}
        self.status = ("", "")

    async def finished(self, folder: Path) -> None:
        """Learn what an act that nobody kills makes of it."""
        person = copied(self.root, folder / "unkilled")
        status = _status(person)
        await acted(await person.workspace(), self.act, *self.pair)
        self.after, self.status = tree_of(person.root), (status, _status(person))

    async def killed_at(self, folder: Path, at: int) -> bool:
        """Kill it there, look, let somebody else go on, look; False when it came to its end before."""
        person = copied(self.root, folder / "killed")
        killed = live(person, self.act, self.pair, at)
        self._untorn(tree_of(person.root))
        torn = tree_of(person.root)
        workspace = await person.workspace()
        await workspace.snapshot("r1")
        assert tree_of(person.root) == torn, "who only looks changes nothing"
        await workspace.recover()
        assert tree_of(person.root) in (self.before, self.after), "all of it or nothing"
        await acted(workspace, self.act, *self.pair)
        assert (tree_of(person.root), _status(person)) == (self.after, self.status[1])
        if self.act == "commit team":
            assert person.git("log", "--format=%s").count("Do it: ") == 2, "the next one makes the whole chain"
        if self.act in ("apply", "commit", "commit team"):
            (applied,) = (one for one in await workspace.list_applied("r1") if one.state != "dropped")
            assert isinstance(await workspace.undo(applied.id), UndoResult)
            assert not person.git("log", "--format=%s").count("Do it")
        shutil.rmtree(person.root)
        return killed

    def _untorn(self, now: Tree) -> None:
        """Each file is old or new; what is being written has another name."""
        for name, what in now.items():
            if not Path(name).name.startswith(".greenroom-") and not what[0].startswith("d"):
                assert what in (self.before.get(name), self.after.get(name)), name


def _status(person: Person) -> str:
    return person.git("status", "--porcelain", "--untracked-files=all")


async def story(folder: Path, act: Act) -> Story:
    made = Story(act, folder / "tree", await prepared(folder / "tree", act))
    await made.finished(folder)
    return made


@pytest.mark.req("G-2")
@pytest.mark.parametrize(
    ("act", "places"),
    [
        ("apply", (11, 12)),
        ("undo", (7, 9)),
        ("commit", (4, 6)),
        ("undo commit", (10, 13)),
        ("revert", (9, 10)),
        ("commit team", (6, 11, 12)),
        ("undo team", (10, 13)),
        ("revert team", (9, 10)),
    ],
)
async def test_a_killed_one_is_finished_or_taken_back(tmp_path: Path, act: Act, places: tuple[int, ...]) -> None:
    made = await story(tmp_path, act)
    assert [await made.killed_at(tmp_path, at) for at in places] == [True] * len(places)


@pytest.mark.prove
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("act", ACTS)
async def test_a_kill_before_any_call_tears_nothing(tmp_path: Path, act: Act) -> None:
    made, kills = await story(tmp_path, act), 0
    while await made.killed_at(tmp_path, kills + 1):
        kills += 1
    assert kills > 5
    print(f"\n{act}: killed before each of {kills} calls, 0 files torn, all or nothing each time")
