"""`greenroom agents` and `greenroom prompt` in this process; the real processes are in tests/e2e."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite.log import SqliteLog
from greenroom.app.agents.specs import OWN_KEYS
from greenroom.app.run_plan import DESK_AGENTS
from greenroom.app.teams.profiles import SPECIALISTS
from tests.app.teams.past_runs import created, worked, write_run
from tests.app.trust.yes import agree
from tests.cli.conftest import Type

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "agent-keys.md"
BUILT_IN = ["coder", "assistant", *DESK_AGENTS, *SPECIALISTS]
BAD = "---\ntemprature: 1\n---\nx"
CLAUDES = "---\nname: docs\ndescription: Writes docs.\ntools: Read, mcp__x\ncolor: red\n---\nYou write docs."
LEAD = """\
---
description: Leads.
calls: [docs]
ends: finish
temperature: 0.2
effort: low
streaming: false
tools: [fly]
answer: {type: array}
---
You lead.
"""


@pytest.fixture
def agents(project: Path) -> Path:
    """The same with some agents."""
    for name, text in (
        (".greenroom/agents/lead.md", LEAD),
        (".greenroom/agents/bad.md", BAD),
        (".claude/agents/docs.md", CLAUDES),
        ("AGENTS.md", "Use tabs."),
        ("../.claude/agents/docs.md", CLAUDES),
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    agree(project.parents[1] / "config", project)
    return project


def test_agents_are_listed_with_where_they_are_from(greenroom: Type, agents: Path) -> None:
    told = greenroom("agents", "list")
    heading, *lines = told.out.splitlines()
    rows = [line.split() for line in lines]
    assert " ".join(heading.split()) == "agent what it is for skill tags tool groups at once past runs model from"
    assert [row[0] for row in rows if row[-1] == "built-in"] == BUILT_IN
    assert [row for row in rows if row[-1] != "built-in"] == [
        ["docs", "Writes", "docs.", "read", "no", "runs", "yet", "default", "project,", "Claude", "Code"],
        ["lead", "Leads.", "no", "runs", "yet", "default", "project"],
    ]
    assert f"! {agents}/.greenroom/agents/bad.md, line 2: `temprature` is not a key of an agent." in told.err
    assert "has the same name and comes first." in told.err
    fields = greenroom("agents", "list", "--output-format", "json").json
    assert isinstance(fields["agents"], list)
    assert isinstance(fields["troubles"], list)
    assert [one["file"] for one in fields["agents"]] == [
        *[""] * len(BUILT_IN),
        str(agents / ".claude" / "agents" / "docs.md"),
        str(agents / ".greenroom" / "agents" / "lead.md"),
    ]
    assert [one["agent"] for one in fields["troubles"]] == ["bad"]


def test_one_that_is_hidden_by_a_broken_one_is_named(greenroom: Type, project: Path) -> None:
    for folder, text in ((".greenroom", BAD), (".claude", CLAUDES.replace("docs", "ann"))):
        (project / folder / "agents").mkdir(parents=True)
        (project / folder / "agents" / "ann.md").write_text(text)
    told = greenroom("agents", "list").err
    assert "is ignored: a nearer file of that name is broken." in told
    assert told.endswith("Show one: greenroom agents show coder\nCreate your own: greenroom agents new NAME\n")


def test_all_of_an_agent_is_shown(greenroom: Type, agents: Path) -> None:
    told = greenroom("agents", "show", "lead")
    lines = [" ".join(line.split()) for line in told.out.splitlines()]
    assert lines[0].startswith(f"lead {agents}/.greenroom/agents/lead.md (project; version ")
    for line in ("description Leads.", "calls docs", "turn.ends finish", "temperature 0.2", 'answer {"type": "array"}'):
        assert line in lines
    assert "prompt\nYou lead.\n" in told.out
    assert "! `tools` names `fly`, which this Greenroom does not have" in told.out
    fields = greenroom("agents", "show", "lead", "--output-format", "json").json
    spec = fields["spec"]
    assert isinstance(spec, dict)
    assert (spec["prompt"], spec["turn"]["ends"], spec["capabilities"]) == ("You lead.", "finish", [])
    assert (fields["from"], fields["version"]) == ("project", spec["version"])


@pytest.mark.parametrize("words", [("agents", "show"), ("prompt", "show")])
def test_a_name_that_is_not_there_brings_the_nearest(greenroom: Type, agents: Path, words: tuple[str, ...]) -> None:
    told = greenroom(*words, "laed")
    assert (told.code, told.err) == (2, "Error: There is no agent 'laed'. Did you mean `lead`?\n")
    broken = greenroom(*words, "bad", "--output-format", "json")
    assert broken.code == 3
    assert "line 2: `temprature` is not a key" in str(broken.json["error"])


def test_a_new_agent_is_written_once(greenroom: Type, project: Path) -> None:
    words = ("agents", "new", "reviewer", "-d", "Reviews: all", "--model", "fast", "--tools", "read_file, search")
    made = greenroom(*words)
    path = project / ".greenroom" / "agents" / "reviewer.md"
    assert (made.code, made.out) == (0, f"{path}\n")
    assert "Then see what a model gets: greenroom prompt show reviewer" in made.err
    shown = greenroom("agents", "show", "reviewer", "--output-format", "json").json
    assert (shown["description"], shown["model"]) == ("Reviews: all", "fast")
    before = path.read_text()
    again = greenroom(*words, "--output-format", "json")
    assert (again.code, again.json["code"]) == (2, "agent_exists")
    assert path.read_text() == before
    own = greenroom("agents", "new", "mine", "--user", "--output-format", "json").json
    assert (own["status"], own["file"]) == ("written", str(project.parents[1] / "config/greenroom/agents/mine.md"))


def test_the_exact_request_is_printed(greenroom: Type, agents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    told = greenroom("prompt", "show", "lead", "--message", "Look\there [red]x[/red]")
    first, *_ = told.out.splitlines()
    assert first == "to openai:gpt-5.5 · at most 8,192 tokens of output · temperature 0.2 · effort low · not streamed"
    assert "- `docs`: Writes docs." in told.out
    assert "Use tabs." in told.out
    assert "\nLook\there [red]x[/red]\n" in told.out
    assert "! `tools` names `fly`" in told.err
    fields = greenroom("prompt", "show", "lead", "--message", "Look.", "--output-format", "json").json
    request = fields["request"]
    assert isinstance(request, dict)
    assert [one["role"] for one in request["messages"]] == ["system", "user"]
    assert request["messages"][0]["content"] in told.out
    assert [one["name"] for one in request["tools"]] == ["call_agent", "answer"]
    for one in request["tools"]:
        assert json.dumps(one["parameters"], ensure_ascii=False, indent=2) in told.out
    assert (request["temperature"], request["effort"], request["streaming"]) == (0.2, "low", False)
    assert (fields["model"], fields["trouble"]) == ("openai:gpt-5.5", None)


def test_an_agent_is_told_things_in_the_language_of_the_settings(
    greenroom: Type, agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENROOM_LANGUAGE", "zh")
    assert "你是 lead" in greenroom("prompt", "show", "lead").out.replace("你是lead", "你是 lead")


def test_every_key_is_on_the_page() -> None:
    (table,) = re.findall(r"^\| key .*?\n\n", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert {part for key in OWN_KEYS for part in key.split(".")} | {"design"} <= set(re.findall(r"`(\w+)`", table))


def test_the_built_in_agents_are_shown_like_others(greenroom: Type, project: Path) -> None:
    shown = greenroom("agents", "show", "coder")
    assert shown.out.startswith("coder  built-in\n")
    told = greenroom("prompt", "show", "coder", "--output-format", "json")
    assert (told.code, told.json["agent"]) == (0, "coder")
    assert greenroom("agents", "show", "nobody").code == 2


def test_an_agent_that_is_not_trusted_leads_to_trust(greenroom: Type, project: Path) -> None:
    (project / ".greenroom" / "agents").mkdir(parents=True)
    (project / ".greenroom" / "agents" / "bob.md").write_text("---\nname: bob\n---\nYou are bob.\n")
    told = greenroom("run", "--agent", "ann", "hi")
    assert told.code == 2
    assert "Agents of this project are not trusted yet. Review them with `greenroom trust`." in told.err


@pytest.mark.req("RC-7", "RC-29", "RC-33", "RC-172")
def test_a_specialist_is_shown_with_what_it_took_in_past_runs(
    greenroom: Type, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "180")

    async def remember() -> None:
        log = await SqliteLog.open(home)
        await write_run(log, "a", [created(), *worked("debug-1", steps=40), *worked("debug-2", "failed", steps=5)])
        await log.close()

    asyncio.run(remember())
    told = greenroom("agents", "list")
    rows = {line.split()[0]: line for line in told.out.splitlines()}
    for part in ("debugging", "read, edit, command", "2 · 50% · 45.0s", "built-in"):
        assert part in rows["debug"]
    assert "no runs yet" in rows["review"]
    assert "runs" not in rows["coder"]
    listed = (greenroom("agents", "list", "--skill", "debugging")).out
    assert [line.split()[0] for line in listed.splitlines()] == ["agent", "debug"]
    fields = (greenroom("agents", "show", "debug", "--output-format", "json")).json
    assert {name: fields[name] for name in ("label", "skill_tags", "tool_groups", "max_concurrency", "protocol")} == {
        "label": "🐞 Debugger",
        "skill_tags": ["debugging"],
        "tool_groups": ["read", "edit", "command"],
        "max_concurrency": 2,
        "protocol": "debug-report",
    }
    assert fields["metrics"] == {
        "tasks_completed": 1,
        "tasks_failed": 1,
        "success_rate": 0.5,
        "average_seconds": 45.0,
        "average_tokens": 2250.0,
        "average_cost": 0.225,
    }
    shown = greenroom("agents", "show", "review")
    assert "cooperation.concurrency  2" in shown.out
    assert "past runs" in shown.out
    assert "no runs yet" in shown.out
    assert "Key principles:" in shown.out


@pytest.mark.req("RC-29")
def test_a_skill_that_no_agent_has_brings_the_nearest(greenroom: Type, project: Path) -> None:
    told = greenroom("agents", "list", "--skill", "debuging")
    assert (told.code, told.err) == (2, "Error: No agent has the skill 'debuging'. Did you mean `debugging`?\n")


@pytest.mark.req("RC-10")
def test_a_profile_with_an_unknown_tool_group_is_refused_with_its_line(greenroom: Type, project: Path) -> None:
    (project / ".greenroom" / "agents").mkdir(parents=True)
    (project / ".greenroom" / "agents" / "review.md").write_text("---\ndescription: x\ngroups: [comand]\n---\nx")
    told = greenroom("agents", "show", "review")
    assert told.code == 3
    assert "review.md, line 3: `groups` " in told.err
    assert "Did you mean" in told.err or "command" in told.err
    assert told.err.count("\n") == 1


@pytest.mark.req("RC-10", "RC-16")
def test_a_specialist_has_the_tools_of_its_groups_only(greenroom: Type, project: Path) -> None:
    def list_tools(name: str) -> set[str]:
        request = greenroom("prompt", "show", name, "--output-format", "json").json["request"]
        assert isinstance(request, dict)
        return {tool["name"] for tool in request["tools"]}

    edits, commands = {"patch", "rewrite"}, {"execute_script"}
    assert "read_code" in list_tools("review")
    assert not list_tools("review") & (edits | commands)
    assert list_tools("documentation") >= edits
    assert not list_tools("documentation") & commands
    assert list_tools("architect") >= commands
    assert not list_tools("architect") & edits
    assert list_tools("code-writer") >= edits | commands


def test_a_specialist_can_be_asked_by_name(greenroom: Type, project: Path) -> None:
    told = greenroom("run", "--agent", "reviev", "Look at it.")
    assert (told.code, "Did you mean `review`" in told.err) == (2, True)
    assert "There is no agent" not in greenroom("run", "--agent", "review", "Look at it.").err
