"""One reader of hosts."""

import pytest

from greenroom.core.base.hosts import BadHost, Host, host, loosens, within


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
    read = host(told)
    assert read == Host(name=name, port=port)
    assert host(str(read)) == read


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
        host(told)


def test_patterns_are_whole_or_below_a_domain() -> None:
    assert host("*", pattern=True) == Host(name="*")
    assert host("*.pypi.org:443", pattern=True) == Host(name="*.pypi.org", port=443)
    with pytest.raises(BadHost, match="top-level"):
        host("*.org", pattern=True)


def test_what_loosens_is_meant_to_the_letter() -> None:
    assert loosens(host("pypi.org"), host("pypi.org:443"))
    assert not loosens(host("pypi.org"), host("pypi.org:8443"))
    assert not loosens(host("pypi.org:8443"), host("pypi.org:443"))
    assert loosens(host("*.pypi.org", pattern=True), host("files.pypi.org"))
    assert not loosens(host("*.pypi.org", pattern=True), host("evilpypi.org"))
    assert within("*", "anything")
