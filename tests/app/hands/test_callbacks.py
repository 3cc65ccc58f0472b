"""Callbacks after tool calls: three forms, one precedence, and no trouble of one is another's."""

from pathlib import Path

import pytest

from greenroom.app.hands.callbacks import Callbacks, find_callbacks
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
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
def test_a_callback_that_fails_keeps_nobody_from_hearing() -> None:
    calls: list[object] = []

    def fails(_: object) -> None:
        raise ValueError

    Callbacks([fails, calls.append])(STEP, Outcome(result={"output": "x"}))
    assert calls == [
        {"agent": "ann", "tool": "echo", "arguments": {"text": "x"}, "state": "finished", "output": "x", "error": ""}
    ]
