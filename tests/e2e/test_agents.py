"""From nothing to an agent that can be looked at, through the real door."""

import re
from pathlib import Path

import pytest

from greenroom.app.agents.specs import OURS
from tests.e2e.terminal import greenroom

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "agents.md"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of one's own, under version control."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


def test_an_agent_is_made_listed_and_asked_for_its_prompt(tmp_path: Path, project: Path) -> None:
    here = {"cwd": str(project), "HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "nowhere")}
    made = greenroom(tmp_path, "agents", "new", "reviewer", "-d", "Reviews changes.", **here)
    assert (made.code, made.out) == (0, f"{project}/.greenroom/agents/reviewer.md\n")
    assert "reviewer  Reviews changes.  normal  project" in greenroom(tmp_path, "agents", "list", **here).out
    shown = greenroom(tmp_path, "prompt", "show", "reviewer", "--message", "Look.", "-q", **here)
    assert (shown.code, shown.err) == (0, "")
    assert "You are reviewer." in shown.out
    assert shown.out.endswith("\nLook.\n")
    assert not (tmp_path / "greenroom.db").exists(), "nothing was run"


def test_every_key_is_on_the_page() -> None:
    (table,) = re.findall(r"^\| key .*?\n\n", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert {part for key in OURS for part in key.split(".")} | {"design"} <= set(re.findall(r"`(\w+)`", table))
