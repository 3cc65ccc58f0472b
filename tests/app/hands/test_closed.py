"""A rule that closes a host holds for what goes through a gate: for a browser, for commands, and for redirects."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest

from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.making import gate, pages
from greenroom.app.settings.schema import SandboxSettings, WebSettings
from greenroom.app.toolset.egress import closed, closed_for
from greenroom.app.toolset.policy import policy_for
from greenroom.app.toolset.sandbox import Walls
from greenroom.app.toolset.toolset import Hands
from greenroom.core.base.hosts import Closed, host
from greenroom.core.base.records import evolve
from greenroom.core.ports.browser import Gate
from greenroom.core.ports.web import WebFault, address
from greenroom.core.state.spec import AgentSpec
from tests.adapters.web.house import HERE, Watched, moved, said, site
from tests.core.house import ANN, House, tool

CORP = ("allow host corp.example", "deny host payroll.corp.example", "ask host hr.corp.example")


def closed_by(root: Path, *rules: str, named: tuple[str, ...] | None = None) -> Closed:
    return closed(policy_for(root, rules), named)


@pytest.mark.parametrize(
    ("place", "shut"),
    [
        ("corp.example:443", False),
        ("wiki.corp.example:443", False),
        ("payroll.corp.example:443", True),
        ("payroll.corp.example:8443", True),
        ("eu.payroll.corp.example:80", True),
        ("notpayroll.corp.example:443", False),
    ],
)
def test_what_is_denied_stays_so_where_something_wider_is_open(tmp_path: Path, place: str, shut: bool) -> None:
    why = closed_by(tmp_path, *CORP)(host(place))
    assert bool(why) is shut
    assert not why or "`deny host payroll.corp.example`" in why


def test_what_is_to_be_asked_about_is_closed_to_who_has_not_named_it(tmp_path: Path) -> None:
    asked = host("hr.corp.example:443")
    wide = closed_by(tmp_path, *CORP, named=("corp.example", "*.corp.example"))(asked)
    assert wide.endswith("Nobody can be asked now: name the host 'hr.corp.example' beforehand.")
    assert closed_by(tmp_path, *CORP, named=("HR.corp.example",))(asked) == ""
    assert closed_by(tmp_path, *CORP)(asked) == "", "a page is asked about by itself"
    assert closed_by(tmp_path, "allow tool browser_use", named=("*",))(asked) == "", "nobody has said anything of it"


def test_what_binds_an_agent_closes_too(tmp_path: Path) -> None:
    house = House.furnished().queue(ANN, tool("browser_use", {"task": "x"}))
    spec = AgentSpec(name="ann", rules=("deny host payroll.corp.example",))
    bound = evolve(house.world, agents=house.world.agents.set(ANN, evolve(house.world.agents[ANN], spec=spec)))
    step = next(bound.steps_of(ANN))
    shut = closed_for(policy_for(tmp_path, ("allow tool browser_use",)), bound, step, ("*",))
    assert shut(host("payroll.corp.example:443"))
    assert shut(host("corp.example:443")) == ""


async def spoken(way: Gate, name: str, port: int) -> str:
    reader, writer = await asyncio.open_connection(HERE, way.port)
    mine = base64.b64encode(f"{way.user}:{way.token}".encode()).decode()
    writer.write(f"GET http://{name}:{port}/ HTTP/1.1\r\nProxy-Authorization: Basic {mine}\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer.decode("latin-1")


async def test_a_browser_does_not_get_through_to_what_is_denied(tmp_path: Path) -> None:
    names = ("corp.example", "payroll.corp.example")
    async with site({"/": said(b"here")}) as shop:
        hosts = [f"{name}:{shop.port}" for name in (*names, "*.corp.example")]
        network = Watched({name: [[HERE]] for name in names})
        guard = Guard(hosts[:2], network=network, closed=closed_by(tmp_path, *CORP))
        async with gate(guard, (*hosts, "*", f"*:{shop.port}")) as way:
            assert (await spoken(way, names[0], shop.port)).endswith("here")
            assert (await spoken(way, names[1], shop.port)).startswith("HTTP/1.1 403")
            assert "`deny host payroll.corp.example`" in way.refused[hosts[1]]
        assert network.asked == [names[0]], "its name is not even looked up"


async def test_a_page_that_leads_on_to_what_is_denied_is_not_followed(tmp_path: Path) -> None:
    async with site({}) as shop:
        shop.pages["/"] = moved(f"http://www.localhost:{shop.port}/")
        local = [f"localhost:{shop.port}", f"www.localhost:{shop.port}"]
        fetching = pages(local, (), closed_by(tmp_path, "allow host localhost", "deny host www.localhost"))
        with pytest.raises(WebFault, match=r"deny host www\.localhost"):
            await fetching.fetch(address(f"http://localhost:{shop.port}/"))
        assert len(shop.seen) == 1


async def test_a_command_does_not_get_through_to_what_is_denied(tmp_path: Path) -> None:
    walls = Walls(
        tmp_path, SandboxSettings(walls="off", hosts=("*.corp.example", "hr.corp.example")), web=WebSettings()
    )
    hands = Hands(tmp_path, policy_for(tmp_path, CORP), walls=walls)
    out, told = walls._out, list[str]()
    try:
        door = await out.door()
        for name in ("payroll.corp.example", "hr.corp.example"):
            reader, writer = await asyncio.open_unix_connection(door)
            writer.write(f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode())
            told.append((await asyncio.wait_for(reader.read(), 15)).decode())
            writer.close()
    finally:
        await hands.close()
    assert told[0].startswith("HTTP/1.1 403")
    assert "`deny host payroll.corp.example`" in told[0]
    assert "cannot be found" in told[1], "the person has named it for commands"
