"""What reads the replies of agents that act in text: all forms of the house."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast, get_args

from greenroom.abilities.protocols import Acts, NotRun, ProtocolName, flaw, prompt, read
from greenroom.abilities.protocols.calls import faults
from greenroom.abilities.protocols.jsons import Unreadable
from greenroom.abilities.protocols.reading import parsed, tagged
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.reading import Acted, Datum, Misread
from greenroom.core.state.spec import AgentSpec

NAMES = get_args(ProtocolName)
SUBAGENT = "call_subagent"
"""What ArtifactFlow calls it when an agent is called."""


class TextReader:
    """The forms by name, and what they need to know of an agent."""

    def instructions(self, spec: AgentSpec, tools: Sequence[ToolSpec], others: Mapping[str, str]) -> str:
        """What the agent is told of the forms in which it acts. The XML form has its own name for calling agents."""
        forms = _forms(spec)
        told = [tool for tool in tools if tool.name != "call_agent"] if "xml_tool" in forms else tools
        return prompt(forms, tools=told, agents=others, language=spec.language or "en")

    def read(
        self, spec: AgentSpec, text: str, tools: Sequence[ToolSpec], others: Sequence[str], *, ended: bool
    ) -> Acted | Misread | None:
        """What a reply asks for; None when it is only text."""
        found = read(
            text,
            _forms(spec),
            tools=(*tools, *(replace(tool, name=SUBAGENT) for tool in tools if tool.name == "call_agent")),
            agents=others,
            pure={tool.name for tool in tools if tool.pure},
            policy=spec.turn.several,
            ended=ended,
        )
        if isinstance(found, NotRun):
            return Misread(why=str(found))
        if not isinstance(found, Acts):
            return Misread(why=found.hint, sure=False) if found.hint else None
        call = found.call
        named = evolve(call, name="call_agent") if call.name == SUBAGENT and spec.calls else call
        dropped = (f"Not run, because only the first is: {', '.join(found.dropped)}.",) if found.dropped else ()
        return Acted(call=named, notes=" ".join((*found.notes, *dropped)))

    def tagged(self, text: str, tags: Mapping[str, Literal["text", "data"]]) -> Mapping[str, tuple[str, ...]] | Misread:
        """What stands in the blocks of these tags."""
        try:
            return tagged(text, tags)
        except Unreadable as error:
            return Misread(why=str(error))

    def data(self, body: str) -> Datum | Misread:
        """The JSON of a body."""
        try:
            return parsed(body)
        except Unreadable as error:
            return Misread(why=str(error))

    def flaw(self, arguments: str) -> str:
        """Why they are no JSON object."""
        return flaw(arguments)

    def misfit(self, schema: Data, value: object) -> str:
        """Where a value does not fit a JSON Schema, in one sentence; empty when it does."""
        whole = {"type": "object", "properties": {"answer": schema}, "required": ["answer"]}
        return "; ".join(faults(whole, {"answer": value}))


def _forms(spec: AgentSpec) -> tuple[ProtocolName, ...]:
    for name in spec.turn.protocols:
        if name not in NAMES:
            known = ", ".join(NAMES)
            raise WorldFault(f"{spec.name!r} is to act in the form {name!r}, which nobody reads. Known: {known}.")
    return cast("tuple[ProtocolName, ...]", spec.turn.protocols)
