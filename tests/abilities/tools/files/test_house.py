"""The file tools in a whole house: called in text and natively, and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.abilities.tools.files.tools import file_tools
from greenroom.adapters.files.local import LocalFiles
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.kit import Kit
from greenroom.app.reading import TextReader
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.executor import Abilities
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec, Turn
from greenroom.core.state.step import Step, Work
from tests.abilities.skills.talks import ANN, T1, Played, Team, calls, in_order, says, team

NAMES = ("read_code", "list_files", "search_files", "patch", "rewrite")
TEXT = AgentSpec(name="Ann", tools=NAMES, turn=Turn(protocols=("tool_call", "patch", "rewrite"), auto_complete=True))
NATIVE = AgentSpec(name="Ann", tools=NAMES)
DONE = says("Done.\n!!!COMPLETE!!!")
CODE = "def f(a, b):\n    return a<b && a\n"


def heard(model: Played, turn: int) -> str:
    """What the model read in that turn."""
    return "\n".join(one.content for one in model.asked[turn].messages)


def contents(root: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in root.iterdir()}


async def edits(here: Team) -> list[Step]:
    return [step for step in await here.steps() if step.work.executor in ("patch", "rewrite")]


@pytest.mark.req("AG-63", "AG-66", "MA-50", "MA-51")
async def test_patches_in_text_are_made_and_answered_with_a_diff(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(CODE)
    single = (
        '<PATCH file="a.py">\n<DIFF>\n<SEARCH>\n    return a<b && a\n</SEARCH>\n'
        "<REPLACE>\n    return a <= b\n</REPLACE>\n</DIFF>\n</PATCH>"
    )
    region = (
        '<PATCH file="a.py">\n<DIFF>\n<RANGE>1-2</RANGE>\n<SEARCH_START>def f(</SEARCH_START>\n'
        "<SEARCH_END>a <= b</SEARCH_END>\n<REPLACE>f = le</REPLACE>\n</DIFF>\n</PATCH>"
    )
    model = Played(in_order(says(single), says(region), DONE))
    async with team(model, TEXT, reader=TextReader(), tools=file_tools(LocalFiles(tmp_path))) as here:
        await here.ask()
        assert [step.state for step in await edits(here)] == ["finished", "finished"]
    assert path.read_text() == "f = le\n"
    assert "+    return a <= b" in heard(model, 1)
    assert "a.py: 1 change, +1 −2 lines, 7 bytes written." in heard(model, 2)


@pytest.mark.req("AG-68", "MA-53")
async def test_a_rewrite_in_text_makes_a_file(tmp_path: Path) -> None:
    model = Played(in_order(says('<REWRITE file="new/a.py">\nprint(1)\n</REWRITE>'), DONE))
    async with team(model, TEXT, reader=TextReader(), tools=file_tools(LocalFiles(tmp_path))) as here:
        await here.ask()
    assert (tmp_path / "new/a.py").read_text() == "print(1)\n"
    assert "new/a.py: new, 1 line, 9 bytes written." in heard(model, 1)


@pytest.mark.req("AG-69")
async def test_a_reply_with_neither_block_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    model = Played(in_order(says("I would patch a.py: SEARCH return, REPLACE yield."), DONE))
    async with team(model, TEXT, reader=TextReader(), tools=file_tools(LocalFiles(tmp_path))) as here:
        await here.ask()
        assert await edits(here) == []
    assert contents(tmp_path) == {"a.py": CODE}


async def test_a_failed_call_tells_the_model_why(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    wrong = [{"search": "    return a<b && b", "replace": "x"}]
    model = Played(in_order(calls("patch", file="a.py", edits=wrong), says("I see.")))
    async with team(model, NATIVE, tools=file_tools(LocalFiles(tmp_path))) as here:
        await here.ask()
    told = model.asked[1].messages[-1].content
    assert "not found: SEARCH does not occur" in told
    assert "line 2 differs: the file has 'return a<b && a', not 'return a<b && b'" in told


async def one_step(home: Path, root: Path, work: Work) -> Step:
    """A process that does one step of the same thread and ends."""
    log = await SqliteLog.open(home)
    runtime = Runtime(log, kits={"": lambda _: Kit(abilities=Abilities(file_tools(LocalFiles(root))))})
    teams = await log.streams()
    if teams:
        name = TeamId(teams[0].stream)
    else:
        name = await runtime.create("t", [(ANN, AgentSpec(name="ann", tools=NAMES, manager=True))])
        await runtime.ask(name, AddTask(name="t", intention="t", manager=ANN, driver="manager"))
    await runtime.start(name)
    await runtime.ask(name, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
    await runtime.wait(name, T1)
    steps = [one async for one in runtime.archive(name, "step") if isinstance(one, Step)]
    await runtime.close()
    return steps[-1]


async def test_what_was_read_is_known_after_a_restart(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text(CODE)
    rewrite = Work(type="tool", executor="rewrite", instruction_content={"file": "a.py", "content": "x = 1\n"})
    read = Work(type="tool", executor="read_code", instruction_content={"file": "a.py"})
    assert (await one_step(tmp_path / "home", root, rewrite)).state == "failed"
    assert (await one_step(tmp_path / "home", root, read)).state == "finished"
    assert (await one_step(tmp_path / "home", root, rewrite)).state == "finished"
    (root / "a.py").write_text("somebody else's\n")
    changed = await one_step(tmp_path / "home", root, rewrite)
    assert changed.state == "failed"
    assert "has changed since you read it" in changed.error
