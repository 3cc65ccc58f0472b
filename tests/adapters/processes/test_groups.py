"""Process groups: ended whole, seen dead, found again by a later life, and never mistaken for somebody else's."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from greenroom.adapters.processes.local_commands import end_group, end_leftover_groups, is_alive, mark_group, read_birth
from greenroom.core.base.ids import TaskId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import CancelTask, PauseTeam
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.team_state import TeamState
from greenroom.testing.harness import harness
from tests.app.team import call, finishes, says, spec, stage
from tests.run_command import RunCommand, let_go, start

FAMILY = (
    "import os, sys, time\n"
    "if os.fork() == 0:\n"
    "    time.sleep(600)\n"
    "open(sys.argv[1], 'w').write('up')\n"
    "time.sleep(600)\n"
)


def family(tmp_path: Path) -> list[str]:
    """A command that has a child, and says when both are there."""
    return [sys.executable, "-c", FAMILY, str(tmp_path / "up")]


async def is_up(tmp_path: Path) -> None:
    """Wait until the family is there."""
    for _ in range(1000):
        if (tmp_path / "up").exists():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the command did not start")


async def test_a_group_is_ended_with_its_children(tmp_path: Path) -> None:
    process = await start(family(tmp_path))
    let_go(process)
    await is_up(tmp_path)
    assert is_alive(process.pid)
    await end_group(process.pid)
    assert not is_alive(process.pid)
    await process.wait()


async def test_a_later_life_ends_what_an_earlier_one_left(tmp_path: Path) -> None:
    process = await start(family(tmp_path))
    let_go(process)
    await is_up(tmp_path)
    assert await end_leftover_groups([mark_group(process.pid)]) == 1
    assert not is_alive(process.pid)
    await process.wait()


async def test_a_process_id_that_was_used_again_is_left_alone(tmp_path: Path) -> None:
    process = await start(family(tmp_path))
    let_go(process)
    await is_up(tmp_path)
    stranger = evolve(mark_group(process.pid), before="another boot:1")
    assert await end_leftover_groups([stranger]) == 0
    assert is_alive(process.pid)
    await end_group(process.pid)
    await process.wait()


async def test_nothing_is_done_about_a_process_that_is_gone() -> None:
    process = await start([sys.executable, "-c", ""])
    mark = mark_group(process.pid)
    let_go(process)
    await process.communicate()
    assert await end_leftover_groups([mark]) == 0
    assert read_birth(process.pid) == ""


async def test_cancelling_a_task_kills_its_command_and_sees_it_dead(tmp_path: Path) -> None:
    cues = [says("ann", 1, call("run_command", command=family(tmp_path))), finishes("ann", 2)]
    async with harness([spec("ann", "run_command")], cues, executors=[RunCommand()]) as house:
        work = asyncio.create_task(house.do(stage("ann")))
        await is_up(tmp_path)
        running = [one for one in (await house.state()).steps.values() if one.state == "running"]
        group = int(running[0].prepared[0].key)
        await house.runtime.ask(house.team, CancelTask(task_id=TaskId("t1")))
        assert (await house.runtime.wait(house.team, TaskId("t1"))).state == "cancelled"
        assert not is_alive(group)
        work.cancel()


async def test_a_command_says_what_it_printed_and_how_it_ended() -> None:
    cues = [
        says(
            "ann",
            1,
            call("run_command", command=[sys.executable, "-c", "print('hello')"]),
            call("run_command", command=[sys.executable, "-c", "raise SystemExit(3)"]),
        ),
        finishes("ann", 2),
    ]
    async with harness([spec("ann", "run_command")], cues, executors=[RunCommand()]) as house:
        assert (await house.do(stage("ann"))).state == "finished"
        steps = [one for one in await house.read_archive("step") if isinstance(one, Step) and one.work.type == "tool"]
        assert [(one.state, one.error) for one in steps] == [("finished", ""), ("failed", "exit status 3")]
        assert steps[0].result == {"output": "hello\n"}


class KeyedCommand(RunCommand):
    """A command that may be run again."""

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """As often as it takes."""
        return StepTerms(effect="keyed")


async def test_a_fork_leaves_the_processes_of_the_first_team_alone(tmp_path: Path) -> None:
    cues = [says("ann", 1, call("run_command", command=family(tmp_path))), finishes("ann", 2)]
    async with harness([spec("ann", "run_command")], cues, executors=[KeyedCommand()]) as house:
        work = asyncio.create_task(house.do(stage("ann")))
        await is_up(tmp_path)
        (running,) = [one for one in (await house.state()).steps.values() if one.state == "running"]
        fork = await house.runtime.fork(house.team)
        await house.runtime.ask(fork, PauseTeam())
        assert is_alive(int(running.prepared[0].key))
        assert (await house.runtime.state(fork)).steps[running.step_id].prepared == ()
        work.cancel()
