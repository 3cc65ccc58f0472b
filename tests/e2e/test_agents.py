"""From nothing to an agent that can be looked at, through the real door."""

import re
from pathlib import Path

import pytest

from greenroom.app.agents.keys import OURS
from tests.e2e.terminal import greenroom

PAGE = Path(__file__).parents[2] / "docs" / "howto-agents.md"


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


def test_a_strangers_file_does_not_steer_the_terminal(tmp_path: Path, project: Path) -> None:
    here = {"cwd": str(project), "HOME": str(tmp_path)}
    folder = project / ".greenroom" / "agents"
    folder.mkdir(parents=True)
    (folder / "e\x1b[2Jvil.md").write_text("---\nrole: x\n---\n")
    (folder / "bad.md").write_text('---\n"k\\e[2Jey": 1\n---\n')
    claudes = project / ".claude" / "agents"
    claudes.mkdir(parents=True)
    (claudes / "ann.md").write_text('---\ndescription: "a\\e[2Jb [bold]c"\n"k\\e[2Jey": "\\e[2J"\n---\n')
    told = greenroom(tmp_path, "agents", "list", **here)
    assert "ab [bold]c" in told.out
    assert "`key` is no key" in told.err
    for words in (("agents", "list"), ("agents", "show", "ann"), ("agents", "show", "bad"), ("prompt", "show", "ann")):
        ended = greenroom(tmp_path, *words, **here)
        assert "\x1b" not in ended.out + ended.err


def test_every_key_is_on_the_page() -> None:
    (table,) = re.findall(r"^\| key .*?\n\n", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert {part for key in OURS for part in key.split(".")} | {"design"} <= set(re.findall(r"`(\w+)`", table))


def test_an_agent_is_not_written_where_nobody_could_agree_to_it(tmp_path: Path, project: Path) -> None:
    ledger = tmp_path / "config" / "greenroom" / "trust.json"
    ledger.parent.mkdir(parents=True)
    ledger.write_text("{")
    refused = greenroom(tmp_path, "agents", "new", "reviewer", cwd=str(project), HOME=str(tmp_path))
    assert refused.code == 3
    assert f"{ledger} cannot be read" in refused.err
    assert not (project / ".greenroom").exists()
    assert greenroom(tmp_path, "agents", "new", "mine", "--user", cwd=str(project), HOME=str(tmp_path)).code == 0
