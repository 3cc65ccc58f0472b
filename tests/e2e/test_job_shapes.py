"""A job is done, applied and undone, and each byte and bit is as before.

Repositories of every shape are tried in `tests/adapters/git/test_shapes.py`.
"""

import os
from pathlib import Path

import pytest

from tests.e2e.jobs import Desk, call, done, exactly
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

CHECK = "test:\n\tgrep -q one a.txt\n\ttest -e run.sh\n"
SCRIPT = "rm gone.txt; chmod +x run.sh; mkdir -p 'new folder'; printf 'x\\r\\n' > 'new folder/名字.txt'"


def content(root: Path) -> None:
    """What a job works on: a file that is changed, one that goes, one that can be run afterwards."""
    root.mkdir(parents=True)
    (root / "Makefile").write_text(CHECK)
    (root / "a.txt").write_text("one\n")
    (root / "gone.txt").write_text("gone\n")
    (root / "run.sh").write_text("#!/bin/sh\n")


def no_git(root: Path) -> Path:
    content(root)
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
    _kept_what_was_not_the_jobs(root, before)

    undone = desk.types("undo", "last")
    assert undone.code == 0, undone.err
    assert exactly(root) == before


def _kept_what_was_not_the_jobs(root: Path, before: dict[str, str]) -> None:
    """While it is applied, every other file is what it was."""
    now = exactly(root)
    mine = ("a.txt", "gone.txt", "run.sh", "new folder", "git ", "HEAD")
    others = {name: told for name, told in before.items() if not any(one in name for one in mine)}
    assert {name: now.get(name) for name in others} == others
