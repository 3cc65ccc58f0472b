"""Check a tool's name and arguments against its JSON Schema, for TOOL_CALL blocks and XML tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Container, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

from greenroom.abilities.protocols.parse_result import BlockRejection, CallDraft, ParseContext
from greenroom.abilities.protocols.strict_json import ParseError, decode, truncate
from greenroom.core.base.records import Data, count_bytes, record
from greenroom.core.ports.model import ToolCall, ToolSpec

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

CALL_SUBAGENT: Final = ToolSpec(
    name="call_subagent",
    description="Let another agent do a part of the work, and wait for its answer.",
    parameters={
        "type": "object",
        "properties": {"agent_name": {"type": "string"}, "instruction": {"type": "string"}},
        "required": ["agent_name", "instruction"],
        "additionalProperties": False,
    },
)

MAX_REASON_CHARS: Final = 2000
MAX_NAME_CHARS: Final = 100
MAX_BLOCK_CHARS: Final = 10_000
"""Maximum characters of a corrected block that the model is offered. Repeating a whole file does not help."""

_SINGLE_NAME: Final = re.compile(r"[\w.-]+")

CallWriter = Callable[[ToolCall], str]


@record
class CallRequest:
    """The call that a block asks for, before it is validated. `raw` means that its arguments are text, regardless of
    the schema. `texts` are arguments of YAML with every scalar as it is written."""

    tag: str
    name: str
    arguments: Data
    texts: Data | None = None
    raw: bool = False
    repaired: str = ""
    unended: bool = False

    def to_tool_call(self, arguments: Data) -> ToolCall:
        return ToolCall(call_id="", name=self.name, arguments=arguments)


def reject_block(tag: str, why: str, repaired: str = "", *, shape: str = "") -> BlockRejection:
    """Reject a block that cannot run. `shape` describes the correct form."""
    shown = repaired if len(repaired) <= MAX_BLOCK_CHARS else ""
    return BlockRejection(
        why=f"<{tag}> was not run: {truncate(why, MAX_REASON_CHARS)} {shape}".rstrip(), repaired=shown
    )


def resolve_call(call_request: CallRequest, known: ParseContext, write: CallWriter) -> CallDraft | BlockRejection:
    """Return the call if the tool exists and the arguments match its schema."""
    tool = known.tools.get(call_request.name) or (
        CALL_SUBAGENT if known.agents and call_request.name == "call_subagent" else None
    )
    if tool is None:
        return _reject_unknown_tool(call_request, known, write)
    try:
        fitted = _fit_arguments(call_request, tool)
    except BadSchema as error:
        return reject_block(
            call_request.tag, f"the tool {tool.name!r} cannot be called, its own schema is broken ({error})."
        )
    if isinstance(fitted, CallDraft) and tool.name == "call_subagent":
        name = str(fitted.call.arguments.get("agent_name", ""))
        if name in known.agents:
            return fitted
        near = find_nearest_name(name, known.agents)
        repaired = write(call_request.to_tool_call({**fitted.call.arguments, "agent_name": near})) if near else ""
        return reject_block(
            call_request.tag, f"there is no agent {name!r}. Agents: {', '.join(sorted(known.agents))}.", repaired
        )
    return fitted


def _fit_arguments(call_request: CallRequest, tool: ToolSpec) -> CallDraft | BlockRejection:
    schema = tool.parameters
    wrong = find_faults(schema, call_request.arguments)
    call = call_request.to_tool_call(call_request.arguments)
    if call_request.raw and wrong:
        call = call_request.to_tool_call(convert_texts(schema, call_request.arguments))
        wrong = find_faults(schema, call.arguments)
    if call_request.texts and wrong:
        restored = restore_texts(schema, call_request.arguments, call_request.texts)
        if not find_faults(schema, restored):
            call, wrong = call_request.to_tool_call(restored), []
    repaired = call_request.repaired
    if wrong:
        repaired, mended = "; ".join(wrong), _repair_arguments(call_request, tool)
        if mended is None:
            return reject_block(call_request.tag, f"the arguments of {tool.name!r} do not fit: {repaired}.")
        call = mended
    extra = sorted(call.arguments.keys() - _read_properties(schema).keys()) if repaired else []
    if extra:
        return reject_block(call_request.tag, f"{repaired}; and {tool.name!r} has no {', '.join(extra)}.")
    return CallDraft(call=call, repaired=repaired, unended=call_request.unended)


def _repair_arguments(call_request: CallRequest, tool: ToolSpec) -> ToolCall | None:
    """Convert numbers and lists that were written as text. Return None if anything else is wrong."""
    if call_request.raw or count_bytes(call_request.arguments) > LARGE_ARGUMENTS_BYTES:
        return None
    arguments = convert_texts(tool.parameters, call_request.arguments)
    return None if find_faults(tool.parameters, arguments) else call_request.to_tool_call(arguments)


def _reject_unknown_tool(call_request: CallRequest, known: ParseContext, write: CallWriter) -> BlockRejection:
    names = sorted(known.tools)
    if not names:
        return reject_block(call_request.tag, f"there is no tool {call_request.name!r}; you have no tools.")
    near = find_nearest_name(call_request.name, names)
    repaired = ""
    if near and not call_request.repaired and not call_request.unended:
        meant = CallRequest(tag=call_request.tag, name=near, arguments=call_request.arguments, raw=call_request.raw)
        found = resolve_call(meant, known, write)
        repaired = write(found.call) if isinstance(found, CallDraft) else ""
    return reject_block(
        call_request.tag, f"there is no tool {call_request.name!r}. Your tools: {', '.join(names)}.", repaired
    )


def find_nearest_name(name: str, names: Collection[str]) -> str:
    """Return the closest of these names, or "" if nothing is close or the text is not a single name."""
    if len(name) > MAX_NAME_CHARS or not _SINGLE_NAME.fullmatch(name.strip()):
        return ""
    found = get_close_matches(name.strip().lower(), sorted(names), n=1, cutoff=0.7)
    return found[0] if found else ""


MAX_FAULTS: Final = 5
LARGE_ARGUMENTS_BYTES: Final = 20_000


class BadSchema(ValueError):
    """The tool's own schema is invalid. The model is not to blame."""


