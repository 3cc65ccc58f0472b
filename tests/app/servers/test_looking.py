"""Servers are looked at: started, listed, ended, all within a time."""

from __future__ import annotations

import time

import pytest

from greenroom.adapters.mcp.catalogue import Catalogue
from greenroom.adapters.mcp.client import Patience
from greenroom.adapters.mcp.pins import Change
from greenroom.app.mcp_servers import meet, own_listings, told_changes
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from tests.adapters.mcp.running import marked, until, write_tools
from tests.app.servers.places import QUICK, Place, everybody, nobody

OBJECT = {"type": "object", "properties": {}}


async def test_a_server_is_started_listed_and_ended(place: Place) -> None:
    found = place.own()
    seen = await place.look(found)
    assert seen.version == "2025-11-25"
    assert "mcp__raw__echo" in seen.catalogue.offered
    assert own_listings().of(found) is None, "looking keeps nothing"
    await until(lambda: marked(place.folder.name) == [])


async def test_one_that_does_not_work_says_why_and_leaves_nobody(place: Place) -> None:
    place.own("dies", "dies")
    with pytest.raises(WorldFault, match=r"The MCP server 'dies': .*Cannot find the database"):
        await place.look(place.named("dies"))
    place.own("hangs", "hangs", start_timeout=1)
    began = time.monotonic()
    with pytest.raises(WorldFault, match="it did not answer within 1 s after it was started"):
        await place.look(place.named("hangs"))
    assert time.monotonic() - began < 10
    await until(lambda: marked(place.folder.name) == [])


async def test_a_program_that_is_not_there_is_said_once(place: Place) -> None:
    place.project(gone={"command": "no-such-program"})
    with pytest.raises(WorldFault) as fault:
        await place.look(place.named("gone"))
    assert str(fault.value).count("The MCP server 'gone'") == 1


async def test_before_a_run_new_servers_of_the_person_are_met_and_no_others(place: Place) -> None:
    place.own()
    place.own("hangs", "hangs", start_timeout=1)
    place.own("off", "dies", disabled=True)
    place.project(theirs=place.table("dies"))
    (said,) = await meet(place.root, place.environ, place.settings, nobody, patience=QUICK)
    assert "'hangs': it did not answer within 1 s" in said
    known = own_listings().of(place.named())
    assert known is not None
    assert "echo" in {one.name for one in known.listed}
    assert own_listings().of(place.named("hangs")) is None
    nothing = Patience(start=0.001)
    assert [
        one for one in await meet(place.root, place.environ, place.settings, nobody, patience=nothing) if "raw" in one
    ] == []


async def test_a_server_of_the_project_is_met_when_somebody_trusts_it(place: Place) -> None:
    place.project(theirs=place.table())
    assert await meet(place.root, place.environ, place.settings, everybody, patience=QUICK) == ()
    assert own_listings().of(place.named("theirs")) is not None


async def test_other_settings_are_met_anew_but_other_tools_are_not_agreed_to(place: Place) -> None:
    found = place.own()
    own_listings().keep(
        evolve(found, server=evolve(found.server, folder="/")), (await place.look(found)).catalogue.listed
    )
    assert own_listings().of(found) is None
    assert await meet(place.root, place.environ, place.settings, nobody, patience=QUICK) == ()
    known = own_listings().of(found)
    assert known is not None
    own_listings().keep(evolve(found, server=evolve(found.server, folder="/")), known.listed)
    write_tools(place.folder, {"name": "guest", "inputSchema": OBJECT})
    (said,) = await meet(place.root, place.environ, place.settings, nobody, patience=QUICK)
    assert "has other tools than you agreed to: guest (new)" in said
    assert own_listings().of(found) is None


def test_many_changes_are_told_in_a_few_words() -> None:
    changes = tuple(Change(name=f"t{number}", how="new") for number in range(7))
    said = told_changes("my server", Catalogue(changes=changes))
    assert "t3 (new), t4 (new) and 2 more. They are not used" in said
    assert said.endswith("greenroom mcp check 'my server'")
