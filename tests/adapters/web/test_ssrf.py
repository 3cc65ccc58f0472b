"""The guard: no address of this machine or its networks is reached, however it is written or found."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from ipaddress import ip_address

import pytest

from greenroom.adapters.web import address_filter as guards
from greenroom.adapters.web.address_filter import AddressFilter, IPAddress, SystemNetwork, classify_address
from greenroom.adapters.web.page_fetcher import CheckedResolver, WebPageFetcher
from greenroom.adapters.web.proxy import Proxy, ProxyVisit
from greenroom.core.base.hosts import parse_host
from greenroom.core.ports.web import BadAddress, Redirect, WebFault, WebPage, parse_address
from tests.adapters.web.house import HERE, Watched, canary, moved, said, site
from tests.adapters.web.ssrf import ADDRESSES, CONFUSED, SPELLINGS

EVERY = [(what, one) for what, some in ADDRESSES.items() for one in some]
PUBLIC = ("8.8.8.8", "1.1.1.1", "140.82.121.3", "2606:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:81b::200e")


def bracketed(one: str) -> str:
    return f"[{one}]" if ":" in one else one


async def refusal(fetching: WebPageFetcher, url: str) -> str:
    """What is said of an address that nobody is led to."""
    try:
        found = await fetching.fetch(parse_address(url))
    except BadAddress:
        return "no address"
    except WebFault as fault:
        return fault.reason
    return f"reached: {found}"


def test_the_table_is_as_long_as_it_should_be() -> None:
    spelled = [one for some in SPELLINGS.values() for one in some]
    assert len({one for _, one in EVERY}) >= 90
    assert len(spelled) + len(CONFUSED) >= 60


@pytest.mark.req("G-6")
@pytest.mark.parametrize("what", ADDRESSES)
async def test_no_special_address_is_dialled(what: str) -> None:
    network = Watched({f"{number}.test": [[one]] for number, one in enumerate(ADDRESSES[what])})
    guarded = WebPageFetcher(AddressFilter(network=network))
    for number, one in enumerate(ADDRESSES[what]):
        for url in (f"http://{bracketed(one)}/", f"https://{bracketed(one)}/", f"http://{number}.test/"):
            assert await refusal(guarded, url) == "barred", url
    assert network.dialled == []


@pytest.mark.parametrize("what", ADDRESSES)
async def test_control_without_the_guard_each_of_them_is_dialled(what: str) -> None:
    network = Watched()
    unguarded = WebPageFetcher(AddressFilter(network=network, classify=lambda _: ""))
    for one in ADDRESSES[what]:
        assert await refusal(unguarded, f"http://{bracketed(one)}/") == "offline"
    assert len(network.dialled) == len(ADDRESSES[what])


EVERY_PORT = range(1, 65_536)
"""With these, the rule about ports refuses nothing."""


@pytest.mark.parametrize("what", ADDRESSES)
async def test_the_rule_about_addresses_holds_by_itself(what: str) -> None:
    network = Watched({f"{number}.test": [["8.8.8.8", one]] for number, one in enumerate(ADDRESSES[what])})
    names = [name for number, one in enumerate(ADDRESSES[what]) for name in (bracketed(one), f"{number}.test")]
    for place in (f"{name}:{port}" for name in names for port in (22, 80, 6379, 65_535)):
        with pytest.raises(WebFault, match=r"is at .* which is not reached from here"):
            await AddressFilter(ports=EVERY_PORT, network=network).check(parse_host(place))
    assert network.dialled == []


@pytest.mark.parametrize("port", [22, 6379, 65_535])
async def test_control_with_every_port_open_a_public_address_passes(port: int) -> None:
    network = Watched({"site.test": [["8.8.8.8"]]})
    checked = await AddressFilter(ports=EVERY_PORT, network=network).check(parse_host(f"site.test:{port}"))
    assert checked.addresses == (ip_address("8.8.8.8"),)
    with pytest.raises(WebFault, match="port"):
        await AddressFilter(network=network).check(parse_host(f"site.test:{port}"))


METADATA = (
    *("metadata.google.internal", "METADATA.Google.Internal", "metadata", "instance-data", "metadata.goog"),
    *("metadata.azure.internal", "x.metadata.google.internal", "instance-data.ec2.internal", "metadata.tencentyun.com"),
    *("metadata.eu-west.compute.internal", "rancher-metadata"),
)
METADATA_SPELLINGS = (
    *(
        "metadata.google.internal.",
        "169.254.169.254.",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "0xa9.0xfe.1",
    ),
    *("169.254.43518", "0xA9FEA9FE", "①⑥⑨.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]"),
    *("169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "[FD00:0EC2::0254]", "[64:ff9b::a9fe:a9fe]"),
)


@pytest.mark.parametrize("name", [*METADATA, *METADATA_SPELLINGS])
async def test_metadata_is_refused_by_its_name_before_any_lookup(name: str) -> None:
    class Asked(Watched):
        async def resolve(self, name: str, port: int) -> Sequence[IPAddress]:
            pytest.fail(f"{name} was looked up")

    local = [f"{name.lower()}:80"] if name in METADATA else []
    open_to_all = AddressFilter(local, ports=EVERY_PORT, network=Asked())
    for url in (f"http://{name}/computeMetadata/v1/", f"http://{name}:8080/"):
        assert await refusal(WebPageFetcher(open_to_all), url) in {"barred", "no address"}


@pytest.mark.parametrize("name", ["metadata.example.com", "internal", "metadatas", "my-metadata.io"])
async def test_other_names_are_looked_up(name: str) -> None:
    network = Watched({name: [["8.8.8.8"]]})
    assert (await AddressFilter(network=network).check(parse_host(f"{name}:80"))).addresses


@pytest.mark.parametrize("one", PUBLIC)
async def test_what_is_public_is_dialled(one: str) -> None:
    network = Watched({"site.test": [[one]]})
    assert await refusal(WebPageFetcher(AddressFilter(network=network)), "https://site.test/") == "offline"
    assert network.dialled == [one]


@pytest.mark.req("G-6")
@pytest.mark.parametrize("what", SPELLINGS)
async def test_no_spelling_of_this_machine_leads_there(what: str) -> None:
    async with canary() as bird:
        guarded = WebPageFetcher(AddressFilter(ports=[bird.port]))
        for one in SPELLINGS[what]:
            url = f"http://{one.format(port=bird.port)}/"
            assert await refusal(guarded, url) in {"barred", "no address"}, url
        assert bird.visits == 0


@pytest.mark.parametrize("what", SPELLINGS)
async def test_control_an_unguarded_client_follows_one_of_each_kind(what: str) -> None:
    async with canary() as bird:
        for one in SPELLINGS[what]:
            await asyncio.to_thread(opened, f"http://{one.format(port=bird.port)}/")
        assert bird.visits > 0


def opened(url: str) -> None:
    """Open it as a program would that does not care; curl, where it is at hand, reads a user's name."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(OSError, ValueError, HTTPException):
        direct.open(url, timeout=5).close()
    place = url.removeprefix("http://").rstrip("/").rpartition("@")[2]
    name, _, port = place.rpartition(":")
    with contextlib.suppress(OSError, UnicodeError):
        socket.create_connection((name.strip("[]"), int(port)), timeout=5).close()


