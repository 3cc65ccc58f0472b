"""`greenroom research` and `greenroom artifacts`: a question, its sources, feedback, and every version of a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from greenroom.core.ports.model import ModelRequest
from greenroom.testing.scripted import Cue, ScriptedCall, ScriptedReply
from tests.cli.commands.conftest import Script
from tests.cli.conftest import Type
from tests.site import PAGES, Site, length

QUESTION = "How long are the bridges?"
REPORT = "research_report"


@pytest.fixture
def site(tmp_path: Path, project: Path) -> Iterator[Site]:
    """Return the site that the person of this home may read."""
    with Site() as running:
        settings = tmp_path / "config" / "greenroom" / "config.toml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(running.settings)
        yield running


def calls(*each: ScriptedCall) -> ScriptedReply:
    return ScriptedReply(calls=each)


def call(name: str, **arguments: object) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments)


def crawl(url: str) -> ScriptedCall:
    return call("call_agent", agent_name="crawl_agent", instruction=f"Read {url}")


def list_results(request: ModelRequest) -> Sequence[str]:
    return [message.content for message in request.messages if message.role == "tool"]


def crawl_page(request: ModelRequest) -> ScriptedCall | str:
    """Fetch the address in the instruction, then give the page back."""
    if results := list_results(request):
        return f"<page>{results[-1]}</page>"
    asked = next(message.content for message in request.messages if message.role == "user")
    return call("web_fetch", url=asked.rpartition("Read ")[2].split()[0])


CRAWLER = Cue(answering=True, reply=crawl_page)
LEAD = "lead_agent"


def write_report(*lines: str) -> ScriptedCall:
    return call("create_artifact", id=REPORT, title="Bridges", content="\n".join(lines) + "\n", reason="first draft")


@pytest.mark.req("AF-52", "AF-77")
def test_the_lead_plans_sends_crawlers_out_side_by_side_and_writes_a_report(
    site: Site, greenroom: Type, script: Script
) -> None:
    urls = [site.url(path) for path in ("/bridge/1", "/bridge/2", "/moved", "/zh/1")]
    model = script(
        [
            CRAWLER,
            Cue(
                agent=LEAD, turn=1, reply=call("create_artifact", id="task_plan", content="- [ ] read (crawl_agent)\n")
            ),
            Cue(agent=LEAD, turn=2, reply=calls(*map(crawl, urls))),
            Cue(agent=LEAD, turn=3, reply=write_report("# Bridges", "Bridge 1 spans 101 m.", "Bridge 2 spans 102 m.")),
            Cue(agent=LEAD, turn=4, reply="The report is in research_report."),
        ]
    )
    ended = greenroom("research", QUESTION)
    assert ended.code == 0, ended.err
    assert "The report is in research_report." in ended.out
    results = list_results(next(r for r in model.requests if r.purpose.turn == 3))
    read = "\n".join(results)
    assert all(text in read for text in (length(1), length(2), length(3), "大桥全长一千六百七十米")), read
    assert {"crawl_agent", "crawl_agent-2", "crawl_agent-3", "crawl_agent-4"} <= {p.agent for p in model.purposes}
    listed = greenroom("artifacts", "list", "last")
    assert [line.split()[:3] for line in listed.out.splitlines()[1:]] == [
        [REPORT, "1", "lead_agent"],
        ["task_plan", "1", "lead_agent"],
    ], listed.out
    assert "first draft" in listed.out
    shown = greenroom("artifacts", "show", "last")
    assert shown.out == "# Bridges\nBridge 1 spans 101 m.\nBridge 2 spans 102 m.\n"
    assert len(PAGES) >= 30