def find_faults(schema: Data, arguments: Data) -> list[str]:
    """Return one sentence per mismatch. Raise `BadSchema` if the schema itself is invalid."""
    return build_argument_checker(schema)(arguments)


def build_argument_checker(schema: Data) -> Callable[[Data], list[str]]:
    """Return a reusable `find_faults` for one schema."""
    from jsonschema_rs import ValidationError, validator_for

    try:
        validator = validator_for(dict(schema), offline=True)
    except (TypeError, ValueError) as error:
        raise BadSchema(truncate(str(error))) from None

    def check(arguments: Data) -> list[str]:
        given = dict(arguments)
        try:
            # The validator collects all faults before it returns the first: a long list could have a million.
            if count_bytes(given) > LARGE_ARGUMENTS_BYTES:
                validator.validate(given)
        except ValidationError as error:
            return [_describe_fault(error)]
        return [_describe_fault(error) for error in islice(validator.iter_errors(given), MAX_FAULTS)]

    return check


def _describe_fault(error: ValidationError) -> str:
    return f"{'.'.join(map(str, error.instance_path)) or 'arguments'}: {truncate(error.message)}"


def convert_texts(schema: Data, arguments: Data) -> dict[str, object]:
    """Convert text arguments to the types in the schema. Text stays text wherever the schema allows a string."""
    from jsonschema_rs import validator_for

    found = dict(arguments)
    for error in validator_for(dict(schema), offline=True).iter_errors(found):
        name = str(error.instance_path[0]) if len(error.instance_path) == 1 else ""
        text = arguments.get(name)
        if isinstance(text, str) and not _may_be_text(_read_properties(schema).get(name)):
            found[name] = _decode_text(text)
    return found


def restore_texts(schema: Data, arguments: Data, texts: Data) -> Data:
    """Return the arguments, with each scalar as it is written where its value does not match the schema: the text 1.10
    of YAML is not the number 1.1."""
    from jsonschema_rs import validator_for

    errors = validator_for(dict(schema), offline=True).iter_errors(dict(arguments))
    places = {tuple(error.instance_path) for error in errors}
    return {name: _restore_text(part, texts[name], places, (name,)) for name, part in arguments.items()}


def _restore_text(value: object, text: object, places: Container[object], place: tuple[str | int, ...]) -> object:
    if isinstance(value, dict) and isinstance(text, dict):
        return {key: _restore_text(part, text[key], places, (*place, key)) for key, part in value.items()}
    if isinstance(value, list) and isinstance(text, list):
        return [_restore_text(part, text[at], places, (*place, at)) for at, part in enumerate(value)]
    return text if text and place in places else value


def _may_be_text(part: object) -> bool:
    declared = part.get("type") if isinstance(part, Mapping) else None
    return declared == "string" or (isinstance(declared, list) and "string" in declared)


def _decode_text(text: str) -> object:
    """Return the JSON value of the text, or the text itself. The schema check then reports the mismatch."""
    try:
        return decode({"True": "true", "False": "false"}.get(text.strip(), text))
    except ParseError:
        return text


def _read_properties(schema: Data) -> Mapping[str, object]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def render_json(data: object) -> str:
    """Render arguments as readable JSON."""
    return json.dumps(data, ensure_ascii=False, indent=2)
