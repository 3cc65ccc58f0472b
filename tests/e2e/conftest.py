"""A home in which the demo ran once, copied for every test that wants one; and which processes are measured."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.terminal import Ended, greenroom

UNMEASURED = {
    "test_agents",
    "test_ask",
    "test_bad_input",
    "test_demo",
    "test_demo_team",
    "test_escapes",
    "test_evals",
    "test_go",
    "test_help",
    "test_left_behind",
    "test_looking",
    "test_recordings",
    "test_remembering",
    "test_secrets",
    "test_setting_up",
    "test_signals",
    "test_streams",
    "test_trust",
    "test_two_terminals",
}


@pytest.fixture(autouse=True)
def _first_cases_are_measured(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage nearly doubles what a command takes; the other cases of a test reach next to no lines of their own.

    Nor do whole files whose commands are run by other tests too.
    """
    case = getattr(request.node, "callspec", None)
    if (case is not None and any(case.indices.values())) or request.path.stem in UNMEASURED:
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.fixture(scope="session")
def ran_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A home in which the demo ran, only to be looked at, and what the demo left behind."""
    home = tmp_path_factory.mktemp("ran")
    ended = greenroom(home, "demo", "--team", "--pace", "0")
    assert ended.code == 0
    return home, ended


@pytest.fixture
def home(ran_once: tuple[Path, Ended], tmp_path: Path) -> Path:
    """A home of one's own, with one finished team in it."""
    copy = tmp_path / "home"
    shutil.copytree(ran_once[0], copy)
    return copy
