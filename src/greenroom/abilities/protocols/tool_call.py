"""The TOOL_CALL protocol: a JSON object with `name` and `arguments` between <TOOL_CALL> and </TOOL_CALL>.

YAML is accepted too. An additional field `want` may say why the model makes the call; it is not passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.abilities.protocols.blocks import find_data_end, normalize_newlines, strip_wrapper
from greenroom.abilities.protocols.calls import CallRequest, reject_block, render_json, resolve_call
from greenroom.abilities.protocols.parse_result import (
    Block,
    BlockEnd,
    BlockRejection,
    CallDraft,
    ParseContext,
    ProtocolName,
)
from greenroom.abilities.protocols.strict_json import ParseError, decode, decode_or_repair
from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import ToolCall

SHAPE: Final = 'It holds one JSON object: {"name": "the tool", "arguments": {…}}.'

_NAME_ALIASES: Final = ("tool", "tool_name", "function")
_ARGUMENTS_ALIASES: Final = ("parameters", "params", "args", "input")


@record
class BlockBody:
    """The content of a block. `texts` is the same with every scalar of YAML as written. `repaired` says why it was
    repaired; `unended` means that its end is unknown."""

    value: object
    texts: object = None
    repaired: str = ""
    unended: bool = False


class ToolCallBlocks:
    name: ProtocolName = "tool_call"
    tag: str = "TOOL_CALL"

    def find_end(self, text: str, start: int, indent: int) -> BlockEnd:
        """Find the end of the JSON, or for YAML the end tag on its own line."""
        return find_data_end(text, start, indent, tag=self.tag)

    def read(self, block: Block, known: ParseContext) -> CallDraft | BlockRejection:
        if block.attributes:
            return reject_block(
                self.tag, f"its opening tag is just <{self.tag}>, without {block.attributes!r}.", shape=SHAPE
            )
        try:
            call_request = read_requested_call(self.tag, read_body(block))
        except ParseError as error:
            return reject_block(self.tag, str(error), shape=SHAPE)
        return resolve_call(call_request, known, self.write)

    def write(self, call: ToolCall) -> str:
        """Write the call as indented JSON."""
        return f"<{self.tag}>\n{render_json({'name': call.name, 'arguments': dict(call.arguments)})}\n</{self.tag}>"


def read_body(block: Block) -> BlockBody:
    """Parse the JSON or YAML of a block. Raise `ParseError` with a full sentence for the model."""
    text = strip_wrapper(block.body)
    if text.lstrip().startswith(("{", "[")):
        return _read_json(text, block)
    if not text.strip():
        raise ParseError("it is empty.")
    value, texts = (_read_yaml(text, block, typed=typed) for typed in (True, False))
    return BlockBody(value=value, texts=texts, unended=not block.sure)


def _read_json(text: str, block: Block) -> BlockBody:
    value, flaw = decode_or_repair(text)
    if flaw and not block.tagged:
        raise ParseError(f"its JSON cannot be read ({flaw}).")
    return BlockBody(value=value, repaired=f"its JSON is not valid ({flaw})" if flaw else "")


def _read_yaml(text: str, block: Block, *, typed: bool) -> object:
    from greenroom.abilities.protocols.strict_yaml import load

    try:
        return load(normalize_newlines(text), typed=typed)
    except ParseError as error:
        missing = "" if block.tagged else f", and </{block.tag}> is missing"
        raise ParseError(f"it is neither JSON nor YAML ({error}){missing}.") from None


def read_requested_call(tag: str, body: BlockBody) -> CallRequest:
    """Read name and arguments, also under the field names of other systems. Raise `ParseError` with a sentence for the
    model."""
    value, repaired = body.value, body.repaired
    if isinstance(value, list):
        if len(value) != 1 or not isinstance(value[0], dict):
            raise ParseError("it holds a list; only one call at a time.")
        value, repaired = value[0], repaired or "it holds a list, not one object"
    if not isinstance(value, dict):
        raise ParseError("it holds no object.")
    fields = {str(key): part for key, part in value.items()}
    fields, renamed = _normalize_fields(fields)
    extra = sorted(fields.keys() - {"name", "arguments", "want"})
    if extra:
        raise ParseError(f"{', '.join(map(repr, extra))} cannot stand beside name and arguments.")
    name = fields.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ParseError("the tool's 'name' is missing.")
    return CallRequest(
        tag=tag,
        name=name,
        arguments=_read_arguments(fields),
        texts=_read_arguments(_normalize_fields(body.texts)[0]) if isinstance(body.texts, dict) else None,
        repaired=repaired or renamed,
        unended=body.unended,
    )


def _normalize_fields(fields: dict[str, object]) -> tuple[dict[str, object], str]:
    """Rename the two fields to their proper names, and return which other names were used."""
    found, said = dict(fields), ""
    for right, others in (("name", _NAME_ALIASES), ("arguments", _ARGUMENTS_ALIASES)):
        other = next((name for name in others if name in found), None)
        if right not in found and other is not None:
            found[right] = found.pop(other)
            said = f"{right!r} is the name of the field, not {other!r}"
    return found, said


def _read_arguments(fields: Data) -> Data:
    """Return the arguments object, also if it is encoded as a JSON string, as in one wire format."""
    found = fields.get("arguments")
    if isinstance(found, str) and found.lstrip().startswith("{"):
        try:
            found = decode(found)
        except ParseError as error:
            raise ParseError(f"'arguments' is a text and no JSON ({error}).") from None
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ParseError("'arguments' is not an object.")
    return {str(key): part for key, part in found.items()}
