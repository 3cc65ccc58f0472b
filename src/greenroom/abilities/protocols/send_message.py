"""The SEND_MESSAGE protocol: a YAML mapping of `to` and `content`. The message is a handoff: control goes with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import dedent, indent
from typing import Final

from greenroom.abilities.protocols.blocks import find_data_end, normalize_newlines, strip_wrapper
from greenroom.abilities.protocols.calls import find_nearest_name, reject_block
from greenroom.abilities.protocols.parse_result import (
    Block,
    BlockEnd,
    BlockRejection,
    CallDraft,
    ParseContext,
    ProtocolName,
)
from greenroom.abilities.protocols.strict_json import MAX_FAULT_CHARS, ParseError, decode
from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import ToolCall

TAG: Final = "SEND_MESSAGE"
YAML_ADVICE: Final = (
    "Check three things: every line of the content is indented by two spaces under 'content: |2'; "
    "a text in quotes has both quotes; a text with a colon or a quote in it stands under '|2' or in quotes."
)

_FIELD: Final = re.compile(r"^[ \t]*(?P<name>to|content)[ \t]*:[ \t]*(?P<value>.*)$", re.MULTILINE)
_STYLE: Final = re.compile(r"[|>][-+0-9]*[ \t]*\Z")
_PLAIN: Final = re.compile(r"[^\W\d_][\w-]*(?: [\w-]+)*")
_WORDS: Final = {"true", "false", "null"}
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


@record
class MessageFields:
    """The two fields of a message, as far as they could be read."""

    to: str
    content: str


class SendMessageBlocks:
    name: ProtocolName = "send_message"
    tag: str = TAG

    def find_end(self, text: str, start: int, indent: int) -> BlockEnd:
        """Find the end tag on its own line, or the end of the JSON."""
        return find_data_end(text, start, indent, tag=self.tag)

    def read(self, block: Block, known: ParseContext) -> CallDraft | BlockRejection:
        """Parse the message. Reject it if a field is missing or the receiver does not exist."""
        if block.attributes:
            return reject_block(
                TAG, f"its opening tag is just <{TAG}>, without {block.attributes!r}.", shape=_render_example()
            )
        text = normalize_newlines(strip_wrapper(block.body))
        try:
            value, shows_end = _load_value(text)
        except ParseError as error:
            return self._reject_unreadable(text, block, known, str(error))
        if not isinstance(value, Mapping):
            return reject_block(TAG, "it holds no mapping of 'to' and 'content'.", shape=_render_example())
        wrong = [
            *([] if known.arbiter and "to" not in value else _find_field_faults(value, "to")),
            *_find_field_faults(value, "content"),
            *_find_extra_fields(value),
        ]
        unended = not (block.sure or shows_end)
        return (
            _reject_fields(text, wrong, known, unended=unended) if wrong else _build_call(value, known, unended=unended)
        )

    def write(self, call: ToolCall) -> str:
        """Write the content under `|2` where YAML allows it."""
        return _render_block(str(call.arguments["receiver"]), str(call.arguments["message"]))

    def _reject_unreadable(self, text: str, block: Block, known: ParseContext, why: str) -> BlockRejection:
        guess = _guess_fields(text)
        missing = "" if block.tagged else f" Its end tag </{TAG}> was missing; it was added, and that did not help."
        said = f"its YAML cannot be read: {why}.{missing} {YAML_ADVICE}"
        if guess is None or guess.to not in known.agents or not block.tagged:
            return reject_block(TAG, said, shape=_render_example())
        return reject_block(TAG, said, _render_block(guess.to, guess.content))


def _reject_fields(text: str, wrong: list[str], known: ParseContext, *, unended: bool) -> BlockRejection:
    """Reject a message and quote its two fields. Quote neither if there are other fields."""
    found = _load_value(text, typed=False)[0]
    fields = found if isinstance(found, Mapping) and not _find_extra_fields(found) and not unended else {}
    to, content = _read_text(fields.get("to")).strip(), _read_text(fields.get("content"))
    why = "; ".join(wrong) + "."
    if to in known.agents and content.strip():
        return reject_block(TAG, why, _render_block(to, content))
    return reject_block(TAG, why, shape=_render_example(to, content))


def _build_call(value: Mapping[str, object], known: ParseContext, *, unended: bool) -> CallDraft | BlockRejection:
    to, content = _read_text(value.get("to")).strip(), _read_text(value.get("content"))
    if to not in known.agents and "to" in value:
        names = sorted(known.agents)
        if not names:
            return reject_block(TAG, f"there is no agent {to!r}; there is no agent to write to.")
        near = names[0] if len(names) == 1 and _PLAIN.fullmatch(to) else find_nearest_name(to, names)
        repaired = _render_block(near, content) if near else ""
        return reject_block(TAG, f"there is no agent {to!r}. Write to one of these: {', '.join(names)}.", repaired)
    arguments: Data = {"receiver": to, "message": content, "handoff": True}
    return CallDraft(call=ToolCall(call_id="", name="send_message", arguments=arguments), unended=unended)


def _load_value(text: str, *, typed: bool = True) -> tuple[object, bool]:
    """Return the value of the body, and whether it shows its own end, as braces do. If not `typed`, every YAML scalar
    is text."""
    from greenroom.abilities.protocols.strict_yaml import load

    if not text.lstrip().startswith("{"):
        return load(text, typed=typed), False
    try:
        return decode(text), True
    except ParseError:
        return load(text, typed=typed), True


def _find_field_faults(value: Mapping[str, object], name: str) -> list[str]:
    if name not in value:
        return [f"{name!r} is missing"]
    found = value[name]
    if found is None or (isinstance(found, str) and not found.strip()):
        return [f"{name!r} is blank"]
    return [] if isinstance(found, str) else [f"{name!r} must be a text (str), not {type(found).__name__}"]


def _find_extra_fields(value: Mapping[str, object]) -> list[str]:
    extra = sorted(value.keys() - {"to", "content"})
    return [f"{', '.join(map(repr, extra))} cannot stand beside 'to' and 'content'"] if extra else []


def _read_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _render_example(to: str = "", content: str = "") -> str:
    said = content.strip() if len(content) <= MAX_FAULT_CHARS else ""
    return "\nFor example:\n" + _render_block(to or "name-of-the-agent", said or "What you want to say.")


def _guess_fields(text: str) -> MessageFields | None:
    """Guess the fields of invalid YAML if nothing gets lost: `to`, then `content` and everything after it."""
    fields = list(_FIELD.finditer(text))
    if [field["name"] for field in fields] != ["to", "content"] or "\t" in text:
        return None
    to, content = fields
    if text[: to.start()].strip() or text[to.end() : content.start()].strip():
        return None
    first = "" if _STYLE.match(content["value"]) else content["value"]
    rest = dedent(text[content.end() :].strip("\n"))
    found = MessageFields(to=to["value"].strip(" \"'"), content="\n".join(filter(None, (first, rest))).strip())
    return found if found.to and found.content else None


def _render_block(to: str, content: str) -> str:
    from greenroom.abilities.protocols.strict_yaml import dump, load

    plain = _PLAIN.fullmatch(to) and to.lower() not in _WORDS
    head = f"to: {to if plain else dump(to)}\n"
    ends = len(content) - len(content.rstrip("\n"))
    indented = indent(content, "  ", lambda line: line != "\n")
    body = f"content: |2{'-+'[ends > 1] if ends != 1 else ''}\n{indented}{'' if ends else chr(10)}"
    # Not every text fits under |2: not leading tabs, trailing blank lines or characters that YAML does not print.
    if _UNPRINTABLE.search(content) or load(head + body) != {"to": to, "content": content}:
        body = f"content: {dump(content)}\n"
    return f"<{TAG}>\n{head}{body}</{TAG}>"
