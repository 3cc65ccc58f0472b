"""Pages of a research run: fetched once, one at a time per host, and known again from the log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from greenroom.abilities.tools.web import FETCH_NAME
from greenroom.app.research.desk import ReadingPolicy
from greenroom.app.research.pages import PageArchive, normalise_url
from greenroom.app.toolset.toolset import build_toolbox
from greenroom.core.base.clock import Millis
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
from greenroom.core.ports.tool import Target
from greenroom.core.ports.web import Redirect, WebAddress, WebFault, WebPage, parse_address
from greenroom.core.state.step import Step, Work
from greenroom.policy.policy import build_rules_policy

NOW = 1_700_000_000_000


class StillClock:
    def now(self) -> Millis:
        return Millis(NOW)


class Web:
    """Counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.now = self.at_once = 0

    async def fetch(self, address: WebAddress) -> WebPage | Redirect:
        self.asked.append(address.url)
        self.now += 1
        self.at_once = max(self.at_once, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        if "gone" in address.url:
            raise WebFault("status", "It is gone.")
        if "moved" in address.url:
            return Redirect(url=address.url, to="https://other.example/")
        text = "same" if "copy" in address.url else address.url
        return WebPage(url=address.url, text=text, kind="text", title="T")


def archive(web: Web, *steps: Step, delay: float = 0.0) -> PageArchive:
    async def load() -> Sequence[Step]:
        return steps

    return PageArchive(web, load, StillClock(), delay=delay)


def fetched(url: str, text: str) -> Step:
    """Return an ended step that has fetched a page."""
    output = f"{url} (retrieved 2023-11-14T22:13:20Z)\nTitle: T\n\n{text}"
    result = {"output": output, "url": url, "title": "T", "retrieved": "2023-11-14T22:13:20Z"}
    return Step(
        step_id=StepId("ann#1"),
        agent_id=AgentId("ann"),
        thread_id=ThreadId("ann@t1"),
        task_id=TaskId("t1"),
        stage_id=None,
        subtask_id=None,
        work=Work(type="tool", executor=FETCH_NAME, instruction_content={"url": url}),
        queued_at=0,
        state="finished",
        result=result,
    )


@pytest.mark.parametrize(
    "other",
    [
        "http://a.example/x#part",
        "http://A.example:80/x",
        "http://a.example/x?utm_source=mail&gclid=1",
        "http://a.example/x?",
    ],
)
def test_addresses_of_one_page_have_one_key(other: str) -> None:
    assert normalise_url(parse_address(other)) == "http://a.example/x"
    assert normalise_url(parse_address("http://a.example/x?id=1&utm_id=2")) == "http://a.example/x?id=1"


async def test_a_page_that_many_want_is_fetched_once() -> None:
    web = Web()
    pages = archive(web)
    address = parse_address("http://a.example/x")
    found = await asyncio.gather(*(pages.fetch(address) for _ in range(5)))
    assert web.asked == ["http://a.example/x"]
    assert {page.retrieved for page in found if isinstance(page, WebPage)} == {NOW}
    assert await pages.get("http://a.example/x#end") == found[0]
    assert await pages.get("http://a.example/y") is None
    assert await pages.get("not an address") is None


async def test_one_request_at_a_time_goes_to_a_host_and_others_do_not_wait() -> None:
    web = Web()
    pages = archive(web)
    await asyncio.gather(*(pages.fetch(parse_address(f"http://a.example/{number}")) for number in range(4)))
    assert web.at_once == 1
    await asyncio.gather(*(pages.fetch(parse_address(f"http://{number}.example/")) for number in range(4)))
    assert web.at_once == 4


async def test_a_pause_stands_between_two_pages_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    slept, sleep = list[float](), asyncio.sleep

    async def note(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    pages = archive(Web(), delay=30.0)
    for path in ("1", "2"):
        await pages.fetch(parse_address(f"http://a.example/{path}"))
    waits = [seconds for seconds in slept if seconds > 1]
    assert len(waits) == 1
    assert waits[0] == pytest.approx(30, abs=5)


async def test_a_page_that_failed_is_tried_again_and_a_redirect_is_no_page() -> None:
    web = Web()
    pages = archive(web)
    for _ in range(2):
        with pytest.raises(WebFault, match="It is gone"):
            await pages.fetch(parse_address("http://a.example/gone"))
    assert len(web.asked) == 2
    assert isinstance(await pages.fetch(parse_address("http://a.example/moved")), Redirect)
    assert await pages.get("http://a.example/moved") is None


async def test_the_log_is_the_cache_of_the_next_process() -> None:
    web = Web()
    pages = archive(web, fetched("http://a.example/x", "From\n\nthe log."), fetched("http://a.example/copy", "same"))
    found = await pages.fetch(parse_address("http://a.example/x"))
    assert isinstance(found, WebPage)
    assert (found.text, found.title, found.retrieved) == ("From\n\nthe log.", "T", NOW)
    assert web.asked == []
    copy = await pages.fetch(parse_address("http://b.example/copy"))
    assert isinstance(copy, WebPage)
    assert copy.note == "The same text as http://a.example/copy."


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ((), "allow"),
        (("deny host a.example",), "deny"),
        (("ask host a.example",), "ask"),
        (("ask tool web_fetch",), "ask"),
    ],
)
def test_research_reads_public_pages_unless_a_rule_of_the_person_says_otherwise(
    rules: Sequence[str], verdict: str, tmp_path: Path
) -> None:
    policy = ReadingPolicy(build_rules_policy({"user": rules}, "/work"))
    tools = {tool.name: tool for tool in build_toolbox(tmp_path)}
    host = (Target(kind="host", value="a.example:443"),)
    assert policy.decide(AgentId("ann"), tools["web_fetch"].card, host).verdict == verdict
    browser = policy.decide(AgentId("ann"), tools["browser_use"].card, host)
    assert browser.verdict != "allow"