@pytest.mark.parametrize("url", CONFUSED)
async def test_what_parsers_disagree_about_is_no_address(url: str) -> None:
    async with canary() as bird:
        assert (
            await refusal(WebPageFetcher(AddressFilter(ports=[bird.port])), url.format(port=bird.port)) == "no address"
        )
        assert bird.visits == 0


async def test_no_redirect_leads_there() -> None:
    async with canary() as bird, site({}) as shop:
        places = [one.format(port=bird.port) for some in SPELLINGS.values() for one in some]
        places += [bracketed(one) for _, one in EVERY]
        targets = [*(f"http://{one}/" for one in places), *(one.format(port=bird.port) for one in CONFUSED)]
        network = Watched({"localhost": [[HERE]]})
        guarded = WebPageFetcher(AddressFilter([shop.place], ports=[bird.port], network=network))
        for number, target in enumerate(targets):
            shop.pages[f"/{number}"] = moved(target.replace("\0", "%00").replace("\n", ""))
            assert await led_away(guarded, shop.url(f"/{number}")) in {"redirects", "barred", "no address"}, target
        assert bird.visits == 0
        assert set(network.dialled) == {HERE}
        assert len(network.dialled) == len(targets) > 150


async def led_away(guarded: WebPageFetcher, url: str) -> str:
    """What is said of a redirect, or of the place that it leads to."""
    try:
        found = await guarded.fetch(parse_address(url))
    except WebFault as fault:
        return fault.reason
    return await refusal(guarded, found.to) if isinstance(found, Redirect) else f"reached: {found}"


async def test_one_bad_address_among_good_ones_is_enough() -> None:
    network = Watched({"mixed.test": [["8.8.8.8", "2606:4700::1111", "10.0.0.1"]]})
    assert await refusal(WebPageFetcher(AddressFilter(network=network)), "http://mixed.test/") == "barred"
    assert network.dialled == []


