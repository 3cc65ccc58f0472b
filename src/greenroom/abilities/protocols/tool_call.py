"""TOOL_CALL: a JSON object with `name` and `arguments` between <TOOL_CALL> and </TOOL_CALL>. YAML is read as well.

`want`, what the caller hopes to learn, may stand beside them and is not passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.abilities.protocols.blocks import bare, data_end, lines
from greenroom.abilities.protocols.calls import Asked, drafted, not_run, shown
from greenroom.abilities.protocols.jsons import Unreadable, decode, decode_or_repair
from greenroom.abilities.protocols.outcome import Block, Draft, End, Known, NotRun, ProtocolName
from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import ToolCall

SHAPE: Final = 'It holds one JSON object: {"name": "the tool", "arguments": {…}}.'

_NAMES: Final = ("tool", "tool_name", "function")
_ARGUMENTS: Final = ("parameters", "params", "args", "input")


@record
class Body:
    """What the body of a block says. `repaired` is why it had to be mended, `unended` that its end is not known."""

    value: object
    repaired: str = ""
    unended: bool = False


class ToolCallBlocks:
    """Reads and writes them."""

    name: ProtocolName = "tool_call"
    tag: str = "TOOL_CALL"

    def end(self, text: str, start: int, indent: int) -> End:
        """JSON shows its own end; YAML ends at an end tag on a line of its own."""
        return data_end(text, start, self.tag, indent)

    def read(self, block: Block, known: Known) -> Draft | NotRun:
        """The call, if the body is one."""
        if block.attributes:
            return not_run(
                self.tag, f"its opening tag is just <{self.tag}>, without {block.attributes!r}.", shape=SHAPE
            )
        try:
            asked = asked_of(self.tag, body_of(block))
        except Unreadable as error:
            return not_run(self.tag, str(error), shape=SHAPE)
        return drafted(asked, known, self.write)

    def write(self, call: ToolCall) -> str:
        """As indented JSON."""
        return f"<{self.tag}>\n{shown({'name': call.name, 'arguments': dict(call.arguments)})}\n</{self.tag}>"


def body_of(block: Block) -> Body:
    """The JSON or YAML of a block; `Unreadable` with a whole sentence for the model."""
    text = bare(block.body)
    if text.lstrip().startswith(("{", "[")):
        return _json(text, block)
    if not text.strip():
        raise Unreadable("it is empty.")
    return Body(value=_yaml(text, block), unended=not block.sure)


def _json(text: str, block: Block) -> Body:
    value, flaw = decode_or_repair(text)
    if flaw and not block.tagged:
        raise Unreadable(f"its JSON cannot be read ({flaw}).")
    return Body(value=value, repaired=f"its JSON is not valid ({flaw})" if flaw else "")


def _yaml(text: str, block: Block) -> object:
    from greenroom.abilities.protocols.yamls import load

    try:
        return load(lines(text))
    except Unreadable as error:
        missing = "" if block.tagged else f", and </{block.tag}> is missing"
        raise Unreadable(f"it is neither JSON nor YAML ({error}){missing}.") from None


def asked_of(tag: str, body: Body) -> Asked:
    """Name and arguments, also under the names that other houses use; `Unreadable` with a sentence for the model."""
    value, repaired = body.value, body.repaired
    if isinstance(value, list):
        if len(value) != 1 or not isinstance(value[0], dict):
            raise Unreadable("it holds a list; only one call at a time.")
        value, repaired = value[0], repaired or "it holds a list, not one object"
    if not isinstance(value, dict):
        raise Unreadable("it holds no object.")
    fields = {str(key): part for key, part in value.items()}
    fields, renamed = _renamed(fields)
    extra = sorted(fields.keys() - {"name", "arguments", "want"})
    if extra:
        raise Unreadable(f"{', '.join(map(repr, extra))} cannot stand beside name and arguments.")
    name = fields.get("name")
    if not isinstance(name, str) or not name.strip():
        raise Unreadable("the tool's 'name' is missing.")
    return Asked(
        tag=tag,
        name=name,
        arguments=_arguments(fields),
        repaired=repaired or renamed,
        unended=body.unended,
    )


def _renamed(fields: dict[str, object]) -> tuple[dict[str, object], str]:
    """The right names for the two fields, and what was said instead."""
    found, said = dict(fields), ""
    for right, others in (("name", _NAMES), ("arguments", _ARGUMENTS)):
        other = next((name for name in others if name in found), None)
        if right not in found and other is not None:
            found[right] = found.pop(other)
            said = f"{right!r} is the name of the field, not {other!r}"
    return found, said


def _arguments(fields: Data) -> Data:
    """The object, also if it came as a text of JSON, as one wire has it."""
    found = fields.get("arguments")
    if isinstance(found, str) and found.lstrip().startswith("{"):
        try:
            found = decode(found)
        except Unreadable as error:
            raise Unreadable(f"'arguments' is a text and no JSON ({error}).") from None
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise Unreadable("'arguments' is no object.")
    return {str(key): part for key, part in found.items()}
