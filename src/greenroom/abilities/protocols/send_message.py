"""SEND_MESSAGE: a YAML mapping of `to` and `content`. Control goes with the message: it is a handoff.

`can_handle` and `handle` are the protocol as an output handler sees it; inside the house blocks are read by `read`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from textwrap import dedent, indent
from typing import Final

from greenroom.abilities.protocols.blocks import bare, data_end, lines
from greenroom.abilities.protocols.calls import nearest, not_run
from greenroom.abilities.protocols.jsons import LONGEST_FAULT, Unreadable, decode
from greenroom.abilities.protocols.outcome import Block, Draft, End, Known, NotRun, ProtocolName
from greenroom.core.base.records import Data, record
from greenroom.core.ports.model import ToolCall

TAG: Final = "SEND_MESSAGE"
CHECK: Final = (
    "Check three things: every line of the content is indented by two spaces under 'content: |2'; "
    "a text in quotes has both quotes; a text with a colon or a quote in it stands under '|2' or in quotes."
)

_FIELD: Final = re.compile(r"^[ \t]*(?P<name>to|content)[ \t]*:[ \t]*(?P<value>.*)$", re.MULTILINE)
_STYLE: Final = re.compile(r"[|>][-+0-9]*[ \t]*\Z")
_PLAIN: Final = re.compile(r"[^\W\d_][\w-]*(?: [\w-]+)*")
_WORDS: Final = {"true", "false", "null"}
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


@record
class Fields:
    """The two fields of a message, as far as they could be made out."""

    to: str
    content: str


class SendMessageBlocks:
    """Reads and writes them."""

    name: ProtocolName = "send_message"
    tag: str = TAG

    def end(self, text: str, start: int, indent: int) -> End:
        """At an end tag on a line of its own; JSON shows its own end."""
        return data_end(text, start, self.tag, indent)

    def read(self, block: Block, known: Known) -> Draft | NotRun:
        """The message, if it has both fields and its receiver exists."""
        if block.attributes:
            return not_run(TAG, f"its opening tag is just <{TAG}>, without {block.attributes!r}.", shape=_example())
        text = lines(bare(block.body))
        try:
            value, shows_end = _value(text)
        except Unreadable as error:
            return self._unread(text, block, known, str(error))
        if not isinstance(value, Mapping):
            return not_run(TAG, "it holds no mapping of 'to' and 'content'.", shape=_example())
        wrong = [*_wrong(value, "to"), *_wrong(value, "content"), *_strangers(value)]
        unended = not (block.sure or shows_end)
        return _refused(text, wrong, known, unended=unended) if wrong else _drafted(value, known, unended=unended)

    def write(self, call: ToolCall) -> str:
        """With the content under `|2`, where YAML allows it."""
        return _written(str(call.arguments["receiver"]), str(call.arguments["message"]))

    def _unread(self, text: str, block: Block, known: Known, why: str) -> NotRun:
        guess = _guess(text)
        missing = "" if block.tagged else f" Its end tag </{TAG}> was missing; it was added, and that did not help."
        said = f"its YAML cannot be read: {why}.{missing} {CHECK}"
        if guess is None or guess.to not in known.agents or not block.tagged:
            return not_run(TAG, said, shape=_example())
        return not_run(TAG, said, _written(guess.to, guess.content))


def _refused(text: str, wrong: list[str], known: Known, *, unended: bool) -> NotRun:
    """What is wrong, with the two fields as they were written; with none of them, if there is more than these two."""
    found = _value(text, typed=False)[0]
    fields = found if isinstance(found, Mapping) and not _strangers(found) and not unended else {}
    to, content = _text(fields.get("to")).strip(), _text(fields.get("content"))
    why = "; ".join(wrong) + "."
    if to in known.agents and content.strip():
        return not_run(TAG, why, _written(to, content))
    return not_run(TAG, why, shape=_example(to, content))


def _drafted(value: Mapping[str, object], known: Known, *, unended: bool) -> Draft | NotRun:
    to, content = _text(value.get("to")).strip(), _text(value.get("content"))
    if to not in known.agents:
        return _nobody(to, content, known.agents)
    arguments: Data = {"receiver": to, "message": content, "handoff": True}
    return Draft(call=ToolCall(call_id="", name="send_message", arguments=arguments), unended=unended)


def _value(text: str, *, typed: bool = True) -> tuple[object, bool]:
    """What the body says, and whether it shows its own end, as braces do. Not `typed`: every word of YAML is a text."""
    from greenroom.abilities.protocols.yamls import load

    if not text.lstrip().startswith("{"):
        return load(text, typed=typed), False
    try:
        return decode(text), True
    except Unreadable:
        return load(text, typed=typed), True


def _wrong(value: Mapping[str, object], name: str) -> list[str]:
    if name not in value:
        return [f"{name!r} is missing"]
    found = value[name]
    if found is None or (isinstance(found, str) and not found.strip()):
        return [f"{name!r} is blank"]
    return [] if isinstance(found, str) else [f"{name!r} must be a text (str), not {type(found).__name__}"]


def _strangers(value: Mapping[str, object]) -> list[str]:
    extra = sorted(value.keys() - {"to", "content"})
    return [f"{', '.join(map(repr, extra))} cannot stand beside 'to' and 'content'"] if extra else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _nobody(to: str, content: str, agents: Collection[str]) -> NotRun:
    names = sorted(agents)
    if not names:
        return not_run(TAG, f"there is no agent {to!r}; there is nobody to write to.")
    near = names[0] if len(names) == 1 and _PLAIN.fullmatch(to) else nearest(to, names)
    repaired = _written(near, content) if near else ""
    return not_run(TAG, f"there is no agent {to!r}. Write to one of these: {', '.join(names)}.", repaired)


# ---------------------------------------------------------------------------------------------- blocks we write


def _example(to: str = "", content: str = "") -> str:
    said = content.strip() if len(content) <= LONGEST_FAULT else ""
    return "\nFor example:\n" + _written(to or "name-of-the-agent", said or "What you want to say.")


def _guess(text: str) -> Fields | None:
    """What was meant by YAML that is none, if nothing of it gets lost: `to`, then `content` and all that follows it."""
    fields = list(_FIELD.finditer(text))
    if [field["name"] for field in fields] != ["to", "content"] or "\t" in text:
        return None
    to, content = fields
    if text[: to.start()].strip() or text[to.end() : content.start()].strip():
        return None
    first = "" if _STYLE.match(content["value"]) else content["value"]
    rest = dedent(text[content.end() :].strip("\n"))
    found = Fields(to=to["value"].strip(" \"'"), content="\n".join(filter(None, (first, rest))).strip())
    return found if found.to and found.content else None


def _written(to: str, content: str) -> str:
    from greenroom.abilities.protocols.yamls import dump, load

    plain = _PLAIN.fullmatch(to) and to.lower() not in _WORDS
    head = f"to: {to if plain else dump(to)}\n"
    ends = len(content) - len(content.rstrip("\n"))
    indented = indent(content, "  ", lambda line: line != "\n")
    body = f"content: |2{'-+'[ends > 1] if ends != 1 else ''}\n{indented}{'' if ends else chr(10)}"
    # Not every text can stand under |2: tabs before it, blank lines behind it, signs that YAML does not print.
    if _UNPRINTABLE.search(content) or load(head + body) != {"to": to, "content": content}:
        body = f"content: {dump(content)}\n"
    return f"<{TAG}>\n{head}{body}</{TAG}>"