# ------------------------------------------------------------------------------------------------------- rebinding

STRANGER = "127.0.0.2"
"""Stands for a server on the web."""


def as_if_public(one: IPAddress) -> str:
    return "" if str(one) == STRANGER else classify_address(one)


async def test_a_resolver_that_changes_its_answer_is_asked_once() -> None:
    async with canary() as bird, site({"/": said(b"hello")}, at=STRANGER, port=bird.port) as shop:
        network = Watched({"rebind.test": [[STRANGER], [HERE]]})
        guarded = WebPageFetcher(AddressFilter(ports=[bird.port], network=network, classify=as_if_public))
        found = await guarded.fetch(parse_address(f"http://rebind.test:{bird.port}/"))
        assert isinstance(found, WebPage)
        assert found.text == "hello"
        assert (network.asked, network.dialled, bird.visits) == (["rebind.test"], [STRANGER], 0)
        assert "Host: rebind.test" in shop.seen[0]


async def test_a_redirect_to_the_same_name_is_checked_anew() -> None:
    async with canary() as bird, site({"/": moved("/next")}, at=STRANGER, port=bird.port):
        network = Watched({"rebind.test": [[STRANGER], [HERE]]})
        guarded = WebPageFetcher(AddressFilter(ports=[bird.port], network=network, classify=as_if_public))
        assert await refusal(guarded, f"http://rebind.test:{bird.port}/") == "barred"
        assert (network.asked, network.dialled, bird.visits) == (["rebind.test"] * 2, [STRANGER], 0)


async def test_control_without_the_guard_the_second_answer_leads_there() -> None:
    async with canary() as bird, site({"/": moved("/next")}, at=STRANGER, port=bird.port):
        network = Watched({"rebind.test": [[STRANGER], [HERE]]})
        unguarded = WebPageFetcher(AddressFilter(ports=[bird.port], network=network, classify=lambda _: ""))
        assert "canary" in await refusal(unguarded, f"http://rebind.test:{bird.port}/")
        assert bird.visits == 1


async def test_the_connection_goes_nowhere_but_where_was_checked() -> None:
    checked = await AddressFilter(network=Watched({"site.test": [["8.8.8.8"]]})).check(
        parse_address("http://site.test/").host
    )
    with pytest.raises(WebFault, match="checked"):
        checked.open("127.0.0.1")
    known = CheckedResolver(checked)
    assert [one["host"] for one in await known.resolve("site.test", 80)] == ["8.8.8.8"]
    with pytest.raises(OSError, match="was not checked"):
        await known.resolve("other.test", 80)


# ----------------------------------------------------------------------------------------------- the proxy, and us


async def test_the_proxy_leads_nobody_there_either() -> None:
    async with canary() as bird:
        names = {f"{number}.test": [[one]] for number, (_, one) in enumerate(EVERY)}
        network = Watched(names | {"localhost": [[HERE]]})
        visits: list[ProxyVisit] = []
        proxy = Proxy(
            AddressFilter(ports=[bird.port], network=network), ["*", f"*:{bird.port}"], on_visit=visits.append
        )
        port = await proxy.listen_on_loopback()
        places = [*(f"{name}:443" for name in names), *(f"{bracketed(one)}:80" for _, one in EVERY)]
        places += [one.format(port=bird.port) for some in SPELLINGS.values() for one in some]
        for place in places:
            for request in (f"CONNECT {place} HTTP/1.1\r\n\r\n", f"GET http://{place}/ HTTP/1.1\r\n\r\n"):
                assert (await answered(port, request))[9:12] in {"403", "400"}, request
        await proxy.close()
        assert (bird.visits, network.dialled) == (0, [])
        assert len(visits) == 2 * len(places)
        assert {one.verdict for one in visits} == {"refused"}


