"""The head of a request to the proxy: what goes on to the host, and who is no stranger."""

from __future__ import annotations

import base64

import pytest

from greenroom.adapters.web.proxy import USER, BadHead, head_of

RIGHT = f"Proxy-Authorization: Basic {base64.b64encode(f'{USER}:t0k3n'.encode()).decode()}"


def asked(*headers: str) -> bytes:
    return "\r\n".join(("GET http://site.test/a HTTP/1.1", *headers, "", "")).encode()


@pytest.mark.parametrize("headers", [(RIGHT, RIGHT), (RIGHT, "Proxy-Authorization: Basic eDp5"), ()])
def test_who_shows_a_token_twice_or_never_is_a_stranger(headers: tuple[str, ...]) -> None:
    assert head_of(asked(RIGHT), "t0k3n").host.name == "site.test"
    with pytest.raises(BadHead, match="for those who have its token"):
        head_of(asked(*headers), "t0k3n")


def test_what_is_named_as_meant_for_the_proxy_alone_does_not_go_on() -> None:
    sent = head_of(asked("Connection: close, X-Secret", "Connection: x-other", "X-Secret: 1", "X-Other: 2", "X-On: 3"))
    lines = sent.sent.decode().lower().split("\r\n")
    assert "x-on: 3" in lines
    assert not [one for one in lines if one.startswith(("x-secret", "x-other"))]


@pytest.mark.parametrize(
    "name", ["Keep-Alive", "TE", "Trailer", "Upgrade", "Proxy-Connection", "Proxy-Authorization", "Host"]
)
def test_what_concerns_one_connection_does_not_go_on_to_the_next(name: str) -> None:
    sent = head_of(asked(f"{name}: evil.test")).sent.decode()
    assert "evil" not in sent
    assert sent.count("Host: site.test\r\n") == 1
