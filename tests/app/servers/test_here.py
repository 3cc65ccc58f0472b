"""Which MCP servers there are in a workspace, and whose each is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from greenroom.app.mcp_servers import LONGEST_FILE as LONGEST
from greenroom.app.mcp_servers import brought_servers, masked, servers_in, surroundings, withheld
from greenroom.core.base.errors import WorldFault
from tests.app.servers.places import Place

MINE = {"command": "mine"}


def names(place: Place) -> list[tuple[str, bool]]:
    return [(one.server.name, one.own) for one in servers_in(place.root, place.settings).found]


def faults(place: Place) -> str:
    return " ".join(servers_in(place.root, place.settings).faults)


def test_a_person_has_servers_and_a_project_brings_some(place: Place) -> None:
    place.own("mine")
    place.project(theirs=MINE)
    assert names(place) == [("mine", True), ("theirs", False)]
    assert place.named("theirs").where == str(place.root)


def test_of_two_with_one_name_the_persons_own_is_used(place: Place) -> None:
    place.own("db")
    place.project(db={"command": "evil"})
    here = servers_in(place.root, place.settings)
    assert names(place) == [("db", True)]
    assert [one.server.command for one in here.hidden] == ["evil"]


def test_what_a_project_brings_is_shown_before_it_is_trusted_and_bound_to_all_of_it(place: Place) -> None:
    env = {"TOKEN": "${GITHUB_TOKEN}", "LD_PRELOAD": "./a.so, B=c"}
    place.project(db={"command": "serve", "args": ["--fast"], "env": env, "cwd": "sub"})
    (one,) = brought_servers(place.root)
    assert (one.kind, one.name) == ("server", "db")
    assert one.shown == (
        "db: serve --fast (in sub; env LD_PRELOAD='./a.so, B=c', TOKEN='${GITHUB_TOKEN}'; takes your GITHUB_TOKEN)"
    )
    assert "a.so" not in masked(place.named("db").server), "where others look on it stays hidden"
    place.project(db={"command": "serve", "args": ["--fast"], "env": {"TOKEN": "${OTHER}"}})
    assert brought_servers(place.root)[0].digest != one.digest


def test_a_bad_entry_costs_no_other_server(place: Place) -> None:
    place.own("mine")
    place.project(bad={"command": 7}, sly={"command": "x", "read_only": ["y"]}, good=MINE)
    assert names(place) == [("mine", True), ("good", False)]
    assert "`bad.command` must be a text" in faults(place)
    assert "`sly.read_only` says that tools are harmless, which only your own settings can" in faults(place)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", ".mcp.json is not JSON"),
        ("[" * 100_000, ".mcp.json is not JSON"),
        ("[]", "it is no table"),
        ('{"mcpServers": 3}', "`mcpServers` must be a table"),
        (" " * (LONGEST + 1), "more than 1 MB"),
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
    assert "leads out of the workspace" in faults(place)


def test_where_anybody_may_leave_things_nothing_is_brought(place: Place) -> None:
    place.project(x=MINE)
    place.root.chmod(0o1777)
    assert (names(place), faults(place)) == ([], "")


def test_an_unknown_name_gets_the_nearest(place: Place) -> None:
    place.own("github")
    with pytest.raises(WorldFault, match=r"no MCP server 'githob' here. Did you mean 'github'\?"):
        place.named("githob")
    with pytest.raises(WorldFault, match=r"`greenroom mcp list` has them"):
        place.named("zzz")


def test_keys_of_models_are_kept_from_all_servers(place: Place) -> None:
    place.config.mkdir(parents=True)
    (place.config / "config.toml").write_text('[providers.openai]\nkey_env = "MY_MODEL_KEY"\n')
    assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MY_MODEL_KEY"} <= withheld(place.settings)


def test_an_own_server_begins_at_home_and_not_among_a_strangers_files(place: Place) -> None:
    place.project(theirs=MINE)
    place.own("mine")
    place.own("here", cwd=".")

    def begins(name: str) -> Path:
        found = place.named(name)
        return (surroundings(found, place.root, place.environ, place.settings).folder / found.server.folder).resolve()

    assert (begins("theirs"), begins("mine"), begins("here")) == (place.root, place.home, place.root)
