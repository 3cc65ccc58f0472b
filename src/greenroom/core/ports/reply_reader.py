"""Parsing of replies: the instructions for an agent that calls tools in text, and the calls in its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import ToolCall, ToolSpec
from greenroom.core.state.spec import AgentSpec


@record
class ReplyCall:
    """A call found in the text. `notes` tell the model what was repaired and which other calls were not run."""

    call: ToolCall
    notes: str = ""


@record
class ReplyProblem:
    """The text seems to contain a call that cannot be run. `why` tells the model what is wrong and how to fix it.

    If not `sure`, the text may be intended: the model is asked about it once.
    """

    why: str
    sure: bool = True


@record
class ParsedValue:
    """A parsed value. `repaired` says why the text had to be repaired: it was unambiguous but not JSON."""

    value: object
    repaired: str = ""


class ReplyReader(Protocol):
    """Parses all text protocols."""

    def instructions(self, spec: AgentSpec, tools: Sequence[ToolSpec], others: Mapping[str, str]) -> str:
        """Return the instructions about the agent's text protocols."""
        ...

    def read(
        self, spec: AgentSpec, text: str, tools: Sequence[ToolSpec], others: Sequence[str], *, ended: bool
    ) -> ReplyCall | ReplyProblem | None:
        """Return the call in a reply; None if it is only text. `ended` means that the model stopped by itself."""
        ...

    def read_yaml(self, text: str, tag: str) -> object:
        """Return the YAML or JSON in the only block with this tag; None if there is none that can be read."""
        ...

    def find_json_error(self, arguments: str) -> str:
        """Return why a call's arguments are not a JSON object, and where; empty if unknown."""
        ...

    def find_schema_error(self, schema: Data, value: object) -> str:
        """Return where a value violates a JSON Schema, in one sentence; empty if it is valid."""
        ...

    async def check_answer(self, spec: AgentSpec, value: object) -> tuple[object, str]:
        """Return an agent's answer as it counts, and why it is not accepted; an empty reason accepts it."""
        ...


class AnswerReader(Protocol):
    """Parses answers in tags or in plain JSON, which planning agents are asked for."""

    def read_blocks(
        self, text: str, tags: Mapping[str, Literal["text", "data"]]
    ) -> Mapping[str, tuple[str, ...]] | ReplyProblem:
        """Return the raw blocks with these tags, in order. Reasoning, quoted text and unfinished blocks are skipped."""
        ...

    def parse_json(self, body: str) -> ParsedValue | ReplyProblem:
        """Parse the JSON of a body."""
        ...

    def find_schema_error(self, schema: Data, value: object) -> str:
        """Return where a value violates a JSON Schema, in one sentence; empty if it is valid."""
        ...
