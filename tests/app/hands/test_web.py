"""The web in the hands of a team: set up by the person, asked about by host, loaded late."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from greenroom.app.settings.keys import save_key
from greenroom.app.settings.schema import WebSettings
from greenroom.app.toolset.policy import policy_for
from greenroom.app.toolset.redaction import known_secrets
from greenroom.app.toolset.toolset import toolbox_of
from greenroom.app.toolset.web import LatePages, LateSearch
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data
from greenroom.core.ports.policy import Ruling
from greenroom.core.ports.web import Page, WebFault, address
from greenroom.core.state.spec import AgentSpec
from tests.adapters.web.house import said, site

ANN = AgentId("ann")


def ruling(root: Path, tool: str, arguments: Data, *rules: str) -> Ruling:
    found = toolbox_of(root).named(tool)
    return policy_for(root, rules).decide(ANN, found.card, found.targets(arguments))


def test_a_host_is_asked_about_and_always_means_that_host(tmp_path: Path) -> None:
    asked = ruling(tmp_path, "web_fetch", {"url": "https://docs.example/a"})
    assert (asked.verdict, asked.grant) == ("ask", "allow host docs.example")
    given = {"url": "https://docs.example/b"}
    assert ruling(tmp_path, "web_fetch", given, asked.grant).verdict == "allow"
    assert ruling(tmp_path, "web_fetch", {"url": "https://other.example/"}, asked.grant).verdict == "ask"
    assert ruling(tmp_path, "web_fetch", {"url": "https://docs.example:8443/"}, asked.grant).verdict == "ask"
    assert ruling(tmp_path, "web_fetch", given, asked.grant, "deny host docs.example").verdict == "deny"


@pytest.mark.parametrize("tool", ["web_search", "search_web", "search_engine"])
def test_a_search_is_asked_about_by_whom_it_asks(tmp_path: Path, tool: str) -> None:
    assert ruling(tmp_path, tool, {"query": "x"}).grant == "allow host html.duckduckgo.com"


def test_a_group_has_the_search_once_and_a_name_has_what_it_names(tmp_path: Path) -> None:
    tools = toolbox_of(tmp_path)
    grouped = tools.equipped(AgentSpec(name="a", groups=("web",))).tools
    assert grouped == ("web_fetch", "web_search", "read_output")
    assert tools.equipped(AgentSpec(name="a", tools=("search_web",))).tools == ("search_web", "read_output")


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        (WebSettings(), "html.duckduckgo.com:443"),
        (WebSettings(search="tavily"), "api.tavily.com:443"),
        (WebSettings(search="searxng", searxng_url="http://localhost:8888/sx"), "localhost:8888"),
        (WebSettings(search="searxng"), ""),
    ],
)
def test_the_settings_say_who_is_asked(settings: WebSettings, host: str) -> None:
    assert LateSearch(settings, {}).host == host


async def test_what_is_not_set_up_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WebFault, match=r"needs its address: `searxng_url ="):
        await LateSearch(WebSettings(search="searxng"), {}).find("x", 1)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(WebFault, match="set TAVILY_API_KEY"):
        await LateSearch(WebSettings(search="tavily"), {}).find("x", 1)
    save_key("tavily", "tvly-0123456789").chmod(0o644)
    with pytest.raises(WebFault, match="chmod 600"):
        await LateSearch(WebSettings(search="tavily"), {}).find("x", 1)


async def test_a_search_of_ones_own_and_a_server_of_ones_own_are_reached() -> None:
    answer = json.dumps({"results": [{"title": "T", "url": "https://a.example/"}]}).encode()
    async with site({"/search": said(answer, "application/json"), "/": said(b"mine")}) as shop:
        own = WebSettings(search="searxng", searxng_url=shop.url(), local=(shop.place,))
        assert [one.title for one in await LateSearch(own, {}).find("x", 3)] == ["T"]
        found = await LatePages(own).fetch(address(shop.url()))
        assert isinstance(found, Page)
        assert found.text == "mine"
        with pytest.raises(WebFault, match="none of the web's"):
            await LatePages(WebSettings()).fetch(address(shop.url()))


def test_the_key_of_a_search_is_a_secret() -> None:
    assert known_secrets({"TAVILY_API_KEY": "tvly-0123456789"}, ()) == ("tvly-0123456789",)


def test_tools_are_known_without_loading_what_reaches_out() -> None:
    loaded = "print([name for name in ('aiohttp', 'lxml', 'ddgs', 'idna') if name in sys.modules])"
    code = f"import sys, greenroom.app.toolset.toolset; {loaded}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"
