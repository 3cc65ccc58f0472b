"""Tool calls as servers really send them: without ids, without an index, with invalid arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from greenroom.core.base.records import Data, evolve
from tests.fake_openai.answers import Answer, Asked, Call
from tests.fake_openai.faults.shape import ADD, Fault
from tests.fake_openai.speech import Chunk, chunk, chunks, completion, ended, whole_call
from tests.fake_openai.wire import Wire, streamed, told

THOUSAND: Final = Answer(calls=tuple(Call(name="add", arguments={"a": n, "b": 1}) for n in range(1000)))
TWO: Final = Answer(calls=(Call(name="add", arguments={"a": 1, "b": 2}), Call(name="sub", arguments={"a": 3, "b": 4})))


def in_one(asked: Asked, fault: Fault, calls: list[Chunk]) -> Wire:
    """Return complete calls: in one chunk of a stream, or in the message."""
    if asked.streaming:
        return in_parts(asked, fault, [{"role": "assistant", "content": None, "tool_calls": calls}])
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return told(completion(fault.answer, asked) | {"choices": [choice]})


def in_parts(asked: Asked, fault: Fault, deltas: list[Data]) -> Wire:
    """Return a stream of these deltas with the finish_reason of calls."""
    said = [chunk(asked.model, delta) for delta in deltas]
    return streamed(ended([*said, chunk(asked.model, {}, "tool_calls")], fault.answer, asked))


def calls_of(fault: Fault) -> list[Chunk]:
    """Return the fault's calls, complete, with their index."""
    return [{"index": n, **whole_call(call, n + 1)} for n, call in enumerate(fault.answer.calls)]


def with_id(value: object) -> Callable[[Asked, Fault], Wire]:
    """Every call has this id."""
    return lambda asked, fault: in_one(asked, fault, [call | {"id": value} for call in calls_of(fault)])


def with_function(fields: Data) -> Callable[[Asked, Fault], Wire]:
    """Every call's function has its name and these fields, and no others."""

    def make(asked: Asked, fault: Fault) -> Wire:
        functions = [{"name": call.name, **fields} for call in fault.answer.calls]
        calls = zip(calls_of(fault), functions, strict=True)
        return in_one(asked, fault, [call | {"function": function} for call, function in calls])

    return make


def no_index(asked: Asked, fault: Fault) -> Wire:
    """Complete calls in separate chunks without an index."""
    return in_parts(
        asked, fault, [{"tool_calls": [whole_call(call, n)]} for n, call in enumerate(fault.answer.calls, 1)]
    )


def same_index(asked: Asked, fault: Fault) -> Wire:
    """Complete calls in separate chunks that all have index 0; only the id differs."""
    return in_parts(asked, fault, [{"tool_calls": [call | {"index": 0}]} for call in calls_of(fault)])


def name_late(asked: Asked, fault: Fault) -> Wire:
    """First the id, then the arguments, the name last."""
    parts: list[Data] = []
    for index, call in enumerate(fault.answer.calls):
        parts += (
            {"index": index, "id": f"call_{index + 1}", "type": "function"},
            {"index": index, "function": {"arguments": call.written}},
            {"index": index, "function": {"name": call.name}},
        )
    return in_parts(asked, fault, [{"tool_calls": [part]} for part in parts])


def as_it_is(asked: Asked, fault: Fault) -> Wire:
    """Return the answer unchanged."""
    if asked.streaming:
        return streamed(ended(chunks(fault.answer, asked), fault.answer, asked))
    return told(completion(fault.answer, asked))


def calls_and_stop(asked: Asked, fault: Fault) -> Wire:
    """Calls, but the finish_reason is stop."""
    return as_it_is(asked, evolve(fault, answer=evolve(fault.answer, finish="stop")))


CALLS: Final = tuple(
    Fault(name=name, about=about, make=make, answer=answer, plain=plain, usable=True)
    for name, about, make, answer, plain in (
        ("thousand_calls", "A thousand tool calls.", as_it_is, THOUSAND, True),
        ("call_empty_id", "Calls with an empty id.", with_id(""), TWO, True),
        ("call_null_id", "Calls with a null id.", with_id(None), TWO, True),
        ("call_same_id", "Two calls with one id.", with_id("call_1"), TWO, True),
        ("call_no_index", "Calls without an index.", no_index, TWO, False),
        ("call_same_index", "Different calls that all say index 0.", same_index, TWO, False),
        ("call_no_arguments", "A call without an arguments field.", with_function({}), ADD, True),
        ("call_empty_arguments", "Arguments are an empty string.", with_function({"arguments": ""}), ADD, True),
        (
            "call_object_arguments",
            "Arguments are an object, no string.",
            with_function({"arguments": {"a": 1, "b": 2}}),
            ADD,
            True,
        ),
        (
            "call_broken_arguments",
            "Arguments are broken JSON.",
            with_function({"arguments": '{"a": 1, "b":'}),
            ADD,
            True,
        ),
        ("call_list_arguments", "Arguments are a JSON list.", with_function({"arguments": "[1, 2]"}), ADD, True),
        ("call_name_late", "The name comes after the arguments.", name_late, TWO, False),
        ("call_finish_stop", "Calls, but the finish_reason is stop.", calls_and_stop, ADD, True),
    )
)
