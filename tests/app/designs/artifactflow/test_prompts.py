"""What ArtifactFlow's agents are told: as it is, equal in both languages, and one kind of task for each."""

from itertools import product
from typing import Final

import jinja2
import pytest
from inline_snapshot import external_file
from jinja2 import meta

from greenroom.app.designs.artifactflow import (
    AgentConfig,
    AgentResponse,
    BaseAgent,
    CrawlAgent,
    LeadAgent,
    SearchAgent,
    StreamEvent,
)
from greenroom.app.designs.artifactflow.base import PACK
from tests.app.designs.artifactflow.house import EVERYTHING, Still, lead, nobody, sections

AGENTS: Final[dict[str, type[LeadAgent | SearchAgent | CrawlAgent]]] = {
    "lead": LeadAgent,
    "search": SearchAgent,
    "crawl": CrawlAgent,
}
CONTEXT = {
    "artifacts_inventory": [{"id": "task_plan", "title": "Tea", "version": 2}],
    "user_feedback": "Shorter, please.",
}


def told(name: str, language: str) -> str:
    """The prompt of one agent."""
    if name == "lead":
        return lead(language).build_system_prompt(CONTEXT)
    return AGENTS[name](models=nobody(), language=language, clock=Still()).build_system_prompt()


def variables(language: str, name: str) -> set[str]:
    return meta.find_undeclared_variables(jinja2.Environment(autoescape=False).parse(PACK.source(language, name)))


@pytest.mark.parametrize(("name", "language"), [*product(AGENTS, ("en", "zh"))])
def test_every_prompt_is_what_it_was(name: str, language: str) -> None:
    assert f"{told(name, language)}\n" == external_file(f"snapshots/{language}/{name}.md", format=".txt")


def test_every_prompt_is_there_in_both_languages_with_the_same_variables_and_tags() -> None:
    assert PACK.languages() == ("en", "zh")
    assert PACK.names("en") == PACK.names("zh") == tuple(sorted(AGENTS))
    for name in AGENTS:
        assert variables("en", name) == variables("zh", name), name
        assert list(sections(told(name, "en"))) == list(sections(told(name, "zh"))), name


@pytest.mark.req("AF-1")
@pytest.mark.parametrize(
    ("module", "classes"),
    [
        ("base", [BaseAgent, AgentConfig, AgentResponse, StreamEvent]),
        ("lead", [LeadAgent]),
        ("search", [SearchAgent]),
        ("crawl", [CrawlAgent]),
    ],
)
def test_the_package_has_a_base_and_a_module_for_each_agent(module: str, classes: list[type]) -> None:
    assert {one.__module__ for one in classes} == {f"greenroom.app.designs.artifactflow.{module}"}


@pytest.mark.req("AF-2")
def test_each_agent_has_tools_for_its_own_kind_of_task_only() -> None:
    kept = {
        name: {tool.name for tool in agent(None, EVERYTHING, models=nobody()).toolkit} for name, agent in AGENTS.items()
    }
    artifacts = {"create_artifact", "update_artifact", "rewrite_artifact", "read_artifact"}
    assert kept == {"lead": {*artifacts, "call_subagent"}, "search": {"web_search"}, "crawl": {"web_fetch"}}


def test_an_agent_of_ones_own_can_be_registered_too() -> None:
    class Painter(BaseAgent):
        def build_system_prompt(self, context: object = None) -> str:
            return f"You paint. It is {self.now()}."

        def format_final_response(self, content: str, tool_history: object) -> str:
            return content

    config = AgentConfig(name="painter", description="Paints.\nWell.", capabilities=["Oil"])
    painter, boss = Painter(config, models=nobody(), clock=Still()), Painter(config, models=nobody())
    boss.register_subagent(painter.config)
    assert painter.spec().prompt == "You paint. It is 2026-06-01 12:00 UTC."
    assert "- `painter`: Paints. Well." in boss.build_complete_system_prompt()
