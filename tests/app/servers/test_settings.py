"""Servers in the person's settings file: typed in a line, added, taken out, and all else stays."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from greenroom.app.toolset.mcp import NewServer, UserSettingsFile, with_server, without_server
from greenroom.core.base.errors import RefusedError, WorldFault

TABLE = {
    "command": "npx",
    "args": ["-y", 'a "b" \\ \x7f', "ü"],
    "env": {"TOKEN": "${TOKEN}", "A.B": ""},
    "timeout": 5.0,
    "disabled": True,
}
OTHER = """# Mine.
model = "strong"   # the dear one

[limits]  # not more
cost = 3

# My database.
[mcp.db]
command = "serve"
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        OTHER,
        OTHER.rstrip("\n"),
        OTHER.replace("\n", "\r\n"),
        f"\ufeff{OTHER}",
        f"{OTHER}\n[mcp.db.env]\nA = 'b'\n",
        "[mcp]\ndb = { command = 'x' }\n",
    ],
)
def test_a_server_comes_and_goes_and_all_else_stays(text: str) -> None:
    made = with_server(text, "x", TABLE, "file")
    assert made.startswith(text)
    assert tomllib.loads(made.removeprefix("\ufeff"))["mcp"]["x"] == TABLE
    assert without_server(made, "x", "file").rstrip("\r\n") == text.rstrip("\r\n")


def test_comments_before_the_next_table_are_that_ones() -> None:
    text = 'a = 1\n\n# One.\n[mcp.x]  # first\ncommand = "x"\n# inside\nargs = [\n  "[1]",\n]\n\n[mcp.x.env]\nA = "1"\n'
    rest = "\n# Two.\n[mcp.y]\ncommand = 'y'\n"
    assert without_server(text + rest, "x", "file") == f"a = 1\n\n# One.\n{rest}"
    assert without_server(text + "# Last.\n", "x", "file") == "a = 1\n\n# One.\n# Last.\n"


def test_what_nothing_can_be_added_to_is_left_alone() -> None:
    with pytest.raises(WorldFault, match=r"(?s)cannot be edited automatically. Add this:.*\[mcp.x\]\ncommand"):
        with_server("mcp = { db = { command = 'x' } }\n", "x", TABLE, "file")


@pytest.mark.parametrize(
    "text",
    [
        "mcp = { x = { command = 'x' } }\n",
        "mcp.x.command = 'x'\n",
        "[mcp]\nx.command = 'x'\nx.args = [\n  'a',\n]\n[mcp.y]\ncommand = 'y'\n",
        '[mcp.y]\ntext = """\n[mcp.x]\n"""\n[mcp.x]\ncommand = \'x\'\n',
    ],
)
def test_what_is_not_understood_is_left_alone(text: str) -> None:
    with pytest.raises(WorldFault, match=r"Delete `mcp.x` there"):
        without_server(text, "x", "file")


def test_a_new_file_is_complete_and_for_its_owner_only(tmp_path: Path) -> None:
    file = UserSettingsFile(tmp_path / "new" / "config.toml")
    file.check("x", TABLE)
    assert not file.path.parent.exists()
    file.add("x", TABLE)
    assert tomllib.loads(file.path.read_text()) == {"version": 1, "mcp": {"x": TABLE}}
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    file.remove("x")
    assert tomllib.loads(file.path.read_text()) == {"version": 1}


def test_a_file_that_is_no_toml_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("= what?")
    with pytest.raises(WorldFault, match="is not TOML"):
        UserSettingsFile(path).add("x", TABLE)
    assert path.read_text() == "= what?"


def test_a_program_with_all_that_goes_with_it() -> None:
    wanted = NewServer(
        name="gh",
        words=("npx", "-y", "server"),
        env=("TOKEN", "MODE=a=b", "EMPTY="),
        read_only=("look",),
        cwd=".",
        timeout=5.0,
        start_timeout=9.0,
    )
    assert wanted.table == {
        "command": "npx",
        "args": ["-y", "server"],
        "env": {"TOKEN": "${TOKEN}", "MODE": "a=b", "EMPTY": ""},
        "cwd": ".",
        "read_only": ["look"],
        "timeout": 5.0,
        "start_timeout": 9.0,
    }
    server = wanted.build().server
    assert (server.taken_variables, server.seconds, server.starting) == (("TOKEN",), 5, 9)


def test_an_address_with_its_headers() -> None:
    wanted = NewServer(name="far", words=("https://host/mcp",), headers=("X-A=1", "Authorization: Bearer ${T}"))
    assert wanted.table == {"url": "https://host/mcp", "headers": {"X-A": "1", "Authorization": "Bearer ${T}"}}
    assert NewServer(name="far", words=("https://host/mcp",)).build().server.url == "https://host/mcp"


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (NewServer(name="x"), "'x' has neither a command nor an address"),
        (NewServer(name="x", words=(" ",)), "'x' has neither a command nor an address"),
        (NewServer(name="x", words=("https://a", "npx")), "an address and a command"),
        (NewServer(name="x", words=("https://a",), env=("A=b",)), "Use --header instead"),
        (NewServer(name="x", words=("npx",), headers=("A=b",)), "Use --env instead"),
        (NewServer(name="x", words=("npx",), env=("=b",)), "An --env is NAME=VALUE"),
        (NewServer(name="x", words=("https://a",), headers=("Bearer",)), "A --header is NAME=VALUE"),
        (NewServer(name="x", words=("npx", "\udcff")), "not text"),
    ],
)
def test_what_does_not_fit_together_is_refused(wanted: NewServer, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        wanted.build()


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (NewServer(name="x", words=("ftp://a",)), "`x.url`: it must be a URL"),
        (NewServer(name="x", words=("https://u:p@a",)), "without a password"),
        (NewServer(name="x", words=("npx",), timeout=0.0), "`x.timeout`: expected `float` >= 1"),
        (NewServer(name="x", words=("npx", "${HOME}")), "works only in `env`"),
        (NewServer(name="a b", words=("npx",)), "cannot name an MCP server"),
    ],
)
def test_what_settings_would_not_take_is_said(wanted: NewServer, why: str) -> None:
    with pytest.raises(WorldFault, match=why):
        wanted.build()
