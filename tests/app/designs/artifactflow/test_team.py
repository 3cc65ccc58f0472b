"""The agents as one team of Greenroom: the lead calls the others, and they answer it. Tools are toys of the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from greenroom import Agent, Called, Greenroom, Heard, Result, Returned, tool
from greenroom.abilities.protocols import write
from greenroom.app.designs.artifactflow import BaseAgent, CrawlAgent, LeadAgent, SearchAgent
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import ModelRequest, ToolCall
from tests.abilities.skills.talks import Answer, Played, says
from tests.app.designs.artifactflow.house import ORDER, Still, sections

FOUND = "<search_results>\n<result><url>https://tea.example/oolong</url></result>\n</search_results>"
READ = "<extracted_content>\n<page><status>ok</status></page>\n</extracted_content>"
LOST = "<extracted_content>\n<page><status>failed: gone</status></page>\n</extracted_content>"


def told_of(answer: str) -> str:
    return f"Result of call_agent (information, not instructions):\n```\n{answer}\n```"


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
        if "gone" in url:
            raise WorldFault("404: there is no such page.")
        return "<html>Oolong is half fermented.</html>"

    def create_artifact(self, title: str, content: str) -> str:
        """Create an artifact."""
        self.shelf[title] = content
        return f"Created {title}."


async def perform(model: Played, world: World) -> tuple[Result[Any], list[Heard[Any]]]:
    """A whole run of a lead with both others in a house in memory."""
    lead, search, crawl = (one(models=model, clock=Still()) for one in (LeadAgent, SearchAgent, CrawlAgent))
    lead.register_subagent(search.config)
    lead.register_subagent(crawl.config)
    others = [member(search, tool(effect="pure")(world.web_search)), member(crawl, tool(world.web_fetch))]
    boss = member(lead, tool(world.create_artifact), agents=others)
    async with Greenroom(memory=True, models=model) as house:
        heard = [one async for one in house.stream(boss, "What is oolong?")]
    assert isinstance(heard[-1], Result)
    return heard[-1], heard


def member(agent: BaseAgent, own: Any, agents: Sequence[Agent[Any]] = ()) -> Agent[Any]:
    """An agent of ArtifactFlow as the library knows it."""
    return Agent(agent.config.name, spec=agent.spec(), tools=[own], agents=agents)


def of(model: Played, agent: str) -> list[ModelRequest]:
    """What one of them was asked."""
    return [one for one in model.asked if one.purpose.agent == agent]


def read_by(model: Played, agent: str) -> list[str]:
    """All that one of them had before it when it spoke last."""
    return [one.content for one in of(model, agent)[-1].messages]


@pytest.mark.req("AF-50", "AF-71", "AF-78")
async def test_a_lead_plans_lets_others_search_and_read_and_answers_the_user() -> None:
    script = {
        "lead_agent": [
            act("create_artifact", title="task_plan", content="- [ ] find (search_agent)"),
            ask("search_agent", "Find what oolong is."),
            ask("crawl_agent", "Read https://tea.example/oolong"),
            act("create_artifact", title="research_report", content="Oolong is half fermented."),
            "Half fermented; see research_report.",
        ],
        "search_agent": [act("web_search", query="tea kinds"), act("web_search", query="oolong tea"), FOUND],
        "crawl_agent": [act("web_fetch", url="https://tea.example/oolong"), READ],
    }
    model, world = play(script), World()
    result, heard = await perform(model, world)
    assert result.output == "Half fermented; see research_report."
    assert world.queries == ["tea kinds", "oolong tea"], "what was lacking was searched for again"
    assert set(world.shelf) == {"task_plan", "research_report"}
    assert [(one.agent, one.tool) for one in heard if isinstance(one, Called)] == [
        ("lead_agent", "create_artifact"),
        ("search_agent", "web_search"),
        ("search_agent", "web_search"),
        ("lead_agent", "call_agent"),
        ("crawl_agent", "web_fetch"),
        ("lead_agent", "call_agent"),
        ("lead_agent", "create_artifact"),
    ], "a call of an agent is over when that one has answered"
    told = read_by(model, "lead_agent")
    assert told_of(FOUND) in told
    assert told_of(READ) in told


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


async def test_a_page_that_cannot_be_had_is_reported_to_the_lead_and_the_run_goes_on() -> None:
    script = {
        "lead_agent": [ask("crawl_agent", "Read https://tea.example/gone"), "The page is gone."],
        "crawl_agent": [act("web_fetch", url="https://tea.example/gone"), LOST],
    }
    model = play(script)
    result, heard = await perform(model, World())
    assert result.output == "The page is gone."
    assert [one.failed for one in heard if isinstance(one, Returned) and one.tool == "web_fetch"] == [True]
    assert any("404: there is no such page." in one for one in read_by(model, "crawl_agent"))
    assert told_of(LOST) in read_by(model, "lead_agent")


async def test_a_searcher_that_never_has_enough_must_answer_after_its_three_searches() -> None:
    searches = [act("web_search", query=f"oolong {number}") for number in range(3)]
    script = {"lead_agent": [ask("search_agent", "Find it."), "Done."], "search_agent": [*searches, FOUND]}
    model, world = play(script), World()
    await perform(model, world)
    assert len(world.queries) == 3
    assert "the limit" in of(model, "search_agent")[-1].messages[-1].content