async def answered(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection(HERE, port)
    writer.write(request.encode())
    said_back = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return said_back.decode()


def test_own_addresses_are_known_whatever_they_look_like() -> None:
    network = SystemNetwork()
    listed = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    for one in ("127.0.0.1", "::1", *listed):
        assert network.is_own(ip_address(one)), one
    assert not network.is_own(ip_address("8.8.8.8"))
    assert not network.is_own(ip_address("2606:4700::1111"))


async def test_a_public_address_of_this_machine_is_this_machine() -> None:
    class Ours(Watched):
        def is_own(self, one: IPAddress) -> bool:
            return str(one) == "140.82.121.3"

    network = Ours({"us.test": [["140.82.121.3"]]})
    assert await refusal(WebPageFetcher(AddressFilter(network=network)), "https://us.test/") == "barred"
    assert network.dialled == []


async def reason(guard: AddressFilter, place: str) -> str:
    with pytest.raises(WebFault) as raised:
        await guard.check(parse_host(place))
    return f"{raised.value.reason}: {raised.value}"


async def test_a_person_opens_a_host_with_its_port_and_no_other() -> None:
    async with site({"/": said(b"mine")}) as shop, site({"/": said(b"not mine")}) as other:
        guard = AddressFilter([f"localhost:{shop.port}"], ports=[other.port])
        found = await WebPageFetcher(guard).fetch(parse_address(f"http://localhost:{shop.port}/"))
        assert isinstance(found, WebPage)
        assert found.text == "mine"
        for place in (f"localhost:{other.port}", f"127.0.0.1:{other.port}", f"127.0.0.1:{shop.port}"):
            assert (await reason(guard, place)).startswith("barred"), place
        assert other.seen == []


async def test_a_port_that_is_not_the_webs_is_opened_by_name_only() -> None:
    network = Watched({"site.test": [["8.8.8.8"]]})
    assert "The port 22 of 'site.test'" in await reason(AddressFilter(network=network), "site.test:22")
    assert network.asked == []
    assert (await AddressFilter(network=network, ports=[8443]).check(parse_host("site.test:8443"))).host.port == 8443


@pytest.mark.parametrize(("told", "why"), [("localhost", "has no port"), ("127.1:80", "unusual form")])
def test_what_a_person_opens_is_a_host_with_its_port(told: str, why: str) -> None:
    with pytest.raises(WebFault, match=why):
        AddressFilter([told])


async def test_the_way_to_open_it_is_told_but_not_to_a_clouds_secrets() -> None:
    assert 'local = ["192.168.1.5:80"]' in await reason(AddressFilter(), "192.168.1.5:80")
    assert "local =" not in await reason(AddressFilter(), "169.254.169.254:80")


@pytest.mark.parametrize("place", ["169.254.169.254:80", "cloud.test:80", "[::ffff:169.254.169.254]:80"])
async def test_no_setting_opens_a_clouds_secrets(place: str) -> None:
    network = Watched({"cloud.test": [["8.8.8.8", "100.100.100.200"]]})
    told = await reason(AddressFilter([place], network=network), place)
    assert told.endswith("(a cloud's metadata), which is not reached from here. No setting opens it.")


async def test_what_a_rule_closes_is_closed_before_it_is_looked_up() -> None:
    network = Watched({"site.test": [["8.8.8.8"]]})
    guard = AddressFilter(["site.test:443"], network=network, closed=lambda asked: f"{asked.name} is closed.")
    assert await reason(guard, "site.test:443") == "barred: site.test is closed."
    assert network.asked == []


async def test_a_name_without_an_address_is_said_to_have_none() -> None:
    assert "'nowhere.test' cannot be found" in await reason(AddressFilter(network=Watched()), "nowhere.test:80")
    assert "has 0 addresses" in await reason(AddressFilter(network=Watched({"none.test": [[]]})), "none.test:80")
    many = [f"8.8.{n}.{m}" for n in range(9) for m in range(9)]
    assert "has 81 addresses" in await reason(AddressFilter(network=Watched({"many.test": [many]})), "many.test:80")


async def test_a_resolver_that_never_answers_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asleep(Watched):
        async def resolve(self, name: str, port: int) -> Sequence[IPAddress]:
            await asyncio.Event().wait()
            return ()

    monkeypatch.setattr(guards, "RESOLVE_TIMEOUT_S", 0.1)
    assert "was not resolved" in await reason(AddressFilter(network=Asleep()), "slow.test:80")


async def test_the_systems_own_resolver_is_asked() -> None:
    assert HERE in map(str, await SystemNetwork().resolve("localhost", 80))


async def test_the_second_address_is_dialled_when_the_first_is_dead() -> None:
    async with site({}) as shop:
        network = Watched({"two.test": [["8.8.8.8", HERE]]})
        checked = await AddressFilter([f"two.test:{shop.port}"], network=network).check(
            parse_host(f"two.test:{shop.port}")
        )
        (await checked.connect(5.0)).close()
        assert network.dialled == ["8.8.8.8", HERE]


async def test_nobody_who_answers_is_told_with_the_reason() -> None:
    async with site({}) as shop:
        pass
    checked = await AddressFilter([shop.place]).check(parse_host(shop.place))
    with pytest.raises(WebFault, match=r"No server answers at '127\.0\.0\.1:\d+' \(Connection refused\)"):
        await checked.connect(5.0)
