"""What one `greenroom run --question` costs: files of ours that run before the model is asked, folds, git processes.

The run is a real one, in one fresh process, with the fake provider beside it. Run as a program, this file is that run.
"""

import inspect
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

import greenroom
from tests.e2e.jobs import PERSON, founded
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import PATIENCE, environment
from tests.fake_openai import Answer

OURS = str(Path(greenroom.__file__).parent)
MOST_FILES = 400
MOST_FOLDS = 100
MOST_GITS = 100


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The figures of one run."""
    folder = tmp_path_factory.mktemp("lean")
    repo = founded(folder / "repo")
    around = {"GREENROOM_SANDBOX": "auto", **PERSON}
    with provider(Answer(text="It exports rows.")) as fake:
        words = [sys.executable, "-m", "tests.e2e.test_one_run_is_lean", str(repo)]
        done = subprocess.run(
            words,
            env=environment(folder / "home", **around, **reached(fake)),
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_few_files_run_before_the_model_is_asked(measured: dict[str, list[str]]) -> None:
    files = measured["files"]
    assert len(files) <= MOST_FILES, "\n".join(files)


def test_an_event_is_folded_a_few_times(measured: dict[str, dict[str, int]]) -> None:
    folds = measured["folds"]
    assert max(folds.values()) <= MOST_FOLDS, folds


def test_git_is_started_a_few_times(measured: dict[str, list[str]]) -> None:
    gits = measured["gits"]
    assert len(gits) <= MOST_GITS, "\n".join(gits)


class Measure:
    """Counts what happens in this process while the command runs."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.folds: Counter[str] = Counter()
        self.callers: Counter[str] = Counter()
        self.gits: list[str] = []
        self.asked = False

    def profile(self, frame: FrameType, what: str, _: object) -> None:
        """One call of a function."""
        code = frame.f_code
        if what != "call" or not code.co_filename.startswith(OURS) or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        if not self.asked:
            self.files.add(code.co_filename.removeprefix(OURS))
        if code.co_name == "fold" and code.co_filename.endswith("core/state/fold/__init__.py"):
            event = frame.f_locals["event"]
            self.folds[f"{type(event).__name__} {getattr(event, 'step_id', '')}"] += 1
            caller, names = frame.f_back, list[str]()
            while caller is not None and len(names) < 6:
                if caller.f_code.co_filename.startswith(OURS):
                    names.append(f"{caller.f_code.co_filename.removeprefix(OURS)}:{caller.f_code.co_name}")
                caller = caller.f_back
            self.callers[" < ".join(names)] += 1

    def audit(self, event: str, given: tuple[object, ...]) -> None:
        """One process that is started, or one connection to the provider."""
        if event == "subprocess.Popen" and isinstance(given[1], list | tuple) and str(given[1][0]).endswith("git"):
            self.gits.append(" ".join(map(str, given[1])))
        elif event == "socket.connect":
            self.asked = True


def _measure(repo: str) -> None:
    import importlib
    import os
    import pkgutil

    from greenroom.cli.app import run

    for module in pkgutil.walk_packages(greenroom.__path__, "greenroom."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    os.chdir(repo)
    measure = Measure()
    sys.addaudithook(measure.audit)
    threading.setprofile(measure.profile)
    sys.setprofile(measure.profile)
    code = run(["run", "what does export do?", "--question"])
    sys.setprofile(None)
    found = {"files": sorted(measure.files), "folds": measure.folds, "gits": measure.gits, "callers": measure.callers}
    print(json.dumps(found))
    sys.exit(code)


if __name__ == "__main__":
    _measure(sys.argv[1])
