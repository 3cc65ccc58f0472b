"""MCP servers at a person's terminal: added, looked at, used by an agent after a yes, and never left behind."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp.running import RAW, TOKEN, calls, marked, until, write_tools
from tests.e2e.provider import provider, reached, settings
from tests.e2e.terminal import Ended, greenroom
from tests.e2e.typing import ENTER, Typing
from tests.fake_openai import Answer, Call
from tests.fake_openai.scripts import Reply

AGENT = "---\ndescription: Uses what there is.\ngroups: [mcp]\n---\nDo what you are asked.\n"
OBJECT = {"type": "object", "properties": {}}


class Person:
    """Somebody with a project that has an agent, and a folder that a server works in."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home / "project"
        self.folder = home / f"probe-{home.parent.name}-{home.name}"
        agents = home / "config" / "greenroom" / "agents"
        for one in (agents, self.project / ".git", self.folder):
            one.mkdir(parents=True)
        (agents / "user.md").write_text(AGENT)
        self.command = (sys.executable, RAW, "polite", str(self.folder))

    def types(self, *words: str, **more: str) -> Ended:
        return greenroom(self.home, *words, cwd=str(self.project), **more)

    def adds(self, *more: str) -> Ended:
        return self.types("mcp", "add", "raw", "--env", f"{TOKEN}={self.folder.name}", *more, "--", *self.command)

    def fields(self, *words: str) -> Mapping[str, Any]:
        return self.types(*words, "--output-format", "json").json

    @property
    def config(self) -> Path:
        return self.home / "config" / "greenroom" / "config.toml"

    @property
    def left(self) -> list[int]:
        return marked(self.folder.name)


@pytest.fixture(name="person")
def _person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def acts(name: str, **given: object) -> list[Reply]:
    """A model that makes this call, then says that it is done."""
    return [Answer(calls=(Call(name=name, arguments=given, id="c0"),)), Answer(text="Done.")]


def test_a_server_is_added_listed_and_removed(person: Person) -> None:
    settings(person.home, "# Mine.\nlanguage = 'en'\n")
    added = person.adds("--read-only", "echo")
    assert added.code == 0, added.err
    assert "MCP 2025-11-25, 14 tools." in added.out
    assert "mcp__raw__echo" in added.out
    assert person.config.read_text().startswith("# Mine.\nlanguage = 'en'\n\n[mcp.raw]\n")
    assert "The MCP server 'raw' exists already. Remove it first" in person.adds().err
    (listed,) = person.fields("mcp", "list")["servers"]
    assert (listed["name"], listed["whose"], listed["tools"]) == ("raw", "yours", 14)
    removed = person.types("mcp", "remove", "raw")
    assert (removed.code, person.config.read_text()) == (0, "# Mine.\nlanguage = 'en'\n")
    assert person.left == []


def test_tools_that_changed_are_shown_and_agreed_to_by_a_person(person: Person) -> None:
    person.adds()
    (person.folder / "swapped").touch()
    write_tools(person.folder, {"name": "guest", "inputSchema": OBJECT})
    told = person.types("mcp", "check", "raw")
    assert told.code == 1
    assert "2 tools differ from those you accepted" in told.out
    assert "    -Says what it is told.\n    +Now it does something else.\n" in told.out
    assert "Accept them with: greenroom mcp check raw --yes" in told.err
    with Typing(person.home, "mcp", "check", cwd=str(person.project)) as terminal:
        terminal.until("Accept these changes?")
        terminal.press(f"y{ENTER}")
        assert terminal.ends() == 0
    (checked,) = person.fields("mcp", "check")["servers"]
    assert (checked["changes"], checked["agreed"], len(checked["tools"])) == ([], True, 15)


def test_one_that_does_not_work_is_added_only_by_force(person: Person) -> None:
    words = ("mcp", "add", "bad", "--", sys.executable, RAW, "dies")
    refused = person.types(*words)
    assert (refused.code, person.config.exists()) == (3, False)
    assert "Cannot find the database" in refused.err
    assert "Nothing was changed. Add --force to add it anyway." in refused.err
    forced = person.types(*words[:3], "--force", *words[3:])
    assert (forced.code, "[mcp.bad]" in person.config.read_text()) == (0, True)
    assert "mcp check bad" in forced.err


@pytest.mark.req("AG-54")
async def test_an_agent_calls_a_tool_after_a_persons_yes_though_another_server_hangs(person: Person) -> None:
    person.adds()
    hangs = (sys.executable, RAW, "hangs", str(person.folder))
    assert person.types("mcp", "add", "hangs", "--force", "--start-timeout", "1", "--", *hangs).code == 0
    words = ("run", "Count.", "--agent", "user")
    with provider(acts("mcp__raw__count")) as fake:
        with Typing(person.home, *words, cwd=str(person.project), **reached(fake)) as run:
            run.until("The MCP server 'hangs': it did not answer within 1 s")
            run.until("wants to use mcp__raw__count")
            assert person.left == [], "it is started late"
            assert calls(person.folder) == []
            run.press(f"y{ENTER}")
            run.until("Done.")
            assert run.ends() == 0
        assert "count is done" in str(fake.requests[-1].body)
    assert calls(person.folder) == ["count"]
    await until(lambda: person.left == [])


def test_what_a_project_brings_is_not_started_before_it_is_trusted(person: Person) -> None:
    table = {"command": sys.executable, "args": [*person.command[1:]]}
    (person.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": table, "bad": {}}}))
    listed = person.types("mcp", "list")
    assert "not trusted" in listed.out
    assert "`bad.command`: it is missing" in listed.err
    checked = person.types("mcp", "check", "theirs")
    assert checked.code == 1
    assert "of the project is not trusted. Run: greenroom trust" in checked.out
    removed = person.types("mcp", "remove", "theirs")
    assert (removed.code, "The MCP server 'theirs' belongs to the project." in removed.err) == (2, True)
    assert person.types("trust", "--yes").code == 0
    assert person.types("mcp", "check", "theirs").code == 0
    assert "mcp__theirs__echo" in person.types("tools", "list").out
