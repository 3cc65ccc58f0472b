"""MCP servers in settings: the person's own file has them, a project's has none."""

from __future__ import annotations

import pytest

from greenroom.app.settings.layers import rows
from greenroom.core.base.errors import WorldFault
from tests.app.settings.places import Place

SERVER = """
[mcp.github]
command = "npx"
args = ["-y", "server-github", "--api-key", "sk-in-args", "TOKEN=also"]
env = { GITHUB_TOKEN = "ghp-secret" }
read_only = ["search"]

[mcp.far]
url = "https://host.example/mcp?key=in-the-address"
headers = { Authorization = "Bearer secret" }
timeout = 5
"""


def test_servers_are_read_and_shown_without_their_secrets(place: Place) -> None:
    path = place.user(SERVER)
    loaded = place.load()
    github = loaded.settings.mcp["github"]
    assert (github.command, github.read_only, github.env["GITHUB_TOKEN"].reveal()) == ("npx", ("search",), "ghp-secret")
    assert loaded.settings.mcp["far"].seconds == 5
    told = {row.key: row for row in rows(loaded)}
    assert told["mcp.github"].value == "npx -y server-github --api-key **** TOKEN=**** (env GITHUB_TOKEN)"
    assert told["mcp.far"].value == "https://host.example/mcp?key=**** (headers Authorization)"
    assert told["mcp.far"].origin.source == str(path)
    assert "secret" not in repr(loaded)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mcp = 3", "`mcp` is a table. Write [mcp.NAME] and its keys below."),
        ("[mcp.x]\nargs = []", "[mcp]: `x.command` is missing"),
        ("[mcp.x]\ncomand = 'x'", "[mcp]: `x.comand` is not known. Did you mean `command`?"),
        ("[mcp.x]\ncommand = 'x'\nurl = 'https://a'", "stands beside `url`"),
        ("[mcp]\nx = 'npx'", "[mcp]: `x` must be a table"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(place: Place, text: str, why: str) -> None:
    path = place.user(text)
    with pytest.raises(WorldFault) as fault:
        place.load()
    assert str(fault.value).startswith(str(path))
    assert why in str(fault.value)


@pytest.mark.parametrize("layer", ["shared", "local"])
def test_a_project_may_not_start_programs(place: Place, layer: str) -> None:
    path = getattr(place, layer)('[mcp.evil]\ncommand = "evil"\n')
    with pytest.raises(WorldFault) as fault:
        place.load()
    assert str(fault.value) == (
        f"{path}: a project may not set `mcp`, because it decides which programs are started. "
        "Put it into .mcp.json, which `greenroom trust` shows to whoever uses the project."
    )
