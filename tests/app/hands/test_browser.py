"""The browser in the hands of a team: led by the agent's model, asked about by host, out only by the gate."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.app.settings.schema import BrowserSettings, WebSettings
from greenroom.app.toolset.policy import policy_for
from greenroom.app.toolset.toolset import Hands, toolbox_of
from greenroom.app.toolset.web import MISSING, LateBrowser
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.browser import BrowserFault
from greenroom.core.ports.model import ModelEvent, ModelRequest, Models
from greenroom.core.state.note import Note
from greenroom.testing.scripted import Call, Cue, Reply, ScriptedModel
from tests.abilities.tools.calling import Caller, caller
from tests.adapters.browser.chromiums import needs_chromium
from tests.adapters.web.house import said, site

ANN = AgentId("ann")
SHOP = said(
    b"<title>Shop</title><h1>Shop</h1><form action=/found><input name=q aria-label=Search></form>"
    b"<script>p = document.createElement('p'); p.innerText = 'made by a script'; document.body.append(p)</script>"
    b"<img src=http://OTHER/x.png>",
    "text/html",
)
FOUND = said(b"<title>Found</title><p>Lamp: 7 euros</p>", "text/html")


def script(*calls: Call) -> ScriptedModel:
    """One move after the other. The mark of the field is read from the page."""

    def reply(one: Call) -> Callable[[ModelRequest], Reply]:
        def made(request: ModelRequest) -> Reply:
            field = re.search(r'textbox "Search".*?\[ref=(\w+)\]', request.messages[-1].content)
            ref = {"ref": field[1]} if field and one.name == "type" else {}
            return Reply(calls=(Call(name=one.name, arguments={**one.arguments, **ref}),))

        return made

    return ScriptedModel(
        Cue(reply=reply(one), skill="browser_use", turn=turn) for turn, one in enumerate(calls, start=1)
    )


@asynccontextmanager
async def hands(root: Path, models: Models | None, web: WebSettings, *rules: str) -> AsyncIterator[Caller]:
    """A team whose person has agreed to these rules."""
    settings = BrowserSettings(headless=True)
    made = Hands(root, policy_for(root, rules), web=web, browser=settings, models=models)
    try:
        async with caller(made.executors) as team:
            yield team
    finally:
        await made.close()


@needs_chromium
@pytest.mark.req("MAS-190", "MAS-192", "MAS-193", "MAS-194", "MAS-196", "MAS-197")
async def test_an_agent_s_model_leads_a_real_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENROOM_HOME", str(tmp_path / "home"))
    async with site({"/x.png": said(b"x")}) as other:
        page = SHOP.replace(b"http://OTHER", f"http://{other.place}".encode()).replace(b"Content-Length", b"X-Length")
        async with site({"/": page, "/found": FOUND}) as shop:
            web = WebSettings(local=(shop.place, other.place))
            model = script(
                Call(name="open", arguments={"url": shop.url("/")}),
                Call(name="type", arguments={"ref": "", "text": "lamp", "submit": True}),
                Call(name="extract", arguments={"content": "Lamp: 7 euros"}),
                Call(name="done", arguments={"result": "A lamp costs 7 euros."}),
            )
            asked: list[str] = []
            told = Seen(model, asked)
            async with hands(tmp_path, told, web, f"allow host {shop.place}") as team:
                step = await team.call("browser_use", task=f"What is a lamp on {shop.url('/')}?")
                notes = [one.content async for one in team.runtime.archive(team.team, "note") if isinstance(one, Note)]
            assert any(head.startswith("GET /found?q=lamp ") for head in shop.seen), asked
        assert other.seen == []  # nobody has been asked about that one
    result = step.result or {}
    assert step.error == ""
    assert result["browser_use_result"] == {
        "final_result": "A lamp costs 7 euros.",
        "urls_visited": [shop.url("/"), shop.url("/found?q=lamp")],
        "content_count": 1,
        "extracted_content": ["Lamp: 7 euros"],
    }
    assert "made by a script" in asked[1]
    assert f"'{other.place}' is none of the hosts that may be reached from here" in asked[1]
    assert "Lamp: 7 euros" in asked[2]
    assert notes == [f"browser_use: visited {shop.place}; items extracted: 1."]
    assert step.spent.tokens == 4 * 50
    assert step.origins == (f"web:{shop.place}",)
    look_at_pictures(tmp_path, str(result["screenshots"]))


def look_at_pictures(tmp_path: Path, folder: str) -> None:
    assert Path(folder).parent == tmp_path / "home" / "screenshots"
    pictures = sorted(Path(folder).iterdir())
    assert [one.name for one in pictures] == ["001.jpg", "002.jpg", "003.jpg", "004.jpg"]
    size = re.search(rb"\xff\xc0\x00\x11\x08(....)", pictures[1].read_bytes(), re.DOTALL)
    assert size is not None
    assert size[1] == (800).to_bytes(2, "big") + (1280).to_bytes(2, "big")


class Seen(ScriptedModel):
    """Notes what it was shown."""

    def __init__(self, script: ScriptedModel, asked: list[str]) -> None:
        super().__init__(())
        self._script = script
        self._seen = asked

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self._seen.append(request.messages[-1].content)
        async for event in self._script.stream(request):
            yield event

    def named(self, _: str) -> ScriptedModel:
        return self


@needs_chromium
async def test_a_host_that_is_denied_is_not_reached_although_the_whole_web_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENROOM_HOME", str(tmp_path / "home"))
    async with site({"/": FOUND}) as shop:
        model = script(
            Call(name="open", arguments={"url": shop.url("/")}),
            Call(name="done", arguments={"result": "It cannot be reached."}),
        )
        asked: list[str] = []
        rules = ("allow tool browser_use", f"deny host {shop.place}")
        web = WebSettings(local=(shop.place,))
        async with hands(tmp_path, Seen(model, asked), web, *rules) as team:
            await team.call("browser_use", task="look around")
        assert shop.seen == []
    assert f"`deny host {shop.place}`" in asked[1]


@pytest.mark.req("MAS-191", "MAS-195")
async def test_without_a_model_no_browser_is_opened(tmp_path: Path) -> None:
    async with hands(tmp_path, None, WebSettings(), "allow tool browser_use") as team:
        step = await team.call("browser_use", task="look around")
    assert (step.state, step.error) == ("failed", "There is no model here to lead a browser.")
    assert (step.result or {})["browser_use_error"] == step.error


def test_hosts_are_asked_about_and_without_one_the_whole_web(tmp_path: Path) -> None:
    tool = toolbox_of(tmp_path).named("browser_use")

    def grant(*rules: str, **given: object) -> tuple[str, str]:
        ruling = policy_for(tmp_path, rules).decide(ANN, tool.card, tool.targets(given))
        return ruling.verdict, ruling.grant

    assert grant(task="On https://a.example/x find it") == ("ask", "allow host a.example")
    assert grant("allow host a.example", task="On https://a.example/x find it")[0] == "allow"
    assert grant("allow host a.example", task="On https://a.example", hosts=["b.example"])[0] == "ask"
    assert grant("deny host b.example", task="https://b.example")[0] == "deny"
    assert grant(task="find it")[0] == "ask"
    assert grant("allow host a.example", task="find it")[0] == "ask"
    assert grant("allow tool browser_use", task="find it")[0] == "allow"


async def test_what_is_missing_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BrowserFault, match=r"'/no/chromium' below \[browser\] in your settings is no program"):
        async with LateBrowser(BrowserSettings(program="/no/chromium"), WebSettings()).opened(["*"]):
            raise AssertionError
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    for name in ("making", "chromium", "tab"):
        monkeypatch.delitem(sys.modules, f"greenroom.adapters.browser.{name}", raising=False)
    with pytest.raises(BrowserFault) as raised:
        async with LateBrowser(BrowserSettings(), WebSettings()).opened(["*"]):
            raise AssertionError
    assert str(raised.value) == MISSING


def test_the_tool_is_known_without_loading_a_browser() -> None:
    loaded = "print([name for name in ('playwright', 'aiohttp') if name in sys.modules])"
    code = f"import sys, greenroom.app.toolset.toolset; {loaded}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"
