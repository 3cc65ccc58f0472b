"""Commands: run to their end or in the background, what they print, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.tools.command_output import MAX_UNFINISHED_LINE_CHARS, LiveLines, OutputBuffer
from greenroom.abilities.tools.commands import MAX_BACKGROUND_COMMANDS, BackgroundCommands, build_command_tools
from greenroom.abilities.tools.read_output import ReadOutputTool
from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.commands import (
    Command,
    CommandEnded,
    CommandEvent,
    CommandPrinted,
    CommandRunner,
    CommandStarted,
)
from greenroom.core.ports.executor import Executor, LiveEvent, ToolPrinted
from greenroom.core.rules.intents import CancelTask
from greenroom.core.state.step import PROCESS_KIND, EffectPrepared, Step
from greenroom.policy.policy import build_rules_policy
from tests.abilities.tools.calling import T1, Caller, caller
from tests.conformance.running import TOKEN, marked, until_gone, until_marked, until_there


class Said:
    """Commands that print and end as the test says."""

    def __init__(self, ended: CommandEnded, *printed: str) -> None:
        self._ended = ended
        self._printed = printed
        self.asked: list[Command] = []

    async def run(self, command: Command) -> AsyncGenerator[CommandEvent, None]:
        self.asked.append(command)
        yield CommandStarted()
        for text in self._printed:
            yield CommandPrinted(text=text)
        yield self._ended

    def close(self) -> None:
        """Nothing runs."""


def tools(commands: CommandRunner) -> list[Executor]:
    return [*build_command_tools(commands), ReadOutputTool()]


@asynccontextmanager
async def scripts(root: Path) -> AsyncIterator[Caller]:
    """A team that runs commands in this folder."""
    commands = LocalCommands(root)
    try:
        async with caller(tools(commands)) as team:
            yield team
    finally:
        commands.close()


EXECUTE = build_command_tools(Said(CommandEnded(how="exited", code=0)))[0]


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
        ({"script": "true", "cwd": "nowhere", "background": True}, "no folder 'nowhere'"),
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
    assert [one.kind for one in prepared.prepared] == [PROCESS_KIND]


async def test_a_command_of_which_nobody_knows_how_it_ended_is_uncertain() -> None:
    async with caller(tools(Said(CommandEnded(how="lost", contained=False), "half"))) as team:
        await team.call("execute_script", script="make")
        step = (await team.steps())[0]
    assert step.state == "uncertain"
    assert "it is not known how far it came" in step.error
    assert (step.result or {})["output"] == "cut off\nhalf"


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (
            CommandEnded(how="timed_out", contained=False),
            "timed out after 120 s; its process group is dead\n(On this system",
        ),
        (CommandEnded(how="cancelled"), "stopped before its end; all its"),
        (CommandEnded(how="signalled", signal=99), "killed by signal 99 (unknown)"),
    ],
)
async def test_how_a_command_ended_is_said(ended: CommandEnded, told: str) -> None:
    async with caller(tools(Said(ended))) as team:
        assert (await team.output("execute_script", script="make")).startswith(told)


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

        def watch(_: Step, event: LiveEvent) -> None:
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
        told = await team.output("command_output", handle=handle, wait_seconds=0)
        while "It has printed nothing." in told:  # what it printed is still on its way
            told = await team.output("command_output", handle=handle, wait_seconds=0)
        assert told == "It still runs.\n1: ready\n[Lines 1 to 1, of 1. That was the last.]"
        await until_marked("back")
        ended = await team.output("stop_command", handle=handle)
        assert ended == "stopped before its end; all its processes are dead\nready\n"
        assert marked("back") == []
        told = await team.output("command_output", handle=handle)
        assert told.startswith("It has ended: stopped before its end")


async def test_all_are_ended_at_once_for_whoever_needs_quiet(tmp_path: Path) -> None:
    commands = LocalCommands(tmp_path)
    background = BackgroundCommands(commands)
    async with caller([*build_command_tools(commands, background)]) as team:
        over = await begun(team, "true")
        await team.output("command_output", handle=over, wait_seconds=30)
        two = [await begun(team, SERVER.format(token=f"quiet{number}")) for number in (1, 2)]
        await until_marked("quiet2")
        assert await background.stop_all() == two, "and not those that had ended"
        assert marked("quiet1") == marked("quiet2") == []
        assert await background.stop_all() == []
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
    commands = LocalCommands(tmp_path)
    async with caller(tools(commands), await SqliteLog.open(tmp_path / "home")) as team:
        handle = await begun(team, SERVER.format(token="old"))
        name = team.team
    commands.close()
    await until_gone("old")
    fresh = LocalCommands(tmp_path)
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
    commands = LocalCommands(tmp_path)
    shared = tools(commands)
    async with caller(shared) as first, caller(shared) as second:
        handle = await begun(first, "sleep 600")
        step = await second.call("stop_command", handle=handle)
        assert step.state == "failed"
        assert (await first.output("command_output", handle=handle)).startswith("It still runs.")
    commands.close()


async def test_there_are_never_too_many_of_them(tmp_path: Path) -> None:
    async with scripts(tmp_path) as team:
        handles = [await begun(team, "sleep 600") for _ in range(MAX_BACKGROUND_COMMANDS)]
        step = await team.call("execute_script", script="sleep 600", background=True)
        assert step.state == "failed"
        assert "Stop one first" in step.error
        await team.call("stop_command", handle=handles[-1])
        await begun(team, "sleep 600")


async def test_old_ones_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenroom.abilities.tools.commands.MAX_REMEMBERED_COMMANDS", 2)
    async with caller(tools(Said(CommandEnded(how="exited", code=0)))) as team:
        handles = [await begun(team, "true") for _ in range(5)]
        await asyncio.sleep(0)
        assert "is gone" in await team.output("command_output", handle=handles[0])
        assert "has ended" in await team.output("command_output", handle=handles[-1])


def test_looking_is_reading_and_stopping_is_a_command() -> None:
    _, look, stop = build_command_tools(Said(CommandEnded(how="exited", code=0)))
    assert (look.card.group, look.card.effect, look.card.spec.pure) == ("read", "pure", True)
    assert (stop.card.group, stop.card.effect, stop.card.spec.pure) == ("command", "keyed", False)
    assert [one.value for tool in (look, stop) for one in tool.targets({})] == ["command_output", "stop_command"]


def test_ending_what_was_begun_here_is_not_asked_about_unless_a_rule_wants_it() -> None:
    _, _, stop = build_command_tools(Said(CommandEnded(how="exited", code=0)))
    targets = stop.targets({"handle": "ann#1"})
    ruling = build_rules_policy({}, "/w").decide(AgentId("ann"), stop.card, targets)
    assert (ruling.verdict, ruling.rule) == ("allow", "built-in: what was begun here")
    strict = build_rules_policy({"user": ["ask tool stop_command"]}, "/w")
    assert strict.decide(AgentId("ann"), stop.card, targets).verdict == "ask"
    foreign = replace(stop.card, source="mcp:x")
    assert build_rules_policy({}, "/w").decide(AgentId("ann"), foreign, targets).verdict == "ask", (
        "nobody else is believed"
    )


def test_of_more_the_beginning_and_the_end_are_kept() -> None:
    kept = OutputBuffer(4, 3)
    for piece in ("ab", "cdef", "ghi", "jklm"):
        kept.add(piece)
    assert (kept.text, kept.dropped) == ("abcd\n[… 6 characters are not kept …]\nklm", 6)


def test_what_was_lost_before_is_counted() -> None:
    kept = OutputBuffer()
    kept.add("a", missing=5)
    assert kept.dropped == 5


def test_nothing_in_it_is_obeyed_even_if_it_comes_in_pieces() -> None:
    kept = OutputBuffer()
    for piece in ("a\x1b", "[3", "1mb\x1b]0;ti", "tle", "\x07c\r", "\nd", "\x1b["):
        kept.add(piece)
    kept.end()
    assert kept.text == "abc\nd["


@given(st.lists(st.text(alphabet="abc")), st.integers(0, 9), st.integers(0, 9))
def test_nothing_is_lost_uncounted(pieces: list[str], beginning: int, end: int) -> None:
    kept, whole = OutputBuffer(beginning, end), "".join(pieces)
    for piece in pieces:
        kept.add(piece)
    kept.end()
    assert kept.dropped == max(0, len(whole) - beginning - end)
    assert kept.text.startswith(whole[:beginning])
    assert not end or kept.text.endswith(whole[beginning:][-end:])


def shown(*pieces: str, most: int = 1_000_000) -> list[str]:
    """What those see who watch."""
    seen: list[str] = []
    live = LiveLines(lambda printed: seen.append(printed.text), most)
    for piece in pieces:
        live.add(piece)
    live.end()
    return seen


@given(st.lists(st.text(alphabet="ab\n", max_size=10)))
def test_lines_are_shown_whole_and_nothing_is_lost(pieces: list[str]) -> None:
    seen, text = shown(*pieces), "".join(pieces)
    assert "".join(seen) == (text if not text or text.endswith("\n") else f"{text}\n")
    assert all(one.endswith("\n") for one in seen)


def test_a_line_without_an_end_is_not_kept_back_for_ever() -> None:
    long = "x" * (MAX_UNFINISHED_LINE_CHARS + 1)
    assert shown(long, "y") == [f"{long}\n", "y\n"]


def test_of_a_flood_only_the_beginning_is_shown() -> None:
    seen = shown(*["line\n"] * 10, most=12)
    assert seen == ["line\n", "line\n", "line\n[… it prints more than is shown here …]\n"]
    assert shown("ab\n", "c", most=3) == ["ab\n[… it prints more than is shown here …]\n"]
