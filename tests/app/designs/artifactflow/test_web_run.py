"""A whole run with the house's own tools: a search and pages over real HTTP, artifacts in the log."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote_plus

import pytest

from greenroom import Agent, Called, Greenroom, Result
from greenroom.app.designs.artifactflow import BaseAgent, CrawlAgent, LeadAgent, SearchAgent
from tests.adapters.web.house import Site, said, site
from tests.app.designs.artifactflow.house import Still
from tests.app.designs.artifactflow.test_team import FOUND, READ, act, ask, play, read_by

OOLONG = "<title>Oolong</title><p>Oolong is half fermented, somewhere between green tea and black tea.</p>"


@pytest.mark.req("AF-74", "AF-76", "AF-77")
async def test_a_typical_run_searches_reads_and_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site({}) as web:
        found = {"results": [{"title": "Oolong", "url": web.url("/oolong"), "content": "A tea."}]}
        web.pages["/search"] = said(json.dumps(found).encode(), "application/json")
        web.pages |= {"/oolong": said(OOLONG.encode(), "text/html")}
        settings = tmp_path / "config.toml"
        settings.write_text(f'[web]\nsearch = "searxng"\nsearxng_url = "{web.url()}"\nlocal = ["{web.place}"]\n')
        monkeypatch.setenv("GREENROOM_CONFIG", str(settings))
        model = play(script(web))
        lead, search, crawl = (one(models=model, clock=Still()) for one in (LeadAgent, SearchAgent, CrawlAgent))
        lead.register_subagent(search.config)
        lead.register_subagent(crawl.config)
        boss = member(lead, member(search), member(crawl))
        rules = [f"allow host {web.place}"]
        async with Greenroom(memory=True, models=model, workspace=tmp_path, rules=rules) as house:
            heard = [one async for one in house.stream(boss, "What is oolong?", approve=lambda _: True)]
    assert isinstance(heard[-1], Result)
    assert heard[-1].output == "Half fermented; see research_report."
    assert [one.tool for one in heard if isinstance(one, Called) and one.tool != "call_agent"] == [
        *("create_artifact", "create_artifact", "web_search", "web_search"),
        *("web_fetch", "web_fetch", "rewrite_artifact"),
    ]
    asked = [unquote_plus(head.split(" ")[1]) for head in web.seen]
    assert asked == ["/search?q=tea kinds&format=json", "/search?q=oolong tea&format=json", "/gone", "/oolong"]
    read = "\n".join(read_by(model, "crawl_agent"))
    assert "404 (Not Found)" in read
    assert "Oolong is half fermented" in read
    assert web.url("/oolong") in "\n".join(read_by(model, "search_agent"))


def member(agent: BaseAgent, *agents: Agent[str]) -> Agent[str]:
    tools = [name for name in agent.config.required_tools if name != "call_subagent"]
    return Agent(agent.config.name, spec=agent.spec(), tools=tools, agents=agents)


def script(web: Site) -> dict[str, list[str]]:
    """What everybody says."""
    return {
        "lead_agent": [
            act("create_artifact", id="task_plan", content="- [ ] find (search_agent)"),
            act("create_artifact", id="research_report", content="# Oolong"),
            ask("search_agent", "Find what oolong is."),
            ask("crawl_agent", f"Read {web.url('/oolong')}"),
            act("rewrite_artifact", id="research_report", content="Oolong is half fermented."),
            "Half fermented; see research_report.",
        ],
        "search_agent": [act("web_search", query="tea kinds"), act("web_search", query="oolong tea"), FOUND],
        "crawl_agent": [
            act("web_fetch", url=web.url("/gone")),
            act("web_fetch", url=web.url("/oolong")),
            READ,
        ],
    }
