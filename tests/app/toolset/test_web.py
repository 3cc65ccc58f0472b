"""The web and the browser for tools: made when they are needed, and led by the agent's model."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.abilities.tools.browser_use import ACTIONS, BrowserLimits, BrowserUseTool
from greenroom.app.settings.keys import save_key
from greenroom.app.settings.schema import BrowserSettings, WebSettings
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.redaction import find_known_secrets
from greenroom.app.toolset.toolset import Toolset, build_toolbox
from greenroom.app.toolset.web import (
    MAX_ANSWER_TOKENS,
    MIN_ERRAND_TOKENS,
    RESERVE_USED_UP,
    BrowserModel,
    LazyBrowser,
    LazySearch,
    explain_missing_browser,
)
from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.ids import TEAM_BUDGET, AgentId
from greenroom.core.base.records import Data
from greenroom.core.ports.browser import BrowserFault
from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    Models,
    ModelTextDelta,
    ToolCall,
    Usage,
)
from greenroom.core.ports.tool import PolicyDecision
from greenroom.core.ports.web import WebFault
from greenroom.core.rules.intents import SetLimits
from greenroom.core.state.knowledge import Note
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.team_state import TeamState
from greenroom.testing.scripted import Cue, ScriptedCall, ScriptedModel, ScriptedReply
from tests.abilities.tools.calling import T1, Caller, caller
from tests.abilities.tools.test_browser_use import StagedAlbum, StagedBrowser
from tests.adapters.browser.chromiums import needs_chromium
from tests.adapters.web.house import said, site

ANN = AgentId("ann")


def ruling(root: Path, tool: str, arguments: Data, *rules: str) -> PolicyDecision:
    found = build_toolbox(root).get(tool)
    return build_policy(root, rules).decide(ANN, found.card, found.targets(arguments))


def test_a_host_is_asked_about_and_always_means_that_host(tmp_path: Path) -> None:
    asked = ruling(tmp_path, "web_fetch", {"url": "https://docs.example/a"})
    assert (asked.verdict, asked.grant) == ("ask", "allow host docs.example")
    given = {"url": "https://docs.example/b"}
    assert ruling(tmp_path, "web_fetch", given, asked.grant).verdict == "allow"
    assert ruling(tmp_path, "web_fetch", {"url": "https://other.example/"}, asked.grant).verdict == "ask"
    assert ruling(tmp_path, "web_fetch", {"url": "https://docs.example:8443/"}, asked.grant).verdict == "ask"
    assert ruling(tmp_path, "web_fetch", given, asked.grant, "deny host docs.example").verdict == "deny"


async def test_what_is_not_set_up_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WebFault, match=r"needs its address: `searxng_url ="):
        await LazySearch(WebSettings(search="searxng"), {}).find("x", 1)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(WebFault, match="set TAVILY_API_KEY"):
        await LazySearch(WebSettings(search="tavily"), {}).find("x", 1)
    save_key("tavily", "tvly-0123456789").chmod(0o644)
    with pytest.raises(WebFault, match="chmod 600"):
        await LazySearch(WebSettings(search="tavily"), {}).find("x", 1)


def test_the_key_of_a_search_is_a_secret() -> None:
    assert find_known_secrets({"TAVILY_API_KEY": "tvly-0123456789"}, ()) == ("tvly-0123456789",)


def test_tools_are_known_without_loading_what_reaches_out() -> None:
    loaded = "print([name for name in ('aiohttp', 'lxml', 'ddgs', 'idna', 'playwright') if name in sys.modules])"
    code = f"import sys, greenroom.app.toolset.toolset; {loaded}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"


SHOP = said(
    b"<title>Shop</title><h1>Shop</h1><form action=/found><input name=q aria-label=Search></form>"
    b"<script>p = document.createElement('p'); p.innerText = 'made by a script'; document.body.append(p)</script>"
    b"<img src=http://OTHER/x.png>",
    "text/html",
)
FOUND = said(b"<title>Found</title><p>Lamp: 7 euros</p>", "text/html")


def script(*calls: ScriptedCall) -> ScriptedModel:
    """One move after the other. The mark of the field is read from the page."""

    def reply(one: ScriptedCall) -> Callable[[ModelRequest], ScriptedReply]:
        def made(request: ModelRequest) -> ScriptedReply:
            field = re.search(r'textbox "Search".*?\[ref=(\w+)\]', request.messages[-1].content)
            ref = {"ref": field[1]} if field and one.name == "type" else {}
            return ScriptedReply(calls=(ScriptedCall(name=one.name, arguments={**one.arguments, **ref}),))

        return made

    return ScriptedModel(
        Cue(reply=reply(one), skill="browser_use", turn=turn) for turn, one in enumerate(calls, start=1)
    )


@asynccontextmanager
async def hands(root: Path, models: Models | None, web: WebSettings, *rules: str) -> AsyncIterator[Caller]:
    """A team whose person has agreed to these rules."""
    settings = BrowserSettings(headless=True)
    made = Toolset(root, build_policy(root, rules), web=web, browser=settings, models=models)
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
                ScriptedCall(name="open", arguments={"url": shop.url("/")}),
                ScriptedCall(name="type", arguments={"ref": "", "text": "lamp", "submit": True}),
                ScriptedCall(name="extract", arguments={"content": "Lamp: 7 euros"}),
                ScriptedCall(name="done", arguments={"result": "A lamp costs 7 euros."}),
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
    assert f"'{other.place}' is none of the hosts that are allowed" in asked[1]
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

    def get_model(self, _: str) -> ScriptedModel:
        return self


@needs_chromium
async def test_a_host_that_is_denied_is_not_reached_although_the_whole_web_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENROOM_HOME", str(tmp_path / "home"))
    async with site({"/": FOUND}) as shop:
        model = script(
            ScriptedCall(name="open", arguments={"url": shop.url("/")}),
            ScriptedCall(name="done", arguments={"result": "It cannot be reached."}),
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
    tool = build_toolbox(tmp_path).get("browser_use")

    def grant(*rules: str, **given: object) -> tuple[str, str]:
        ruling = build_policy(tmp_path, rules).decide(ANN, tool.card, tool.targets(given))
        return ruling.verdict, ruling.grant

    assert grant(task="On https://a.example/x find it") == ("ask", "allow host a.example")
    assert grant("allow host a.example", task="On https://a.example/x find it")[0] == "allow"
    assert grant("allow host a.example", task="On https://a.example", hosts=["b.example"])[0] == "ask"
    assert grant("deny host b.example", task="https://b.example")[0] == "deny"
    assert grant(task="find it")[0] == "ask"
    assert grant("allow host a.example", task="find it")[0] == "ask"
    assert grant("allow tool browser_use", task="find it")[0] == "allow"


async def test_what_is_missing_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BrowserFault, match=r"'/no/chromium' below \[browser\] in your settings is not a program"):
        async with LazyBrowser(BrowserSettings(program="/no/chromium"), WebSettings()).open_tab(["*"]):
            raise AssertionError
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    for name in ("making", "chromium", "tab"):
        monkeypatch.delitem(sys.modules, f"greenroom.adapters.browser.{name}", raising=False)
    with pytest.raises(BrowserFault) as raised:
        async with LazyBrowser(BrowserSettings(), WebSettings()).open_tab(["*"]):
            raise AssertionError
    assert str(raised.value) == explain_missing_browser()


BACK = ToolCall(call_id="c", name="back", arguments={})
DONE = ToolCall(call_id="c", name="done", arguments={"result": "x"})


class Priced:
    """A model that answers with these events each time, the last ones for ever."""

    name = "odd:model"

    def __init__(self, *answers: tuple[ModelEvent, ...], calls: bool = True, price: int | None = 2) -> None:
        self._answers = list(answers)
        self._price = price
        self.card = ModelCard(tools=calls, output=1_000)
        self.asked: list[ModelRequest] = []

    def get_model(self, _: str) -> Priced:
        return self

    def price(self, read: int, written: int) -> int | None:
        return None if self._price is None else self._price * (read + 10 * written)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        for event in self._answers[0] if len(self._answers) == 1 else self._answers.pop(0):
            yield event


class Watched(BrowserModel):
    """Remembers under which terms it was to think."""

    found: StepTerms | None = None

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        self.found = super().terms(state, step)
        return self.found


def answered(call: ToolCall, usage: Usage | None = None) -> tuple[ModelEvent, ...]:
    return (call, *(() if usage is None else (usage,)), Finished(reason="calls"))


async def led(model: Priced, tokens: int = 40_000) -> tuple[Step, StepTerms]:
    """An errand that this model leads."""
    mind = Watched(model, tokens)
    async with caller([BrowserUseTool(lambda _: StagedBrowser(), mind, StagedAlbum(), BrowserLimits())]) as hands:
        step = await hands.call("browser_use", task="look around")
    assert mind.found is not None
    return step, mind.found


async def test_all_that_it_may_use_is_reserved_and_what_it_used_is_paid() -> None:
    model = Priced(answered(BACK, Usage(input=300, output=10, money=5)), answered(DONE, Usage(input=400, output=20)))
    step, terms = await led(model)
    assert terms.needs == Amounts(tokens=40_000, money=2 * (35_000 + 10 * 5_000))
    assert (terms.effect, terms.priced, terms.model) == ("effectful", True, "odd:model")
    assert (step.spent.tokens, step.spent.money) == (730, 5)
    first, second = model.asked
    assert first.tools == ACTIONS
    assert (first.tool_choice, first.max_output) == ("required", min(MAX_ANSWER_TOKENS, 1_000))
    assert [one.purpose.turn for one in (first, second)] == [1, 2]
    assert (first.purpose.skill, first.purpose.agent) == ("browser_use", "ann")
    assert first.messages[0] == second.messages[0]


@pytest.mark.parametrize(
    ("limits", "tokens"),
    [(Limits(), 160_000), (Limits(tokens=90_000), 80_000), (Limits(money=250_000), 40_000), (Limits(tokens=9), None)],
)
async def test_under_a_limit_as_much_is_reserved_as_fits(limits: Limits, tokens: int | None) -> None:
    mind = Watched(Priced(answered(DONE, Usage())), 160_000)
    async with caller([BrowserUseTool(lambda _: StagedBrowser(), mind, StagedAlbum(), BrowserLimits())]) as hands:
        await hands.runtime.ask(hands.team, SetLimits(budget_id=TEAM_BUDGET, limits=limits))
        await hands.begin("browser_use", task="look around")
        await asyncio.wait_for(hands.runtime.wait(hands.team, T1), 20)
        ended = [one.state for one in await hands.steps()]
    assert mind.found is not None
    assert (mind.found.needs.tokens, ended) == ((tokens, ["finished"]) if tokens else (MIN_ERRAND_TOKENS, []))


async def test_it_ends_when_what_is_reserved_is_used_up() -> None:
    model = Priced(answered(BACK, Usage(input=9_000, output=1_000)))
    step, terms = await led(model)
    assert (step.state, step.error) == ("failed", RESERVE_USED_UP)
    assert 2 <= len(model.asked) <= 4
    assert step.spent.tokens == 10_000 * len(model.asked) <= terms.needs.tokens


async def test_an_answer_of_which_nobody_says_what_it_cost_costs_what_it_may() -> None:
    model = Priced(answered(BACK))
    step, terms = await led(model)
    assert step.error == RESERVE_USED_UP
    assert 0 < step.spent.tokens <= terms.needs.tokens
    assert 0 < step.spent.money <= terms.needs.money


@pytest.mark.req("MAS-195")
@pytest.mark.parametrize(
    ("failed", "free"), [(Failed(kind="auth", why="Wrong key."), True), (Failed(kind="timeout", why="No end."), False)]
)
async def test_a_provider_that_does_not_answer_fails_the_step(failed: Failed, free: bool) -> None:
    step, _ = await led(Priced((failed,)))
    assert (step.state, step.error) == ("failed", failed.why)
    assert (step.spent.tokens == 0) == free


async def test_a_model_without_calls_is_told_to_answer_in_text() -> None:
    model = Priced((ModelTextDelta(text='{"action": "done", "result": "x"}'), Finished()), calls=False)
    step, _ = await led(model)
    assert step.state == "finished"
    assert (model.asked[0].tools, model.asked[0].tool_choice) == ((), "auto")
    assert '{"action": NAME' in model.asked[0].messages[0].content
