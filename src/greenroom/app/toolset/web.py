"""The web and the browser for tools, as the person has set them up. Heavy modules are imported at the first use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.abilities.skills.talk import voice
from greenroom.abilities.skills.talk.reply import Reply, answer
from greenroom.abilities.tools.browser_use import ACTIONS, EVERY, Bounds, BrowserUse, Question, Thought
from greenroom.adapters.browser.den import FolderAlbum
from greenroom.adapters.web import DUCKDUCKGO, TAVILY, TAVILY_KEY
from greenroom.app.settings.keys import saved_keys
from greenroom.app.settings.schema import BrowserSettings, WebSettings
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import ModelFault, WorldFault, how_to_install
from greenroom.core.base.hosts import Closed, nothing_closed
from greenroom.core.ports.browser import Browser, BrowserFault, Gate, Tab
from greenroom.core.ports.executor import Bench, Live
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models
from greenroom.core.ports.web import Address, Found, Moved, Page, Pages, Search, WebFault, address
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World

NO_ADDRESS: Final = (
    'Searching with SearXNG needs its address: `searxng_url = "http://localhost:8888"` below [web] in your settings.'
)


class LatePages:
    """Pages, once somebody wants one. Where they lead on to what is `closed`, they are not followed."""

    def __init__(self, settings: WebSettings, closed: Closed = nothing_closed) -> None:
        self._settings = settings
        self._closed = closed
        self._made: Pages | None = None

    async def fetch(self, wanted: Address) -> Page | Moved:
        if self._made is None:
            self._made = await asyncio.to_thread(self._make)
        return await self._made.fetch(wanted)

    def _make(self) -> Pages:
        from greenroom.adapters.web import making

        return making.pages(self._settings.local, self._settings.ports, self._closed)


class LateSearch:
    """The search that the person has chosen, once somebody searches."""

    def __init__(self, settings: WebSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self.host = _host(settings)

    async def find(self, query: str, count: int) -> Sequence[Found]:
        """What is found; `WebFault` where something has to be set up first."""
        if not self.host:
            raise WebFault("setup", NO_ADDRESS)
        search = await asyncio.to_thread(self._make)
        return await search.find(query, count)

    def _make(self) -> Search:
        from greenroom.adapters.web import making

        return making.search(self._settings.search, self._settings.searxng_url, self._key)

    def _key(self) -> str:
        """Of the environment first, else of the file that nobody else can read."""
        try:
            return self._environ.get(TAVILY_KEY, "").strip() or saved_keys().get("tavily", "")
        except WorldFault as fault:
            raise WebFault("setup", str(fault)) from None


def _host(settings: WebSettings) -> str:
    match settings.search:
        case "ddgs":
            return DUCKDUCKGO
        case "tavily":
            return str(address(TAVILY).host)
        case "searxng":
            try:
                return str(address(settings.searxng_url).host)
            except ModelFault:
                return ""


ANSWER: Final = 4096
"""Tokens of one answer at most: a move, or all that was found."""

WRITTEN: Final = 8
"""Of so many tokens that an errand may use one is reserved as written, which costs more than to read one."""

LEAST: Final = 20_000
"""Tokens without which an errand is not worth to begin."""

NO_MODEL: Final = "There is no model here to lead a browser."
ENOUGH: Final = (
    "What was reserved for the errand is used up. A person can give more: `tokens` below [browser] in their settings."
)


class ModelMind:
    """Asks `models`; one errand may use so many `tokens`, and what that many cost."""

    def __init__(self, models: Models | None, tokens: int) -> None:
        self._models = models
        self._tokens = tokens

    def terms(self, world: World, step: Step) -> Terms:
        """All that the errand may use is reserved before it begins; where limits leave less, as much as fits."""
        spec = world.agents[step.agent_id].spec
        model = self._model(spec)
        needs, priced = _needs(model, self._tokens)
        while needs.tokens > LEAST and not _fits(world, step, needs):
            needs, priced = _needs(model, max(LEAST, needs.tokens // 2))
        return Terms(effect="effectful", needs=needs, priced=priced, model=model.name, spec=spec.version)

    def calls(self, bench: Bench) -> bool:
        """Whether the model makes calls."""
        return self._model(bench.agent.spec).card.tools

    async def think(self, bench: Bench, question: Question) -> Thought:
        """Ask it, if the longest answer to this can be paid for."""
        model, spec = self._model(bench.agent.spec), bench.agent.spec
        request = _request(bench, model, spec, question)
        most = _most(model, request)
        if most.tokens > question.left.tokens or most.money > question.left.money:
            raise WorldFault(ENOUGH, spent=Amounts())
        try:
            reply: Reply = await answer(_Nobody(), model, request)
        except (ModelFault, WorldFault) as fault:
            fault.spent = most if fault.spent is None else fault.spent
            raise
        return Thought(calls=tuple(reply.calls), text=reply.text, spent=most if reply.spent is None else reply.spent)

    def _model(self, spec: AgentSpec) -> Model:
        if self._models is None:
            raise WorldFault(NO_MODEL)
        return voice.voice(self._models, spec)


def _needs(model: Model, tokens: int) -> tuple[Amounts, bool]:
    """So many tokens and what they cost; whether anybody knows that."""
    written = tokens // WRITTEN
    price = model.price(tokens - written, written)
    return Amounts(tokens=tokens, money=price or 0), price is not None


def _fits(world: World, step: Step, needs: Amounts) -> bool:
    """Whether the limits leave room for it now."""
    budgets = [world.budgets[name] for name in world.budgets_of(step.task_id, step.agent_id)]
    return not any(one.limits.exceeded_by(one.spent.plus(one.reserved).plus(needs)) for one in budgets)


class _Nobody:
    """What the model says on the way is not what the agent says: who watches sees the moves, which the tool prints."""

    def show(self, event: Live) -> None:
        """It is not shown."""


def _request(bench: Bench, model: Model, spec: AgentSpec, question: Question) -> ModelRequest:
    tools = ACTIONS if model.card.tools else ()
    return ModelRequest(
        purpose=voice.purpose(bench.step, bench.world.team.team_id, question.turn),
        messages=(
            ChatMessage(role="system", content=question.system),
            ChatMessage(role="user", content=question.seen),
        ),
        tools=tools,
        tool_choice="required" if tools else "auto",
        max_output=min(ANSWER, voice.longest(model, spec)),
        **voice.wishes(spec),
    )


def _most(model: Model, request: ModelRequest) -> Amounts:
    """What it costs at most: no token has less than a byte."""
    said = sum(len(one.content.encode()) for one in request.messages) + sum(one.size for one in request.tools)
    read = said + voice.OVERHEAD
    return Amounts(tokens=read + request.max_output, money=model.price(read, request.max_output) or 0)


SCREENSHOTS: Final = "screenshots"
MISSING: Final = (
    f"Using a browser needs an extra ({how_to_install('browser')}) and a Chromium (Debian, Ubuntu: `apt-get install "
    "chromium`)."
)


ClosedFor: TypeAlias = Callable[[World, Step, Sequence[str]], Closed]
"""What is closed to whoever does a step, who was let to some hosts by their names."""


def browser_tool(
    models: Models | None, browser: BrowserSettings, web: WebSettings, home: Path, closed: ClosedFor
) -> BrowserUse:
    """`browser_use`, led by the model of whoever calls it; pictures are kept below `home`, beside the log."""
    return BrowserUse(
        lambda bench: LateBrowser(browser, web, lambda hosts: closed(bench.world, bench.step, hosts)),
        ModelMind(models, browser.tokens),
        FolderAlbum(home / SCREENSHOTS),
        Bounds(steps=browser.steps, seconds=browser.seconds, hosts=browser.hosts),
    )


class LateBrowser:
    """A browser, once somebody has an errand for it. Of the hosts that it is let to, some may be `closed`."""

    def __init__(
        self,
        settings: BrowserSettings,
        web: WebSettings,
        closed: Callable[[Sequence[str]], Closed] = lambda _: nothing_closed,
    ) -> None:
        self._settings = settings
        self._web = web
        self._closed = closed

    @asynccontextmanager
    async def opened(self, hosts: Sequence[str]) -> AsyncIterator[Tab]:
        """A new one that reaches these hosts; `BrowserFault` where something has to be installed first."""
        browser = await asyncio.to_thread(self._make)
        async with browser.opened(hosts) as tab:
            yield tab

    def _make(self) -> Browser:
        try:
            from greenroom.adapters.browser.making import browser
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("playwright"):
                raise
            raise BrowserFault(MISSING) from None
        from greenroom.adapters.web.making import opened_gate

        web = self._web
        # The whole web is also what a person has opened of their own network.
        also = (*web.local, *(f"*:{port}" for port in web.ports))

        def gates(hosts: Sequence[str]) -> AbstractAsyncContextManager[Gate]:
            every = (*hosts, *(also if EVERY in hosts else ()))
            return opened_gate(web.local, web.ports, every, self._closed(hosts))

        return browser(gates, self._settings.program, self._settings.headless)
