"""The history of a conversation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.adapters.models.platforms.base import LLMContext
from greenroom.core.base.errors import Bug
from greenroom.core.ports.model import ChatMessage, ToolCall

SYSTEM = ChatMessage(role="system", content="Be kind.")


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def answer(text: str, *calls: str) -> ChatMessage:
    made = tuple(ToolCall(call_id=call, name="look", arguments={}) for call in calls)
    return ChatMessage(role="assistant", content=text, calls=made)


def result(call: str) -> ChatMessage:
    return ChatMessage(role="tool", content="seen", call_id=call)


def context(size: int, *messages: ChatMessage) -> LLMContext:
    made = LLMContext(context_size=size)
    made.set_history(messages)
    return made


@pytest.mark.req("MAS-256")
def test_messages_are_added_and_taken_back() -> None:
    talk = LLMContext(context_size=3)
    assert talk.remove_last_message() is None
    first, second = user("1"), answer("2")
    talk.add_message(first)
    talk.add_message(second)
    assert talk.get_history() == (first, second)
    assert talk.remove_last_message() is second
    talk.set_history([SYSTEM, first])
    assert talk.get_history()[0] is SYSTEM
    talk.clear()
    assert talk.get_history() == ()


@pytest.mark.req("MAS-256")
def test_the_last_turns_stay_and_the_system_message_too() -> None:
    said = [SYSTEM, *(one for turn in range(4) for one in (user(f"q{turn}"), answer(f"a{turn}")))]
    talk = context(2, *said)
    talk.trim_history()
    assert talk.get_history() == (SYSTEM, *said[5:])
    assert all(kept is old for kept, old in zip(talk.get_history()[1:], said[5:], strict=True))
    talk.trim_history()
    assert len(talk.get_history()) == 5


def test_no_turn_at_all_leaves_the_system_message() -> None:
    talk = context(0, SYSTEM, user("q"), answer("a"))
    talk.trim_history()
    assert talk.get_history() == (SYSTEM,)


def test_calls_and_their_results_stay_together_when_a_person_breaks_in() -> None:
    said = [user("q"), answer("", "c1", "c2"), result("c1"), user("hurry"), result("c2"), answer("a")]
    talk = context(1, user("old"), answer("x"), *said)
    talk.trim_history()
    assert talk.get_history() == tuple(said)


def test_a_history_of_less_than_nothing_is_refused() -> None:
    with pytest.raises(Bug, match="-1 turns"):
        LLMContext(context_size=-1)


CALLS = st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=3)


@st.composite
def talks(draw: st.DrawFn) -> list[ChatMessage]:
    """Turns with any number of calls, all answered, with people breaking in anywhere."""
    messages: list[ChatMessage] = draw(st.sampled_from([[], [SYSTEM]])).copy()
    for turn in range(draw(st.integers(0, 6))):
        messages.append(user(f"q{turn}"))
        for round_ in range(draw(st.integers(0, 2))):
            calls = [f"{turn}.{round_}.{call}" for call in draw(CALLS)]
            messages.append(answer("", *calls))
            for call in calls:
                messages += [user("well?")] * draw(st.integers(0, 1))
                messages.append(result(call))
        messages.append(answer(f"a{turn}"))
    return messages


@given(talks(), st.integers(0, 5))
def test_what_is_left_is_the_end_and_every_result_has_its_call(messages: list[ChatMessage], size: int) -> None:
    talk = context(size, *messages)
    talk.trim_history()
    left = [one for one in talk.get_history() if one.role != "system"]
    spoken = [one for one in messages if one.role != "system"]
    assert left == (spoken[-len(left) :] if left else [])
    assert [one for one in talk.get_history() if one.role == "system"] == [one for one in messages if one is SYSTEM]
    called = {call.call_id for one in left for call in one.calls}
    assert {one.call_id for one in left if one.role == "tool"} == called
    assert not left or left[0].role == "user"
    before = talk.get_history()
    talk.trim_history()
    assert talk.get_history() == before
