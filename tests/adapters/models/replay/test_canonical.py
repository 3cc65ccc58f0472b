"""The canonical form of a request."""

from msgspec.json import decode

from greenroom.adapters.models.replay.cassette import canonical, key
from greenroom.core.base.ids import AgentId, StepId
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import ChatMessage, Media, ModelRequest, Opaque, ToolCall, ToolSpec
from greenroom.testing.conformance.models import asking


def form(request: ModelRequest, model: str = "p:m") -> dict[str, object]:
    return decode(canonical(request, model), type=dict[str, object])


def saying(*messages: ChatMessage) -> ModelRequest:
    return evolve(asking(), messages=messages)


def same(one: ModelRequest, other: ModelRequest) -> bool:
    return key(canonical(one, "p:m")) == key(canonical(other, "p:m"))


def calls(first: str, second: str) -> ModelRequest:
    made = tuple(ToolCall(call_id=one, name="add", arguments={}) for one in (first, second))
    return saying(
        ChatMessage(role="assistant", content="", calls=made),
        ChatMessage(role="tool", content="1", call_id=second),
        ChatMessage(role="tool", content="2", call_id=first),
    )


def test_who_asks_and_how_it_comes_do_not_count() -> None:
    other = evolve(asking().purpose, agent=AgentId("b"), step=StepId("b#7"), turn=9, attempt=3)
    assert same(asking(), evolve(asking(), purpose=other))
    assert same(asking(), evolve(asking(), streaming=False))


def test_everything_else_counts() -> None:
    asked = asking()
    different = [
        evolve(asked, messages=asked.messages[1:]),
        evolve(asked, tools=()),
        evolve(asked, tools=(ToolSpec(name="add", description="Other."), asked.tools[1])),
        evolve(asked, tool_choice="required"),
        evolve(asked, schema={"type": "object"}),
        evolve(asked, max_output=1),
        evolve(asked, temperature=0.0),
        evolve(asked, stop=("x",)),
        evolve(asked, effort="low"),
        asking("other"),
    ]
    assert not any(same(asked, one) for one in different)
    assert key(canonical(asked, "p:m")) != key(canonical(asked, "p:n"))


def test_ids_of_calls_are_renamed_by_first_appearance() -> None:
    assert same(calls("x", "y"), calls("call_123", "call_456"))
    swapped = calls("x", "y").messages
    answers = (swapped[0], evolve_call(swapped[1], "x"), evolve_call(swapped[2], "y"))
    assert not same(calls("x", "y"), saying(*answers))
    assert [one.get("answers") for one in list_of(form(calls("x", "y"))["messages"])] == [None, "call 2", "call 1"]


def evolve_call(message: ChatMessage, call_id: str) -> ChatMessage:
    return ChatMessage(role=message.role, content=message.content, call_id=call_id)


def list_of(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return value


def test_line_ends_are_one_kind() -> None:
    assert same(asking("a\r\nb"), asking("a\nb"))
    assert not same(asking("a\\r\nb"), asking("a\\nb"))
    arguments = ToolCall(call_id="x", name="add", arguments={"a": ["1\r\n"]})
    other = ToolCall(call_id="x", name="add", arguments={"a": ["1\n"]})
    assert same(
        saying(ChatMessage(role="assistant", content="", calls=(arguments,))),
        saying(ChatMessage(role="assistant", content="", calls=(other,))),
    )


def test_the_order_of_names_does_not_count() -> None:
    one = evolve(asking(), schema={"a": {"x": 1, "y": 2}, "b": 2})
    other = evolve(asking(), schema={"b": 2, "a": {"y": 2, "x": 1}})
    assert same(one, other)


def test_media_count_by_their_digest() -> None:
    def seen(data: bytes) -> ModelRequest:
        return saying(ChatMessage(role="user", content="", media=(Media(media_type="image/png", data=data),)))

    assert same(seen(b"1"), seen(b"1"))
    assert not same(seen(b"1"), seen(b"2"))
    assert b"sha256" in canonical(seen(b"1"), "p:m")


def test_thoughts_and_what_only_the_provider_understands_count() -> None:
    plain = ChatMessage(role="assistant", content="a")
    thought = ChatMessage(role="assistant", content="a", reasoning="hm")
    signed = ChatMessage(role="assistant", content="a", opaque=(Opaque(provider="p", data={"s": "1"}),))
    assert len({key(canonical(saying(one), "p:m")) for one in (plain, thought, signed)}) == 3


def test_what_is_empty_is_left_out() -> None:
    assert form(saying(ChatMessage(role="user", content="hi"))) == {
        "model": "p:m",
        "messages": [{"role": "user", "content": "hi"}],
        "settings": {"max_output": 4096, "tool_choice": "auto"},
        "tools": form(asking())["tools"],
    }
