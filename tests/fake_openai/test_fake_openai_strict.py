"""A strict provider refuses a conversation in which calls and results do not match."""

import pytest

from tests.fake_openai.strict import broken

ASKS = {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]}
A, B = {"role": "tool", "tool_call_id": "a"}, {"role": "tool", "tool_call_id": "b"}
USER = {"role": "user", "content": "Well?"}


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([USER, ASKS, B, A, USER], ""),
        ([USER], ""),
        ([USER, ASKS, A, USER], "did not have response messages: b"),
        ([USER, ASKS, A], "did not have response messages: b"),
        ([USER, ASKS, A, A, B], "must be a response to a preceeding message"),
        ([USER, B], "must be a response to a preceeding message"),
        (["hello"], "expected an object"),
    ],
)
def test_each_call_has_exactly_one_result_and_nothing_comes_between(messages: list[object], said: str) -> None:
    found = broken({"messages": messages})
    assert said in found
    assert bool(found) == bool(said)
