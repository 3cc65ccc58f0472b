"""Taking over what came of a job where something stands against it: what is said is so, and nothing is half done."""

from pathlib import Path

import pytest

from tests.e2e.jobs import call, done
from tests.e2e.workshop import Workshop, turns
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt"])
GOOD = (PLAN, turns("good, red"), done("It is red."))
ALONE = ("--non-interactive", "--output-format", "json")


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


DYING = """
import os, signal
from greenroom.adapters.git import {room} as room
real = room.save
async def save(repository, paper):
    if paper.state == {state!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    await real(repository, paper)
room.save = save
"""


def dying(folder: Path, room: str, state: str) -> str:
    """A path for Python on which a life ends right before this is written down."""
    (folder / state).mkdir()
    (folder / state / "sitecustomize.py").write_text(DYING.format(room=room, state=state))
    return str(folder / state)


def test_what_a_kill_left_half_done_is_ended_by_the_next_command_and_that_is_said(
    shop: Workshop, tmp_path: Path
) -> None:
    run = shop.runs([*GOOD], "Paint it.", *ALONE).json["team"]
    assert shop.types("apply", "last", PYTHONPATH=dying(tmp_path, "apply", "applied")).code == -9
    assert shop.reads() == "good, red\n"
    assert "cut off" not in shop.types("diff", "last").err, "who only looks ends nothing"
    again = shop.types("apply", "last")
    assert (again.code, again.out[:16]) == (0, "Applied: 1 file,")
    assert f"{run} was cut off in your files: it is applied now, all of it (app.txt)." in again.err
    assert "cut off" not in shop.types("apply", "last").err, "it is said once"
    assert shop.types("undo", "last", PYTHONPATH=dying(tmp_path, "undo", "undone")).code == -9
    again = shop.types("undo", "last")
    assert (again.code, again.out, shop.reads()) == (0, "Undone: app.txt.\n", "good\n")
    assert f"{run} was cut off in your files: it is undone now, all of it (app.txt)." in again.err
