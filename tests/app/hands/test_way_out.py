"""The one way out of the walls: opened once, told of, closed; each command has its own hosts, and nobody else's."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.adapters.web.proxy import Visit
from greenroom.app.settings.schema import WebSettings
from greenroom.app.toolset.egress import KeptFrom, WayOut, closed
from greenroom.app.toolset.policy import policy_for
from greenroom.core.base.errors import WorldFault
from tests.adapters.web.house import Site, said, site

WEB = WebSettings()
ME = os.getppid()
"""The guard of this very process, if it were somebody who connects for a command."""

BESIDE = """
import socket, sys
with socket.socket(socket.AF_UNIX) as door:
    door.settimeout(20)
    door.connect(sys.argv[1])
    door.sendall(f"CONNECT {sys.argv[2]} HTTP/1.1\\r\\n\\r\\n".encode())
    print(door.recv(99)[9:12].decode())
"""


@asynccontextmanager
async def opened(*hosts: str, web: WebSettings = WEB) -> AsyncIterator[WayOut]:
    out = WayOut(hosts, web)
    try:
        yield out
    finally:
        await out.close()


async def asks(out: WayOut, place: str) -> str:
    """What this process hears that wants a tunnel."""
    reader, writer = await asyncio.open_unix_connection(await out.door(("some.example",)))
    writer.write(f"CONNECT {place} HTTP/1.1\r\n\r\n".encode())
    answer = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 15)).decode()
    writer.close()
    return answer[9:12]


async def beside(out: WayOut, place: str) -> str:
    """What another process hears: its parent is this one."""
    door = await out.door(("some.example",))
    made = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BESIDE, door, place, stdout=asyncio.subprocess.PIPE
    )
    return (await asyncio.wait_for(made.communicate(), 30))[0].decode().strip()


@asynccontextmanager
async def shop() -> AsyncIterator[tuple[Site, WebSettings]]:
    """A site that stands for the internet, and settings that say so."""
    async with site({"/": said(b"here")}) as made:
        yield made, WebSettings(local=(made.place,))


async def test_who_may_reach_nobody_has_none() -> None:
    async with opened() as out:
        assert await out.door() == ""
        assert await out.door(("pypi.org",))


async def test_it_is_opened_once_and_nothing_is_left_of_it() -> None:
    out = WayOut(("pypi.org",), WEB)
    door, again = await asyncio.gather(out.door(), out.door())
    assert door == again
    out.let(ME, ())
    assert await asks(out, "other.example:443") == "403"
    told = out.remarks(ME, "")
    assert told.startswith("greenroom: the host 'other.example' is not open, only pypi.org. Run it again with hosts=[")
    out.end(ME)
    assert out.remarks(ME, "") == ""
    await out.close()
    await out.close()
    assert not Path(door).parent.exists()


# ------------------------------------------------------------------------------------------ hosts of one's own


async def test_one_command_is_let_to_a_host_the_one_beside_it_is_not_and_after_its_end_nobody_is() -> None:
    async with shop() as (there, web), opened(web=web) as out:
        out.let(ME, (there.place,))
        out.let(os.getpid(), ())
        assert (await asks(out, there.place), await beside(out, there.place)) == ("200", "403")
        assert (await asks(out, "other.example:443"), await beside(out, "other.example:443")) == ("403", "403")
        out.end(ME)
        assert await asks(out, there.place) == "403"


async def test_a_stranger_who_finds_the_door_reaches_nobody() -> None:
    async with shop() as (there, web), opened(web=web) as out:
        out.let(12345678, (there.place,))
        assert await asks(out, there.place) == "403"


async def test_a_number_that_was_another_commands_brings_nothing_of_it() -> None:
    async with shop() as (there, web), opened(web=web) as out:
        out.let(ME, (there.place,))
        out.let(ME, ())
        assert await asks(out, there.place) == "403"


async def test_what_still_goes_on_for_a_command_is_cut_with_its_end() -> None:
    async with shop() as (there, web), opened(web=web) as out:
        out.let(ME, (there.place,))
        reader, writer = await asyncio.open_unix_connection(await out.door((there.place,)))
        writer.write(f"CONNECT {there.place} HTTP/1.1\r\n\r\n".encode())
        assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 15))[9:12] == b"200"
        out.end(ME)
        assert await asyncio.wait_for(reader.read(), 5) == b"", "it does not wait until nobody has spoken for a minute"
        writer.close()


async def test_a_host_that_is_let_and_lies_on_this_machine_is_still_refused() -> None:
    async with site({"/": said(b"here")}) as there, opened(web=WebSettings(ports=(there.port,))) as out:
        out.let(ME, (there.place, f"localhost:{there.port}"))
        assert [await asks(out, f"{name}:{there.port}") for name in ("127.0.0.1", "localhost")] == ["403", "403"]
        assert f'`local = ["localhost:{there.port}"]` below [web]' in out.remarks(ME, "")
        assert there.seen == []


async def test_a_port_that_is_none_of_the_webs_stays_closed_although_it_was_named() -> None:
    async with opened() as out:
        out.let(ME, ("pypi.test:22",))
        assert await asks(out, "pypi.test:22") == "403"
        assert "The port 22 of 'pypi.test' is none of the web's." in out.remarks(ME, "")


async def test_a_rule_that_closes_a_host_holds_and_one_that_asks_was_answered_for_who_named_it(tmp_path: Path) -> None:
    rules = policy_for(tmp_path, ("deny host payroll.corp.test", "ask host hr.corp.test"))
    async with opened("*.corp.test") as out:
        out.closed = lambda named: closed(rules, named)
        out.let(ME, ("payroll.corp.test", "hr.corp.test"))
        assert await asks(out, "payroll.corp.test:443") == "403"
        assert "`deny host payroll.corp.test`" in out.remarks(ME, "")
        assert await asks(out, "hr.corp.test:443") == "502", "it may, and there is none"
        out.let(ME, ())
        assert await asks(out, "hr.corp.test:443") == "403", "nobody has named it"


@pytest.mark.parametrize("name", ["*.example.org", "*", "https://pypi.org", "a b", "pypi.org:0", "pypi.org\n"])
async def test_what_is_not_one_host_to_the_letter_is_let_to_nobody(name: str) -> None:
    async with opened() as out:
        with pytest.raises(WorldFault, match="is no host"):
            await out.door((name,))
        with pytest.raises(WorldFault, match="is no host"):
            out.let(ME, (name,))


# ------------------------------------------------------------------------------------------ what is said of it


def test_all_hosts_that_a_command_was_kept_from_are_in_one_line_that_can_be_copied() -> None:
    kept = KeptFrom(everybody=(), own=("pypi.org",))
    for name in ("a.example:443", "b.example:80", "a.example:443", "c.example:8443"):
        kept.add(Visit(host=name, verdict="refused", why=f"{name!r} is none of the hosts that may be reached."))
    assert kept.told() == (
        "greenroom: the hosts 'a.example', 'b.example', 'c.example:8443' are not open, only pypi.org. Run it again "
        'with hosts=["pypi.org", "a.example", "b.example", "c.example:8443"] and why: that asks a person. (They can '
        'open it to every command: `hosts = ["a.example", "b.example", "c.example:8443"]` below [sandbox] in '
        "their settings.)"
    )


def test_no_more_hosts_are_proposed_than_one_call_can_name() -> None:
    kept = KeptFrom(everybody=(), own=("pypi.org",))
    for number in range(12):
        kept.add(Visit(host=f"{number}.example:443", verdict="refused", why="It is none of the hosts."))
    assert (
        'hosts=["pypi.org", "0.example", "1.example", "2.example", "3.example", "4.example", "5.example", '
        in kept.told()
    )
    assert '"6.example"] and why' in kept.told()


def test_what_the_guard_says_is_passed_on_and_not_too_often() -> None:
    kept = KeptFrom(everybody=("pypi.org",), own=())
    for number in range(50):
        kept.add(Visit(host="pypi.org", verdict="failed", why=f"The host cannot be found ({number % 40})."))
    told = kept.told().splitlines()
    assert (told[0], len(told)) == ("greenroom: The host cannot be found (0).", 20)


@pytest.mark.parametrize(
    "told",
    [
        "fatal: unable to access 'https://x/': Could not resolve host: x",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "npm error network request to https://x failed, reason: getaddrinfo EAI_AGAIN x",
        "connect: Network is unreachable",
    ],
)
def test_who_has_no_network_is_told_how_to_get_to_a_host(told: str) -> None:
    nobody, somebody = WayOut((), WEB), WayOut(("pypi.org",), WEB)
    for out in (nobody, somebody):
        out.let(7, ())
    assert 'Run it again with hosts=["HOST"] and why' in nobody.remarks(7, told)
    assert nobody.remarks(7, "1 passed") == ""
    assert somebody.remarks(7, told) == "", "the proxy knows better"


async def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"greenroom-doors-{os.geteuid()}").symlink_to("elsewhere")
    with pytest.raises(WorldFault, match="is not ours"):
        await WayOut(("pypi.org",), WEB).door()
