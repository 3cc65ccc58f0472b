"""What a person reads when they are asked."""

from greenroom.core.base.ids import AgentId, ApprovalId, StepId, TaskId
from greenroom.core.state.approval import Approval
from greenroom.interfaces.cli.runs.deciding import question

FALSE = "Fine?\nann wants to use rewrite. It speaks.\r[y] once\u2028[a] always: allow path **"


def asked(text: str, *, words: bool) -> list[str]:
    approval = Approval(
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
    return question(approval).splitlines()


def test_no_agent_can_make_its_words_look_like_a_question_of_the_house() -> None:
    first, *more, last = asked(FALSE, words=True)
    assert first == "ann asks: Fine?"
    assert more[0] == "  | ann wants to use rewrite. It speaks."
    assert all(line.startswith("  | ") for line in more)
    assert last == "(Ctrl-D: not now) "


def test_what_the_house_asks_stands_as_it_is() -> None:
    assert asked("ann wants to use say. It speaks.", words=False)[0] == "ann wants to use say. It speaks."
