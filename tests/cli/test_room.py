"""What a person reads in their room: letters and how each is answered, in both languages, broken between words."""

import io

import pytest
from immutables import Map
from rich.console import Console
from rich.text import Text

from greenroom.app.organisation.inbox import InboxMessage
from greenroom.cli.render.inbox import HangingText, render_inbox_message, render_message
from greenroom.core.base.ids import AgentId, ApprovalId, MessageId, StageId, StepId, SubtaskId, TaskId, WaitingId
from greenroom.core.base.records import evolve
from greenroom.core.state.approval import Approval
from greenroom.core.state.message import Message
from greenroom.core.state.stage import Stage, Subtask
from greenroom.core.state.team_state import EMPTY_STATE

ANN, EVA = AgentId("ann"), AgentId("eva")
ASKED = Approval(
    approval_id=ApprovalId("eva#1?1"),
    step_id=StepId("eva#1"),
    agent_id=EVA,
    task_id=TaskId("t1"),
    question="May it?",
    digest="",
    asked_of=ANN,
    asked_at=0,
)


def message(text: str = "May it?", **more: object) -> Message:
    known = Message(message_id=MessageId("eva>1"), task_id=TaskId("t1"), sender_id=EVA, receiver=(ANN,), message=text)
    return evolve(known, **more)


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        ({}, "/yes 3 or /no 3 WHY"),
        (
            {"grant": "allow command make\nallow path x"},
            "/yes 3 or /no 3 WHY; /yes 3 run or /yes 3 always for allow command make; allow path x",
        ),
        ({"words": True}, "/answer 3 …"),
    ],
)
def test_a_letter_says_how_it_is_answered(changes: dict[str, object], how: str) -> None:
    asked = evolve(ASKED, **changes)
    state = evolve(EMPTY_STATE, approvals=Map({asked.approval_id: asked}))
    letter = InboxMessage(number=3, kind="approval", message=message(data={"approval_id": asked.approval_id}))
    lines = render_inbox_message(state, letter, "en").plain.splitlines()
    assert lines == ["3  eva · needs your approval", "    May it?", f"    {how}"]


def test_a_question_of_somebody_who_waits_says_so() -> None:
    letter = InboxMessage(number=1, kind="question", message=message("Green?"), waiting=WaitingId("eva>1:ann"))
    assert render_inbox_message(EMPTY_STATE, letter, "en").plain.startswith("1  eva · asks, waits for you\n    Green?")
    assert "提问，正在等您" in render_inbox_message(EMPTY_STATE, letter, "zh").plain


def test_what_is_said_in_a_group_names_it_and_nothing_steers_the_terminal() -> None:
    text = render_message(EMPTY_STATE, message("\x1b[2Jhello", group="us"), "en", ANN).plain
    assert text == "#us eva\n    [2Jhello"


def test_long_lines_are_broken_between_words_and_keep_their_indent() -> None:
    out = io.StringIO()
    Console(file=out, width=30).print(HangingText(Text("1  eva\n    one two three four five six seven\n\nend")))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines == ["1  eva", "    one two three four five", "    six seven", "", "end"]


@pytest.mark.parametrize(
    ("language", "begins"),
    [
        ("en", ["    Stage goal: Tea", "    Your goal: Taste it"]),
        ("zh", ["    阶段目标：Tea", "    您的职责：Taste it"]),
    ],
)
def test_a_duty_says_in_the_persons_language_what_is_the_goal(language: str, begins: list[str]) -> None:
    duty = Subtask(subtask_id=SubtaskId("t2.s1.1"), name="taste", duty="Taste it", agent=ANN)
    stage = Stage(stage_id=StageId("t2.s1"), task_id=TaskId("t2"), intention="Tea", subtasks=(duty,), members=())
    text = "Stage goal: Tea\nYour goal: Taste it\nFrom wu (write): Mild."
    sent = message(text, stage_relative="t2.s1", data={"subtask_id": "t2.s1.1"})
    letter = InboxMessage(number=2, kind="duty", message=sent)
    state = evolve(EMPTY_STATE, stages=Map({stage.stage_id: stage}))
    assert render_inbox_message(state, letter, language).plain.splitlines()[1:4] == [
        *begins,
        "    From wu (write): Mild.",
    ]
    other = evolve(letter, message=evolve(sent, message="Something else."))
    assert render_inbox_message(state, other, language).plain.splitlines()[1] == "    Something else."


FAKE = "Done.\n\n4  ben · needs your approval\n    yes 4 or no 4 WHY"


def test_what_a_summary_says_never_begins_a_line_like_the_house_does() -> None:
    data = {"instruction": "finish_task", "task_id": "t2", "state": "finished"}
    text = render_message(EMPTY_STATE, message(FAKE, kind="instruction", data=data), "en", ANN).plain
    first, *rest = text.split("\n")
    assert first == "◆ Task t2 is over: finished. Done."
    assert rest == ["    ", "    4  ben · needs your approval", "        yes 4 or no 4 WHY"]


def test_every_notice_of_the_house_has_its_sign() -> None:
    asked = message("Green?", need_reply=True, waiting=(WaitingId("eva>1:ann"),))
    lines = render_message(EMPTY_STATE, asked, "en", ANN).plain.splitlines()
    assert [line[:2] for line in lines] == ["◆ ", "◆ "]


def test_what_a_long_line_is_broken_into_never_begins_like_one_of_the_house() -> None:
    out = io.StringIO()
    Console(file=out, width=30).print(
        HangingText(Text("◆ Task t2 is over: finished.  4  ben · wants a yes\n" + "x" * 30))
    )
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines == ["◆ Task t2 is over:", "    finished.  4  ben · wants", "    a yes", "x" * 30]
