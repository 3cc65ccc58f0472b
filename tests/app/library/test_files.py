"""Agents of files, in a program: by path or by name, with those that they call."""

from pathlib import Path

import pytest

from greenroom import Agent, Greenroom, ModelRequest, Refused, WorldFault, tool
from tests.abilities.skills.talks import Answer, Played, calls, says

GUIDE = """---
name: tour.guide
description: Knows cities.
tools: [population]
repairs: 5
---
Look every number up.
"""
LEAD = """---
description: Leads.
calls: [tour.guide]
---
Ask the guide.
"""


@tool(effect="pure")
def population(city: str) -> int:
    """How many people live in a city."""
    return {"Paris": 2_100_000}[city]


@pytest.fixture(name="folder")
def a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two agents."""
    agents = tmp_path / ".greenroom" / "agents"
    agents.mkdir(parents=True)
    (agents / "guide.md").write_text(GUIDE, encoding="utf-8")
    (agents / "lead.md").write_text(LEAD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return agents


def test_a_path_and_a_name_are_the_same_agent(folder: Path) -> None:
    by_path, by_name = Agent.from_file(folder / "guide.md", tools=[population]), Agent.from_file("tour.guide")
    assert by_path.name == by_name.name == "tour.guide"
    assert by_path.spec == by_name.spec, "the file names the tool"
    assert by_path.spec.turn.repairs == 5
    assert by_path.spec.prompt == "Look every number up."
    assert Agent.from_file(str(folder / "guide.md")).spec == by_name.spec


def test_what_is_said_here_counts_more_than_the_file(folder: Path) -> None:
    agent = Agent.from_file(folder / "guide.md", output_type=int, model="fast")
    assert agent.spec.answer == {"type": "integer"}
    assert agent.spec.llm_config == {"model": "fast"}


def test_files_of_claude_code_are_known_by_their_folder(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "agents" / "reviewer.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: reviewer\ndescription: Reviews.\nmodel: inherit\n---\nReview.", encoding="utf-8")
    assert Agent.from_file(path).spec.prompt == "Review."


def test_a_file_that_is_none_and_a_name_that_nobody_has_are_said_so(folder: Path) -> None:
    with pytest.raises(WorldFault, match=r"none\.md"):
        Agent.from_file(folder / "none.md")
    with pytest.raises(Refused, match="There is no agent 'guid'"):
        Agent.from_file("guid")
    (folder / "lost.md").write_text(LEAD.replace("tour.guide", "nobody"), encoding="utf-8")
    with pytest.raises(Refused, match="There is no agent 'nobody'"):
        Agent.from_file("lost")


async def test_the_agents_that_it_calls_come_along(folder: Path) -> None:
    def play(request: ModelRequest) -> Answer:
        told = [one.content for one in request.messages if one.role == "tool"]
        if told:
            return says(told[0])
        if request.purpose.agent == "lead":
            return calls("call_agent", agent_name="tour.guide", instruction="Paris?")
        return calls("population", city="Paris")

    lead = Agent.from_file("lead", tools=[population])
    async with Greenroom(memory=True, models=Played(play)) as house:
        assert (await house.run(lead, "How many?")).output == "2100000"


def test_agents_may_call_each_other(folder: Path) -> None:
    (folder / "guide.md").write_text(GUIDE.replace("tools:", "calls: [lead]\ntools:"), encoding="utf-8")
    lead = Agent.from_file("lead")
    (guide,) = lead.agents
    assert guide.agents == (lead,)


async def test_one_rule_for_names_everywhere() -> None:
    async with Greenroom(memory=True) as house:
        agent = Agent("v1.guide", model=Played(lambda _: says("Yes.")))
        assert (await house.run(agent, "Well?")).output == "Yes."
    with pytest.raises(WorldFault, match="'my agent' is no name for an agent"):
        Agent("my agent")
    with pytest.raises(WorldFault, match="the house is called so itself"):
        Agent("system")
