"""XML tool calls: <tool_call><name>…</name><params><param>value</param>…</params></tool_call>.

A value is raw text up to its closing tag, never unescaped; the tool's schema says what it means. A JSON object in the
place of the XML, as some models are trained to write it, is read like a TOOL_CALL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from greenroom.abilities.protocols.blocks import (
    bare,
    cdata_end,
    closed,
    data_end,
    element,
    line_end,
    safe,
)
from greenroom.abilities.protocols.calls import Asked, drafted, not_run, shown
from greenroom.abilities.protocols.jsons import Unreadable, decode
from greenroom.abilities.protocols.outcome import Acts, Block, Draft, End, Known, NotRun, ProtocolName, Read
from greenroom.abilities.protocols.tool_call import asked_of, body_of
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.model import ToolCall

SHAPE: Final = (
    "It looks so: <tool_call><name>the tool</name><params><one>value</one></params></tool_call>. "
    "A value that holds its own tag goes into <![CDATA[…]]>."
)

_JSON: Final = re.compile(r"\s*+(?:(?:`{3,}+|~{3,}+)[^\n]*+\n\s*+)?[{\[]")
_NAME: Final = re.compile(r"\s*+<name>([^<]*+)</name>")
_PARAMS: Final = re.compile(r"\s*+<params>")
_PARAMS_EMPTY: Final = re.compile(r"\s*+<params\s*+/>")
_PARAMS_END: Final = re.compile(r"\s*+</params>")
_PARAM: Final = re.compile(r"\s*+<([A-Za-z_][\w.-]*+)>")
_JSON_PARAMS: Final = re.compile(r"\s*+(\{.*\})\s*+</params>\s*+\Z", re.DOTALL)


@record
class Form:
    """A call as it is written, and where that is over. `whole`: its parameters are closed."""

    name: str
    params: dict[str, str]
    after: int
    whole: bool


class XmlToolCalls:
    """Reads and writes them."""

    name: ProtocolName = "xml_tool"
    tag: str = "tool_call"

    def end(self, text: str, start: int, indent: int) -> End:
        """Behind the parameters, which show their own end; so the end tag may be missing."""
        if _JSON.match(text, start):
            return data_end(text, start, self.tag, indent)
        around = cdata_end(text, start, self.tag)
        if around is not None:
            return around
        loose = line_end(text, start, self.tag, indent)
        try:
            form = _form(text, start)
        except Unreadable:
            return evolve(loose, sure=False)
        end = closed(text, form.after, self.tag)
        if end is not None or not form.whole or line_end(text, form.after, self.tag, indent).tagged:
            return end or evolve(loose, sure=False)
        return End(stop=form.after, after=form.after, sure=True, tagged=False)

    def read(self, block: Block, known: Known) -> Draft | NotRun:
        """The call, if the body is one."""
        if block.attributes:
            return not_run(
                self.tag, f"its opening tag is just <{self.tag}>, without {block.attributes!r}.", shape=SHAPE
            )
        try:
            asked = self._asked(block)
        except Unreadable as error:
            return not_run(self.tag, str(error), shape=SHAPE)
        return drafted(asked, known, self.write)

    def write(self, call: ToolCall) -> str:
        """One parameter per line; text as it is, everything else as JSON."""
        params = "".join(f"<{name}>{_written(name, value)}</{name}>\n" for name, value in call.arguments.items())
        return f"<{self.tag}>\n<name>{call.name}</name>\n<params>\n{params}</params>\n</{self.tag}>"

    def _asked(self, block: Block) -> Asked:
        if _JSON.match(block.body):
            return asked_of(self.tag, body_of(block))
        body = bare(block.body)
        try:
            form = _form(body, 0)
        except Unreadable:
            mended = _json_params(body) if block.tagged else None
            if mended is None:
                raise
            name, arguments = mended
            return Asked(tag=self.tag, name=name, arguments=arguments, repaired="its parameters are JSON, not XML")
        if body[form.after :].strip():
            raise Unreadable("there is something behind the parameters.")
        unended = not (block.sure or (block.tagged and form.whole))
        return Asked(tag=self.tag, name=form.name, arguments=form.params, raw=True, unended=unended)


def routing(read: Read) -> Data | None:
    """Where a reply leads, as ArtifactFlow says it: a tool, a sub-agent, or None for an agent that is done."""
    if not isinstance(read, Acts):
        return None
    call = read.call
    if call.name != "call_subagent":
        return {"type": "tool_call", "tool_name": call.name, "params": call.arguments}
    arguments = call.arguments
    return {"type": "subagent", "target": arguments.get("agent_name"), "instruction": arguments.get("instruction")}


def _form(text: str, start: int) -> Form:
    """The call that is written here; `Unreadable` with a sentence for the model."""
    name, at = _name(text, start)
    empty = _PARAMS_EMPTY.match(text, at)
    begin = _PARAMS.match(text, at)
    if empty or not begin:
        return Form(name=name, params={}, after=empty.end() if empty else at, whole=bool(empty))
    params: dict[str, str] = {}
    at = begin.end()
    while not (over := _PARAMS_END.match(text, at)):
        param = _PARAM.match(text, at)
        if param is None:
            last = f"the parameter {next(reversed(params))!r}" if params else "<params>"
            raise Unreadable(f"what follows {last} is neither a parameter nor </params>.")
        value = element(text, param.end(), param[1])
        if value is None:
            raise Unreadable(f"the parameter {param[1]!r} is not closed by </{param[1]}>, or holds its own tag.")
        if param[1] in params:
            raise Unreadable(f"the parameter {param[1]!r} is there twice.")
        params[param[1]], at = value.text, value.after
    return Form(name=name, params=params, after=over.end(), whole=True)


def _name(text: str, start: int = 0) -> tuple[str, int]:
    found = _NAME.match(text, start)
    if found is None or not found[1].strip():
        raise Unreadable("it does not begin with <name>the tool</name>.")
    return found[1].strip(), found.end()


def _json_params(body: str) -> tuple[str, Data] | None:
    """A JSON object where the parameters should be."""
    try:
        name, at = _name(body)
        begin = _PARAMS.match(body, at)
        inside = _JSON_PARAMS.match(body, begin.end()) if begin else None
        found = decode(inside[1]) if inside else None
    except Unreadable:
        return None
    return (name, found) if isinstance(found, Mapping) else None


def _written(name: str, value: object) -> str:
    if not isinstance(value, str):
        return shown(value)
    return safe(value, name)
