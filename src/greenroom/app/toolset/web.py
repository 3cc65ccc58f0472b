"""Web access and the browser for tools, with the person's settings. Heavy modules are imported on first use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.abilities.skills.conversation import model_call
from greenroom.abilities.skills.conversation.reply import ModelReply, request_reply
from greenroom.abilities.tools.browser_use import (
    ACTIONS,
    ANY_HOST,
    BrowserLimits,
    BrowserQuestion,
    BrowserReply,
    BrowserUseTool,
)
from greenroom.adapters.browser.browser_folder import FolderScreenshotStore
from greenroom.adapters.web import DUCKDUCKGO, TAVILY, TAVILY_KEY
from greenroom.app.settings.keys import saved_keys
from greenroom.app.settings.schema import BrowserSettings, WebSettings
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.hosts import HostBlocker, block_no_host
from greenroom.core.ports.browser import Browser, BrowserFault, EgressEndpoint, Tab
from greenroom.core.ports.executor import LiveEvent, StepContext
from greenroom.core.ports.installation import how_to_install
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models
from greenroom.core.ports.web import (
    PageFetcher,
    Redirect,
    SearchEngine,
    SearchHit,
    WebAddress,
    WebFault,
    WebPage,
    parse_address,
)
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.team_state import TeamState

NO_ADDRESS: Final = (
    'Searching with SearXNG needs its address: `searxng_url = "http://localhost:8888"` below [web] in your settings.'
)


class LazyPages:
    """Web pages, created on first use. Redirects to blocked hosts are not followed."""

    def __init__(self, settings: WebSettings, host_blocker: HostBlocker = block_no_host) -> None:
        self._settings = settings
        self._host_blocker = host_blocker
        self._pages: PageFetcher | None = None

    async def fetch(self, address: WebAddress) -> WebPage | Redirect:
        if self._pages is None:
            self._pages = await asyncio.to_thread(self._make)
        return await self._pages.fetch(address)

    def _make(self) -> PageFetcher:
        from greenroom.adapters.web import search

        return search.make_pages(self._settings.local, self._settings.ports, self._host_blocker)


class LazySearch:
    """The configured web search, created on first use."""

    def __init__(self, settings: WebSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self.host = _find_search_host(settings)

    async def find(self, query: str, count: int) -> Sequence[SearchHit]:
        """Search the web. Raise `WebFault` if the search is not set up."""
        if not self.host:
            raise WebFault("setup", NO_ADDRESS)
        search = await asyncio.to_thread(self._make)
        return await search.find(query, count)

    def _make(self) -> SearchEngine:
        from greenroom.adapters.web import search

        return search.make_search(self._settings.search, self._settings.searxng_url, self._key)

    def _key(self) -> str:
        """Return the key from the environment, else from the key file."""
        try:
            return self._environ.get(TAVILY_KEY, "").strip() or saved_keys().get("tavily", "")
        except WorldFault as fault:
            raise WebFault("setup", str(fault)) from None


def _find_search_host(settings: WebSettings) -> str:
    match settings.search:
        case "ddgs":
            return DUCKDUCKGO
        case "tavily":
            return str(parse_address(TAVILY).host)
        case "searxng":
            try:
                return str(parse_address(settings.searxng_url).host)
            except ModelFault:
                return ""


MAX_ANSWER_TOKENS: Final = 4096
"""The longest answer, in tokens: one action, or the final report."""

TOKENS_PER_OUTPUT_TOKEN: Final = 8
"""One in this many tokens is reserved at the price of output tokens, which cost more."""

MIN_ERRAND_TOKENS: Final = 20_000
NO_MODEL: Final = "There is no model here to lead a browser."
RESERVE_USED_UP: Final = (
    "What was reserved for the browser is used up. A person can give more: `tokens` below [browser] in their settings."
)


class BrowserModel:
    """The model that controls a browser. One browser task can use this many `tokens`, and their cost."""

    def __init__(self, models: Models | None, tokens: int) -> None:
        self._models = models
        self._tokens = tokens

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Reserve everything that the browser task can use, or as much as the limits leave."""
        spec = state.agents[step.agent_id].spec
        model = self._model(spec)
        needs, priced = _estimate_needs(model, self._tokens)
        while needs.tokens > MIN_ERRAND_TOKENS and not _is_within_limits(state, step, needs):
            needs, priced = _estimate_needs(model, max(MIN_ERRAND_TOKENS, needs.tokens // 2))
        return StepTerms(effect="effectful", needs=needs, priced=priced, model=model.name, spec=spec.version)

    def can_call_tools(self, context: StepContext) -> bool:
        return self._model(context.agent.spec).card.tools

    async def think(self, context: StepContext, question: BrowserQuestion) -> BrowserReply:
        """Ask the model, if the reservation covers the longest answer."""
        model, spec = self._model(context.agent.spec), context.agent.spec
        request = _make_request(context, model, spec, question)
        max_cost = _max_cost(model, request)
        if max_cost.tokens > question.left.tokens or max_cost.money > question.left.money:
            raise WorldFault(RESERVE_USED_UP, spent=Amounts())
        try:
            reply: ModelReply = await request_reply(_NoAudience(), model, request)
        except (ModelFault, WorldFault) as fault:
            fault.spent = max_cost if fault.spent is None else fault.spent
            raise
        return BrowserReply(
            calls=tuple(reply.calls), text=reply.text, spent=max_cost if reply.cost is None else reply.cost
        )

    def _model(self, spec: AgentSpec) -> Model:
        if self._models is None:
            raise WorldFault(NO_MODEL)
        return model_call.pick_model(self._models, spec)


def _estimate_needs(model: Model, tokens: int) -> tuple[Amounts, bool]:
    """Return the amounts for this many tokens, and whether their price is known."""
    output_tokens = tokens // TOKENS_PER_OUTPUT_TOKEN
    price = model.price(tokens - output_tokens, output_tokens)
    return Amounts(tokens=tokens, money=price or 0), price is not None


def _is_within_limits(state: TeamState, step: Step, needs: Amounts) -> bool:
    budgets = [state.budgets[name] for name in state.budgets_of(step.task_id, step.agent_id)]
    return not any(budget.limits.exceeded_by(budget.spent.plus(budget.reserved).plus(needs)) for budget in budgets)


class _NoAudience:
    """Hides the model's text, because it is not the agent's answer. The tool prints the actions instead."""

    def show(self, event: LiveEvent) -> None:
        """Do nothing."""


def _make_request(context: StepContext, model: Model, spec: AgentSpec, question: BrowserQuestion) -> ModelRequest:
    tools = ACTIONS if model.card.tools else ()
    return ModelRequest(
        purpose=model_call.build_purpose(context.step, context.state.team.team_id, question.turn),
        messages=(
            ChatMessage(role="system", content=question.system),
            ChatMessage(role="user", content=question.seen),
        ),
        tools=tools,
        tool_choice="required" if tools else "auto",
        max_output=min(MAX_ANSWER_TOKENS, model_call.find_max_output(model, spec)),
        **model_call.build_request_options(spec),
    )


def _max_cost(model: Model, request: ModelRequest) -> Amounts:
    """Return the highest cost of a request. A token has at least one byte."""
    text_bytes = sum(len(part.content.encode()) for part in request.messages) + sum(part.size for part in request.tools)
    input_tokens = text_bytes + model_call.REQUEST_OVERHEAD_BYTES
    return Amounts(tokens=input_tokens + request.max_output, money=model.price(input_tokens, request.max_output) or 0)


def explain_missing_browser() -> str:
    """Return what a browser needs that is not installed."""
    return (
        f"Using a browser needs an extra ({how_to_install('browser')}) and a Chromium (Debian, Ubuntu: "
        "`apt-get install chromium`)."
    )


StepHostBlockerFactory: TypeAlias = Callable[[TeamState, Step, Sequence[str]], HostBlocker]
"""Makes a host check for a step with these host names."""


def browser_tool(
    models: Models | None, browser: BrowserSettings, web: WebSettings, home: Path, make_blocker: StepHostBlockerFactory
) -> BrowserUseTool:
    """Return `browser_use`, controlled by the calling agent's model. Screenshots are stored below `home`."""
    return BrowserUseTool(
        lambda context: LazyBrowser(browser, web, lambda hosts: make_blocker(context.state, context.step, hosts)),
        BrowserModel(models, browser.tokens),
        FolderScreenshotStore(home / "screenshots"),
        BrowserLimits(steps=browser.steps, seconds=browser.seconds, hosts=browser.hosts),
    )


class LazyBrowser:
    """A browser, started on first use. Some of its allowed hosts may be blocked."""

    def __init__(
        self,
        settings: BrowserSettings,
        web: WebSettings,
        make_blocker: Callable[[Sequence[str]], HostBlocker] = lambda _: block_no_host,
    ) -> None:
        self._settings = settings
        self._web = web
        self._make_blocker = make_blocker

    @asynccontextmanager
    async def open_tab(self, hosts: Sequence[str]) -> AsyncIterator[Tab]:
        """Open a new browser that reaches these hosts. Raise `BrowserFault` if something must be installed first."""
        browser = await asyncio.to_thread(self._make)
        async with browser.open_tab(hosts) as tab:
            yield tab

    def _make(self) -> Browser:
        try:
            from greenroom.adapters.browser.chromium import Chromium
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("playwright"):
                raise
            raise BrowserFault(explain_missing_browser()) from None
        from greenroom.adapters.web.search import open_egress

        web = self._web
        # The whole web includes local hosts that the person has opened.
        local_hosts = (*web.local, *(f"*:{port}" for port in web.ports))

        def open_gate(hosts: Sequence[str]) -> AbstractAsyncContextManager[EgressEndpoint]:
            all_hosts = (*hosts, *(local_hosts if ANY_HOST in hosts else ()))
            return open_egress(web.local, web.ports, all_hosts, self._make_blocker(hosts))

        return Chromium(open_gate, self._settings.program, headless=self._settings.headless)
