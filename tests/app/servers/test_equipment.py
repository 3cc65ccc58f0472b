"""The tools of MCP servers in a run: known without a start, called late, refused when they are others than agreed."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from greenroom.adapters.mcp.tool import McpTool
from greenroom.app.mcp_servers import own_listings
from greenroom.app.toolset.toolbox import Equipment
from tests.adapters.mcp.running import ORDINARY, TOKEN, calls, marked, output, ran, until, write_tools
from tests.app.servers.places import Place, everybody, nobody

OBJECT = {"type": "object", "properties": {}}


def tool(equipment: Equipment, name: str) -> McpTool:
    found = next(one for one in equipment.tools if one.name.endswith(f"__{name}"))
    assert isinstance(found, McpTool)
    return found


def folder_of(pid: int) -> Path:
    return Path(f"/proc/{pid}/cwd").resolve()


async def ended(equipment: Equipment) -> None:
    for closing in equipment.closing:
        await closing()


async def seen(place: Place, name: str = "raw") -> None:
    """The person has looked at it."""
    found = place.named(name)
    own_listings().keep(found, (await place.look(found)).catalogue.listed)


async def test_tools_are_known_without_a_start_and_a_call_starts_the_server(place: Place) -> None:
    place.own(read_only=["echo"])
    await seen(place)
    await until(lambda: marked(place.folder.name) == [])
    equipment = place.equipment()
    echo = tool(equipment, "echo")
    assert (echo.card.group, echo.card.effect, echo.card.source) == ("mcp", "pure", "mcp:raw")
    assert equipment.notes == ()
    assert marked(place.folder.name) == []
    assert output(await ran(echo, text="hello")) == "hello"
    assert marked(place.folder.name) != []
    await ended(equipment)
    await until(lambda: marked(place.folder.name) == [])


async def test_nothing_of_the_sdk_is_loaded_to_know_the_tools(place: Place) -> None:
    place.own()
    await seen(place)
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from greenroom.app.mcp_servers import equipment_of\n"
        "from greenroom.app.settings.layers import load\n"
        "root = Path(sys.argv[1])\n"
        "found = equipment_of(root, os.environ, load({}, os.environ, root).settings, lambda _: False)\n"
        "print(len(found.tools) > 5, {'mcp', 'mcp_types', 'httpx2', 'anyio', 'pydantic'} & set(sys.modules))\n"
    )
    environ = {**place.environ, "XDG_CONFIG_HOME": str(place.config.parent)}
    words = [sys.executable, "-c", program, str(place.root)]
    done = await asyncio.create_subprocess_exec(*words, env=environ, stdout=PIPE, stderr=PIPE)
    assert await asyncio.wait_for(done.communicate(), 30) == (b"True set()\n", b"")


async def test_what_changed_is_refused_and_told_once(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.own()
    await seen(place)
    (place.folder / "swapped").touch()
    write_tools(place.folder, {"name": "guest", "inputSchema": OBJECT})
    told: list[str] = []
    equipment = place.equipment(tell=told.append)
    for _ in range(2):
        outcome = await ran(tool(equipment, "echo"), text="hello")
        assert outcome.state == "failed"
        assert "mcp__raw__echo has changed since a person agreed to it" in outcome.error
    assert output(await ran(tool(equipment, "count"))) == "count is done", "what is as it was is used"
    (said,) = told
    assert "other tools than you agreed to: echo (changed), guest (new)." in said
    assert said.endswith("greenroom mcp check raw")
    await ended(equipment)
    with caplog.at_level(logging.WARNING):
        again = place.equipment()
        await ran(tool(again, "echo"), text="hello")
        await ended(again)
    assert said in caplog.text


async def test_what_may_not_be_used_is_noted_with_what_helps(place: Place) -> None:
    place.own("new")
    place.own("off", disabled=True)
    place.project(theirs=place.table(), bad={"command": 3})
    equipment = place.equipment(nobody)
    assert equipment.tools == ()
    bad, new = equipment.notes
    (theirs,) = equipment.unagreed
    assert "`bad.command`" in bad
    assert new.endswith("before you have looked at its tools: greenroom mcp check new")
    assert theirs == "The MCP server 'theirs' of this project is not used before you agree to it: greenroom trust"
    *_, theirs = place.equipment(everybody).notes
    assert theirs.endswith("greenroom mcp check theirs"), "to trust a server is not to know its tools"
    assert marked(place.folder.name) == []


async def test_a_trusted_server_of_a_project_begins_in_its_workspace(place: Place) -> None:
    place.project(raw=place.table())
    await seen(place)
    assert place.equipment(nobody).tools == ()
    equipment = place.equipment(everybody)
    await ran(tool(equipment, "count"))
    assert calls(place.folder) == ["count"]
    assert {folder_of(pid) for pid in marked(place.folder.name)} == {place.root}
    await ended(equipment)


async def test_what_was_seen_and_cannot_be_read_costs_the_servers_only(place: Place) -> None:
    place.own()
    (place.config / "mcp.json").write_text("{")
    (note,) = place.equipment().notes
    assert note.startswith("The MCP server 'raw' is not used. ")
    assert "Delete it" in note


async def test_a_server_that_hangs_at_its_start_costs_a_call_and_no_more(place: Place) -> None:
    place.own(start_timeout=1)
    await seen(place)
    found = place.named()
    listed = own_listings().of(found)
    assert listed is not None
    text = (place.config / "config.toml").read_text()
    (place.config / "config.toml").write_text(text.replace('"polite"', '"hangs"'))
    own_listings().keep(place.named(), listed.listed)
    equipment = place.equipment()
    began = time.monotonic()
    outcome = await ran(tool(equipment, "echo"), text="hello")
    assert outcome.state == "failed"
    assert "Not called. The MCP server 'raw': it did not answer within 1 s" in outcome.error
    assert time.monotonic() - began < 10
    await ended(equipment)
    await until(lambda: marked(place.folder.name) == [])


async def test_a_key_of_the_person_is_not_seen_by_a_server(place: Place) -> None:
    place.project(ordinary={"command": sys.executable, "args": [ORDINARY], "env": {"MINE": "${MY_TOKEN}"}})
    environ = {"OPENAI_API_KEY": "sk-planted", "OTHER_SECRET": "planted-too", "MY_TOKEN": "for-it"}
    found = place.named("ordinary")
    own_listings().keep(found, (await place.look(found, **environ)).catalogue.listed)
    equipment = place.equipment(everybody, environ=environ)
    given = json.loads(output(await ran(tool(equipment, "environment"))))
    await ended(equipment)
    assert given["MINE"] == "****", "it was given what it may have, and no agent reads that"
    assert "planted" not in str(given)


async def test_the_key_of_a_model_is_given_to_no_server_even_if_it_asks_for_it(place: Place) -> None:
    place.config.mkdir(parents=True, exist_ok=True)
    (place.config / "config.toml").write_text('[providers.mine]\nbase_url = "http://127.0.0.1:9"\nkey_env = "MY_KEY"\n')
    place.project(raw=place.table())
    await seen(place)
    known = own_listings().of(place.named())
    assert known is not None
    for name in ("OPENAI_API_KEY", "MY_KEY"):
        place.project(raw=place.table(env={TOKEN: place.folder.name, "WANTED": f"${{{name}}}"}))
        own_listings().keep(place.named(), known.listed)
        equipment = place.equipment(everybody, environ={name: "sk-planted"})
        outcome = await ran(tool(equipment, "echo"), text="hello")
        assert outcome.state == "failed"
        assert name in outcome.error
        assert "sk-planted" not in outcome.error
        await ended(equipment)
        assert calls(place.folder) == []
