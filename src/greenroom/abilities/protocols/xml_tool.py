"""The XML tool call protocol: <tool_call><name>…</name><params><param>value</param>…</params></tool_call>.

A value is raw text up to its closing tag and is never unescaped; the tool's schema determines its type. Some models
write a JSON object instead of the XML: it is parsed like a TOOL_CALL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from greenroom.abilities.protocols.blocks import (
    GAP,
    escape_for_tag,
    find_cdata_end,
    find_data_end,
    find_line_end,
    match_end_tag,
    read_element,
    strip_invisible,
    strip_wrapper,
)
from greenroom.abilities.protocols.calls import CallRequest, reject_block, render_json, resolve_call
from greenroom.abilities.protocols.parse_result import (
    Block,
    BlockEnd,
    BlockRejection,
    CallDraft,
    ParseContext,
    ProtocolName,
)
from greenroom.abilities.protocols.strict_json import ParseError, decode
from greenroom.abilities.protocols.tool_call import read_body, read_requested_call
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.model import ToolCall

SHAPE: Final = (
    "It looks so: <tool_call><name>the tool</name><params><one>value</one></params></tool_call>. "
    "A value that holds its own tag goes into <![CDATA[…]]>."
)

_JSON: Final = re.compile(GAP + r"(?:(?:`{3,}+|~{3,}+)[^\n]*+\n\s*+)?[{\[]")
_NAME: Final = re.compile(rf"{GAP}<name>([^<]*+)</name>")
_PARAMS: Final = re.compile(rf"{GAP}<params>")
_PARAMS_EMPTY: Final = re.compile(rf"{GAP}<params\s*+/>")
_PARAMS_END: Final = re.compile(rf"{GAP}</params>")
_PARAM: Final = re.compile(rf"{GAP}<([A-Za-z_][\w.-]*+)>")
_JSON_PARAMS: Final = re.compile(r"\s*+(\{.*\})\s*+</params>\s*+\Z", re.DOTALL)


@record
class XmlForm:
    """A call as written, and where it ends. `whole`: its parameters are closed."""

    name: str
    params: dict[str, str]
    after: int
    whole: bool


class XmlToolCalls:
    name: ProtocolName = "xml_tool"
    tag: str = "tool_call"

    def find_end(self, text: str, start: int, indent: int) -> BlockEnd:
        """Find the end of the parameters. They show their own end, so the end tag may be missing."""
        if _JSON.match(text, start):
            return find_data_end(text, start, indent, tag=self.tag)
        around = find_cdata_end(text, start, self.tag)
        if around is not None:
            return around
        loose = find_line_end(text, start, self.tag, indent)
        try:
            form = _parse_form(text, start)
        except ParseError:
            return evolve(loose, sure=False)
        end = match_end_tag(text, form.after, self.tag)
        if end is not None or not form.whole or find_line_end(text, form.after, self.tag, indent).tagged:
            return end or evolve(loose, sure=False)
        return BlockEnd(stop=form.after, after=form.after, sure=True, tagged=False)

    def read(self, block: Block, known: ParseContext) -> CallDraft | BlockRejection:
        if block.attributes:
            return reject_block(
                self.tag, f"its opening tag is just <{self.tag}>, without {block.attributes!r}.", shape=SHAPE
            )
        try:
            call_request = self._read_requested_call(block)
        except ParseError as error:
            return reject_block(self.tag, str(error), shape=SHAPE)
        return resolve_call(call_request, known, self.write)

    def write(self, call: ToolCall) -> str:
        """Write one parameter per line: text unchanged, everything else as JSON."""
        params = "".join(f"<{name}>{_render_value(name, value)}</{name}>\n" for name, value in call.arguments.items())
        return f"<{self.tag}>\n<name>{call.name}</name>\n<params>\n{params}</params>\n</{self.tag}>"

    def _read_requested_call(self, block: Block) -> CallRequest:
        if _JSON.match(block.body):
            return read_requested_call(self.tag, read_body(block))
        body = strip_wrapper(block.body)
        try:
            form = _parse_form(body, 0)
        except ParseError:
            mended = _parse_json_params(body) if block.tagged else None
            if mended is None:
                raise
            name, arguments = mended
            return CallRequest(
                tag=self.tag, name=name, arguments=arguments, repaired="its parameters are JSON, not XML"
            )
        if strip_invisible(body[form.after :]):
            raise ParseError("there is something behind the parameters.")
        unended = not (block.sure or (block.tagged and form.whole))
        return CallRequest(tag=self.tag, name=form.name, arguments=form.params, raw=True, unended=unended)


def _parse_form(text: str, start: int) -> XmlForm:
    """Parse the call that begins here. Raise `ParseError` with a sentence for the model."""
    name, at = _parse_name(text, start)
    empty = _PARAMS_EMPTY.match(text, at)
    begin = _PARAMS.match(text, at)
    if empty or not begin:
        return XmlForm(name=name, params={}, after=empty.end() if empty else at, whole=bool(empty))
    params: dict[str, str] = {}
    at = begin.end()
    while not (over := _PARAMS_END.match(text, at)):
        param = _PARAM.match(text, at)
        if param is None:
            last = f"the parameter {next(reversed(params))!r}" if params else "<params>"
            raise ParseError(f"what follows {last} is neither a parameter nor </params>.")
        value = read_element(text, param.end(), param[1])
        if value is None:
            raise ParseError(f"the parameter {param[1]!r} is not closed by </{param[1]}>, or holds its own tag.")
        if param[1] in params:
            raise ParseError(f"the parameter {param[1]!r} is there twice.")
        params[param[1]], at = value.text, value.after
    return XmlForm(name=name, params=params, after=over.end(), whole=True)


def _parse_name(text: str, start: int = 0) -> tuple[str, int]:
    found = _NAME.match(text, start)
    if found is None or not found[1].strip():
        raise ParseError("it does not begin with <name>the tool</name>.")
    return found[1].strip(), found.end()


def _parse_json_params(body: str) -> tuple[str, Data] | None:
    """Parse a JSON object in place of the parameters."""
    try:
        name, at = _parse_name(body)
        begin = _PARAMS.match(body, at)
        inside = _JSON_PARAMS.match(body, begin.end()) if begin else None
        found = decode(inside[1]) if inside else None
    except ParseError:
        return None
    return (name, found) if isinstance(found, Mapping) else None


def _render_value(name: str, value: object) -> str:
    if not isinstance(value, str):
        return render_json(value)
    return escape_for_tag(value, name)
