"""Taking over what came of a job where something stands against it: what is said is so, and nothing is half done."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.terminal import Ended
from tests.e2e.workshop import Workshop, call, done, git, turns
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt"])
GOOD = (PLAN, turns("good, red"), done("It is red."))
ALONE = ("--non-interactive", "--output-format", "json")
LONG = "good\n" + "".join(f"line {number}\n" for number in range(20))
NAMELESS = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"), "")


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def taken(ended: Ended) -> dict[str, object]:
    found = ended.json["taken"]
    assert isinstance(found, dict)
    return found


@pytest.mark.prove
def test_a_file_in_which_they_have_not_committed_something_is_in_the_way(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, **{"app.txt": LONG})
    shop.puts("app.txt", LONG.replace("line 15", "unfinished"))
    before = git(shop.repo, "status", "--porcelain=v2"), shop.reads()
    assert shop.runs([*GOOD], f"Paint it. {'At length. ' * 9000}", *ALONE).code == 0
    refused = shop.types("apply", "last", "--output-format", "json")
    assert (refused.code, refused.json["status"]) == (1, "clash")
    assert refused.json["clashes"] == [{"path": "app.txt", "why": "you have changed it and not committed that"}]
    assert (git(shop.repo, "status", "--porcelain=v2"), shop.reads()) == before
    assert "greenroom branch " in shop.types("apply", "last").err
    assert shop.types("branch", "last", "work").code == 0
    assert git(shop.repo, "show", "work:app.txt") == LONG.replace("good", "good, red")
    git(shop.repo, "commit", "--quiet", "--all", "--message=mine")
    assert shop.types("apply", "last").code == 0
    message = git(shop.repo, "log", "-1", "--format=%B")
    assert (len(message) < 5000, "(Cut: these are 4,000 of 99,0" in message) == (True, True), message
    assert "All of it: greenroom show " in message
    assert shop.reads() == LONG.replace("good", "good, red").replace("line 15", "unfinished")
    assert shop.types("undo", "last").code == 0
    assert (git(shop.repo, "status", "--porcelain=v2"), shop.reads()) == ("", before[1])


@pytest.mark.prove
def test_files_that_a_hook_lets_nobody_commit_are_applied_and_that_is_what_is_said(shop: Workshop) -> None:
    hook = shop.repo / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho NO WAY >&2\nexit 1\n")
    hook.chmod(0o755)
    ended = shop.runs([*GOOD], "Paint it.", *ALONE, "--apply")
    told = taken(ended)
    assert (ended.code, told["status"], told["reason"]) == (1, "applied_not_committed", "hook")
    assert (told["paths"], told["commit"], shop.reads()) == (["app.txt"], "", "good, red\n")
    assert "Verified and applied, but not committed" in ended.err
    again = shop.types("apply", "last")
    assert again.code == 1
    assert "Applied, not committed: 1 file." in again.out
    assert "NO WAY" in again.out
    blamed = shop.types("blame", "app.txt:1")
    assert (blamed.code, "in no commit yet\nrun " in blamed.out) == (0, True)
    assert "Commit it with: greenroom apply " in blamed.out
    shop.puts("app.txt", "good, red\nmine\n")
    mine, out = shop.types("blame", "app.txt:2"), shop.types("blame", "../app.txt:1")
    assert "Line 2 of 'app.txt' is in no commit yet, and no job wrote it" in mine.err
    assert (mine.code, out.code, "'../app.txt' is not in " in out.err) == (2, 2, True)
    assert "app.txt: it was edited since" in shop.types("undo", "last").err
    shop.puts("app.txt", "good, red\n")
    assert shop.types("undo", "last").code == 0
    assert shop.reads() == "good\n"


@pytest.mark.prove
def test_who_has_no_name_is_told_before_a_file_is_changed(shop: Workshop) -> None:
    git(shop.repo, "config", "user.useConfigOnly", "true")
    ended = shop.runs([*GOOD], "Paint it.", *ALONE, "--apply", **NAMELESS)
    told = taken(ended)
    assert (ended.code, told["status"], shop.reads()) == (1, "not_taken", "good\n")
    assert "Git does not know your name" in str(told["why"])
    assert "--no-commit" in str(told["why"])
    assert shop.types("apply", "last", "--no-commit", **NAMELESS).code == 0
    assert shop.reads() == "good, red\n"


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


@pytest.mark.prove
def test_a_copy_in_which_somebody_works_is_not_dropped(shop: Workshop) -> None:
    said = list[Ended]()

    def meanwhile(_: dict[str, object], __: int) -> Answer:
        said.extend((shop.types("discard", "last", "--yes"), shop.types("branch", "last", "early")))
        return done("It is red.")

    ended = shop.runs([PLAN, turns("good, red"), meanwhile], "Paint it.", *ALONE)
    assert ended.code == 0, ended.err
    assert (said[0].code, "works, in " in said[0].err) == (2, True)
    assert (said[1].code, "is not over: it works, in " in said[1].err) == (0, True)
    assert shop.types("discard", "last", "--yes").code == 0


@pytest.mark.prove
def test_a_name_with_a_tab_is_handed_over_like_any_other_and_of_a_link_it_is_said_where_it_leads(
    shop: Workshop,
) -> None:
    links = "ln -s /etc/hostname out; ln -s app.txt in"
    script = call("execute_script", 2, script=f"printf 'x\\n' > \"$(printf 'a\\tb')\"; {links}")
    ended = shop.runs([PLAN, turns("good, red"), script, done("It is red.")], "Paint it.", *ALONE)
    assert ended.code == 0, ended.err
    assert "Note: a link that leads out of the repository: out → /etc/hostname\n" in ended.err
    assert shop.types("apply", "last").code == 0
    assert shop.types("blame", "app.txt:1").code == 0
    undone = shop.types("undo", "last")
    assert (undone.code, undone.out) == (0, "Undone: 'a\\tb', app.txt, in, out.\n")


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


@pytest.mark.prove
def test_a_new_job_says_it_too_because_it_begins_with_the_files_as_they_are_then(
    shop: Workshop, tmp_path: Path
) -> None:
    run = shop.runs([*GOOD], "Paint it.", *ALONE).json["team"]
    assert shop.types("apply", "last", PYTHONPATH=dying(tmp_path, "apply", "applied")).code == -9
    ended = shop.runs([done("It is red.")], "Which colour?", "--yes", "--question")
    assert ended.code == 0, ended.err
    assert f"{run} was cut off in your files: it is applied now, all of it (app.txt)." in ended.err


@pytest.mark.prove
def test_of_two_at_once_one_goes_first_and_who_cannot_wait_hears_why(shop: Workshop, tmp_path: Path) -> None:
    assert shop.runs([*GOOD], "Paint it.", *ALONE).code == 0
    hook, begun, go = shop.repo / ".git/hooks/pre-commit", tmp_path / "begun", tmp_path / "go"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho >{begun}\ncat {go}\n")
    hook.chmod(0o755)
    for one in (begun, go):
        os.mkfifo(one)
    with ThreadPoolExecutor() as both:
        first = both.submit(shop.types, "apply", "last")
        assert begun.read_text() == "\n", "its hook runs now"
        for verb in ("undo", "apply"):
            beside = shop.types(verb, "last")
            assert (beside.code, beside.out) == (3, "")
            assert "Another greenroom is at work on this, perhaps in another terminal." in beside.err
        go.write_text("")
        assert (first.result().code, shop.reads()) == (0, "good, red\n")
        ends = [one.result() for one in [both.submit(shop.types, "undo", "last") for _ in range(2)]]
        said = sorted((one.code, one.out, one.err.partition(" ")[0]) for one in ends)
        assert said == [(0, "Undone: app.txt.\n", ""), (2, "", "Error:")]
        assert "is applied: it is undone already." in "".join(one.err for one in ends)
        assert (shop.reads(), git(shop.repo, "log", "--format=%s")) == ("good\n", "first\n")
        hook.unlink()
        ends = [one.result() for one in [both.submit(shop.types, "apply", "last") for _ in range(2)]]
    assert sorted(one.out.partition(":")[0] for one in ends) == ["Applied", "Applied already"]
    assert git(shop.repo, "log", "--format=%s") == "Paint it.\nfirst\n"
