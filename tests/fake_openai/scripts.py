"""Scripts that decide what a fake server answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.json import decode

from tests.fake_openai.answers import Answer, Call
from tests.fake_openai.faults.shape import HELLO, Fault, error
from tests.fake_openai.wire import told

Reply: TypeAlias = Answer | Fault
Teller: TypeAlias = Callable[[dict[str, object], int], Reply]
Part: TypeAlias = str | Reply | Teller
Script: TypeAlias = Part | Sequence[Part] | Mapping[str, Part | Sequence[Part]]
"""One reply, a function of (request, its number from 1), a list served in order, scripts by model, or a name."""

Tell: TypeAlias = "Callable[[Heard], Reply]"

TURN: Final = re.compile(rb'"role"\s*:\s*"tool"')
ROUNDS: Final = re.compile(r"rounds:(\d+)")
BUILT_IN: Final = "hello, tool_round, rounds:N"


class Heard:
    """A request; `number` counts them from 1. The body is parsed on demand."""

    __slots__ = ("model", "number", "raw")

    def __init__(self, raw: bytes, model: str, number: int) -> None:
        self.raw = raw
        self.model = model
        self.number = number

    @property
    def body(self) -> dict[str, object]:
        """The parsed request."""
        return decode(self.raw, type=dict[str, object])


def teller(script: Script) -> Tell:
    """Return the script as a function."""
    match script:
        case str():
            return built_in(script)
        case Mapping():
            return by_model({name: teller(part) for name, part in script.items()})
        case Sequence():
            return in_order([teller(part) for part in script])
        case Answer() | Fault():
            return always(script)
        case _:
            return decided(script)


def always(reply: Reply) -> Tell:
    """Give the same reply to every request."""
    return lambda _: reply


def decided(by: Teller) -> Tell:
    """Call this function with the parsed request."""
    return lambda heard: by(heard.body, heard.number)


def in_order(parts: list[Tell]) -> Tell:
    """Serve each part once."""
    served = iter(parts)

    def tell(heard: Heard) -> Reply:
        part = next(served, None)
        return part(heard) if part else exhausted(heard.number, len(parts))

    return tell


def by_model(parts: Mapping[str, Tell]) -> Tell:
    """Each model has its own script."""

    def tell(heard: Heard) -> Reply:
        part = parts.get(heard.model)
        return part(heard) if part else unknown(heard.model)

    return tell


def exhausted(number: int, length: int) -> Fault:
    """Build the fault of a script at its end."""
    words = f"The fake server's script is at its end: it has {length} answers, and this is request number {number}."
    return Fault(name="exhausted", about=words, make=lambda _, __: told(error(words), status=500))


def unknown(model: str) -> Fault:
    """Build the fault of a model without a script."""
    words = f"The model `{model}` does not exist or you do not have access to it."
    body = error(words, "invalid_request_error", "model_not_found")
    return Fault(name="unknown", about=words, make=lambda _, __: told(body, status=404))


def built_in(name: str) -> Tell:
    """Return a script by name. These also run in a separate process."""
    if name == "hello":
        return always(HELLO)
    found = ROUNDS.fullmatch("rounds:1" if name == "tool_round" else name)
    if found is None:
        raise ValueError(f"There is no built-in script {name!r}. There are: {BUILT_IN}.")
    return rounds(int(found[1]))


def rounds(count: int) -> Tell:
    """Play `count` rounds with a call of `add`, then the text "done". The number of results in the request gives the
    round."""
    asks = [Answer(calls=(Call(name="add", arguments={"a": n, "b": 1}, id=f"call_{n}"),)) for n in range(1, count + 1)]
    replies = [*asks, Answer(text="done")]

    # Looking for the role in the bytes is many times cheaper than parsing a long conversation.
    return lambda heard: replies[min(len(TURN.findall(heard.raw)), count)]
