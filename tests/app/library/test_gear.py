"""Which tools an agent is given: lists that narrow, the usual ones where none are listed, and none that edit files."""

import re
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, AgentSpec, Greenroom, Turn, WorldFault, tool
from greenroom.app.toolset.toolbox import DEFAULT, Toolbox
from greenroom.app.toolset.toolset import toolbox_of
from tests.abilities.skills.talks import Played, says


@tool
def pay() -> str:
    """Pay."""
    return "paid"


async def offered(work: Path, agent: Agent[str]) -> list[str]:
    """What its model is told of."""
    model = Played(lambda _: says("So."))
    agent.model = model
    async with Greenroom(memory=True, workspace=work) as house:
        await house.run(agent, "Go.")
    return [one.name for one in model.asked[0].tools if one.name not in ("read_output", "finish")]


@pytest.mark.req("AG-164")
async def test_an_empty_list_of_tools_to_use_means_the_usual_ones_and_a_list_narrows_them(tmp_path: Path) -> None:
    model = Played(lambda _: says("So."))
    assert await offered(tmp_path, Agent("ann", model=model)) == []
    assert await offered(tmp_path, Agent("ann", use_tools=[], model=model)) == list(DEFAULT)
    two = ["read_code", "execute_script"]
    assert await offered(tmp_path, Agent("ann", use_tools=two, model=model)) == two
    some = Agent("ann", groups=["read"], tools=[pay], use_tools=["read_code", "patch"], model=model)
    assert await offered(tmp_path, some) == ["read_code"], "a list gives nothing that the agent would not have"


@pytest.mark.req("AG-70", "AG-172")
async def test_an_agent_that_edits_no_files_has_neither_tool_whatever_else_is_said(tmp_path: Path) -> None:
    model = Played(lambda _: says("So."))
    for agent in (
        Agent("ann", use_tools=[], disable_file_edit=True, model=model),
        Agent("ann", tools=["patch", "read_code"], groups=["edit", "read"], disable_file_edit=True, model=model),
        Agent("ann", spec=AgentSpec(name="ann", groups=("edit", "read")), disable_file_edit=True, model=model),
    ):
        found = await offered(tmp_path, agent)
        assert "read_code" in found
        assert not {"patch", "rewrite"}.intersection(found)
    acting = AgentSpec(name="ann", turn=Turn(protocols=("tool_call", "patch", "rewrite")))
    assert Agent("ann", spec=acting, disable_file_edit=True).spec.turn.protocols == ("tool_call",)


def test_the_usual_tools_are_all_there(tmp_path: Path) -> None:
    toolbox: Toolbox = toolbox_of(tmp_path)
    assert {tool.name for tool in toolbox}.issuperset(DEFAULT)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"rules": [5]}, "5 cannot be a rule. Write a line"),
        ({"rules": "allow command ls"}, "cannot be the rules of a house. Give a list"),
        ({"workspace": 5}, "5 cannot be a workspace. Give the path of a folder"),
        ({"workspace": "a\0b"}, "cannot be a workspace: it is no folder"),
    ],
)
def test_what_cannot_be_meant_about_a_house_is_said_in_a_sentence(given: dict[str, Any], why: str) -> None:
    with pytest.raises(WorldFault, match=re.escape(why)):
        Greenroom(memory=True, **given)
