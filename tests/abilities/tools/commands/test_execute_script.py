"""`execute_script`: a script is run once, and the model reads how it ended and what it printed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from greenroom.abilities.tools.commands import command_tools
from greenroom.core.ports.commands import Ended
from greenroom.core.ports.executor import Live, ToolPrinted
from greenroom.core.rules.intents import CancelTask
from greenroom.core.state.step import PROCESS, EffectPrepared, Step
from tests.abilities.tools.calling import T1, Caller, caller
from tests.abilities.tools.commands.scripts import Said, scripts, tools
from tests.conformance.running import TOKEN, marked, until_marked, until_there

EXECUTE = command_tools(Said(Ended(how="exited", code=0)))[0]


@pytest.mark.req("MA-54")
async def test_a_script_says_its_exit_code_and_what_it_printed(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        step = await team.call("execute_script", script="echo out; echo err >&2")
    assert step.state == "finished"
    assert step.result is not None
    assert step.result["output"] == "exit code 0\nout\nerr\n"
    assert (step.result["exit_code"], step.result["how"]) == (0, "exited")
    assert float(str(step.result["seconds"])) >= 0


@pytest.mark.req("MA-54")
async def test_a_script_that_fails_is_a_step_that_was_done(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        assert await team.output("execute_script", script="echo 1 failed; exit 3") == "exit code 3\n1 failed\n"
        assert await team.output("execute_script", script="true") == "exit code 0\nIt printed nothing."
        assert await team.output("execute_script", script="kill -9 $$") == (
            "killed by signal 9 (SIGKILL)\nIt printed nothing."
        )


@pytest.mark.req("MA-54")
async def test_a_script_whose_time_is_over_says_so_and_shows_what_it_printed(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        told = await team.output("execute_script", script="echo begun; sleep 600", timeout_seconds=1)
    assert told == "timed out after 1 s; all its processes are dead\nbegun\n"


async def test_what_it_left_running_is_ended_and_said(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        told = await team.output("execute_script", script="sleep 600 & echo done")
    assert told.startswith("exit code 0\n(1 of its processes still ran and were ended; what is to go on needs")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "missing required field `script`"),
        ({"script": ""}, "script"),
        ({"script": "true", "timeout_seconds": 3601}, "timeout_seconds"),
        ({"script": "true", "timeout_seconds": 0}, "timeout_seconds"),
        ({"script": "true", "interpreter": "cobol"}, "interpreter"),
        ({"script": "true", "shell": "zsh"}, "shell"),
        ({"script": "true", "cwd": "nowhere"}, "no folder 'nowhere'"),
        ({"script": "true", "cwd": ".."}, "outside the workspace"),
        ({"script": "#" * 200_000}, "Write it to a file"),
    ],
)
async def test_what_cannot_be_run_fails_and_says_why(tmp_path: Path, arguments: dict[str, object], why: str) -> None:
    async with scripts(tmp_path) as team:
        step = await team.call("execute_script", **arguments)
    assert step.state == "failed"
    assert why in step.error


async def test_other_interpreters_and_folders_can_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    async with scripts(tmp_path) as team:
        script = "import os; print(os.path.basename(os.getcwd()))"
        told = await team.output("execute_script", script=script, interpreter="python3", cwd="inner")
        assert told == "exit code 0\ninner\n"
        assert await team.output("execute_script", script="echo $0", interpreter="sh") == "exit code 0\nsh\n"


async def test_nothing_it_prints_is_obeyed(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        told = await team.output("execute_script", script=r"printf '\033]0;title\007\033[31mred\033[0m\007\n'")
    assert told == "exit code 0\nred\n"


@pytest.mark.req("AG-58", "MA-55")
async def test_long_output_is_shown_in_part_and_read_on_by_its_handle(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        step = await team.call("execute_script", script="for n in $(seq 20000); do echo line $n; done")
        assert step.result is not None
        shown = str(step.result["output"]).splitlines()
        assert shown[:31] == ["exit code 0", *(f"line {number}" for number in range(1, 31))]
        assert shown[-30:] == [f"line {number}" for number in range(19971, 20001)]
        assert f'read_output(handle="{step.step_id}"' in shown[31]
        assert "19940 of 20000 lines" in shown[31]
        assert len(str(step.result["output"]).encode()) <= 30_000
        page = await team.output("read_output", handle=step.step_id, from_line=10_000, lines=2)
        found = await team.output("read_output", handle=step.step_id, pattern="line 1234")
    assert page.splitlines()[:2] == ["10000: line 10000", "10001: line 10001"]
    assert [line.partition(":")[0] for line in found.splitlines()[:3]] == ["1234", "12340", "12341"]


@pytest.mark.req("AG-58")
@pytest.mark.parametrize("script", ["head -c 31000 /dev/zero | tr '\\0' a", "head -c 10485760 /dev/zero | tr '\\0' a"])
async def test_one_long_line_is_kept_whole(tmp_path: Path, script: str) -> None:
    async with scripts(tmp_path) as team:
        step = await team.call("execute_script", script=script)
        assert step.result is not None
        assert "bytes …]aaa" in str(step.result["output"])
        assert "1: aaaa" in await team.output("read_output", handle=step.step_id, pattern="AAAA")


async def test_a_cancelled_script_is_dead_and_what_it_printed_is_kept(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        script = f"export {TOKEN}=left; echo printed; setsid sleep 600 & touch up; sleep 600"
        await team.begin("execute_script", script=script)
        await until_there(tmp_path / "up")
        await until_marked("left")
        await team.runtime.ask(team.team, CancelTask(task_id=T1))
        await asyncio.wait_for(team.runtime.wait(team.team, T1), 30)
        assert marked("left") == []
        (step,) = await team.steps()
    assert step.state == "cancelled"
    assert (step.result or {})["output"] == "cancelled\nprinted\n"


async def test_its_processes_are_written_down_before_it_does_anything(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        await team.call("execute_script", script="true")
        events = [told.event async for told in team.runtime.events(team.team)]
    (prepared,) = [one for one in events if isinstance(one, EffectPrepared)]
    assert [one.kind for one in prepared.prepared] == [PROCESS]


async def test_a_command_of_which_nobody_knows_how_it_ended_is_uncertain() -> None:
    async with caller(tools(Said(Ended(how="lost", contained=False), "half"))) as team:
        step = await _first(team, script="make")
    assert step.state == "uncertain"
    assert "it is not known how far it came" in step.error
    assert (step.result or {})["output"] == "cut off\nhalf"


async def _first(team: Caller, **arguments: object) -> Step:
    await team.call("execute_script", **arguments)
    return (await team.steps())[0]


async def test_where_not_all_processes_can_be_found_that_is_said() -> None:
    async with caller(tools(Said(Ended(how="timed_out", contained=False)))) as team:
        told = await team.output("execute_script", script="make")
    assert told.startswith("timed out after 120 s; its process group is dead\n(On this system")


async def test_a_command_stopped_by_somebody_else_says_so() -> None:
    async with caller(tools(Said(Ended(how="cancelled")))) as team:
        assert (await team.output("execute_script", script="make")).startswith("stopped before its end; all its")
    async with caller(tools(Said(Ended(how="signalled", signal=99)))) as team:
        assert (await team.output("execute_script", script="make")).startswith("killed by signal 99 (unknown)")


@pytest.mark.req("MA-55")
def test_its_description_says_when_to_use_it_and_when_not() -> None:
    card = EXECUTE.card
    assert card.group == "command"
    assert card.effect == "effectful"
    for words in ("filter it (rg, grep", "Run static checks once, after all edits", "Not for reading", "Example: {"):
        assert words in card.spec.description


@pytest.mark.parametrize(
    ("arguments", "kind", "value"),
    [
        ({"script": "git status"}, "command", "git status"),
        ({"script": "git status", "cwd": "a b"}, "command", "cd 'a b' && git status"),
        ({"script": "print(1)", "interpreter": "python3"}, "command", "python3 -c 'print(1)'"),
        ({"script": "rm -rf x", "interpreter": "sh", "background": True}, "command", "rm -rf x"),
        ({"script": 5}, "tool", "execute_script"),
        ({"script": ["rm"]}, "tool", "execute_script"),
        ({}, "tool", "execute_script"),
    ],
)
def test_a_rule_is_asked_about_the_line_that_is_run(arguments: dict[str, object], kind: str, value: str) -> None:
    (target,) = EXECUTE.targets(arguments)
    assert (target.kind, target.value) == (kind, value)


@pytest.mark.req("MA-54")
async def test_whoever_watches_sees_the_lines_of_a_script_before_it_ends(tmp_path: Path) -> None:
    shown: list[str] = []
    async with scripts(tmp_path) as team:
        host = await team.runtime.start(team.team)
        first = asyncio.Event()

        def watch(_: Step, event: Live) -> None:
            assert isinstance(event, ToolPrinted)
            shown.append(event.text)
            first.set()

        host.watch(watch)
        await team.begin("execute_script", script="echo one; until test -e go; do sleep 0.01; done; printf two")
        await asyncio.wait_for(first.wait(), 20)
        assert shown == ["one\n"]
        (tmp_path / "go").touch()
        await asyncio.wait_for(team.runtime.wait(team.team, T1), 20)
    assert shown == ["one\n", "two\n"]
