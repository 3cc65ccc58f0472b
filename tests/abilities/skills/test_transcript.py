"""What an agent is told of its own past: read once, never changed, the same bytes in every request."""

from collections.abc import Sequence

from greenroom.abilities.skills.prompts.builder import say
from greenroom.abilities.skills.talk import transcript as transcripts
from greenroom.abilities.skills.talk.transcript import Transcripts, told
from greenroom.core.base.ids import AgentId, StepId, TaskId, TeamId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.ports.model import ChatMessage, Opaque, ToolCall
from greenroom.core.state.step import Step, StepWord, Work

HERE = ThreadId("ann@t1")
TEAM = TeamId("team")


def ended(
    number: int,
    work: Work,
    result: Data | None = None,
    *,
    error: str = "",
    state: StepWord = "finished",
) -> Step:
    """A step that is over."""
    return Step(
        step_id=StepId(f"ann#{number}"),
        agent_id=AgentId("ann"),
        thread_id=HERE,
        task_id=TaskId("t1"),
        stage_id=None,
        subtask_id=None,
        work=work,
        queued_at=1,
        state=state,
        result=result,
        error=error,
        ended_in=number * 10,
    )


def turn(number: int, text: str, *, asks: str = "", **more: object) -> Step:
    """A reply."""
    work = Work(type="skill", executor="converse", text_content=asks)
    return ended(number, work, {"text": text, "calls": [], **more})


def call(name: str, call_id: str, **more: object) -> dict[str, object]:
    """A call, as the log has it."""
    return {"id": call_id, "name": name, "arguments": {"a": 1}, **more}


def test_a_reply_is_a_question_an_answer_and_what_the_house_says_to_its_own_calls() -> None:
    calls = [
        call("finish", "c1"),
        call("add", "c2"),
        call("sub", "c3", unread="{oops", extra={"provider": "fake", "data": {"sig": 1}}),
    ]
    asked, answer, taken, unread = told(turn(1, "Well.", asks="Well?", calls=calls, reasoning="hm"))
    assert asked == ChatMessage(role="user", content="Well?")
    assert (answer.role, answer.content, answer.reasoning) == ("assistant", "Well.", "hm")
    assert answer.calls[1] == ToolCall(call_id="c2", name="add", arguments={"a": 1})
    assert answer.calls[2].extra == Opaque(provider="fake", data={"sig": 1})
    assert (taken.content, taken.call_id) == (say("", "taken_up"), "c1")
    assert (unread.content, unread.call_id) == (say("", "unread"), "c3")


def test_what_only_the_provider_understands_comes_back_with_the_answer() -> None:
    (answer,) = told(turn(1, "Yes.", opaque=[{"provider": "fake", "data": {"sig": "x"}}]))
    assert answer.opaque == (Opaque(provider="fake", data={"sig": "x"}),)


def test_a_tool_is_what_it_said_or_what_went_wrong() -> None:
    work = Work(type="tool", executor="add", call_id="c1")
    assert told(ended(1, work, {"output": "2"})) == [ChatMessage(role="tool", content="2", call_id="c1")]
    assert told(ended(1, work, error="broke", state="failed"))[0].content == "broke"


def test_a_fault_of_the_house_is_not_what_the_model_said() -> None:
    work = Work(type="skill", executor="converse", text_content="Well?")
    assert told(ended(1, work, error="no answer", state="failed")) == [ChatMessage(role="user", content="Well?")]


def test_odd_results_are_read_as_far_as_they_go() -> None:
    (answer,) = told(turn(1, "Yes.", calls="none", opaque=[7]))
    assert (answer.calls, answer.opaque) == ((), ())


def test_a_talk_that_goes_on_keeps_every_message_it_had() -> None:
    known, history = Transcripts(), [turn(1, "One.", asks="?")]
    first = list(known.of(TEAM, HERE, history).messages)
    history.append(turn(2, "Two."))
    second = known.of(TEAM, HERE, history)
    assert all(one is other for one, other in zip(first, second.messages, strict=False))
    assert (len(second.messages), second.turns) == (3, 2)
    assert known.of(TEAM, HERE, history) is second


def test_what_was_asked_is_told_word_for_word() -> None:
    asked, _ = told(turn(1, "Yes.", asked="Well?\nSomething was refused."))
    assert asked.content == "Well?\nSomething was refused."


def test_a_thread_of_the_same_name_in_another_team_is_another_one() -> None:
    known = Transcripts()
    known.of(TEAM, HERE, [turn(1, "Ours.")])
    assert [one.content for one in known.of(TeamId("other"), HERE, [turn(1, "Theirs.")]).messages] == ["Theirs."]


def test_a_window_that_has_moved_is_read_anew() -> None:
    known, history = Transcripts(), [turn(1, "One."), turn(2, "Two."), turn(3, "Three.")]
    known.of(TEAM, HERE, history)
    moved = known.of(TEAM, HERE, history[1:])
    assert [one.content for one in moved.messages] == ["Two.", "Three."]
    assert [one.content for one in known.of(TEAM, HERE, []).messages] == []


def test_empty_answers_are_counted_until_something_is_said() -> None:
    known = Transcripts()
    history: list[Step] = []
    counts = []
    for number, text in enumerate(("One.", "", "", "Two.", ""), start=1):
        history.append(turn(number, text))
        counts.append(known.of(TEAM, HERE, history).empty)
    assert counts == [0, 1, 2, 0, 1]


def test_only_so_many_talks_are_kept() -> None:
    known = Transcripts()
    history: Sequence[Step] = [turn(1, "One.")]
    first = known.of(TEAM, ThreadId("first"), history)
    for number in range(transcripts.KEPT):
        known.of(TEAM, ThreadId(str(number)), history)
    assert known.of(TEAM, ThreadId("first"), history) is not first
