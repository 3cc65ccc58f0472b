"""Callbacks after tool calls: three forms, one precedence, and no trouble of one is another's."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from greenroom.app.custom import find_callbacks
from greenroom.app.toolset.callbacks import Callbacks
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome
from greenroom.core.state.step import Step, Work

STEP = Step(
    step_id=StepId("ann#1"),
    agent_id=AgentId("ann"),
    thread_id=ThreadId("ann@t1"),
    task_id=TaskId("t1"),
    stage_id=None,
    subtask_id=None,
    work=Work(type="tool", executor="echo", instruction_content={"text": "x"}),
    queued_at=0,
)
DIRECT = "def after_tool_call_cb(call): call['heard'].append('direct')\n"
GET = "def get_after_tool_call_cb(): return lambda call: call['heard'].append('get')\n"
REGISTER = "def register_after_tool_call_cb(): return lambda call: call['heard'].append('register')\n"


def heard(folder: Path) -> list[str]:
    """Who is told of a call."""
    told: list[str] = []
    found, _ = find_callbacks([folder])
    for one in found:
        one({"heard": told})
    return told


@pytest.mark.req("AG-147", "AG-148", "AG-149")
@pytest.mark.parametrize(("text", "form"), [(DIRECT, "direct"), (GET, "get"), (REGISTER, "register")])
def test_each_form_gives_its_callback(tmp_path: Path, text: str, form: str) -> None:
    (tmp_path / "audit.py").write_text(text, encoding="utf-8")
    assert heard(tmp_path) == [form]


@pytest.mark.req("AG-150")
@pytest.mark.parametrize(("text", "form"), [(REGISTER + GET + DIRECT, "direct"), (REGISTER + GET, "get")])
def test_the_callback_itself_comes_before_what_makes_one(tmp_path: Path, text: str, form: str) -> None:
    (tmp_path / "audit.py").write_text(text, encoding="utf-8")
    assert heard(tmp_path) == [form]


@pytest.mark.req("AG-151")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def after(: pass", "cannot be run: SyntaxError in line 1"),
        ("1 / 0", "cannot be run: ZeroDivisionError"),
        ("raise SystemExit(3)", "cannot be run: SystemExit"),
        ("def get_after_tool_call_cb(): 1 / 0", "get_after_tool_call_cb() failed: ZeroDivisionError"),
        ("def get_after_tool_call_cb(): return 5", "returned int, which cannot be called"),
    ],
)
def test_a_broken_file_is_named_and_does_not_stop_the_others(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    (tmp_path / "b.py").write_text(DIRECT, encoding="utf-8")
    found, troubles = find_callbacks([tmp_path])
    assert len(found) == 1
    assert len(troubles) == 1
    assert f"{tmp_path / 'a.py'}: " in troubles[0]
    assert why in troubles[0]


def test_what_registers_itself_and_what_is_no_callback_gives_none(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def register_after_tool_call_cb(): return None", encoding="utf-8")
    (tmp_path / "b.py").write_text("X = 1", encoding="utf-8")
    assert find_callbacks([tmp_path, tmp_path / "nowhere"]) == ([], [])


@pytest.mark.req("AG-151")
async def test_a_callback_that_fails_keeps_nobody_from_hearing() -> None:
    calls: list[object] = []

    def fails(_: object) -> None:
        raise ValueError

    await Callbacks([fails, calls.append])(STEP, Outcome(result={"output": "x"}))
    assert calls == [
        {"agent": "ann", "tool": "echo", "arguments": {"text": "x"}, "state": "finished", "output": "x", "error": ""}
    ]


async def test_each_callback_has_a_copy_of_its_own() -> None:
    heard: list[Mapping[str, Any]] = []

    def alters(call: Mapping[str, Any]) -> None:
        dict.clear(call["arguments"]["deep"])
        heard.append(call)

    step = evolve(STEP, work=evolve(STEP.work, instruction_content={"deep": {"text": "x"}}))
    await Callbacks([alters, heard.append])(step, Outcome())
    assert [one["arguments"] for one in heard] == [{"deep": {}}, {"deep": {"text": "x"}}]
    assert step.work.instruction_content == {"deep": {"text": "x"}}


async def test_a_callback_may_be_a_coroutine_and_holds_nobody_up_if_it_blocks() -> None:
    heard: list[str] = []
    ours, release = threading.get_ident(), threading.Event()

    async def waits(_: Mapping[str, object]) -> None:
        await asyncio.sleep(0)
        heard.append("here" if threading.get_ident() == ours else "aside")

    async def blocks(_: Mapping[str, object]) -> None:
        release.wait(20)

    try:
        await Callbacks([waits, blocks, waits], seconds=0.2)(STEP, Outcome())
    finally:
        release.set()
    assert heard == ["aside", "aside"]


async def test_a_callback_that_does_not_end_is_left_and_hears_of_nothing_more_until_it_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, release = threading.Semaphore(0), threading.Event()
    heard: list[object] = []

    def blocks(_: object) -> None:
        begun.release()
        release.wait(20)

    callbacks = Callbacks([blocks, heard.append], seconds=0.2)
    await callbacks(STEP, Outcome())
    assert "has not ended 0.2 seconds after echo: nobody waits for it any more" in caplog.text
    await callbacks(STEP, Outcome())
    assert "is not told of echo: it has not ended yet" in caplog.text
    assert len(heard) == 2
    release.set()
    assert begun.acquire(blocking=False)
    async with asyncio.timeout(20):
        while not begun.acquire(blocking=False):
            await callbacks(STEP, Outcome())
