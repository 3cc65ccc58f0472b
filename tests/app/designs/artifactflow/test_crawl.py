"""The crawler: its configuration, and what it is told of pages and of failures."""

import pytest

from greenroom.app.designs.artifactflow import AgentConfig, CrawlAgent
from tests.app.designs.artifactflow.house import EVERYTHING, Still, nobody, sections


@pytest.mark.req("AF-72", "AF-73", "AF-74", "AF-75")
def test_a_crawler_is_set_up_as_the_design_has_it() -> None:
    assert CrawlAgent(models=nobody()).config == AgentConfig(
        name="crawl_agent",
        description="Web content extraction and cleaning specialist",
        capabilities=[
            "Deep content extraction",
            "Web scraping",
            "IMPORTANT: Instructions must include a specific URL to crawl",
        ],
        required_tools=["web_fetch"],
        model="qwen3-next-80b-instruct",
        temperature=0.3,
        max_tool_rounds=2,
        streaming=True,
    )


@pytest.mark.req("AF-67")
def test_a_configuration_that_is_given_replaces_a_crawlers_own() -> None:
    mine = AgentConfig(name="reader", description="d", required_tools=["shell"], max_tool_rounds=0)
    agent = CrawlAgent(mine, EVERYTHING, models=nobody())
    assert agent.config is mine
    assert [one.name for one in agent.toolkit] == ["shell"]
    assert "You are reader." in agent.build_system_prompt()
    assert "You can fetch at most" not in agent.build_system_prompt()
    assert CrawlAgent(None, None, models=nobody()).toolkit == ()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["`web_fetch`", "Extract", "Clean it", "If fetching fails", "at most 2 times"]),
        ("zh", ["`web_fetch`", "提取", "清理", "抓取失败时", "最多可以抓取 2 次"]),
    ],
)
def test_a_crawler_is_told_to_extract_to_clean_and_to_report_failures(language: str, words: list[str]) -> None:
    told = sections(CrawlAgent(models=nobody(), language=language).build_system_prompt())
    places = [told["crawl_process"].index(word) for word in words]
    assert places == sorted(places)
    assert "`failed:" in told["result_format"]


def test_a_crawlers_prompt_never_changes() -> None:
    one, other = (CrawlAgent(models=nobody(), clock=Still(when)) for when in (0, 10**12))
    assert one.build_system_prompt() == other.build_system_prompt({"artifacts_inventory": "x"})


def test_an_answer_always_stands_in_its_tag() -> None:
    agent = CrawlAgent(models=nobody())
    assert agent.format_final_response("Tea.", []) == "<extracted_content>\nTea.\n</extracted_content>"
