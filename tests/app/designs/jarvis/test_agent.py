"""An agent made with Jarvis' arguments: its tools, its protocols and its confirmations."""

from pathlib import Path

import pytest

from greenroom import Agent, ApprovalRequest, Greenroom, WorldFault, tool
from greenroom.abilities.tools.tool import DEFAULT_TOOLS
from greenroom.app.designs.jarvis import make_jarvis_agent
from tests.abilities.skills.talks import Played, in_order, says

PAY = "<TOOL_CALL>\nwant: pay\nname: pay\narguments:\n  amount: 5\n</TOOL_CALL>"


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def list_tools(work: Path, agent: Agent[str]) -> list[str]:
    """The tools that the agent's model is told of."""
    specs = Greenroom(in_memory=True, workspace=work).tools_of(agent)
    return [spec.name for spec in specs if spec.name != "read_output"]


@pytest.mark.req("AG-164")
def test_an_empty_use_tools_selects_the_default_tools_and_a_list_only_the_tools_in_it(tmp_path: Path) -> None:
    assert sorted(list_tools(tmp_path, make_jarvis_agent("You help."))) == sorted(DEFAULT_TOOLS)
    assert sorted(list_tools(tmp_path, make_jarvis_agent("You help.", tools=[pay]))) == sorted((*DEFAULT_TOOLS, "pay"))
    for names in (["read_code", "execute_script"], ["pay"]):
        agent = make_jarvis_agent("You help.", tools=[pay], use_tools=names)
        assert sorted(list_tools(tmp_path, agent)) == sorted(names)
    with pytest.raises(WorldFault, match=r"cannot use the tool 'raed_code'. Did you mean `read_code`"):
        list_tools(tmp_path, make_jarvis_agent("You help.", use_tools=["raed_code"]))


@pytest.mark.req("AG-70", "AG-172")
@pytest.mark.parametrize("names", [(), ("patch", "read_code", "rewrite")])
def test_without_file_edits_there_is_neither_a_tool_nor_a_protocol_that_edits(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    editing, reading = (
        make_jarvis_agent("You help.", use_tools=names, disable_file_edit=bare) for bare in (False, True)
    )
    assert {"patch", "rewrite", "read_code"}.issubset(list_tools(tmp_path, editing))
    assert editing.spec.turn.protocols == ("tool_call", "patch", "rewrite")
    assert "read_code" in list_tools(tmp_path, reading)
    assert not {"patch", "rewrite"}.intersection(list_tools(tmp_path, reading))
    assert reading.spec.turn.protocols == ("tool_call",)


@pytest.mark.req("AG-165")
@pytest.mark.parametrize("confirms", [True, False])
async def test_every_call_is_confirmed_if_the_agent_says_so(confirms: bool) -> None:
    requests: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        requests.append(request)
        return True

    agent = make_jarvis_agent(
        "You help.",
        model=Played(in_order(says(PAY), says("Done. <!!!COMPLETE!!!>"))),
        tools=[pay],
        use_tools=["pay"],
        execute_tool_confirm=confirms,
    )
    async with Greenroom(in_memory=True, approve=approve) as greenroom:
        result = await greenroom.run(agent, "Pay five.")
        assert (await greenroom.executed_tools(result.run_id)).tools == ("pay",)
    assert [request.tool for request in requests] == (["pay"] if confirms else [])
