"""MCP servers that a program brings: they start for its runs, need no approval unless it says so, and end with it."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path

import pytest

from greenroom import Agent, ApprovalRequest, Greenroom, MCPServer, RefusedError, WorldFault
from tests.abilities.skills.talks import Played, calls, in_order, says
from tests.adapters.mcp.running import RAW, TOKEN, marked


def server(folder: Path, name: str = "files", *, needs_approval: bool = False, mode: str = "polite") -> MCPServer:
    arguments, env = [RAW, mode, str(folder)], {TOKEN: folder.name}
    return MCPServer(name, command=sys.executable, args=arguments, env=env, needs_approval=needs_approval)


def reader(*servers: MCPServer) -> Agent[str]:
    model = Played(in_order(calls("mcp__files__echo", text="tea"), says("Read.")))
    return Agent("reader", mcp_servers=servers, model=model)


@pytest.mark.parametrize("has_workspace", [False, True])
async def test_an_agent_calls_a_tool_of_its_server(tmp_path: Path, has_workspace: bool) -> None:
    agent = reader(server(tmp_path))
    async with Greenroom(in_memory=True, workspace=tmp_path if has_workspace else None) as greenroom:
        result = await greenroom.run(agent, "Read it.")
        assert result.output == "Read."
        assert (await greenroom.executed_tools(result.run_id)).tools == ("mcp__files__echo",)
        assert "mcp__files__echo" in [spec.name for spec in greenroom.tools_of(agent)]
        processes = marked(tmp_path.name)
        assert processes, "it runs on for the next run"
        await greenroom.run(agent, "Again.")
        assert marked(tmp_path.name) == processes
    assert marked(tmp_path.name) == []


async def test_a_called_agent_has_its_own_server(tmp_path: Path) -> None:
    clerk = reader(server(tmp_path))
    lead_model = Played(in_order(calls("call_agent", agent_name="reader", instruction="Read."), says("Done.")))
    lead = Agent("lead", agents=[clerk], model=lead_model)
    async with Greenroom(in_memory=True) as greenroom:
        assert (await greenroom.run(lead, "Well?")).output == "Done."
        assert [spec.name for spec in greenroom.tools_of(lead)] == ["call_agent"]
    assert [tool.name for tool in lead_model.asked[0].tools] == ["call_agent"]


async def test_a_server_may_need_approval(tmp_path: Path) -> None:
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return True

    async with Greenroom(in_memory=True) as greenroom:
        agent = reader(server(tmp_path, needs_approval=True))
        with pytest.raises(RefusedError, match="Approval is needed"):
            await greenroom.run(agent, "Read it.")
        assert (await greenroom.run(reader(server(tmp_path, needs_approval=True)), "Go.", approve=approve)).output
    assert asked == ["mcp__files__echo"]


async def test_a_server_that_does_not_start_is_named_before_the_run(tmp_path: Path) -> None:
    agent = Agent("reader", mcp_servers=[MCPServer("gone", command=str(tmp_path / "nothing"))], model="x:y")
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match="gone"):
            await greenroom.run(agent, "Read it.")
        assert await greenroom.runs() == []


@pytest.mark.parametrize(
    ("servers", "why"),
    [
        ((MCPServer("a b", command="x"),), "a b"),
        ((MCPServer("a"),), "a"),
        ((MCPServer("a", command="x"), MCPServer("a", command="y")), "Two MCP servers are called 'a'"),
    ],
)
async def test_a_wrong_description_of_a_server_is_refused(servers: tuple[MCPServer, ...], why: str) -> None:
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match=why):
            await greenroom.run(Agent("reader", mcp_servers=servers, model=Played(lambda _: says(""))), "Read it.")


@pytest.mark.parametrize("first", [False, True])
async def test_the_same_server_with_and_without_approval_is_refused(tmp_path: Path, first: bool) -> None:
    async with Greenroom(in_memory=True) as greenroom:
        await greenroom.run(reader(server(tmp_path, needs_approval=first)), "Go.", approve=lambda _: True)
        with pytest.raises(WorldFault, match="Two MCP servers are called 'files'"):
            await greenroom.run(reader(server(tmp_path, needs_approval=not first)), "Go.", approve=lambda _: True)


async def test_a_server_asks_also_if_it_did_not_when_the_greenroom_was_open_before(tmp_path: Path) -> None:
    greenroom = Greenroom(in_memory=True)
    async with greenroom:
        await greenroom.run(reader(server(tmp_path)), "Read it.")
    async with greenroom:
        with pytest.raises(RefusedError, match="Approval is needed"):
            await greenroom.run(reader(server(tmp_path, needs_approval=True)), "Read it.")


async def test_runs_at_the_same_time_share_one_process_of_a_server(tmp_path: Path) -> None:
    async with Greenroom(in_memory=True) as greenroom:
        alone = server(tmp_path / "alone", "others")
        await greenroom.run(Agent("other", mcp_servers=[alone], model=Played(lambda _: says("."))), "Go.")
        one = len(marked("alone"))
        results = await asyncio.gather(*(greenroom.run(reader(server(tmp_path)), "Read it.") for _ in range(3)))
        assert [result.output for result in results] == ["Read."] * 3
        assert len(marked(tmp_path.name)) == one
    assert marked(tmp_path.name) == []


async def test_a_server_ends_although_another_did_not_start(tmp_path: Path) -> None:
    gone = MCPServer("gone", command=str(tmp_path / "nothing"))
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match="gone"):
            await greenroom.run(reader(gone, server(tmp_path)), "Read it.")
        assert (await greenroom.run(reader(server(tmp_path)), "Read it.")).output == "Read."
    assert marked(tmp_path.name) == []


async def test_the_tools_of_a_server_are_known_once_it_has_started(tmp_path: Path) -> None:
    agent = reader(server(tmp_path))
    async with Greenroom(in_memory=True) as greenroom:
        await greenroom.run(
            Agent("other", mcp_servers=[server(tmp_path, "others")], model=Played(lambda _: says("."))), "Go."
        )
        assert greenroom.tools_of(agent) == []
        await greenroom.run(agent, "Read it.")
        assert "mcp__files__echo" in [spec.name for spec in greenroom.tools_of(agent)]


@pytest.mark.parametrize("has_workspace", [False, True])
async def test_a_tool_that_is_left_out_is_told_once_in_the_log_and_in_the_notes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_workspace: bool
) -> None:
    bad = {
        "name": "bad",
        "description": "Bad.",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "what"}}},
    }
    twice = {"name": "twice", "description": "Twice.", "inputSchema": {"type": "object", "properties": {}}}
    (tmp_path / "tools.json").write_text(json.dumps([bad, twice, twice]))
    with caplog.at_level(logging.WARNING, "greenroom"):
        async with Greenroom(in_memory=True, workspace=tmp_path if has_workspace else None) as greenroom:
            for _ in range(2):
                await greenroom.run(reader(server(tmp_path)), "Read it.")
            notes = greenroom.notes
            names = [spec.name for spec in greenroom.tools_of(reader(server(tmp_path)))]
    assert [note.partition(" left out. ")[0] for note in notes] == [
        "The tool bad of the MCP server 'files' is",
        "The tool twice of the MCP server 'files' is",
    ]
    assert "Its schema is invalid" in notes[0]
    assert "It has the same name as another one." in notes[1]
    assert [record.getMessage() for record in caplog.records] == list(notes)
    assert not {"mcp__files__bad", "mcp__files__twice"}.intersection(names)


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "2852039166"),
        *("0xa9.0xfe.0xa9.0xfe", "metadata.google.internal", "METADATA.google.internal.", "metadata"),
    ],
)
async def test_the_metadata_service_of_a_cloud_is_never_a_server(host: str) -> None:
    agent = reader(MCPServer("files", url=f"http://{host}/mcp"))
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match=r"The MCP server 'files' is at .*the metadata service of a cloud"):
            await greenroom.run(agent, "Read it.")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_a_server_on_this_machine_is_reached(host: str) -> None:
    agent = reader(MCPServer("files", url=f"http://{host}:9/mcp"))
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match="files") as unreachable:
            await greenroom.run(agent, "Read it.")
    assert "metadata" not in str(unreachable.value)
