"""The one way out of the walls: opened once, told of, closed; nobody else's place is taken for it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from greenroom.adapters.web.proxy import Visit
from greenroom.app.hands.way_out import WayOut
from greenroom.app.settings.schema import WebSettings
from greenroom.core.base.errors import WorldFault

WEB = WebSettings()


async def test_who_names_no_host_has_none() -> None:
    out = WayOut((), WEB)
    await out.open()
    assert out.door() is None
    await out.close()


async def test_it_is_opened_once_and_nothing_is_left_of_it() -> None:
    out = WayOut(("pypi.org",), WEB)
    door = out.door()
    assert door is not None
    await asyncio.gather(out.open(), out.open())
    reader, writer = await asyncio.open_unix_connection(str(door))
    writer.write(b"CONNECT other.example:443 HTTP/1.1\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 403")
    writer.close()
    told = out.remarks(os.getppid(), "")
    assert told.startswith("greenroom: the host 'other.example' is not allowed, only pypi.org. A person can allow it: ")
    assert out.remarks(os.getppid(), "") == "", "it is told once"
    await out.close()
    await out.close()
    assert not door.parent.exists()


def test_what_the_guard_says_is_passed_on_and_not_too_often() -> None:
    out = WayOut(("pypi.org",), WEB)
    for number in range(50):
        out._hear(Visit(host="pypi.org", verdict="failed", why=f"The host cannot be found ({number % 40})."))
    out._hear(Visit(host="pypi.org", verdict="allowed"))
    told = out.remarks(0, "").splitlines()
    assert (told[0], len(told)) == ("greenroom: The host cannot be found (0).", 20)


@pytest.mark.parametrize(
    "said",
    [
        "fatal: unable to access 'https://x/': Could not resolve host: x",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "npm error network request to https://x failed, reason: getaddrinfo EAI_AGAIN x",
        "connect: Network is unreachable",
    ],
)
def test_who_has_no_network_is_told_how_to_get_to_a_host(said: str) -> None:
    assert "below [sandbox] in their settings" in WayOut((), WEB).remarks(7, said)
    assert WayOut((), WEB).remarks(7, "1 passed") == ""
    assert WayOut(("pypi.org",), WEB).remarks(7, said) == "", "the proxy knows better"


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"greenroom-doors-{os.geteuid()}").symlink_to("elsewhere")
    with pytest.raises(WorldFault, match="is not ours"):
        WayOut(("pypi.org",), WEB).door()
