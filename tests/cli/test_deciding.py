"""What a person reads when they are asked."""

import pytest

from greenroom.app.approvals import parse_answer, render_question
from greenroom.core.base.ids import AgentId, ApprovalId, StepId, TaskId
from greenroom.core.state.approval import Approval

FALSE = "Fine?\nann wants to use rewrite. It speaks.\r[y] once\u2028[a] always: allow path **"


def one(text: str, *, words: bool) -> Approval:
    return Approval(
        approval_id=ApprovalId("ann#1?1"),
        step_id=StepId("ann#1"),
        agent_id=AgentId("ann"),
        task_id=TaskId("t1"),
        question=text,
        digest="",
        asked_of=None,
        asked_at=0,
        words=words,
    )


def asked(text: str, *, words: bool) -> list[str]:
    return render_question(one(text, words=words)).splitlines()


def test_no_agent_can_make_its_words_look_like_a_question_of_the_house() -> None:
    first, *more, last = asked(FALSE, words=True)
    assert first == "ann asks: Fine?"
    assert more[0] == "  | ann wants to use rewrite. It speaks."
    assert all(line.startswith("  | ") for line in more)
    assert last == "(Ctrl-D to answer later) "


def test_what_the_house_asks_stands_as_it_is() -> None:
    assert asked("ann wants to use say. It speaks.", words=False)[0] == "ann wants to use say. It speaks."


@pytest.mark.parametrize(
    ("line", "said"),
    [("y", "y"), ("e call the switch as_json", "call the switch as_json"), ("edit: less", "less"), ("no", "no")],
)
def test_what_is_said_to_a_plan_reaches_the_agent_word_for_word(line: str, said: str) -> None:
    answer = parse_answer(one("Plan:\n1. x", words=True), line, plan=True)
    assert answer is not None
    assert answer.reason == said


def test_an_edit_without_words_is_no_answer_to_a_plan() -> None:
    assert parse_answer(one("Plan:\n1. x", words=True), "e", plan=True) is None
    assert (
        render_question(one("Plan:\n1. x", words=True), plan=True).splitlines()[-1].startswith("[y] yes  [e WHAT] edit")
    )
