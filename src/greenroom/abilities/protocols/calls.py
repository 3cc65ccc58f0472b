"""A tool's name and arguments, checked against its JSON Schema: what TOOL_CALL blocks and XML tool calls share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

from greenroom.abilities.protocols.jsons import Unreadable, brief, decode
from greenroom.abilities.protocols.outcome import Draft, Known, NotRun
from greenroom.core.base.records import Data, record, written
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

LONGEST_REASON: Final = 2000
LONGEST_NAME: Final = 100
LONGEST_BLOCK: Final = 10_000
"""Characters of a block that is offered: to read a whole file and write it again is no help."""

_ONE_NAME: Final = re.compile(r"[\w.-]+")

Writer = Callable[[ToolCall], str]


@record
class Asked:
    """What a block asks for, before anybody knows whether it can be had.

    `raw` says that its arguments are text, whatever the schema wants.
    """

    tag: str
    name: str
    arguments: Data
    raw: bool = False
    repaired: str = ""
    unended: bool = False

    def call(self, arguments: Data) -> ToolCall:
        """The call, with these arguments."""
        return ToolCall(call_id="", name=self.name, arguments=arguments)


def not_run(tag: str, why: str, repaired: str = "", *, shape: str = "") -> NotRun:
    """A block that was read and cannot be run; `shape` says how it should look."""
    shown = repaired if len(repaired) <= LONGEST_BLOCK else ""
    return NotRun(why=f"<{tag}> was not run: {brief(why, LONGEST_REASON)} {shape}".rstrip(), repaired=shown)


def drafted(asked: Asked, known: Known, write: Writer) -> Draft | NotRun:
    """The call, if there is such a tool and the arguments are what it wants."""
    tool = known.tools.get(asked.name) or (CALL_SUBAGENT if known.agents and asked.name == "call_subagent" else None)
    if tool is None:
        return _unknown(asked, known, write)
    try:
        fitted = _fitted(asked, tool)
    except BadSchema as error:
        return not_run(asked.tag, f"the tool {tool.name!r} cannot be called, its own schema is broken ({error}).")
    if isinstance(fitted, Draft) and tool.name == "call_subagent":
        return _reachable(fitted, asked, known, write)
    return fitted


def _fitted(asked: Asked, tool: ToolSpec) -> Draft | NotRun:
    schema = tool.parameters
    wrong = faults(schema, asked.arguments)
    call = asked.call(asked.arguments)
    if asked.raw and wrong:
        call = asked.call(convert_texts(schema, asked.arguments))
        wrong = faults(schema, call.arguments)
    repaired = asked.repaired
    if wrong:
        repaired, mended = "; ".join(wrong), _mended(asked, tool)
        if mended is None:
            return not_run(asked.tag, f"the arguments of {tool.name!r} do not fit: {repaired}.")
        call = mended
    extra = strangers(schema, call.arguments) if repaired else []
    if extra:
        return not_run(asked.tag, f"{repaired}; and {tool.name!r} has no {', '.join(extra)}.")
    return Draft(call=call, repaired=repaired, unended=asked.unended)


def _mended(asked: Asked, tool: ToolSpec) -> ToolCall | None:
    """Numbers and lists that were written as text, as numbers and lists: if that is all that is wrong."""
    if asked.raw or written(asked.arguments) > LONG:
        return None
    arguments = convert_texts(tool.parameters, asked.arguments)
    return None if faults(tool.parameters, arguments) else asked.call(arguments)


def _unknown(asked: Asked, known: Known, write: Writer) -> NotRun:
    names = sorted(known.tools)
    if not names:
        return not_run(asked.tag, f"there is no tool {asked.name!r}; you have no tools.")
    near = nearest(asked.name, names)
    repaired = ""
    if near and not asked.repaired and not asked.unended:
        meant = Asked(tag=asked.tag, name=near, arguments=asked.arguments, raw=asked.raw)
        found = drafted(meant, known, write)
        repaired = write(found.call) if isinstance(found, Draft) else ""
    return not_run(asked.tag, f"there is no tool {asked.name!r}. Your tools: {', '.join(names)}.", repaired)


def nearest(name: str, names: Collection[str]) -> str:
    """The one of these names that was probably meant; none for what is more than one name."""
    if len(name) > LONGEST_NAME or not _ONE_NAME.fullmatch(name.strip()):
        return ""
    found = get_close_matches(name.strip().lower(), sorted(names), n=1, cutoff=0.7)
    return found[0] if found else ""


def _reachable(draft: Draft, asked: Asked, known: Known, write: Writer) -> Draft | NotRun:
    name = str(draft.call.arguments.get("agent_name", ""))
    if name in known.agents:
        return draft
    near = nearest(name, known.agents)
    repaired = write(asked.call({**draft.call.arguments, "agent_name": near})) if near else ""
    return not_run(asked.tag, f"there is no agent {name!r}. Agents: {', '.join(sorted(known.agents))}.", repaired)


# ---------------------------------------------------------------------------------------------- schemas

MOST_FAULTS: Final = 5
LONG: Final = 20_000


class BadSchema(ValueError):
    """The tool's own schema is none: not the model's fault."""


def faults(schema: Data, arguments: Data) -> list[str]:
    """What does not fit, one sentence each; `BadSchema` for a schema that is not valid itself."""
    return checker(schema)(arguments)


def checker(schema: Data) -> Callable[[Data], list[str]]:
    """What `faults` does, for a schema that is used again and again."""
    from jsonschema_rs import ValidationError, validator_for

    try:
        validator = validator_for(dict(schema), offline=True)
    except (TypeError, ValueError) as error:
        raise BadSchema(brief(str(error))) from None

    def check(arguments: Data) -> list[str]:
        given = dict(arguments)
        try:
            # All faults are found before the first one is told: of a long list that would be a million.
            if written(given) > LONG:
                validator.validate(given)
        except ValidationError as error:
            return [_fault(error)]
        return [_fault(error) for error in islice(validator.iter_errors(given), MOST_FAULTS)]

    return check


def _fault(error: ValidationError) -> str:
    return f"{'.'.join(map(str, error.instance_path)) or 'arguments'}: {brief(error.message)}"


def strangers(schema: Data, arguments: Data) -> list[str]:
    """Arguments that the schema does not name."""
    return sorted(arguments.keys() - _properties(schema).keys())


def convert_texts(schema: Data, arguments: Data) -> dict[str, object]:
    """Arguments that came as text, as what the schema wants. A text stays one wherever it may be one."""
    from jsonschema_rs import validator_for

    found = dict(arguments)
    for error in validator_for(dict(schema), offline=True).iter_errors(found):
        name = str(error.instance_path[0]) if len(error.instance_path) == 1 else ""
        text = arguments.get(name)
        if isinstance(text, str) and not _may_be_text(_properties(schema).get(name)):
            found[name] = _decode_text(text)
    return found


def _may_be_text(part: object) -> bool:
    declared = part.get("type") if isinstance(part, Mapping) else None
    return declared == "string" or (isinstance(declared, list) and "string" in declared)


def _decode_text(text: str) -> object:
    """The JSON value that a text is, or the text where it is none: then it does not fit, and that is said."""
    try:
        return decode({"True": "true", "False": "false"}.get(text.strip(), text))
    except Unreadable:
        return text


def _properties(schema: Data) -> Mapping[str, object]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def shown(data: object) -> str:
    """Arguments as readable JSON."""
    return json.dumps(data, ensure_ascii=False, indent=2)
