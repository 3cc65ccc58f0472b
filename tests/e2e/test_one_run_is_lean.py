"""What one `greenroom run --question` costs: files of ours that run before the model is asked, folds, git processes.

The run is a real one, in one fresh process, with the fake provider beside it. Run as a program, this file is that run.
"""

import inspect
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import TypedDict, cast

import pytest

import greenroom
from greenroom.cli.app import run
from tests.e2e.jobs import PERSON, founded
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import PATIENCE, environment
from tests.fake_openai import Answer

OURS = str(Path(greenroom.__file__).parent)
FOLD = f"{OURS}/core/state/reducer.py"
MOST_FILES = 175

MOST_FOLDS = 3
"""When it is committed, when it is followed, and when a run looks at its ended steps."""

MOST_GITS = 16
"""The goal is 12. All of them are started by `adapters/git` for the snapshot, the worktree and the verdict."""


class Figures(TypedDict):
    """What was counted: files by name, folds by event, and the command lines of git."""

    files: list[str]
    folds: dict[str, int]
    gits: list[str]


@pytest.fixture(scope="module", name="figures")
def _figures(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    folder = tmp_path_factory.mktemp("lean")
    repo = founded(folder / "repo")
    words = [sys.executable, "-m", "tests.e2e.test_one_run_is_lean", str(repo)]
    with provider(Answer(text="It exports rows.")) as fake:
        around = environment(folder / "home", GREENROOM_SANDBOX="auto", **PERSON, **reached(fake))
        done = subprocess.run(words, env=around, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return cast("Figures", json.loads(done.stdout.splitlines()[-1]))


def test_few_files_run_before_the_model_is_asked(figures: Figures) -> None:
    assert len(figures["files"]) <= MOST_FILES, "\n".join(figures["files"])


def test_an_event_is_folded_a_few_times(figures: Figures) -> None:
    assert figures["folds"]["TaskEnded"] == 2, "when it is committed, and when it is followed: nothing reads it again"
    assert max(figures["folds"].values()) <= MOST_FOLDS, figures["folds"]


def test_git_is_started_a_few_times(figures: Figures) -> None:
    assert len(figures["gits"]) <= MOST_GITS, "\n".join(figures["gits"])


class Measure:
    """Counts what happens in this process while the command runs."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.folds: Counter[str] = Counter()
        self.gits: list[str] = []
        self.asked = False

    def profile(self, frame: FrameType, what: str, _: object) -> None:
        """One call of a function."""
        code = frame.f_code
        if what != "call" or not code.co_filename.startswith(OURS) or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        name = code.co_filename.removeprefix(OURS)
        if not self.asked and name not in self.files and not is_importing(frame):
            self.files.add(name)
        if code.co_filename == FOLD and code.co_name == "reduce":
            event = frame.f_locals["event"]
            self.folds[f"{type(event).__name__} {getattr(event, 'step_id', '')}".strip()] += 1

    def audit(self, event: str, given: tuple[object, ...]) -> None:
        """A process that is started, or the connection to the provider."""
        if event == "subprocess.Popen" and isinstance(given[1], list | tuple) and str(given[1][0]).endswith("git"):
            self.gits.append(" ".join(map(str, given[1])))
        self.asked |= event == "socket.connect"


def is_importing(frame: FrameType | None) -> bool:
    """Whether a module of ours is just loaded: what runs for that is no work for the request."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(OURS):
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    measure = Measure()
    sys.addaudithook(measure.audit)
    threading.setprofile(measure.profile)
    sys.setprofile(measure.profile)
    ended = run(["run", "what does export do?", "--question"])
    sys.setprofile(None)
    sys.stdout.write(json.dumps({"files": sorted(measure.files), "folds": measure.folds, "gits": measure.gits}) + "\n")
    sys.exit(ended)
