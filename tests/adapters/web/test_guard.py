"""The guard: what a person can open, and what is said where nobody can be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from greenroom.adapters.web import guard as guards
from greenroom.adapters.web.fetching import Fetching
from greenroom.adapters.web.guard import Guard, IPAddress, SystemNetwork
from greenroom.core.base.hosts import host
from greenroom.core.ports.web import Page, WebFault, address
from tests.adapters.web.house import HERE, Watched, said, site


async def reason(guard: Guard, place: str) -> str:
    with pytest.raises(WebFault) as raised:
        await guard.check(host(place))
    return f"{raised.value.reason}: {raised.value}"


async def test_a_person_opens_a_host_with_its_port_and_no_other() -> None:
    async with site({"/": said(b"mine")}) as shop, site({"/": said(b"not mine")}) as other:
        guard = Guard([f"localhost:{shop.port}"], ports=[other.port])
        found = await Fetching(guard).fetch(address(f"http://localhost:{shop.port}/"))
        assert isinstance(found, Page)
        assert found.text == "mine"
        for place in (f"localhost:{other.port}", f"127.0.0.1:{other.port}", f"127.0.0.1:{shop.port}"):
            assert (await reason(guard, place)).startswith("barred"), place
        assert other.seen == []


async def test_a_port_that_is_not_the_webs_is_opened_by_name_only() -> None:
    network = Watched({"site.test": [["8.8.8.8"]]})
    assert "The port 22 of 'site.test'" in await reason(Guard(network=network), "site.test:22")
    assert network.asked == []
    assert (await Guard(network=network, ports=[8443]).check(host("site.test:8443"))).host.port == 8443


@pytest.mark.parametrize(("told", "why"), [("localhost", "has no port"), ("127.1:80", "unusual form")])
def test_what_a_person_opens_is_a_host_with_its_port(told: str, why: str) -> None:
    with pytest.raises(WebFault, match=why):
        Guard([told])


async def test_the_way_to_open_it_is_told_but_not_to_a_clouds_secrets() -> None:
    assert 'local = ["192.168.1.5:80"]' in await reason(Guard(), "192.168.1.5:80")
    assert "local =" not in await reason(Guard(), "169.254.169.254:80")


@pytest.mark.parametrize("place", ["169.254.169.254:80", "cloud.test:80", "[::ffff:169.254.169.254]:80"])
async def test_no_setting_opens_a_clouds_secrets(place: str) -> None:
    network = Watched({"cloud.test": [["8.8.8.8", "100.100.100.200"]]})
    told = await reason(Guard([place], network=network), place)
    assert told.endswith("(a cloud's metadata), which is not reached from here. No setting opens it.")


async def test_what_a_rule_closes_is_closed_before_it_is_looked_up() -> None:
    network = Watched({"site.test": [["8.8.8.8"]]})
    guard = Guard(["site.test:443"], network=network, closed=lambda asked: f"{asked.name} is closed.")
    assert await reason(guard, "site.test:443") == "barred: site.test is closed."
    assert network.asked == []


async def test_a_name_without_an_address_is_said_to_have_none() -> None:
    assert "'nowhere.test' cannot be found" in await reason(Guard(network=Watched()), "nowhere.test:80")
    assert "has 0 addresses" in await reason(Guard(network=Watched({"none.test": [[]]})), "none.test:80")
    many = [f"8.8.{n}.{m}" for n in range(9) for m in range(9)]
    assert "has 81 addresses" in await reason(Guard(network=Watched({"many.test": [many]})), "many.test:80")


async def test_a_resolver_that_never_answers_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asleep(Watched):
        async def resolve(self, name: str, port: int) -> Sequence[IPAddress]:
            await asyncio.Event().wait()
            return ()

    monkeypatch.setattr(guards, "RESOLVING", 0.1)
    assert "was not resolved" in await reason(Guard(network=Asleep()), "slow.test:80")


async def test_the_systems_own_resolver_is_asked() -> None:
    assert HERE in map(str, await SystemNetwork().resolve("localhost", 80))


async def test_the_second_address_is_dialled_when_the_first_is_dead() -> None:
    async with site({}) as shop:
        network = Watched({"two.test": [["8.8.8.8", HERE]]})
        checked = await Guard([f"two.test:{shop.port}"], network=network).check(host(f"two.test:{shop.port}"))
        (await checked.connect(5.0)).close()
        assert network.dialled == ["8.8.8.8", HERE]


async def test_nobody_who_answers_is_told_with_the_reason() -> None:
    async with site({}) as shop:
        pass
    checked = await Guard([shop.place]).check(host(shop.place))
    with pytest.raises(WebFault, match=r"Nobody answers at '127\.0\.0\.1:\d+' \(Connection refused\)"):
        await checked.connect(5.0)
