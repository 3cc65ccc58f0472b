"""Addresses: read once, strictly, and the same by whoever decides about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.base.hosts import parse_host
from greenroom.core.ports.web import BadAddress, WebFault, parse_address, resolve_redirect


@pytest.mark.parametrize(
    ("told", "url", "place"),
    [
        ("https://example.org", "https://example.org/", "example.org:443"),
        ("  HTTP://Example.ORG:80/a?b=1#c ", "http://example.org/a?b=1", "example.org:80"),
        ("https://example.org:8443?q=x", "https://example.org:8443/?q=x", "example.org:8443"),
        ("http://example.org:443/", "http://example.org:443/", "example.org:443"),
        ("https://[2001:4860::8888]/x", "https://[2001:4860::8888]/x", "[2001:4860::8888]:443"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC", "xn--bcher-kva.example:443"),
        ("https://straße.de:444/", "https://xn--strae-oqa.de:444/", "xn--strae-oqa.de:444"),
        ("https://中文。example/", "https://xn--fiq228c.example/", "xn--fiq228c.example:443"),
        ("http://①②⑦.⓪.⓪.①/", "http://127.0.0.1/", "127.0.0.1:80"),
        ("https://example.org/a b\\c%20d", "https://example.org/a%20b%5Cc%20d", "example.org:443"),
        ("https://example.org/x@y:z", "https://example.org/x@y:z", "example.org:443"),
    ],
)
def test_an_address_is_read(told: str, url: str, place: str) -> None:
    read = parse_address(told)
    assert (read.url, str(read.host)) == (url, place)
    assert parse_address(read.url) == read


@pytest.mark.parametrize(
    "told",
    [
        *("", "example.org", "ftp://example.org/", "file:///etc/passwd", "gopher://x/", "data:text/html,x", "//x/"),
        *("javascript:alert(1)", "http:/example.org", "http:example.org", "http://", "https:///path", "http://?q"),
        *("http://user@example.org/", "http://user:pw@example.org/", "http://good.org@127.0.0.1/", "http://@x.org/"),
        *("http://a\0.org/", "http://a.org/\0", "http://a.org/\r\nHost: b", "http://a\n.org/", "http://a.org/\x7f"),
        *("http://good.org\\@evil.org/", "http://a%2eorg/", "http://127.1/", "http://0x7f000001/", "http://1/"),
        *("http://a..org/", "http://a.org:/", "http://a.org:99999/", "http://[::1/", "http://[fe80::1%25eth0]/"),
        *("http://a_b.org/", "http://localhost./", "http://ａ＠b.org/", "http://a／b.org/", "http://a.org:８０/"),
        *("http://" + "ü" * 300 + ".org/", "http://a.org/" + "x" * 5000, "http://℀.org/", "http://­/"),
    ],
)
def test_what_is_no_address_is_said_to_be_none(told: str) -> None:
    with pytest.raises(BadAddress):
        parse_address(told)


@given(st.text(max_size=60))
def test_whatever_stands_for_a_host_the_policy_reads_the_same_host(text: str) -> None:
    try:
        read = parse_address(f"https://{text}/")
    except BadAddress:
        return
    assert parse_host(str(read.host)) == read.host
    assert read.url.isascii()
    assert parse_address(read.url) == read


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "https://example.org:8443/b"),
        ("b?c", "https://example.org:8443/dir/b?c"),
        ("?c=2", "https://example.org:8443/dir/page?c=2"),
        ("", "https://example.org:8443/dir/"),
        ("//other.org/x", "https://other.org/x"),
        ("http://other.org", "http://other.org/"),
    ],
)
def test_a_redirect_is_seen_from_where_it_stands(location: str, url: str) -> None:
    assert resolve_redirect(parse_address("https://example.org:8443/dir/page?a=/x/y"), location).url == url


@pytest.mark.parametrize("location", ["file:///etc/passwd", "//user@evil.org/", "http://127.1/", "/a\nb"])
def test_a_redirect_is_checked_like_every_address(location: str) -> None:
    with pytest.raises(BadAddress):
        resolve_redirect(parse_address("https://example.org/"), location)


def test_a_fault_says_its_reason() -> None:
    assert WebFault("slow", "It is slow.").reason == "slow"
