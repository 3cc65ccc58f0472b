"""ArtifactFlow's agents in a team, and a run that reads the web."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest

from greenroom import Agent, Greenroom, RunResult, ToolCallStarted, tool
from greenroom.abilities.protocols.text_calls import write
from greenroom.app.designs.artifactflow import (
    BaseAgent,
    CrawlAgent,
    LeadAgent,
    SearchAgent,
)
from greenroom.core.ports.model import ModelRequest, ToolCall
from tests.abilities.skills.talks import Answer, Played, says
from tests.adapters.web.house import Site, said, site
from tests.app.designs.artifactflow.house import ORDER, Still, sections

FOUND = "<search_results>\n<result><url>https://tea.example/oolong</url></result>\n</search_results>"
READ = "<extracted_content>\n<page><status>ok</status></page>\n</extracted_content>"


def act(name: str, **params: str) -> str:
    """A call, as a model writes it."""
    return write(ToolCall(call_id="", name=name, arguments=params), "xml_tool")


def ask(agent: str, instruction: str) -> str:
    """A call of a sub-agent."""
    return act("call_subagent", agent_name=agent, instruction=instruction)


def play(script: Mapping[str, Sequence[str]]) -> Played:
    """Everybody says their lines, one after the other."""
    left = {name: iter(lines) for name, lines in script.items()}

    def answer(request: ModelRequest) -> Answer:
        return says(next(left[request.purpose.agent]))

    return Played(answer)


class World:
    """What the toys do: pages to search and to read, and a shelf for artifacts."""

    def __init__(self) -> None:
        self.shelf: dict[str, str] = {}
        self.queries: list[str] = []

    def web_search(self, query: str) -> str:
        """Search the web."""
        self.queries.append(query)
        return "https://tea.example/oolong" if "oolong" in query else "nothing"

    def web_fetch(self, url: str) -> str:
        """Fetch a page."""
        return "<html>Oolong is half fermented.</html>"

    def create_artifact(self, title: str, content: str) -> str:
        """Create an artifact."""
        self.shelf[title] = content
        return f"Created {title}."


async def perform(model: Played, state: World) -> None:
    """A whole run of a lead with both others in a house in memory."""
    lead, search, crawl = (one(models=model, clock=Still()) for one in (LeadAgent, SearchAgent, CrawlAgent))
    lead.register_subagent(search.config)
    lead.register_subagent(crawl.config)
    others = [member(search, tool(effect="pure")(state.web_search)), member(crawl, tool(state.web_fetch))]
    boss = member(lead, tool(state.create_artifact), agents=others)
    async with Greenroom(in_memory=True, models=model) as house:
        await house.run(boss, "What is oolong?")


def member(agent: BaseAgent, own: Any, agents: Sequence[Agent[Any]] = ()) -> Agent[Any]:
    """An agent of ArtifactFlow as the library knows it."""
    return Agent(agent.config.name, spec=agent.spec(), tools=[own], agents=agents)


def of(model: Played, agent: str) -> list[ModelRequest]:
    """What one of them was asked."""
    return [one for one in model.asked if one.purpose.agent == agent]


def read_by(model: Played, agent: str) -> list[str]:
    """All that one of them had before it when it spoke last."""
    return [one.content for one in of(model, agent)[-1].messages]


async def test_everybody_in_a_team_is_told_what_it_would_be_told_alone_and_then_its_tools() -> None:
    script = {"lead_agent": [ask("search_agent", "Find it."), "Done."], "search_agent": [FOUND]}
    model = play(script)
    await perform(model, World())
    boss, searcher = of(model, "lead_agent")[0], of(model, "search_agent")[0]
    system = boss.messages[0].content
    assert [name for name in sections(system) if name in ORDER] == ORDER
    assert system.index("</current_context>") < system.index("<tool_call>") < system.index("`create_artifact`")
    assert "web_search" not in system, "that is the searcher's"
    assert "<search_loop>" in searcher.messages[0].content
    assert "`web_search`" in searcher.messages[0].content.partition("<tool_call>")[2]
    assert (boss.tools, boss.temperature, searcher.temperature) == ((), 0.7, 0.5)
    assert len(searcher.messages) == 2, "the instruction is all it knows"
    assert "Find it." in searcher.messages[1].content


OOLONG = "<title>Oolong</title><p>Oolong is half fermented, somewhere between green tea and black tea.</p>"


@pytest.mark.req("AF-50", "AF-71", "AF-74", "AF-76", "AF-77", "AF-78")
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
        boss = web_member(lead, web_member(search), web_member(crawl))
        rules = [f"allow host {web.place}"]
        async with Greenroom(in_memory=True, models=model, workspace=tmp_path, rules=rules) as house:
            heard = [one async for one in house.stream(boss, "What is oolong?", approve=lambda _: True)]
    assert isinstance(heard[-1], RunResult)
    assert heard[-1].output == "Half fermented; see research_report."
    assert [one.tool for one in heard if isinstance(one, ToolCallStarted) and one.tool != "call_agent"] == [
        *("create_artifact", "create_artifact", "web_search", "web_search"),
        *("web_fetch", "web_fetch", "rewrite_artifact"),
    ]
    asked = [unquote_plus(head.split(" ")[1]) for head in web.seen]
    assert asked == ["/search?q=tea kinds&format=json", "/search?q=oolong tea&format=json", "/gone", "/oolong"]
    lead_read = "\n".join(read_by(model, "lead_agent"))
    assert FOUND in lead_read
    assert READ in lead_read, "the end of a sub-agent returns to the lead"
    read = "\n".join(read_by(model, "crawl_agent"))
    assert "404 (Not Found)" in read
    assert "Oolong is half fermented" in read
    assert web.url("/oolong") in "\n".join(read_by(model, "search_agent"))


def web_member(agent: BaseAgent, *agents: Agent[str]) -> Agent[str]:
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
