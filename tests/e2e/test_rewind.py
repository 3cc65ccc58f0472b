"""Going back to a step, with conversation and files of the same moment; tests that had to change; what is kept."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.log import Lease
from tests.e2e.jobs import Desk, call, done, exactly, founded, git, honest
from tests.e2e.provider import provider, reached
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

MENDED = {"search": "json.dump(row,", "replace": "json.dump(rows,"}
"""What `honest` does at last. Its steps: 1 and 2 the base, 4 reads, 6 the plan, 8 the code, 10 its test, 12 failed, 14
mended, 16 verified."""


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", founded(tmp_path / "repo"))


@pytest.fixture(name="over", scope="module")
def _over(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, str]:
    """A job that is done, and its run; it takes its time, and nobody here changes it."""
    place = tmp_path_factory.mktemp("done")
    desk = Desk(place / "home", founded(place / "repo"))
    ended = desk.asks(*honest())
    assert ended.code == 0, ended.err
    return desk, team(desk)


def goes_on(desk: Desk, *words: str, replies: Sequence[Answer]) -> tuple[int, str, list[str]]:
    """The exit code, what a person read, and the words of the first request."""
    with provider([*replies]) as fake:
        ended = desk.types(*words, **reached(fake))
        first = fake.requests[0].body["messages"]
    assert isinstance(first, list)
    return ended.code, ended.err, [str(one.get("content")) for one in first]


def team(desk: Desk) -> str:
    """The newest run."""
    return desk.types("show", "last").out.split()[1]


async def held(home: Path, name: str) -> tuple[Runtime, Lease]:
    """Somebody else who runs a team."""
    runtime = await Runtime.open(home)
    lease = await runtime.log.acquire(TeamId(name), "another terminal")
    assert isinstance(lease, Lease)
    return runtime, lease


def test_it_goes_back_with_talk_and_files_and_on_from_there_and_the_old_run_stays(over: tuple[Desk, str]) -> None:
    desk, old = over
    before = desk.types("diff", old).out
    listed = desk.types("rewind", old)
    assert "coder#8   rewrite export.py · files changed" in listed.out
    assert "thinks: A letter is missing." in listed.out
    assert f"greenroom rewind {old}" in desk.types("show", old).err
    (desk.repo / "notes.txt").write_text("mine, and changed since\n")
    (desk.repo / "later.txt").write_text("of later\n")
    theirs = exactly(desk.repo)

    replies = (
        call("execute_script", 7, script="cat notes.txt; ls; cat export.py"),
        call("patch", 8, file="export.py", edits=[MENDED]),
        done("`export.py` writes JSON, without a test."),
    )
    code, err, heard = goes_on(desk, "rewind", old, "--to", "8", "no test, please", replies=replies)
    assert code == 0, err
    new = team(desk)
    assert f"{new} begins as {old} was when coder#8 had ended. {old} stays as it is." in err
    assert "no test, please" in heard[-1]
    assert any("export.py: rewritten" in one for one in heard)
    assert not any("test_json.py: new" in one for one in heard), "what came later was never said"
    seen = [one for one in desk.types("events", new, "--output-format", "stream-json").out.splitlines() if "ls;" in one]
    assert seen
    story = desk.types("replay", new, "--verbose").out
    assert "later.txt" not in story, "the copy is of then"
    changed = desk.types("diff", new).out
    assert "json.dump(rows, out)" in changed
    assert "test_json.py" not in changed
    assert "notes.txt" not in changed, "it is compared with what the first one began with"
    assert desk.types("diff", old).out == before
    assert exactly(desk.repo) == theirs
    assert desk.types("apply", new, "--no-commit").code == 0
    assert (desk.repo / "notes.txt").read_text() == "mine, and changed since\n"
    assert desk.types("undo", new).code == 0
    assert exactly(desk.repo) == theirs


def test_whatever_is_wrong_is_said_and_nothing_is_made(over: tuple[Desk, str]) -> None:
    desk, old = over
    made = desk.types("rewind", old, "--to", "coder#10", "--no-run", "--output-format", "json")
    assert made.code == 0
    assert '"origin":' in made.out
    new = team(desk)
    assert new != old
    refs = git(desk.repo, "for-each-ref", "refs/greenroom")
    wrong = {
        ("rewind", "nosuch", "--to", "3"): "There is no team 'nosuch'",
        ("rewind", old, "--to", "99"): f"{old} has no step '99' that has ended. The last that have: coder#16",
        ("rewind", old, "--to", "ann#1"): "has no step 'ann#1'",
        ("rewind", old, "--to", "16"): f"the work of {old} was over",
        ("rewind", new, "--to", "11"): f"Step coder#11 of {new} has not ended (init)",
        ("rewind", f"{old}/t1", "--to", "3"): f"Say {old}",
        ("rewind", old, "differently"): "Say --to STEP",
        ("rewind", old, "--to", " "): "--to names no step. Without it, all steps are listed",
        ("rewind", old, "--to", "8"): "There is no key for 'openai",
    }
    for words, why in wrong.items():
        ended = desk.types(*words)
        assert ended.code != 0, words
        assert why in ended.err, words
    other = asyncio.new_event_loop()
    runtime, lease = other.run_until_complete(held(desk.home, old))
    try:
        assert "runs, in another terminal" in desk.types("rewind", old, "--to", "3").err
        assert "its run works, in another terminal" in desk.types("workspaces", "clean", "--discard").out
    finally:
        other.run_until_complete(runtime.log.release(lease))
        other.run_until_complete(runtime.close())
        other.close()
    assert team(desk) == new
    assert git(desk.repo, "for-each-ref", "refs/greenroom") == refs


@pytest.mark.prove
def test_a_run_in_the_files_themselves_goes_back_without_them_and_says_so(desk: Desk) -> None:
    replies = (call("execute_script", 1, script="echo 1 >> notes.txt"), Answer(text="Done."))
    with provider([*replies]) as fake:
        assert desk.types("run", "Write.", "--in-place", **reached(fake)).code == 7, "nothing has judged it"
    code, err, heard = goes_on(desk, "rewind", "last", "--to", "2", "once more", replies=[Answer(text="Again.")])
    assert code == 7, err
    assert "The files stay as they are: it works in them itself" in err
    assert "once more" in heard[-1]
    assert (desk.repo / "notes.txt").read_text() == "mine\n1\n"
