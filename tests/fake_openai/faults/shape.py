"""The class of faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from greenroom.core.base.records import record
from tests.fake_openai.answers import Answer, Asked, Call
from tests.fake_openai.wire import Wire, told

HELLO: Final = Answer(text="Hello from the fake server.")
ADD: Final = Answer(calls=(Call(name="add", arguments={"a": 1, "b": 2}),))


@record
class Fault:
    """A fault. `make` returns what goes over the wire.

    `answer` is the answer that it changes. `wait` is a number of seconds: the Retry-After value, or the drip interval.
    `usable`: a lenient client gets the whole answer. `streaming` and `plain` say where the fault applies.
    """

    name: str
    about: str
    make: Callable[[Asked, Fault], Wire]
    answer: Answer = HELLO
    wait: float = 0.05
    usable: bool = False
    streaming: bool = True
    plain: bool = True

    def wire(self, asked: Asked) -> Wire:
        """Return what goes over the wire; a 500 with an explanation where the fault does not apply."""
        if self.streaming if asked.streaming else self.plain:
            return self.make(asked, self)
        how = "when it is not streamed" if asked.streaming else "in a stream"
        return told(error(f"The fault {self.name!r} of the fake server makes sense only {how}."), status=500)


def error(message: str, kind: str = "server_error", code: object = None, param: str | None = None) -> dict[str, object]:
    """Build an error in OpenAI's format."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
