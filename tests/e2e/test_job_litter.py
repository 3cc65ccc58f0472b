"""What the checks of a project make where git is not told to ignore it, and what the work has beside that."""

import shutil
from pathlib import Path

import pytest

from greenroom.testing.fake_openai import Answer
from tests.e2e.jobs import Desk, call, committed, git

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

MAKES = (
    "mkdir -p out; for i in 1 2 3 4 5; do echo x > out/$$i; done; git init -q fixture; : > \"$$(printf 'caf\\351')\""
)


def test_work_among_what_the_checks_make_is_delivered_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "repo" / "part"
    (place / ".greenroom").mkdir(parents=True)  # the workspace is a part of the repository
    (place / "calc.py").write_text("def double(x):\n    return 2 * x\n")
    (place / "Makefile").write_text(f"check:\n\t@{MAKES}; python3 -c 'import calc; assert calc.double(3) == 6'\n")
    committed(tmp_path / "repo")
    desk = Desk(tmp_path / "home", place)
    ended = desk.asks(
        call("run_checks", 1),
        call("rewrite", 2, file="out/report.py", content="import calc\n\nprint(calc.double(2))\n"),
        call("execute_script", 3, script="echo 1 > out/data.csv"),
        Answer(text="The report is there."),
        words=("--yes", "--apply"),
    )
    assert ended.code == 0, ended.err
    assert 'The checks make "part/caf\\351", part/fixture/, part/out/ by themselves: no part of the work.' in ended.err
    assert "Note: not delivered, made where the checks make files: part/out/data.csv" in ended.err
    assert git(place, "show", "--name-only", "--format=").split() == ["part/out/report.py"]
