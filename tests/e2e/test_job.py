"""A job from the request to a change that is proven, taken over, known by its step and taken back."""

from pathlib import Path

import pytest

from tests.e2e.jobs import Desk, exactly, founded, git, honest
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import greenroom
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", founded(tmp_path / "repo"))


@pytest.mark.prove
def test_a_job_is_done_in_a_copy_proven_taken_over_known_and_taken_back(desk: Desk) -> None:
    before = exactly(desk.repo)
    ended = desk.asks(*honest())
    assert ended.code == 0, ended.err
    assert "your files stay untouched" in ended.err
    assert "pytest: 1 pass, 1 already fails" in ended.err
    assert "2 files changed" in ended.err
    assert "✓ pytest: 2 passed, 1 failing" in ended.err
    assert ended.out.strip().endswith("`test_json.py` shows it.")
    assert exactly(desk.repo) == before, "nothing of the person's was touched"
    assert "+        json.dump(rows, out)" in desk.types("diff", "last").out

    assert desk.types("apply", "last", "-m", "Export JSON").code == 0
    assert git(desk.repo, "log", "-1", "--format=%an %s").strip() == "Pia Export JSON"
    assert git(desk.repo, "status", "--short").strip() == "?? notes.txt", "and nothing else"
    told = desk.types("blame", "export.py:7").out
    assert "json.dump(rows, out)" in told
    assert "patch export.py" in told
    assert "✓ pytest: " in told

    assert desk.types("undo", "last").code == 0
    assert exactly(desk.repo) == before
    assert git(desk.repo, "log", "-1", "--format=%s").strip() == "first"
    assert "not applied: rewrite test_json.py" in desk.types("workspaces", "list").out
    assert desk.types("workspaces", "clean").code == 0
    assert "rewrite test_json.py" in desk.types("workspaces", "list").out, "work is not dropped without a word"
    assert desk.types("discard", "last", "--yes").code == 0
    assert "no copies" in desk.types("workspaces", "list").out


def test_a_folder_that_nobody_means_to_be_copied_is_refused(desk: Desk, tmp_path: Path) -> None:
    wide = tmp_path / "wide"
    for number in range(21):
        folder = wide / str(number)
        folder.mkdir(parents=True)
        for name in range(1000):
            (folder / str(name)).touch()
    with provider([Answer(text="x")]) as fake:
        ended = greenroom(desk.home, "run", "Look.", "--yes", cwd=str(wide), **reached(fake))
    assert ended.code == 3
    assert "has more than 20,000 files" in ended.err
    assert "--in-place" in ended.err
