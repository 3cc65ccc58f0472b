"""Taking over what came of a job where something stands against it: what is said is so, and nothing is half done."""

from pathlib import Path

import pytest

from tests.e2e.jobs import call, done, git
from tests.e2e.workshop import Workshop, turns
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt"])
GOOD = (PLAN, turns("good, red"), done("It is red."))
ALONE = ("--non-interactive", "--output-format", "json")


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.mark.prove
def test_a_commit_that_a_hook_takes_away_is_not_applied_and_what_is_undone_elsewhere_can_be_undone_here(
    shop: Workshop,
) -> None:
    assert shop.runs([*GOOD], "Paint it.", *ALONE).code == 0
    hook = shop.repo / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ngit reset --quiet --hard HEAD^\n")
    hook.chmod(0o755)
    said = shop.types("apply", "last")
    assert (said.code, "Nothing is applied: the commit was made" in said.err, shop.reads()) == (3, True, "good\n"), (
        said.err
    )
    assert "is applied." in shop.types("undo", "last").err
    hook.unlink()
    git(shop.repo, "branch", "other")
    assert "Applied: 1 file, commit " in shop.types("apply", "last").out
    git(shop.repo, "checkout", "--quiet", "other")
    git(shop.repo, "commit", "--quiet", "--allow-empty", "--message", "another")
    git(shop.repo, "cherry-pick", "main")
    assert shop.types("undo", "last", "--revert").code == 0
    assert "it is undone already" in shop.types("undo", "last", "--revert").err
    git(shop.repo, "checkout", "--quiet", "main")
    undone = shop.types("undo", "last")
    assert (undone.code, undone.out, shop.reads()) == (0, "Undone: app.txt.\n", "good\n")


@pytest.mark.prove
def test_it_is_applied_once_and_again_only_where_it_is_gone(shop: Workshop) -> None:
    assert shop.runs([*GOOD], "Paint it.", *ALONE).code == 0
    shop.puts("app.txt", "good, red\n")
    git(shop.repo, "commit", "--quiet", "--all", "--message=mine")
    already = shop.types("apply", "last")
    assert (already.code, already.out) == (0, "Your files have this already.\n")
    git(shop.repo, "reset", "--quiet", "--hard", "HEAD~1")
    assert "Applied: 1 file, commit " in shop.types("apply", "last").out
    assert "Applied already: 1 file, commit " in shop.types("apply", "last").out
    git(shop.repo, "reset", "--quiet", "--hard", "HEAD~1")
    assert "Applied: 1 file, commit " in shop.types("apply", "last").out
    assert shop.reads() == "good, red\n"
    git(shop.repo, "checkout", "--quiet", "-b", "other", "HEAD~1")
    for words in (("apply", "last"), ("undo", "last"), ("undo", "last", "--revert")):
        said = shop.types(*words)
        assert said.code != 0
        assert "on 'main', which is not checked out here" in said.err
    assert shop.reads() == "good\n"


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
