"""The searcher: its configuration, its loop, and the form of its answer."""

import pytest

from greenroom.app.designs.artifactflow import AgentConfig, SearchAgent
from tests.app.designs.artifactflow.house import EVERYTHING, Still, nobody, sections


@pytest.mark.req("AF-68", "AF-69", "AF-70")
def test_a_searcher_is_set_up_as_the_design_has_it() -> None:
    assert SearchAgent(models=nobody()).config == AgentConfig(
        name="search_agent",
        description="Web search and information retrieval specialist",
        capabilities=["Web search", "Information retrieval"],
        required_tools=["web_search"],
        model="qwen3-next-80b-instruct",
        temperature=0.5,
        max_tool_rounds=3,
        streaming=True,
    )


@pytest.mark.req("AF-67")
def test_a_configuration_that_is_given_replaces_a_searchers_own() -> None:
    mine = AgentConfig(name="finder", description="d", required_tools=["shell"], max_tool_rounds=0)
    agent = SearchAgent(mine, EVERYTHING, models=nobody())
    assert agent.config is mine
    assert [one.name for one in agent.toolkit] == ["shell"]
    assert "You are finder." in agent.build_system_prompt()
    assert "You can search at most" not in agent.build_system_prompt()
    assert SearchAgent(None, None, models=nobody()).toolkit == ()


@pytest.mark.req("AF-71")
@pytest.mark.parametrize(
    ("language", "loop"),
    [
        ("en", ["1. Analyse the intent", "2. Build a query", "3. Run `web_search`", "4. Judge", "5. If", "6. Other"]),
        ("zh", ["1. 分析意图", "2. 构造查询", "3. 用它执行 `web_search`", "4. 判断是否充分", "5. 如有欠缺", "6. 否则"]),
    ],
)
def test_a_searcher_is_told_its_loop_and_the_form_of_its_result(language: str, loop: list[str]) -> None:
    told = sections(SearchAgent(models=nobody(), language=language).build_system_prompt())
    lines = told["search_loop"].splitlines()[:6]
    assert all(line.startswith(step) for line, step in zip(lines, loop, strict=True))
    assert "3" in lines[4], "lacking something leads back to the search"
    assert all(f"<{tag}>" in told["result_format"] for tag in ("search_results", "result", "title", "url", "content"))


def test_only_the_end_of_a_searchers_prompt_changes_with_the_time() -> None:
    one, other = (SearchAgent(models=nobody(), clock=Still(when)).build_system_prompt() for when in (0, 10**9))
    assert one.partition("<system_time>")[0] == other.partition("<system_time>")[0]
    assert list(sections(one))[-1] == "system_time"
    assert sections(one)["system_time"] == "1970-01-01 00:00 UTC"


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (" <search_results>\nx\n</search_results> ", "<search_results>\nx\n</search_results>"),
        ("Tea </search_results>", "<search_results>\nTea &lt;/search_results>\n</search_results>"),
        ("", "<search_results>\nlast\n</search_results>"),
    ],
)
def test_an_answer_always_stands_in_its_tag_and_none_becomes_the_last_result(content: str, answer: str) -> None:
    history = [{"role": "tool", "content": "first"}, {"role": "tool", "content": "last"}, {"role": "assistant"}]
    assert SearchAgent(models=nobody()).format_final_response(content, history) == answer


def test_no_answer_without_any_result_is_an_empty_one() -> None:
    answer = SearchAgent(models=nobody()).format_final_response(" ", [])
    assert answer == "<search_results>\n\n</search_results>"
