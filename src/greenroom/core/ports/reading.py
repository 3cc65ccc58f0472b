"""Reading replies: what an agent that acts in text is told of its forms, and what its text asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import ToolCall, ToolSpec
from greenroom.core.state.spec import AgentSpec


@record
class Acted:
    """The text asks for this. `notes` are for the model: what was mended, what else it asked for and is not done."""

    call: ToolCall
    notes: str = ""


@record
class Misread:
    """The text wants to ask for something, but not so that it may be done. `why` is for the model: what and how.

    Where that is not `sure`, it may be meant as it is: it is asked about once.
    """

    why: str
    sure: bool = True


@record
class Datum:
    """A value that was read. `repaired` is why it had to be mended first: then it means one thing, but was not JSON."""

    value: object
    repaired: str = ""


class Reader(Protocol):
    """All text forms of the house."""

    def instructions(self, spec: AgentSpec, tools: Sequence[ToolSpec], others: Mapping[str, str]) -> str:
        """What the agent is told of the forms in which it acts."""
        ...

    def read(
        self, spec: AgentSpec, text: str, tools: Sequence[ToolSpec], others: Sequence[str], *, ended: bool
    ) -> Acted | Misread | None:
        """What a reply asks for; None when it is only text. `ended` says that the model stopped by itself."""
        ...

    def flaw(self, arguments: str) -> str:
        """Why the arguments of a call are no JSON object, and where; empty when nobody can say."""
        ...

    def misfit(self, schema: Data, value: object) -> str:
        """Where a value does not fit a JSON Schema, in one sentence; empty when it does."""
        ...


class AnswerReader(Protocol):
    """Answers that stand between tags, or are JSON by themselves: what agents that plan are asked for."""

    def tagged(self, text: str, tags: Mapping[str, Literal["text", "data"]]) -> Mapping[str, tuple[str, ...]] | Misread:
        """What stands in the blocks of these tags, raw and in order. What is thought, quoted or cut off is no block."""
        ...

    def data(self, body: str) -> Datum | Misread:
        """The JSON of a body."""
        ...

    def misfit(self, schema: Data, value: object) -> str:
        """Where a value does not fit a JSON Schema, in one sentence; empty when it does."""
        ...
