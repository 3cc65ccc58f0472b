"""A job from the request to a change that is proven, taken over, known by its step and taken back; and liars."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from greenroom.testing.fake_openai import Answer, Call
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import Ended, greenroom
from tests.e2e.typing import ENTER, Typing

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

EXPORT = "import csv\n\n\ndef export(rows, out):\n    csv.writer(out).writerows(rows)\n"
TESTS = """import io

from export import export


def test_csv():
    out = io.StringIO()
    export([[1, 2]], out)
    assert out.getvalue().strip() == "1,2"


def test_old():
    assert export is None, "it has always failed"
"""
WRONG = (
    "import csv\nimport json\n\n\ndef export(rows, out, as_json=False):\n    if as_json:\n        json.dump(row, out)\n"
)
WRONG += "    else:\n        csv.writer(out).writerows(rows)\n"
TEST = "import io\n\nfrom export import export\n\n\ndef test_json():\n    out = io.StringIO()\n"
TEST += '    export([[1]], out, as_json=True)\n    assert out.getvalue() == "[[1]]"\n'
ALONE = " ".join(f"-p no:{name}" for name in ("xdist", "hypothesispytest", "pytest_cov", "asyncio", "inline_snapshot"))
"""Plugins of ours, which take a second to load, are nothing to that project."""

PERSON = {"GIT_AUTHOR_NAME": "Pia", "GIT_AUTHOR_EMAIL": "pia@example.org"}
PERSON |= {"GIT_COMMITTER_NAME": "Pia", "GIT_COMMITTER_EMAIL": "pia@example.org"}


def git(repo: Path, *words: str) -> str:
    env = {**os.environ, **PERSON, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(["git", *words], cwd=repo, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture(name="repo")
def _repo(tmp_path: Path) -> Path:
    """A repository with a test that fails already, and a file that its person has not committed."""
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "export.py").write_text(EXPORT)
    (repo / "test_export.py").write_text(TESTS)
    (repo / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\naddopts = '-q {ALONE}'\n")
    git(repo, "init", "--quiet", "--initial-branch=main")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message=first")
    (repo / "notes.txt").write_text("mine\n")
    return repo


def files(repo: Path) -> dict[str, str]:
    every = [one for one in sorted(repo.rglob("*")) if one.is_file() and ".git" not in one.parts]
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in every}


def call(name: str, number: int, **given: object) -> Answer:
    return Answer(calls=(Call(name=name, arguments=given, id=f"c{number}"),))


class Desk:
    """A person in their repository."""

    def __init__(self, home: Path, repo: Path) -> None:
        self.home, self.repo = home, repo

    def types(self, *words: str, **more: str) -> Ended:
        own = {"GREENROOM_SANDBOX": "auto", "XDG_CACHE_HOME": str(self.home / "cache"), **PERSON}
        return greenroom(self.home, *words, cwd=str(self.repo), **own, **more)

    def asks(self, *replies: Answer) -> Ended:
        with provider([*replies]) as fake:
            return self.types("run", "add json to export, with tests", "--yes", **reached(fake))


@pytest.fixture(name="desk")
def _desk(tmp_path: Path, repo: Path) -> Desk:
    return Desk(tmp_path / "home", repo)


def honest() -> Sequence[Answer]:
    """Forgets a letter, is told, and mends it."""
    edit = {"search": "json.dump(row,", "replace": "json.dump(rows,"}
    return (
        call("read_code", 1, file="export.py"),
        call("propose_plan", 2, steps=["Add as_json", "Test it"], files=["export.py", "test_json.py"]),
        call("rewrite", 3, file="export.py", content=WRONG),
        call("rewrite", 4, file="test_json.py", content=TEST),
        Answer(text="It is done."),
        call("patch", 5, file="export.py", edits=[edit]),
        Answer(text="`export.py` writes JSON now; `test_json.py` shows it."),
    )


def test_a_job_is_done_in_a_copy_proven_taken_over_known_and_taken_back(desk: Desk) -> None:
    before = files(desk.repo)
    ended = desk.asks(*honest())
    assert ended.code == 0, ended.err
    assert "your files stay untouched" in ended.err
    assert "pytest: 1 pass, 1 already fails" in ended.err
    assert "2 files changed" in ended.err
    assert "✓ pytest: clean" in ended.err
    assert ended.out.strip().endswith("`test_json.py` shows it.")
    assert files(desk.repo) == before, "nothing of the person's was touched"
    assert "+        json.dump(rows, out)" in desk.types("diff", "last").out

    assert desk.types("apply", "last", "-m", "Export JSON").code == 0
    assert git(desk.repo, "log", "-1", "--format=%an %s").strip() == "Pia Export JSON"
    assert git(desk.repo, "status", "--short").strip() == "?? notes.txt", "and nothing else"
    told = desk.types("blame", "export.py:7").out
    assert "json.dump(rows, out)" in told
    assert "patch export.py" in told
    assert "✓ pytest: clean" in told

    assert desk.types("undo", "last").code == 0
    assert files(desk.repo) == before
    assert git(desk.repo, "log", "-1", "--format=%s").strip() == "first"
    assert "not applied: rewrite test_json.py" in desk.types("workspaces", "list").out
    assert desk.types("workspaces", "clean").code == 0
    assert "rewrite test_json.py" in desk.types("workspaces", "list").out, "work is not dropped without a word"
    assert desk.types("discard", "last", "--yes").code == 0
    assert "no copies" in desk.types("workspaces", "list").out


LIES = {
    "says done and has done nothing": (
        (call("propose_plan", 1, steps=["Do it"], files=["export.py"]), Answer(text="Done, all tests pass.")),
        "It set out to change files, and none is different.",
    ),
    "a file that is not there": (
        (call("rewrite", 1, file="a.py", content="A = 1\n"), Answer(text="I created `b_missing.py`.")),
        "b_missing.py",
    ),
    "a test that fails is deleted": (
        (call("execute_script", 1, script="rm test_export.py"), Answer(text="Done.")),
        "NOT verified",
    ),
    "a test is changed so that it passes": (
        (
            call("patch", 1, file="test_export.py", edits=[{"search": "export is None", "replace": "export"}]),
            Answer(text="Mended."),
        ),
        "Changed by the work itself",
    ),
    "the code is broken": (
        (
            call("patch", 1, file="export.py", edits=[{"search": "csv.writer(out).writerows(rows)", "replace": "0"}]),
            Answer(text="Done."),
        ),
        "test_export.py::test_csv",
    ),
}


QUICK = ("says done and has done nothing", "a test is changed so that it passes")
EACH = [one if one in QUICK else pytest.param(one, marks=pytest.mark.prove) for one in LIES]


@pytest.mark.parametrize("lie", EACH)
def test_who_lies_never_ends_well_and_it_is_said_why(desk: Desk, lie: str) -> None:
    replies, why = LIES[lie]
    ended = desk.asks(*replies, *replies[-1:] * 2)
    assert ended.code == 1, ended.err
    assert why in ended.err


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


def test_a_person_sees_the_checks_the_plan_and_the_outcome_and_decides(desk: Desk) -> None:
    own = {"GREENROOM_SANDBOX": "auto", **PERSON}
    words = ("run", "add json to export, with tests")
    with provider([*honest()]) as fake, Typing(desk.home, *words, cwd=str(desk.repo), **own, **reached(fake)) as screen:
        screen.until("pytest: python3 -m pytest   (pyproject.toml sets up pytest.)")
        screen.until("or type a command line of yours:")
        screen.press(f"y{ENTER}")
        screen.until("Touches: export.py, test_json.py")
        screen.until("(Ctrl-D: not now)")
        screen.press(f"keep the CSV default{ENTER}")
        screen.until("The person says: keep the CSV default")
        screen.until("[Enter] later:")
        screen.press(f"q{ENTER}")
        screen.until("That is none of the answers.")
        screen.until("[Enter] later:")  # what is typed before a question does not answer it
        screen.press(f"d{ENTER}")
        screen.until("+        json.dump(rows, out)")
        screen.until("[Enter] later:")
        screen.press(f"a{ENTER}")
        screen.until("Take it back with: greenroom undo")
    assert git(desk.repo, "log", "-1", "--format=%an %s").strip() == "Pia add json to export, with tests"
