"""A server as it is typed in a line."""

from __future__ import annotations

import pytest

from greenroom.app.mcp_settings import Wanted
from greenroom.core.base.errors import Refused, WorldFault


def test_a_program_with_all_that_goes_with_it() -> None:
    wanted = Wanted(
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
    server = wanted.found().server
    assert (server.takes, server.seconds, server.starting) == (("TOKEN",), 5, 9)


def test_an_address_with_its_headers() -> None:
    wanted = Wanted(name="far", words=("https://host/mcp",), headers=("X-A=1", "Authorization: Bearer ${T}"))
    assert wanted.table == {"url": "https://host/mcp", "headers": {"X-A": "1", "Authorization": "Bearer ${T}"}}
    assert Wanted(name="far", words=("https://host/mcp",)).found().server.url == "https://host/mcp"


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (Wanted(name="x"), "What is 'x'"),
        (Wanted(name="x", words=(" ",)), "What is 'x'"),
        (Wanted(name="x", words=("https://a", "npx")), "an address and a command"),
        (Wanted(name="x", words=("https://a",), env=("A=b",)), "Give it a --header"),
        (Wanted(name="x", words=("npx",), headers=("A=b",)), "Give it an --env"),
        (Wanted(name="x", words=("npx",), env=("=b",)), "An --env is NAME=VALUE"),
        (Wanted(name="x", words=("https://a",), headers=("Bearer",)), "A --header is NAME=VALUE"),
        (Wanted(name="x", words=("npx", "\udcff")), "no text"),
    ],
)
def test_what_does_not_fit_together_is_refused(wanted: Wanted, why: str) -> None:
    with pytest.raises(Refused, match=why):
        wanted.found()


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (Wanted(name="x", words=("ftp://a",)), "`x.url` must be an address"),
        (Wanted(name="x", words=("https://u:p@a",)), "without a password"),
        (Wanted(name="x", words=("npx",), timeout=0.0), "`x.timeout` must be a number of seconds"),
        (Wanted(name="x", words=("npx", "${HOME}")), "filled in only in `env`"),
        (Wanted(name="a b", words=("npx",)), "is no name"),
    ],
)
def test_what_settings_would_not_take_is_said(wanted: Wanted, why: str) -> None:
    with pytest.raises(WorldFault, match=why):
        wanted.found()
