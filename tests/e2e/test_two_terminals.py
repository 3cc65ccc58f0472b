"""One terminal runs a team, another one steers it: two real processes and one log."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.rules.intents import PauseTeam
from greenroom.testing.demo import AGENTS, DEMO_KIT, TASK, make_demo_factories
from tests.e2e.terminal import PATIENCE, Running, environment, greenroom

SLOW = ("demo", "--org", "--pace", "5")
"""Each step takes five seconds: what ends before that was ended by somebody."""


def test_cancel_in_a_second_terminal_ends_the_first(tmp_path: Path) -> None:
    with Running(tmp_path, *SLOW) as first:
        first.until("takes 'draft'")
        cancelled = greenroom(tmp_path, "cancel", "last")
        assert (cancelled.code, cancelled.out) == (0, "Cancelled: t1.\n")
        ended = first.end(timeout=5)
    assert ended.code == 1
    assert "✗ task t1 cancelled" in ended.err
    assert "cancelled by a person" in ended.err


def test_pause_now_stops_at_once_and_resume_goes_on_here(tmp_path: Path) -> None:
    with Running(tmp_path, *SLOW) as first:
        first.until("takes 'draft'")
        paused = greenroom(tmp_path, "pause", "last", "--now")
        assert paused.code == 0
        assert "is paused" in paused.out
        ended = first.end(timeout=5)
    assert ended.code == 6
    assert "Continue with: greenroom resume " in ended.err
    resumed = greenroom(tmp_path, "resume", "last", GREENROOM_DEMO_PACE="0")
    assert resumed.code == 0
    assert resumed.out.startswith("# Tea")


def test_a_second_owner_is_refused_and_the_first_one_does_not_notice(tmp_path: Path) -> None:
    with Running(tmp_path, "demo", "--org", "--pace", "0.2") as first:
        first.until("takes 'draft'")
        second = greenroom(tmp_path, "resume", "last")
        assert second.code == 3
        assert "runs already" in second.err
        assert f":{first.pid}:" in second.err
        assert "--follow" in second.err
        assert first.end().code == 0
    assert "OwnerChanged" not in greenroom(tmp_path, "events", "last").out


def test_the_first_interrupt_stops_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    with Running(tmp_path, *SLOW) as first:
        first.until("takes 'glossary'")
        first.send(signal.SIGINT)
        ended = first.end(timeout=5)
    assert ended.code == 130
    team = greenroom(tmp_path, "show", "last", "--output-format", "json").json["team"]
    assert isinstance(team, dict)
    assert ended.err.splitlines()[-1] == f"Stopped. Continue with: greenroom resume {team['team_id']}"
    assert "was interrupted (stopped)" in ended.err, "what ran was written down as interrupted"
    assert greenroom(tmp_path, "resume", "last", GREENROOM_DEMO_PACE="0").code == 0


async def test_a_paused_team_that_somebody_else_runs_goes_on_there(tmp_path: Path) -> None:
    runtime = await Runtime.open(tmp_path, capability_factories=make_demo_factories(tmp_path))
    try:
        team = await runtime.create("demo", AGENTS, capabilities_name=DEMO_KIT)
        await runtime.ask(team, TASK, PauseTeam())
        await runtime.start(team)
        resumed = await asyncio.to_thread(greenroom, tmp_path, "resume", "last")
        assert resumed.code == 0
        assert f"{team} is resumed in " in resumed.out
        async with asyncio.timeout(PATIENCE):
            assert (await runtime.wait(team, TaskId("t1"))).state == "finished"
    finally:
        await runtime.close()


async def test_a_process_that_lost_its_team_ends_though_it_had_nothing_to_write(tmp_path: Path) -> None:
    runtime = await Runtime.open(tmp_path, capability_factories=make_demo_factories(tmp_path))
    try:
        with Running(tmp_path, "demo", "--org", "--pace", "60") as first:
            await asyncio.to_thread(first.until, "takes 'glossary'")
            (info,) = await runtime.log.streams()
            await runtime.start(TeamId(info.stream), take_over=True)
            ended = await asyncio.to_thread(first.end, 15)
        assert ended.code == 3
        assert "Error: Epoch 1 no longer owns stream" in ended.err
        async with asyncio.timeout(PATIENCE):
            assert (await runtime.wait(TeamId(info.stream), TaskId("t1"))).state == "finished"
    finally:
        await runtime.close()


STUBBORN = """
import asyncio, sys
from greenroom.cli.context import run
from greenroom.cli.setup import CommandSetup

async def work(door):
    print("ready", flush=True)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            print("not now", flush=True)

sys.exit(run(CommandSetup(), "make", work))
"""


def test_the_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN], env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "not now\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130


def test_a_running_team_is_not_forgotten(tmp_path: Path) -> None:
    with Running(tmp_path, *SLOW) as first:
        first.until("takes 'draft'")
        assert greenroom(tmp_path, "forget", "last", "--yes").code == 3
        assert greenroom(tmp_path, "show", "last").code == 0
