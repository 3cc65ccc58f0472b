"""Which servers there are: what is read, what is refused, what is filled in and what is shown."""

from __future__ import annotations

import json
import pickle

import pytest

from greenroom.adapters.mcp.configuration import HiddenValue, McpServer, parse_servers, render_masked, resolve_server
from greenroom.core.base.errors import WorldFault


def one(table: object, *, own: bool = False) -> McpServer:
    (server,) = parse_servers({"mcpServers": {"s": table}}, is_own=own)
    return server


def test_the_form_of_other_programs_is_read() -> None:
    text = """{"mcpServers": {
        "github": {"command": "npx", "args": ["-y", "@x/github"], "env": {"TOKEN": "${GH}"}, "alwaysAllow": ["push"]},
        "linear": {"type": "http", "url": "https://mcp.linear.app/mcp", "headers": {"Authorization": "${LINEAR}"}},
        "old": {"type": "stdio", "command": "old", "disabled": true, "timeout": 30}}}"""
    github, linear, old = parse_servers(json.loads(text))
    assert github == McpServer(
        name="github", command="npx", args=("-y", "@x/github"), env={"TOKEN": HiddenValue("${GH}")}
    )
    assert linear.url == "https://mcp.linear.app/mcp"
    assert (old.enabled, old.seconds) == (False, 30)


def test_tables_of_our_own_settings_are_the_same() -> None:
    (server,) = parse_servers(
        {"files": {"command": "files", "cwd": "/srv", "read_only": ["list"]}}, "config.toml", is_own=True
    )
    assert (server.name, server.folder, server.read_only) == ("files", "/srv", ("list",))


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ([], "`s`: expected `object`, got `array`"),
        ({}, "`s.command`: it is missing"),
        ({"command": ""}, "`s.command`: it is missing"),
        ({"command": "a", "url": "https://x"}, "`s.command`: it is set together with `url`"),
        ({"command": "a", "args": "-y"}, "`s.args`: expected `array`, got `str`"),
        ({"command": "a", "args": ["--key", "${KEY}"]}, r"`s.args`: it contains \$\{…\}, which works only in"),
        ({"url": "https://x/${KEY}"}, r"`s.url`: it contains \$\{…\}"),
        ({"command": "a", "env": {"A": 1}}, r"`s.env\[...\]`: expected `str`, got `int`"),
        ({"command": "a", "env": {"A=B": "x"}}, "`s.env`: it contains an invalid name"),
        ({"command": "a", "env": {"A": "x\ny"}}, "`s.env.A`: it must be a single line"),
        ({"url": "https://x", "headers": {"A": "x\r\nHost: y"}}, "`s.headers.A`: it must be a single line"),
        ({"url": "ftp://x"}, "`s.url`: it must be a URL like"),
        ({"url": "https://user:password@x/mcp"}, "without a password"),
        ({"url": "https://x:99999/"}, "`s.url`: it must be a URL"),
        ({"type": "sse", "url": "https://x"}, '"sse" is no longer part of MCP'),
        ({"type": "pigeon", "url": "https://x"}, '`s.type`: it must be "stdio" or "http"'),
        ({"type": "http", "command": "a"}, "`s.url`: it is missing"),
        ({"command": "a", "arg": []}, r"`s.arg`: it is unknown. Did you mean `args`\?"),
        ({"command": "a", "timeout": 4000}, "`s.timeout`: expected `float` <= 3600"),
        ({"command": "a", "disabled": "yes"}, "`s.disabled`: expected `bool`, got `str`"),
        ({"command": "a", "read_only": ["x"]}, "`s.read_only`: only your own settings can declare tools harmless"),
    ],
)
def test_what_is_wrong_is_named(table: object, why: str) -> None:
    with pytest.raises(WorldFault, match=why) as told:
        one(table)
    assert str(told.value).startswith(".mcp.json: `s")
    assert "password@" not in str(told.value)


@pytest.mark.parametrize(
    "data", [None, [], {"mcpServers": []}, {"": {}}, {"\x1b[2J": {"command": "a"}}, {"a" * 65: {}}]
)
def test_a_file_that_is_none_is_refused(data: object) -> None:
    with pytest.raises(WorldFault, match=r"^\.mcp\.json: [^\x1b]*$"):
        parse_servers(data)


def test_trust_is_bound_to_everything_that_is_started() -> None:
    tables: list[dict[str, object]] = [
        {"command": "a"},
        {"command": "b"},
        {"command": "a", "args": ["x"]},
        {"command": "a", "env": {"A": "1"}},
        {"command": "a", "env": {"A": "2"}},
        {"command": "a", "cwd": "/"},
        {"url": "https://a"},
        {"url": "https://a", "headers": {"A": "1"}},
    ]
    assert len({one(table).digest for table in tables}) == len(tables)
    assert one(tables[0]).digest == one(dict(tables[0])).digest


def test_what_may_be_secret_is_shown_to_nobody() -> None:
    server = one({"command": "a", "args": ["-v"], "env": {"A": "planted", "B": "${PLANTED}"}, "cwd": "/x"})
    assert server.summary == "s: a -v (in /x; env A, B; takes your PLANTED)"
    assert server.taken_variables == ("PLANTED",)
    assert "planted" not in repr(server).lower()
    with pytest.raises(TypeError, match="cannot be serialised"):
        pickle.dumps(server.env["A"])


def test_variables_are_filled_in_from_the_persons_environment() -> None:
    server = one({"command": "a", "env": {"A": "x-${ONE}-${TWO:-two}", "B": "${EMPTY:-}", "C": "$ONE ${}"}})
    given = resolve_server(server, {"ONE": "1", "PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "planted"})
    assert given.env == {"PATH": "/bin", "A": "x-1-two", "B": "", "C": "$ONE ${}"}


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "needs the variable OPENAI_KEY"),
        ({"OPENAI_KEY": "a\nb"}, "has several lines"),
    ],
)
def test_a_variable_that_cannot_be_filled_in_is_named(environ: dict[str, str], why: str) -> None:
    with pytest.raises(WorldFault, match=why):
        resolve_server(one({"command": "a", "env": {"A": "${OPENAI_KEY}"}}), environ)


def test_no_server_is_given_a_providers_key() -> None:
    server = one({"url": "https://evil.example", "headers": {"X": "${OPENAI_API_KEY}"}})
    with pytest.raises(WorldFault, match="a model provider's key") as told:
        resolve_server(server, {"OPENAI_API_KEY": "sk-planted"}, withheld={"OPENAI_API_KEY"})
    assert "sk-planted" not in str(told.value)


def test_secrets_are_covered_where_they_are_repeated() -> None:
    server = one({"url": "https://x", "headers": {"Authorization": "Bearer ${KEY}", "X-Short": "abc"}})
    given = resolve_server(server, {"KEY": "planted-key"})
    assert given.redact("401: Bearer planted-key; key=planted-key; abc") == "401: ****; key=****; abc"
    assert "planted-key" not in repr(given)


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
    (server,) = parse_servers({"x": {"command": "npx", "args": args}})
    assert render_masked(server) == shown
