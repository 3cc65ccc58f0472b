"""Reads the replies of agents that act in text, with all text protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast, get_args

from greenroom.abilities.protocols.calls import find_faults
from greenroom.abilities.protocols.parse_result import BlockCall, BlockRejection, ProtocolName
from greenroom.abilities.protocols.strict_json import ParseError, find_json_error
from greenroom.abilities.protocols.text_calls import parse_json_body, read, read_tagged_bodies, render_prompt
from greenroom.abilities.skills.prompts.builder import wrap_fields
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.reply_reader import ParsedValue, ReplyCall, ReplyProblem
from greenroom.core.state.spec import AgentSpec

PROTOCOL_NAMES = get_args(ProtocolName)
SUBAGENT_CALL = "call_subagent"
"""ArtifactFlow's name for calling an agent."""


class TextReader:
    """The text protocols by name, and the agent data that they need."""

    def instructions(self, spec: AgentSpec, tools: Sequence[ToolSpec], others: Mapping[str, str]) -> str:
        """Return the instructions for the agent's protocols. The XML protocol has its own name for calling agents."""
        forms = _check_protocols(spec)
        offered_tools = [tool for tool in tools if tool.name != "call_agent"] if "xml_tool" in forms else tools
        return render_prompt(forms, tools=offered_tools, agents=others, language=spec.language or "en")

    def read(
        self, spec: AgentSpec, text: str, tools: Sequence[ToolSpec], others: Sequence[str], *, ended: bool
    ) -> ReplyCall | ReplyProblem | None:
        """Parse a reply into calls. Return None if it is only text."""
        parsed_reply = read(
            text,
            _check_protocols(spec),
            tools=(*tools, *(replace(tool, name=SUBAGENT_CALL) for tool in tools if tool.name == "call_agent")),
            agents=others,
            pure={tool.name for tool in tools if tool.pure},
            policy=spec.turn.several,
            ended=ended,
            arbiter=spec.handoff is not None and spec.handoff.arbiter,
        )
        if isinstance(parsed_reply, BlockRejection):
            return ReplyProblem(why=str(parsed_reply))
        if not isinstance(parsed_reply, BlockCall):
            return ReplyProblem(why=parsed_reply.hint, sure=False) if parsed_reply.hint else None
        call = parsed_reply.call
        renamed_call = evolve(call, name="call_agent") if call.name == SUBAGENT_CALL and spec.calls else call
        dropped = (
            (f"Not run, because only the first is: {', '.join(parsed_reply.dropped)}.",) if parsed_reply.dropped else ()
        )
        return ReplyCall(call=renamed_call, notes=" ".join((*parsed_reply.notes, *dropped)))

    def read_blocks(
        self, text: str, tags: Mapping[str, Literal["text", "data"]]
    ) -> Mapping[str, tuple[str, ...]] | ReplyProblem:
        try:
            return read_tagged_bodies(text, tags)
        except ParseError as error:
            return ReplyProblem(why=str(error))

    def parse_json(self, body: str) -> ParsedValue | ReplyProblem:
        try:
            return parse_json_body(body)
        except ParseError as error:
            return ReplyProblem(why=str(error))

    def read_yaml(self, text: str, tag: str) -> object:
        from greenroom.abilities.protocols.strict_yaml import load

        try:
            bodies = read_tagged_bodies(text, {tag: "data"}).get(tag, ())
            return load(bodies[0], typed=False) if len(bodies) == 1 else None
        except ParseError:
            return None

    def find_json_error(self, arguments: str) -> str:
        return find_json_error(arguments)

    def find_schema_error(self, schema: Data, value: object) -> str:
        return "; ".join(find_faults(wrap_fields({"answer": schema}), {"answer": value}))

    async def check_answer(self, spec: AgentSpec, value: object) -> tuple[object, str]:
        """Return an agent's answer, and where it does not match the schema of its spec."""
        return value, self.find_schema_error(spec.answer or {}, value)


def _check_protocols(spec: AgentSpec) -> tuple[ProtocolName, ...]:
    for name in spec.turn.protocols:
        if name not in PROTOCOL_NAMES:
            known_names = ", ".join(PROTOCOL_NAMES)
            raise WorldFault("text_reader.unknown_protocol", name=spec.name, name2=name, known_names=known_names)
    return cast("tuple[ProtocolName, ...]", spec.turn.protocols)
