"""One reader of hosts."""

import pytest

from greenroom.core.base.hosts import BadHost, Host, allows_host, matches_host_pattern, parse_host


@pytest.mark.parametrize(
    ("told", "name", "port"),
    [
        ("Example.ORG", "example.org", 0),
        ("example.org:8443", "example.org", 8443),
        ("10.1.2.3:80", "10.1.2.3", 80),
        ("[2001:DB8::1]", "2001:db8::1", 0),
        ("[::1]:443", "::1", 443),
        ("xn--bcher-kva.example", "xn--bcher-kva.example", 0),
    ],
)
def test_hosts_are_read_and_written_in_one_way(told: str, name: str, port: int) -> None:
    read = parse_host(told)
    assert read == Host(name=name, port=port)
    assert parse_host(str(read)) == read


@pytest.mark.parametrize(
    "told",
    [
        *("", ".", "a..b", "-a.org", "a_b.org", "a b.org", "example.org.", "bücher.example", "a\0.org", "a%00.org"),
        *("127.1", "2130706433", "0x7f000001", "0177.0.0.1", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "a.0x7f"),
        *("example.org:", "example.org:0", "example.org:70000", "example.org:+80", "example.org:8 0"),
        *("[::1", "[::1]x", "[fe80::1%eth0]", "[::g]", "::1", "*.org", "*", "a" * 64, ".".join(["a" * 50] * 6)),
    ],
)
def test_what_could_be_read_in_two_ways_is_no_host(told: str) -> None:
    with pytest.raises(BadHost):
        parse_host(told)


def test_patterns_are_whole_or_below_a_domain() -> None:
    assert parse_host("*", pattern=True) == Host(name="*")
    assert parse_host("*.pypi.org:443", pattern=True) == Host(name="*.pypi.org", port=443)
    with pytest.raises(BadHost, match="top-level"):
        parse_host("*.org", pattern=True)


def test_what_loosens_is_meant_to_the_letter() -> None:
    assert allows_host(parse_host("pypi.org"), parse_host("pypi.org:443"))
    assert not allows_host(parse_host("pypi.org"), parse_host("pypi.org:8443"))
    assert not allows_host(parse_host("pypi.org:8443"), parse_host("pypi.org:443"))
    assert allows_host(parse_host("*.pypi.org", pattern=True), parse_host("files.pypi.org"))
    assert not allows_host(parse_host("*.pypi.org", pattern=True), parse_host("evilpypi.org"))
    assert matches_host_pattern("*", "anything")
