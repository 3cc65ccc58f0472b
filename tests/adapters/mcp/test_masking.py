"""What looks like a secret is covered where others may look on."""

from __future__ import annotations

import pytest

from greenroom.adapters.mcp.configuration import masked, servers


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["-y", "server"], "npx -y server"),
        (["--api-key", "sk-1", "more"], "npx --api-key **** more"),
        (["--token", "--quiet", "x"], "npx --token --quiet x"),
        (["--auth=sk-1"], "npx --auth=****"),
        (["-e", "DB_PASSWORD=x"], "npx -e DB_PASSWORD=****"),
        (["--header", "Authorization: Bearer x"], "npx --header Authorization: ****"),
        (["https://h/mcp?a=1&key=x#y"], "npx https://h/mcp?a=****&key=****#y"),
        (["--folder=/keys"], "npx --folder=/keys"),
    ],
)
def test_words_of_a_command(args: list[str], shown: str) -> None:
    (server,) = servers({"x": {"command": "npx", "args": args}})
    assert masked(server) == shown
