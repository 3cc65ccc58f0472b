"""The MCP servers of a workspace: found, looked at, kept as they were seen, and their tools in a run."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from greenroom.adapters.mcp.catalogue import ListedTool
from greenroom.adapters.mcp.client import McpTimeouts, McpTool
from greenroom.adapters.mcp.configuration import render_masked
from greenroom.app.toolset import mcp as module
from greenroom.app.toolset.mcp import MAX_PROJECT_FILE_BYTES as LONGEST
from greenroom.app.toolset.mcp import (
    FoundServer,
    build_server_environment,
    inspect_new_servers,
    list_server_items,
    list_servers,
    list_withheld_variables,
    open_listings,
)
from greenroom.app.toolset.toolbox import ToolSource
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from tests.adapters.mcp.running import ORDINARY, TOKEN, calls, marked, output, ran, until, write_tools
from tests.app.servers.places import QUICK, Place, everybody, nobody

MINE = {"command": "mine"}


def names(place: Place) -> list[tuple[str, bool]]:
    return [(one.server.name, one.is_own) for one in list_servers(place.root, place.settings).entries]


def faults(place: Place) -> str:
    return " ".join(list_servers(place.root, place.settings).faults)


def test_what_a_project_brings_is_shown_before_it_is_trusted_and_bound_to_all_of_it(place: Place) -> None:
    env = {"TOKEN": "${GITHUB_TOKEN}", "LD_PRELOAD": "./a.so, B=c"}
    place.project(db={"command": "serve", "args": ["--fast"], "env": env, "cwd": "sub"})
    (one,) = list_server_items(place.root)
    assert (one.kind, one.name) == ("server", "db")
    assert one.shown == (
        "db: serve --fast (in sub; env LD_PRELOAD='./a.so, B=c', TOKEN='${GITHUB_TOKEN}'; takes your GITHUB_TOKEN)"
    )
    assert "a.so" not in render_masked(place.named("db").server), "where others look on it stays hidden"
    place.project(db={"command": "serve", "args": ["--fast"], "env": {"TOKEN": "${OTHER}"}})
    assert list_server_items(place.root)[0].digest != one.digest


def test_a_bad_entry_costs_no_other_server(place: Place) -> None:
    place.own("mine")
    place.project(bad={"command": 7}, sly={"command": "x", "read_only": ["y"]}, good=MINE)
    assert names(place) == [("mine", True), ("good", False)]
    assert "`bad.command`: expected `str" in faults(place)
    assert "`sly.read_only`: only your own settings can declare tools harmless" in faults(place)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", ".mcp.json is not JSON"),
        ("[" * 100_000, ".mcp.json is not JSON"),
        ("[]", "it is not a table"),
        ('{"mcpServers": 3}', "`mcpServers` must be a table"),
        (" " * (LONGEST + 1), "is longer than 1000 KB"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_and_costs_no_own_server(place: Place, text: str, why: str) -> None:
    place.own("mine")
    (place.root / ".mcp.json").write_text(text)
    assert names(place) == [("mine", True)]
    assert why in faults(place)


def test_a_link_out_of_the_workspace_is_not_followed(place: Place) -> None:
    (place.home / "other.json").write_text(json.dumps({"x": MINE}))
    (place.root / ".mcp.json").symlink_to(place.home / "other.json")
    assert names(place) == []
    assert "is a link that leads outside" in faults(place)


def test_an_unknown_name_gets_the_nearest(place: Place) -> None:
    place.own("github")
    with pytest.raises(WorldFault, match=r"no MCP server 'githob' here. Did you mean 'github'\?"):
        place.named("githob")
    with pytest.raises(WorldFault, match=r"`greenroom mcp list` shows them"):
        place.named("zzz")


def test_keys_of_models_are_kept_from_all_servers(place: Place) -> None:
    place.config.mkdir(parents=True)
    (place.config / "config.toml").write_text('[providers.openai]\nkey_env = "MY_MODEL_KEY"\n')
    assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MY_MODEL_KEY"} <= list_withheld_variables(place.settings)


def test_an_own_server_begins_at_home_and_not_among_a_strangers_files(place: Place) -> None:
    place.project(theirs=MINE)
    place.own("mine")
    place.own("here", cwd=".")

    def begins(name: str) -> Path:
        found = place.named(name)
        return (
            build_server_environment(found, place.root, place.environ, place.settings).folder / found.server.folder
        ).resolve()

    assert (begins("theirs"), begins("mine"), begins("here")) == (place.root, place.home, place.root)


SCHEMA = {"type": "object", "properties": {"n": {"type": "number", "maximum": 1.5, "default": None}}}
ECHO = ListedTool(name="echo", description="Says \u200bit.", schema=SCHEMA, read_only=True)


@pytest.fixture(name="found")
def _found(place: Place) -> FoundServer:
    return place.own("db")


def test_it_is_bound_to_the_settings_of_the_server(found: FoundServer) -> None:
    open_listings().save(found, (ECHO,))
    other = evolve(found, server=evolve(found.server, args=("--evil",)))
    assert open_listings().get(other) is None
    assert open_listings().latest(other) is not None


def test_the_same_words_in_another_workspace_are_another_server(found: FoundServer) -> None:
    one, other = evolve(found, where="/a"), evolve(found, where="/b")
    open_listings().save(one, (ECHO,))
    assert open_listings().get(other) is None
    assert open_listings().get(found) is None


def test_what_is_kept_later_counts_and_what_is_forgotten_is_gone(found: FoundServer) -> None:
    open_listings().save(found, (ECHO,))
    open_listings().save(found, ())
    known = open_listings().get(found)
    assert known is not None
    assert known.listed == ()
    open_listings().forget(found)
    assert open_listings().get(found) is None
    open_listings().forget(found)


def test_a_server_that_says_too_much_is_not_kept(found: FoundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LISTING_BYTES", 100)
    with pytest.raises(WorldFault, match="is larger than 0 MB"):
        open_listings().save(found, (ECHO,))


OBJECT = {"type": "object", "properties": {}}


async def test_a_server_is_started_listed_and_ended(place: Place) -> None:
    found = place.own()
    seen = await place.look(found)
    assert seen.version == "2025-11-25"
    assert "mcp__raw__echo" in seen.catalogue.offered
    assert open_listings().get(found) is None, "looking keeps nothing"
    await until(lambda: marked(place.folder.name) == [])


async def test_before_a_run_new_servers_of_the_person_are_met_and_no_others(place: Place) -> None:
    place.own()
    place.own("hangs", "hangs", start_timeout=1)
    place.own("off", "dies", disabled=True)
    place.project(theirs=place.table("dies"))
    (said,) = await inspect_new_servers(place.root, place.environ, place.settings, nobody, patience=QUICK)
    assert "'hangs': it did not answer within 1 s" in said
    known = open_listings().get(place.named())
    assert known is not None
    assert "echo" in {one.name for one in known.listed}
    assert open_listings().get(place.named("hangs")) is None
    nothing = McpTimeouts(start=0.001)
    assert [
        one
        for one in await inspect_new_servers(place.root, place.environ, place.settings, nobody, patience=nothing)
        if "raw" in one
    ] == []


async def test_other_settings_are_met_anew_but_other_tools_are_not_agreed_to(place: Place) -> None:
    found = place.own()
    open_listings().save(
        evolve(found, server=evolve(found.server, folder="/")), (await place.look(found)).catalogue.listed
    )
    assert open_listings().get(found) is None
    assert await inspect_new_servers(place.root, place.environ, place.settings, nobody, patience=QUICK) == ()
    known = open_listings().get(found)
    assert known is not None
    open_listings().save(evolve(found, server=evolve(found.server, folder="/")), known.listed)
    write_tools(place.folder, {"name": "guest", "inputSchema": OBJECT})
    (said,) = await inspect_new_servers(place.root, place.environ, place.settings, nobody, patience=QUICK)
    assert "has other tools than you approved: guest (new)" in said
    assert open_listings().get(found) is None


def tool(equipment: ToolSource, name: str) -> McpTool:
    found = next(one for one in equipment.tools if one.name.endswith(f"__{name}"))
    assert isinstance(found, McpTool)
    return found


async def ended(equipment: ToolSource) -> None:
    for closing in equipment.close_callbacks:
        await closing()


async def seen(place: Place, name: str = "raw") -> None:
    """The person has looked at it."""
    found = place.named(name)
    open_listings().save(found, (await place.look(found)).catalogue.listed)


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
        "from greenroom.app.toolset.mcp import load_server_tools\n"
        "from greenroom.app.settings.layers import load_settings\n"
        "root = Path(sys.argv[1])\n"
        "found = load_server_tools(root, os.environ, load_settings({}, os.environ, root).settings, lambda _: False)\n"
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
    assert "other tools than you approved: echo (changed), guest (new)." in said
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
    (theirs,) = equipment.untrusted
    assert "`bad.command`" in bad
    assert new.endswith("until you have reviewed its tools: greenroom mcp check new")
    assert theirs == "The MCP server 'theirs' of this project is not used until you trust it: greenroom trust"
    *_, theirs = place.equipment(everybody).notes
    assert theirs.endswith("greenroom mcp check theirs"), "to trust a server is not to know its tools"
    assert marked(place.folder.name) == []


async def test_what_was_seen_and_cannot_be_read_costs_the_servers_only(place: Place) -> None:
    place.own()
    (place.config / "mcp.json").write_text("{")
    (note,) = place.equipment().notes
    assert note.startswith("The MCP server 'raw' is not used. ")
    assert "Delete it" in note


async def test_a_key_of_the_person_is_not_seen_by_a_server(place: Place) -> None:
    place.project(ordinary={"command": sys.executable, "args": [ORDINARY], "env": {"MINE": "${MY_TOKEN}"}})
    environ = {"OPENAI_API_KEY": "sk-planted", "OTHER_SECRET": "planted-too", "MY_TOKEN": "for-it"}
    found = place.named("ordinary")
    open_listings().save(found, (await place.look(found, **environ)).catalogue.listed)
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
    known = open_listings().get(place.named())
    assert known is not None
    for name in ("OPENAI_API_KEY", "MY_KEY"):
        place.project(raw=place.table(env={TOKEN: place.folder.name, "WANTED": f"${{{name}}}"}))
        open_listings().save(place.named(), known.listed)
        equipment = place.equipment(everybody, environ={name: "sk-planted"})
        outcome = await ran(tool(equipment, "echo"), text="hello")
        assert outcome.state == "failed"
        assert name in outcome.error
        assert "sk-planted" not in outcome.error
        await ended(equipment)
        assert calls(place.folder) == []
