"""Which Chromium is used, whether it is seen, what it is given; where its pictures go; what a gate tells."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import aiohttp
import pytest

from greenroom.adapters.browser.browser_folder import FolderScreenshotStore
from greenroom.adapters.browser.chromium import (
    Chromium,
    build_environment,
    find_program,
    is_headless,
)
from greenroom.adapters.web.address_filter import AddressFilter
from greenroom.adapters.web.search import serve_egress
from greenroom.core.ports.browser import BrowserFault
from tests.adapters.browser.chromiums import nest
from tests.adapters.web.house import said, site


def made(folder: Path, text: str = "exit 1") -> Path:
    """A program."""
    path = folder / "chromium"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    folder.chmod(0o755)
    return path


def test_the_first_chromium_of_the_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrowserFault) as raised:
        find_program()
    assert raised.value.code == "browser.not_installed"
    path = made(tmp_path)
    assert find_program() == str(path)
    assert find_program(str(path)) == str(path)
    with pytest.raises(BrowserFault, match=r"'other' below \[browser\] in your settings is not a program"):
        find_program("other")


@pytest.mark.req("MAS-192")
def test_it_is_seen_where_there_is_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert is_headless(None, {})
    assert not is_headless(None, {"DISPLAY": ":0"})
    assert not is_headless(None, {"WAYLAND_DISPLAY": "wayland-0"})
    assert is_headless(setting=True, environ={"DISPLAY": ":0"})
    assert not is_headless(setting=False, environ={})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert is_headless(None, {"DISPLAY": ":0"})
    monkeypatch.setattr("sys.platform", "darwin")
    assert not is_headless(None, {})


def test_it_gets_names_on_a_list_and_no_key() -> None:
    own = {"PATH": "/bin", "DISPLAY": ":0", "OPENAI_API_KEY": "sk", "HOME": "/root", "LD_PRELOAD": "x"}
    unseen = build_environment(own, Path("/den"), is_visible=False)
    assert unseen["HOME"] == "/den"
    assert not {"DISPLAY", "OPENAI_API_KEY", "LD_PRELOAD"} & unseen.keys()
    assert build_environment(own, Path("/den"), is_visible=True)["DISPLAY"] == ":0"


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("echo 'No usable sandbox!' >&2; exit 1", "Its sandbox needs user namespaces"),
        ("echo 'no screen' >&2; exit 3", "cannot be started: no screen"),
    ],
)
async def test_one_that_does_not_start_says_why(does: str, says: str) -> None:
    with nest() as folder:
        found = str(made(folder, does))
        with pytest.raises(BrowserFault) as raised:
            async with Chromium(lambda hosts: serve_egress(AddressFilter(), hosts), found, headless=True).open_tab(
                ["*"]
            ):
                raise AssertionError
        assert says in str(raised.value)
        assert [one.name for one in folder.iterdir()] == ["chromium"]


async def test_pictures_are_for_their_owner_and_no_reason_to_fail(tmp_path: Path) -> None:
    album = FolderScreenshotStore(tmp_path / "screenshots")
    folder = tmp_path / "screenshots" / "team-..-ann-1"
    assert await album.save("team/../ann#1", 7, b"x") == str(folder)
    assert (folder / "007.jpg").read_bytes() == b"x"
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o700 for one in (folder, folder.parent))
    (tmp_path / "file").write_text("")
    assert await FolderScreenshotStore(tmp_path / "file").save("x", 1, b"x") == ""


async def test_a_gate_tells_what_it_has_refused_and_serves_only_who_has_its_token() -> None:
    async with site({"/": said(b"mine")}) as shop, serve_egress(AddressFilter([shop.place]), [shop.place]) as way:
        proxy = f"http://127.0.0.1:{way.port}"
        known = f"http://{way.user}:{way.token}@127.0.0.1:{way.port}"
        async with aiohttp.ClientSession() as client:
            async with client.get(shop.url("/"), proxy=proxy) as stranger:
                assert stranger.status == 407
            async with client.get("http://10.0.0.1/", proxy=known) as refused:
                assert refused.status == 403
            assert list(way.refused) == ["10.0.0.1:80"]
            async with client.get(shop.url("/"), proxy=known) as allowed:
                assert await allowed.text() == "mine"
    assert len(shop.seen) == 1
