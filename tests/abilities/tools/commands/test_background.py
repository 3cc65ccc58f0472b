"""Commands in the background: begun, looked at, stopped; they end with the run, and after a crash that is said."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from greenroom.abilities.permission.policy import rules_policy
from greenroom.abilities.tools.commands import AT_ONCE, Background, command_tools
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.commands import Ended
from tests.abilities.tools.calling import Caller, caller
from tests.abilities.tools.commands.scripts import Said, scripts, tools
from tests.conformance.running import TOKEN, marked, until_gone, until_marked, until_there

SERVER = f"export {TOKEN}={{token}}; echo ready; touch up; setsid sleep 600 & sleep 600"


async def begun(team: Caller, script: str, **arguments: object) -> str:
    """Begin it; returns its handle."""
    step = await team.call("execute_script", script=script, background=True, **arguments)
    assert step.state == "finished", step.error
    assert step.result is not None
    return str(step.result["handle"])


@pytest.mark.req("MA-54")
async def test_a_command_in_the_background_is_looked_at_and_stopped(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        handle = await begun(team, SERVER.format(token="back"))
        await until_there(tmp_path / "up")
        told = await team.output("command_output", handle=handle)
        assert told == "It still runs.\n1: ready\n[Lines 1 to 1, of 1. That was the last.]"
        await until_marked("back")
        ended = await team.output("stop_command", handle=handle)
        assert ended == "stopped before its end; all its processes are dead\nready\n"
        assert marked("back") == []
        told = await team.output("command_output", handle=handle)
        assert told.startswith("It has ended: stopped before its end")


async def test_all_are_ended_at_once_for_whoever_needs_quiet(tmp_path: Path) -> None:
    commands = PlainCommands(tmp_path)
    background = Background(commands)
    async with caller([*command_tools(commands, background)]) as team:
        over = await begun(team, "true")
        await team.output("command_output", handle=over, wait_seconds=30)
        two = [await begun(team, SERVER.format(token=f"quiet{number}")) for number in (1, 2)]
        await until_marked("quiet2")
        assert await background.quiet() == two, "and not those that had ended"
        assert marked("quiet1") == marked("quiet2") == []
        assert await background.quiet() == []
    commands.close()


async def test_one_that_ends_by_itself_is_waited_for(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        handle = await begun(team, "sleep 0.2; echo done; exit 4")
        told = await team.output("command_output", handle=handle, wait_seconds=30)
        assert told.startswith("It has ended: exit code 4\n1: done\n")
        assert await team.output("stop_command", handle=handle) == "exit code 4\ndone\n"


async def test_its_last_lines_are_shown_or_those_that_are_asked_for(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        handle = await begun(team, "seq 500")
        told = await team.output("command_output", handle=handle, wait_seconds=30)
        assert told.splitlines()[1] == "441: 441"
        assert told.splitlines()[-2] == "500: 500"
        first = await team.output("command_output", handle=handle, from_line=1, lines=1)
        assert first.splitlines()[1] == "1: 1"
        found = await team.output("command_output", handle=handle, pattern="499")
        assert found.splitlines()[1] == "499: 499"


async def test_one_that_prints_nothing_says_so_and_ends_in_its_time(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        handle = await begun(team, "sleep 600", timeout_seconds=1)
        assert await team.output("command_output", handle=handle) == "It still runs.\nIt has printed nothing."
        told = await team.output("command_output", handle=handle, wait_seconds=30)
        assert told.startswith("It has ended: timed out after 1 s; all its processes are dead\n")


async def test_they_end_when_the_run_ends(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        await begun(team, SERVER.format(token="run"))
        await until_there(tmp_path / "up")
        await until_marked("run")
    assert marked("run") == []


async def test_after_a_restart_they_are_gone_and_that_is_said(tmp_path: Path) -> None:
    commands = PlainCommands(tmp_path)
    async with caller(tools(commands), await SqliteLog.open(tmp_path / "home")) as team:
        handle = await begun(team, SERVER.format(token="old"))
        name = team.team
    commands.close()
    await until_gone("old")
    fresh = PlainCommands(tmp_path)
    async with caller(tools(fresh), await SqliteLog.open(tmp_path / "home"), name) as team:
        told = await team.output("command_output", handle=handle)
        assert told.startswith(f"The command '{handle}' is gone: it ended when Greenroom was stopped")
        assert await team.output("stop_command", handle=handle) == told
    fresh.close()


@pytest.mark.parametrize("tool", ["command_output", "stop_command"])
async def test_a_handle_of_nothing_is_refused(tmp_path: Path, tool: str) -> None:
    async with scripts(tmp_path) as team:
        plain = await team.call("execute_script", script="true")
        for handle in ("ann#99", plain.step_id):
            step = await team.call(tool, handle=handle)
            assert step.state == "failed"
            assert f"No command {handle!r} was begun in the background here." in step.error


async def test_another_team_has_other_handles(tmp_path: Path) -> None:
    commands = PlainCommands(tmp_path)
    shared = tools(commands)
    async with caller(shared) as first, caller(shared) as second:
        handle = await begun(first, "sleep 600")
        step = await second.call("stop_command", handle=handle)
        assert step.state == "failed"
        assert (await first.output("command_output", handle=handle)).startswith("It still runs.")
    commands.close()


async def test_there_are_never_too_many_of_them(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        handles = [await begun(team, "sleep 600") for _ in range(AT_ONCE)]
        step = await team.call("execute_script", script="sleep 600", background=True)
        assert step.state == "failed"
        assert "Stop one first" in step.error
        await team.call("stop_command", handle=handles[-1])
        await begun(team, "sleep 600")


async def test_old_ones_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenroom.abilities.tools.commands.REMEMBERED", 2)
    async with caller(tools(Said(Ended(how="exited", code=0)))) as team:
        handles = [await begun(team, "true") for _ in range(5)]
        await asyncio.sleep(0)
        assert "is gone" in await team.output("command_output", handle=handles[0])
        assert "has ended" in await team.output("command_output", handle=handles[-1])


async def test_one_that_cannot_be_begun_says_why(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        step = await team.call("execute_script", script="true", cwd="nowhere", background=True)
        assert step.state == "failed"
        assert "no folder 'nowhere'" in step.error


def test_looking_is_reading_and_stopping_is_a_command() -> None:
    _, look, stop = command_tools(Said(Ended(how="exited", code=0)))
    assert (look.card.group, look.card.effect, look.card.spec.pure) == ("read", "pure", True)
    assert (stop.card.group, stop.card.effect, stop.card.spec.pure) == ("command", "keyed", False)
    assert [one.value for tool in (look, stop) for one in tool.targets({})] == ["command_output", "stop_command"]


def test_ending_what_was_begun_here_is_not_asked_about_unless_a_rule_wants_it() -> None:
    _, _, stop = command_tools(Said(Ended(how="exited", code=0)))
    targets = stop.targets({"handle": "ann#1"})
    ruling = rules_policy({}, "/w").decide(AgentId("ann"), stop.card, targets)
    assert (ruling.verdict, ruling.rule) == ("allow", "built-in: what was begun here")
    strict = rules_policy({"user": ["ask tool stop_command"]}, "/w")
    assert strict.decide(AgentId("ann"), stop.card, targets).verdict == "ask"
    foreign = replace(stop.card, source="mcp:x")
    assert rules_policy({}, "/w").decide(AgentId("ann"), foreign, targets).verdict == "ask", "nobody else is believed"
