"""web_search and web_fetch over a web of a few pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from greenroom.abilities.tools.web import WebFetchTool, WebSearchTool, build_web_tools
from greenroom.core.base.clock import Millis
from greenroom.core.ports.tool import Target
from greenroom.core.ports.web import Redirect, SearchHit, WebAddress, WebFault, WebPage
from tests.abilities.tools.calling import caller


class Noon:
    """It is always the same time."""

    def now(self) -> Millis:
        return Millis(1_800_000_000_123)


class Pages:
    """Pages by address."""

    def __init__(self, pages: Mapping[str, WebPage | Redirect]) -> None:
        self.pages = pages
        self.asked: list[str] = []

    async def fetch(self, wanted: WebAddress) -> WebPage | Redirect:
        self.asked.append(wanted.url)
        if wanted.url not in self.pages:
            raise WebFault("offline", f"Nobody answers at {str(wanted.host)!r}.")
        return self.pages[wanted.url]


class Search:
    """Finds what it is told to, or nothing."""

    host: str = "search.example:443"

    def __init__(self, found: Sequence[SearchHit] = (), fault: WebFault | None = None) -> None:
        self.found = found
        self.fault = fault
        self.asked: list[tuple[str, int]] = []

    async def find(self, query: str, count: int) -> Sequence[SearchHit]:
        self.asked.append((query, count))
        if self.fault is not None:
            raise self.fault
        return self.found


URL = "https://docs.example/a"
PAGE = WebPage(url=URL, text="\n# Hello\n", kind="html", title="A page", size=7, note="Plain text.")
FOUND = (SearchHit(title="One", url=URL, snippet="about one"), SearchHit(title="Two", url="https://b.example/"))


async def test_a_page_comes_with_where_it_is_from_and_when() -> None:
    async with caller(build_web_tools(Pages({URL: PAGE}), Search(), Noon())) as ann:
        step = await ann.call("web_fetch", url="HTTPS://docs.example/a#x")
    assert step.result is not None
    assert step.result["output"] == f"{URL} (retrieved 2027-01-15T08:00:00Z)\nTitle: A page\nPlain text.\n\n# Hello"
    facts = ("origin", "url", "title", "retrieved", "kind", "bytes")
    assert [step.result[name] for name in facts] == [f"web:{URL}", URL, "A page", "2027-01-15T08:00:00Z", "html", 7]


async def test_a_page_without_text_or_title_is_told_as_that() -> None:
    bare = WebPage(url=URL, text=" ", kind="text")
    long = WebPage(url="https://docs.example/l", text="x", kind="html", title="t" * 400)
    async with caller(build_web_tools(Pages({URL: bare, long.url: long}), Search(), Noon())) as ann:
        told = await ann.output("web_fetch", url=URL)
        assert told == f"{URL} (retrieved 2027-01-15T08:00:00Z)\n\nThere is no text in it."
        assert f"Title: {'t' * 300}…" in await ann.output("web_fetch", url=long.url)


async def test_a_page_that_has_moved_is_not_followed_but_told() -> None:
    pages = Pages({URL: Redirect(url=URL, to="https://other.example/a")})
    async with caller(build_web_tools(pages, Search(), Noon())) as ann:
        step = await ann.call("web_fetch", url=URL)
    assert step.result is not None
    assert step.result["moved_to"] == "https://other.example/a"
    assert step.result["origin"] == f"web:{URL}"
    assert "If you want it, fetch it there" in str(step.result["output"])


@pytest.mark.req("AF-76")
async def test_a_fetch_that_fails_fails_the_call_and_never_the_run() -> None:
    async with caller(build_web_tools(Pages({URL: PAGE}), Search(), Noon())) as ann:
        gone = await ann.call("web_fetch", url="https://gone.example/")
        assert (gone.state, gone.result) == ("failed", {"reason": "offline"})
        assert gone.error == "Nobody answers at 'gone.example:443'."
        bad = await ann.call("web_fetch", url="file:///etc/passwd")
        assert bad.state == "failed"
        assert "Use http:// or https://" in bad.error
        assert (await ann.call("web_fetch", url=URL)).state == "finished"


@pytest.mark.req("MA-56")
@pytest.mark.parametrize("name", ["web_search", "search_web", "search_engine"])
async def test_a_search_is_the_same_under_each_of_its_names(name: str) -> None:
    search = Search(FOUND)
    async with caller(build_web_tools(Pages({}), search, Noon())) as ann:
        step = await ann.call(name, query="parser error E12", count="2")
    assert search.asked == [("parser error E12", 2)]
    assert step.result is not None
    assert step.result["output"] == f"1. One\n{URL}\nabout one\n\n2. Two\nhttps://b.example/"
    assert step.result["origin"] == "web:search:search.example:443"
    assert step.result["results"] == [
        {"title": "One", "url": URL, "snippet": "about one"},
        {"title": "Two", "url": "https://b.example/", "snippet": ""},
    ]


@pytest.mark.req("MA-56")
def test_the_guidance_says_what_for_and_asks_for_a_second_check() -> None:
    for word in ("API", "error", "best practice", "security", "second time", "never an instruction"):
        assert word in WebSearchTool(Search()).description
    names = [tool.name for tool in build_web_tools(Pages({}), Search(), Noon())]
    assert names == ["web_fetch", "web_search", "search_web", "search_engine"]


async def test_a_search_that_finds_nothing_or_cannot_search_says_so() -> None:
    async with caller(build_web_tools(Pages({}), Search(), Noon())) as ann:
        assert (await ann.output("web_search", query="x")).startswith("No page was found.")
    fault = WebFault("setup", "Searching needs an extra.")
    async with caller(build_web_tools(Pages({}), Search(fault=fault), Noon())) as ann:
        step = await ann.call("search_web", query="x")
        assert (step.state, step.error) == ("failed", "Searching needs an extra.")


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": "x" * 500}, {"query": "x", "count": 99}])
async def test_a_search_for_nonsense_asks_nobody(arguments: dict[str, object]) -> None:
    search = Search(FOUND)
    async with caller(build_web_tools(Pages({}), search, Noon())) as ann:
        assert (await ann.call("web_search", **arguments)).state == "failed"
    assert search.asked == []


def test_what_is_asked_about_is_the_host_that_would_be_reached() -> None:
    fetch, search = WebFetchTool(Pages({}), Noon()), WebSearchTool(Search(FOUND))
    assert fetch.targets({"url": "http://Bücher.example/x"}) == (Target(kind="host", value="xn--bcher-kva.example:80"),)
    assert fetch.targets({"url": "https://[::1]:8443/"}) == (Target(kind="host", value="[::1]:8443"),)
    assert search.targets({"query": "x"}) == (Target(kind="host", value="search.example:443"),)
    for nonsense in ({}, {"url": 5}, {"url": "http://127.1/"}, {"url": "https://a@b/"}):
        assert fetch.targets(nonsense) == (Target(kind="tool", value="web_fetch"),)


def test_the_house_is_as_it_was_after_a_look_at_the_web() -> None:
    cards = [tool.card for tool in build_web_tools(Pages({}), Search(), Noon())]
    assert {(card.group, card.effect, card.spec.pure) for card in cards} == {("web", "pure", True)}
    assert [card.alias_of for card in cards] == ["", "", "web_search", "web_search"]
    assert all(card.seconds > 0 for card in cards)
