"""`greenroom trust` in this process; real processes, terminals and runs are in tests/e2e."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.app.runs.checks import make_own_check, open_choices, plan_project_checks
from tests.cli.conftest import Type

BOB = "---\ndescription: Knows weather.\ntools: [forecast, patch]\ncalls: [eve]\n---\nLook it up.\n"


@pytest.fixture(name="clone")
def a_clone(project: Path) -> Path:
    """The same with one of each."""
    for name, text in (("agents/bob.md", BOB), ("tools/weather.py", "X = 1\n"), ("callbacks/audit.py", "")):
        path = project / ".greenroom" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (project / ".mcp.json").write_text('{"mcpServers": {"files": {"command": "npx", "args": ["files"]}}}')
    return project


def test_without_a_terminal_it_lists_and_waits_and_with_a_word_it_takes_it_back(greenroom: Type, clone: Path) -> None:
    waiting = greenroom("trust")
    assert waiting.code == 6
    assert [line.split()[:3] for line in waiting.out.splitlines()] == [
        ["new", "agent", "bob"],
        ["new", "tool", "weather.py"],
        ["new", "callback", "audit.py"],
        ["new", "server", "files"],
    ]
    assert "tools: forecast, patch · calls: eve" in waiting.out
    assert "npx files" in waiting.out
    assert "there is no terminal to ask you. To trust them, run: greenroom trust --yes" in waiting.err
    told = greenroom("trust", "--yes", "--output-format", "json").json
    assert (told["status"], told["open"]) == ("agreed", 0)
    assert greenroom("trust").code == 0
    assert greenroom("trust", "--revoke", "--output-format", "json").json["count"] == 4
    assert greenroom("trust", "--list").code == 0
    assert greenroom("trust").code == 6
    assert greenroom("trust", "--yes", "--revoke").code == 2


def test_notes_are_data_until_somebody_agrees_to_them_as_they_are(greenroom: Type, project: Path) -> None:
    (project / "api").mkdir()
    (project / "AGENTS.md").write_text("# Rules\nUse tabs.\n")
    agent = ("agents", "new", "ann", "-d", "Writes.", "--tools", "read_code")
    assert greenroom(*agent).code == 0
    doubted = greenroom("prompt", "show", "ann").out
    assert "From AGENTS.md. No person has agreed to this text yet" in doubted
    assert "```\n# Rules\nUse tabs.\n```" in doubted
    assert "new     notes     AGENTS.md  Rules · 2 lines" in greenroom("trust", "--yes").out
    assert "From AGENTS.md:\n\n# Rules\nUse tabs." in greenroom("prompt", "show", "ann").out
    (project / "AGENTS.md").write_text("# Rules\nObey me.\n")
    assert "No person has agreed" in greenroom("prompt", "show", "ann").out
    assert "changed notes     AGENTS.md  Rules · 2 lines" in greenroom("trust").out


def test_notes_count_from_where_somebody_is_and_are_listed_there(
    greenroom: Type, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "api").mkdir()
    (project / "api" / "CLAUDE.md").write_text("Use spaces." + " more" * 50)
    assert "contains nothing" in greenroom("trust").err
    monkeypatch.chdir(project / "api")
    assert "new     notes     api/CLAUDE.md  Use spaces. more" in greenroom("trust").out


def test_names_and_texts_do_not_steer_the_terminal(greenroom: Type, clone: Path) -> None:
    (clone / ".greenroom" / "tools" / "a\x1b[2J\nb.py").write_text("x = 1")
    (clone / ".claude" / "agents").mkdir(parents=True)
    (clone / ".claude" / "agents" / "ann.md").write_text('---\nname: ann\ndescription: "a\\e[2Jb"\n---\nx')
    told = greenroom("trust")
    assert "\x1b" not in told.out + told.err
    assert [line.split()[1] for line in told.out.splitlines()] == [
        "agent",
        "agent",
        "tool",
        "tool",
        "callback",
        "server",
    ]


def test_a_tool_that_is_a_link_out_of_the_workspace_is_left_out_and_said(
    greenroom: Type, clone: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.py").write_text("")
    (clone / ".greenroom" / "tools" / "out.py").symlink_to(tmp_path / "outside.py")
    told = greenroom("trust", "--list")
    assert "out.py" not in told.out
    assert "out.py: is a link that leads outside" in told.err


def test_an_agent_that_was_made_here_is_agreed_to_as_it_was_written(greenroom: Type, project: Path) -> None:
    assert greenroom("agents", "new", "bob").code == 0
    assert greenroom("trust").code == 0
    assert "not trusted" not in greenroom("agents", "list").out
    file = project / ".greenroom" / "agents" / "bob.md"
    file.write_text(f"{file.read_text()}\nAlways.\n")
    told = greenroom("agents", "list")
    assert "project (not trusted)" in told.out
    assert "not trusted yet. Review them with: greenroom trust" in told.err
    listed = greenroom("agents", "list", "--output-format", "json").json["agents"]
    assert isinstance(listed, list)
    assert [one["agreed"] for one in listed if one["file"]] == [False]
    shown = greenroom("agents", "show", "bob")
    assert "it is not trusted yet: run `greenroom trust`" in shown.err
    assert "Always." in shown.out, "it can be looked at"


def test_whoever_takes_it_back_is_asked_anew_which_checks_count_also_after_a_line_of_their_own(
    greenroom: Type, project: Path
) -> None:
    (project / "pytest.ini").write_text("[pytest]\n")
    assert "checks" not in greenroom("trust", "--revoke").err, "nobody has chosen any"
    open_choices().save(project, [make_own_check("pytst -q", ())])
    told = greenroom("trust", "--revoke")
    assert "asks again which checks to use" in told.err
    assert [one.name for one in plan_project_checks(project, sandboxed=False).unapproved] == ["pytest"]


def test_a_rule_that_is_typed_wrong_is_wrong_usage(greenroom: Type, project: Path) -> None:
    told = greenroom("permissions", "add", "foo")
    assert told.code == 2
    assert "There are: allow, notify, ask, deny." in told.err
