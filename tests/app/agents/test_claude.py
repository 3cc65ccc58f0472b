"""Claude Code's subagents are read as they are, and what has no equivalent here is reported."""

from __future__ import annotations

import pytest

from greenroom.app.agents.discovery import AgentFile
from tests.app.agents.folders import Folders, written

REVIEWER = """\
---
name: code-reviewer
description: Reviews code. Use proactively after changes.
tools: Read, Grep, Glob, Bash
model: sonnet
---

You are a senior code reviewer.

## Process
1. Run git diff.
"""

DIALOGUE = """\
---
name: git-ops
description: Use this agent for git. Examples: <example>Context: A user begins. user: 'I'm starting M1' assistant: \
"I'll use it." <commentary>It is: "so".</commentary></example>\\n\\nMore.

Context: another one
user: "Please"
tools: [Read, Bash]
model: haiku
color: "green"
---
You work with git.
"""


def claude(folders: Folders, front: str, body: str = "Do it.", name: str = "ann") -> AgentFile:
    written(folders.claudes / f"{name}.md", f"---\n{front}\n---\n{body}")
    (found,) = folders.found().by_name.values()
    return found


def report(found: AgentFile) -> list[str]:
    return [str(one) for one in found.notes]


def test_a_subagent_is_read_as_it_is(folders: Folders) -> None:
    written(folders.claudes / "x.md", REVIEWER)
    found = folders.found().get("code-reviewer")
    spec = found.spec
    assert spec.description == "Reviews code. Use proactively after changes."
    assert spec.prompt.startswith("You are a senior code reviewer.\n\n## Process\n1. Run")
    assert (spec.groups, spec.llm_config) == (("read", "command"), {"model": "strong"})
    assert len(spec.version) == 12
    assert report(found) == []


def test_a_front_matter_that_is_no_yaml_is_read_all_the_same(folders: Folders) -> None:
    written(folders.claudes / "x.md", DIALOGUE)
    found = folders.found().get("git-ops")
    assert found.spec.description.startswith("Use this agent for git. Examples: <example>Context: A user begins.")
    assert found.spec.description.endswith('\n\nMore.\n\nContext: another one\nuser: "Please"')
    assert (found.spec.groups, found.spec.llm_config) == (("read", "command"), {"model": "fast"})
    assert report(found) == ["`color` has no equivalent here and has no effect."]


def test_of_a_key_that_is_there_twice_the_first_counts(folders: Folders) -> None:
    assert claude(folders, "model: haiku\nmodel: opus").spec.llm_config == {"model": "fast"}


def test_what_is_neither_yaml_nor_claude_codes_is_told(folders: Folders) -> None:
    written(folders.claudes / "x.md", "---\na: b: c\n---\n")
    (trouble,) = folders.found().broken_files
    assert "its front matter cannot be read" in trouble.text


@pytest.mark.parametrize(
    ("front", "said"),
    [
        (
            "tools: Read, mcp__db__query, Bash(git diff:*), Task",
            "`tools` names `mcp__db__query`, `Bash(git diff:*)`, `Task`, which do not exist here",
        ),
        ("tools: Read\nmodel: opusplan", "`model` 'opusplan' is unknown; the agent uses the default model."),
        ("tools: Read\neffort: huge", "`effort` 'huge' is unknown and has no effect."),
        ("tools: Read\nmaxTurns: 9999", "`maxTurns` 9999 has no effect: it must be from 1 to 200."),
        ("tools: Read\nmaxTurns: [x]", "`maxTurns` ['x'] has no effect"),
        ("tools: Read\nname: Code Reviewer!", "`name` 'Code Reviewer!' is not a valid name; the agent is called"),
        ("tools: Read\nname: system", "is called 'system-agent'."),
        *(
            (f"tools: Read\n{key}: x", f"`{key}` has no equivalent here and has no effect.")
            for key in ("permissionMode", "mcpServers", "hooks", "color", "whatever")
        ),
    ],
)
def test_what_has_no_equivalent_is_reported(folders: Folders, front: str, said: str) -> None:
    found = claude(folders, front)
    (note,) = report(found)
    assert note.startswith(said) or said in note
    assert found.spec.groups == ("read",)


def test_what_it_may_call_and_how_long_it_works_are_kept(folders: Folders) -> None:
    spec = claude(folders, "tools: Read, Agent(worker, researcher), Task(worker)\nmaxTurns: 12\neffort: low").spec
    assert (spec.calls, spec.turn.rounds, spec.llm_config) == (("worker", "researcher"), 12, {"effort": "low"})


def test_what_is_denied_is_taken_away_in_whole_groups(folders: Folders) -> None:
    found = claude(folders, "disallowedTools: [Write, 'Bash(rm:*)']")
    assert found.spec.groups == ("read", "web")
    assert "`disallowedTools` removes whole groups here: edit, command." in report(found)


def test_what_may_only_look_may_only_look_here_too(folders: Folders) -> None:
    found = claude(folders, "tools: Read, Edit, Bash, WebFetch\npermissionMode: plan")
    assert found.spec.groups == ("read", "web")
    assert report(found) == ["`permissionMode` 'plan' leaves only the groups read and web."]
