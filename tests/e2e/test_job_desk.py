"""Jobs in a person's repository: the network at a narrow terminal, a folder without git, circles, going back."""

import asyncio
import os
import re
from pathlib import Path

import pytest

from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.log import Lease
from tests.e2e.internet import Internet
from tests.e2e.jobs import ASKED, Desk, Turns, call, done, exactly, founded, git, honest
from tests.e2e.provider import provider
from tests.e2e.typing import ENTER
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", founded(tmp_path / "repo"))


def wants(there: Internet, number: int, script: str = "") -> Answer:
    return call("execute_script", number, script=script or there.command, hosts=[there.host], why="To see a row.")


def test_a_no_at_a_narrow_terminal_opens_nothing_and_always_is_kept_for_that_host(desk: Desk) -> None:
    there = Internet()
    turns = Turns((wants(there, 1), wants(there, 2), done("Done.")))
    with there, provider(turns) as fake, desk.sits(fake, "run", ASKED, columns="80", also=there.settings) as screen:
        screen.until("or type a command line: ")
        screen.press(f"y{ENTER}")
        asked = screen.until("[n] no: ")
        words = " ".join(asked[asked.index("coder wants the network") :].split())
        assert words.startswith(
            f"coder wants the network for a command. It would reach `{there.host}`, which no rule allows. "
            f"| {there.command}"
        )
        assert f"this would go to `{there.host}`. It says why: | To see a row. [y] once" in words
        assert "  | To see a row.\r\n" in asked or "  | To see a row.\n" in asked
        assert not re.search("execute_script|command:|host:", words)
        screen.press(f"n not today{ENTER}")
        screen.until("[n] no: ")
        assert there.asked == []
        screen.press(f"a{ENTER}")
        screen.until("/schema.json → exit code 0")
        screen.until("Done.")
    assert "not today" in turns.asked[1]
    assert there.asked == ["/schema.json"]
    kept = desk.types("permissions", "list").out
    assert f"allow host {there.host}" in kept


CHECK = "test:\n\tgrep -q one a.txt\n\ttest -e run.sh\n"
SCRIPT = "rm gone.txt; chmod +x run.sh; mkdir -p 'new folder'; printf 'x\\r\\n' > 'new folder/名字.txt'"


def no_git(root: Path) -> Path:
    """A folder that a job works on: a file that is changed, one that goes, one that can be run afterwards."""
    root.mkdir(parents=True)
    for name, text in (("Makefile", CHECK), ("a.txt", "one\n"), ("gone.txt", "gone\n"), ("run.sh", "#!/bin/sh\n")):
        (root / name).write_text(text)
    (root / "photo.bin").write_bytes(bytes(range(256)))
    (root / "link").symlink_to("a.txt")
    return root


WORK = (
    call("propose_plan", 1, steps=["Do it"], files=["a.txt"]),
    call("patch", 2, file="a.txt", edits=[{"search": "one\n", "replace": "one\ntwo\n"}]),
    call("execute_script", 3, script=SCRIPT),
    done("Done."),
)


def test_after_a_job_without_git_was_applied_and_undone_all_is_as_before(tmp_path: Path) -> None:
    root = no_git(tmp_path / "repo")
    desk, before = Desk(tmp_path / "home", root), exactly(root)
    ended = desk.asks(*WORK)
    assert ended.code == 0, ended.err
    assert exactly(root) == before, "the job itself touched something"

    applied = desk.types("apply", "last")
    assert applied.code == 0, applied.err
    assert (root / "a.txt").read_text().split() == ["one", "two"]
    assert not (root / "gone.txt").exists()
    assert os.access(root / "run.sh", os.X_OK)
    assert (root / "new folder" / "名字.txt").read_bytes() == b"x\r\n"
    now, mine = exactly(root), ("a.txt", "gone.txt", "run.sh", "new folder", "git ", "HEAD")
    others = {name: told for name, told in before.items() if not any(part in name for part in mine)}
    assert {name: now.get(name) for name in others} == others, "while it is applied, every other file is what it was"

    undone = desk.types("undo", "last")
    assert undone.code == 0, undone.err
    assert exactly(root) == before


@pytest.fixture(name="over", scope="module")
def _over(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, str]:
    """A job that is done, and its run; it takes its time, and nobody here changes it."""
    place = tmp_path_factory.mktemp("done")
    desk = Desk(place / "home", founded(place / "repo"))
    ended = desk.asks(*honest())
    assert ended.code == 0, ended.err
    return desk, team(desk)


def team(desk: Desk) -> str:
    """The newest run."""
    return desk.types("show", "last").out.split()[1]


def test_a_run_is_shown_with_its_verdict_and_from_elsewhere_with_its_repository(over: tuple[Desk, str]) -> None:
    desk, old = over
    row = next(line for line in desk.types("runs").out.splitlines() if line.startswith(f"{old}/t1"))
    assert " finished  verified " in row
    shown = desk.types("show", old).out
    assert shown.startswith(f"run {old} · began ")
    assert re.search(r"^\d+ steps, [\d,]+ tokens", shown, re.MULTILINE)
    elsewhere = Desk(desk.home, desk.repo.parent)
    refused = elsewhere.types("apply", "last")
    assert refused.code == 2
    assert f"of '{desk.repo}'. Use it here: greenroom apply " in refused.err
    assert elsewhere.types("diff", old).err == f"This run belongs to {desk.repo}.\n"


async def held(home: Path, name: str) -> tuple[Runtime, Lease]:
    """Somebody else who runs a team."""
    runtime = await Runtime.open(home)
    lease = await runtime.log.acquire(TeamId(name), "another terminal")
    assert isinstance(lease, Lease)
    return runtime, lease


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
        ("rewind", old, "--to", "99"): f"{old} has no step '99' that has ended. The last ended steps: coder#16",
        ("rewind", old, "--to", "ann#1"): "has no step 'ann#1'",
        ("rewind", old, "--to", "16"): f"the work of {old} was over",
        ("rewind", new, "--to", "11"): f"Step coder#11 of {new} has not ended (not started)",
        ("rewind", f"{old}/t1", "--to", "3"): f"Use {old}",
        ("rewind", old, "differently"): "Add --to STEP",
        ("rewind", old, "--to", " "): "--to is empty. Name a step",
        ("rewind", old, "--to", "8"): "There is no key for 'openai",
    }
    for words, why in wrong.items():
        ended = desk.types(*words)
        assert ended.code != 0, words
        assert why in ended.err, words
    other = asyncio.new_event_loop()
    runtime, lease = other.run_until_complete(held(desk.home, old))
    try:
        assert "runs in another terminal" in desk.types("rewind", old, "--to", "3").err
        assert "its run is active in another terminal" in desk.types("workspaces", "clean", "--discard").out
    finally:
        other.run_until_complete(runtime.log.release(lease))
        other.run_until_complete(runtime.close())
        other.close()
    assert team(desk) == new
    assert git(desk.repo, "for-each-ref", "refs/greenroom") == refs
