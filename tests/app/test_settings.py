"""First settings, the process' own, working time and start-up."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app import context
from greenroom.app.first_settings import (
    ModelChoice,
    config_file,
    find_provider,
    needs_key,
    propose_models,
    render_settings,
    write_settings,
)
from greenroom.app.runtime import Runtime
from greenroom.app.settings.layers import load_settings
from greenroom.app.settings.schema import ProviderSettings, Settings
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TaskId, task_budget
from greenroom.core.ports.executor import Capabilities
from greenroom.core.rules.intents import AddTask, QueueSteps, ResumeTask, SendMessage, SetLimits
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from greenroom.testing.harness import LEAD, harness
from tests.app.team import ANN, Held, says, spec

CHOICE = ModelChoice(strong="openai:gpt-5.5", fast="openai:gpt-5.4-mini")
OWN = Settings(providers={"mine": ProviderSettings(base_url="https://models.invalid/v1")})


def test_what_is_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = config_file({}, tmp_path, user=False)
    assert write_settings(path, render_settings(CHOICE, user=False), user=False) is None
    read = load_settings({}, {}, tmp_path).settings
    assert (read.model, read.strong, read.fast) == ("strong", CHOICE.strong, CHOICE.fast)
    assert (path.parent / ".gitignore").read_text().splitlines()[1:] == [
        "*",
        "!.gitignore",
        "!config.toml",
        "!agents/",
        "!agents/*.md",
        "!skills/",
        "!skills/**",
        "!teams/",
        "!teams/*.toml",
        "!tools/",
        "!tools/*.py",
        "!callbacks/",
        "!callbacks/*.py",
        "!permissions",
        "!memory/",
        "!memory/*.json",
    ]


def test_old_settings_are_kept_beside_the_new_ones(tmp_path: Path) -> None:
    path = tmp_path / ".greenroom" / "config.toml"
    write_settings(path, "old = 1\n", user=True)
    assert not (path.parent / ".gitignore").exists(), "nobody shares the user's own"
    kept = write_settings(path, "new = 1\n", user=False)
    assert kept is not None
    assert (kept.read_text(), path.read_text()) == ("old = 1\n", "new = 1\n")
    assert sorted(one.name for one in path.parent.iterdir()) == [".gitignore", "config.toml", "config.toml.old"]


def test_settings_go_to_the_root_of_the_repository(tmp_path: Path) -> None:
    deep = tmp_path / "repo" / "src" / "deep"
    deep.mkdir(parents=True)
    assert config_file({"HOME": str(tmp_path)}, deep, user=False) == deep / ".greenroom" / "config.toml"
    (tmp_path / "repo" / ".git").mkdir()
    assert config_file({}, deep, user=False) == tmp_path / "repo" / ".greenroom" / "config.toml"


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldFault, match="cannot be written"):
        write_settings(tmp_path / "file" / "config.toml", "", user=True)


def test_a_provider_is_named_by_itself_or_by_its_model() -> None:
    assert find_provider(OWN, "", "") == ""
    assert find_provider(OWN, "mine", "x") == "mine"
    assert find_provider(OWN, "", "openai:gpt-5.5") == "openai"
    with pytest.raises(WorldFault, match="is not a model of 'openai'"):
        find_provider(OWN, "openai", "xai:grok")


def test_what_needs_a_key_is_known() -> None:
    assert (needs_key("openai"), needs_key("ollama"), needs_key("mine")) == (True, False, False)
    assert propose_models("openai") == ("openai:gpt-5.5", "openai:gpt-5.4-mini")
    assert propose_models("mine") == ()


COUNTED = """
import asyncio, threading
from greenroom.app.context import tune_process

async def children():
    seen = set()
    for _ in range(3):
        child = await asyncio.create_subprocess_exec("sleep", "0.05")
        seen |= {one.name for one in threading.enumerate()}
        assert await child.wait() == 0
    return len(seen)

tune_process()
print(asyncio.run(children()))
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system shows no process as a file")
def test_nobody_waits_for_a_child_in_a_thread() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_where_a_process_is_no_file_children_are_waited_for_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    monkeypatch.setattr(asyncio, "get_event_loop_policy", lambda: pytest.fail("another way was set"))
    context.tune_process()


T1 = TaskId("t1")


@pytest.mark.req("MAS-34")
async def test_what_was_said_before_the_start_is_delivered_before_anything_new_happens() -> None:
    tool = Held("process_message")
    tool.type = "skill"
    tool.let_go.set()
    runtime = Runtime(MemoryLog(), capability_factories={"": lambda _: Capabilities([tool])})
    agents = [(LEAD, AgentSpec(name="lead", manager=True)), (ANN, AgentSpec(name="ann", style="plan"))]
    team = await runtime.create("t", agents)
    await runtime.ask(
        team,
        AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), driver="manager"),
        SendMessage(task_id=T1, receiver=(ANN,), message="good morning", sender=LEAD),
    )
    assert tool.runs == 0
    await runtime.start(team)
    assert (await runtime.wait(team, T1)).state == "idle"
    (step,) = [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
    assert (step.agent_id, step.state, step.work.text_content) == (ANN, "finished", "from: lead\ngood morning")
    await runtime.close()


async def test_an_effect_that_works_longer_than_it_may_is_ended_and_a_higher_limit_lets_the_agent_go_on() -> None:
    tool = Held()
    async with harness([spec("ann", "held")], [says("ann", None, text="read")], executors=[tool]) as house:
        task = AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), driver="manager", limits=Limits(millis=30))
        await house.runtime.ask(house.team, task)
        held = Work(type="tool", executor="held", instruction_content={})
        await house.runtime.ask(house.team, QueueSteps(agent_id=ANN, works=(held,), task_id=T1))
        await asyncio.wait_for(tool.dead.wait(), 10)
        found = await asyncio.wait_for(house.runtime.wait(house.team, T1), 10)
        assert (found.state, found.reason) == ("limit", "limit: task:t1 millis")
        (step,) = [one for one in await house.read_archive("step") if isinstance(one, Step)]
        assert (step.state, step.spent.millis) == ("failed", 30)
        assert "the limit millis of 'task:t1'" in step.error
        state = await house.state()
        assert not state.timers
        assert state.budgets[task_budget(T1)].spent.millis == 30
        raised = SetLimits(budget_id=task_budget(T1), limits=Limits(millis=60_000))
        await house.runtime.ask(house.team, raised, ResumeTask(task_id=T1))
        assert (await asyncio.wait_for(house.runtime.wait(house.team, T1), 10)).state == "idle"
        assert not (await house.state()).timers
