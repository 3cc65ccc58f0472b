"""Replies: how calls in text are asked for, read and run, and how answers between tags are read."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, Literal

from greenroom.abilities.protocols.blocks import bare, cdata_end, data_end, find_blocks, line_end, sections, unframed
from greenroom.abilities.protocols.calls import not_run
from greenroom.abilities.protocols.edits import PatchBlocks, RewriteBlocks
from greenroom.abilities.protocols.jsons import Unreadable, decode_or_repair, encodable
from greenroom.abilities.protocols.outcome import (
    Acts,
    Block,
    Draft,
    End,
    Ender,
    Known,
    Nothing,
    NotRun,
    Policy,
    ProtocolName,
    Read,
    Scan,
    TextProtocol,
)
from greenroom.abilities.protocols.send_message import TAG, SendMessageBlocks
from greenroom.abilities.protocols.tool_call import ToolCallBlocks
from greenroom.abilities.protocols.xml_tool import XmlToolCalls
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.model import ToolCall, ToolSpec
from greenroom.core.ports.packs import ENGLISH, Pack
from greenroom.core.ports.reading import Datum

PROTOCOLS: Final[Mapping[ProtocolName, TextProtocol]] = MappingProxyType(
    {
        "tool_call": ToolCallBlocks(),
        "xml_tool": XmlToolCalls(),
        "send_message": SendMessageBlocks(),
        "patch": PatchBlocks(),
        "rewrite": RewriteBlocks(),
    }
)

HARMLESS: Final = frozenset({"send_message"})
"""Calls of our own that change nothing outside the house."""


def read(
    text: str,
    protocols: Sequence[ProtocolName],
    *,
    tools: Sequence[ToolSpec] = (),
    agents: Collection[str] = (),
    pure: Container[str] = frozenset(),
    policy: Policy = "reject",
    ended: bool | None = None,
) -> Read:
    """What a reply asks for.

    `tools` are the ones it may call, `pure` the names of those without side effects, `agents` the names it may write
    to. `ended` is what the provider reports: True is a natural end, and then a message without its end tag is whole;
    False is that the reply was cut off, and then nothing with side effects is run; None is that nobody knows.
    """
    spoken = {PROTOCOLS[name].tag: PROTOCOLS[name] for name in protocols}
    if not spoken:
        return Nothing(said=text.strip())
    found = find_blocks(text, {tag: protocol.end for tag, protocol in spoken.items()})
    if not found.blocks:
        return Nothing(said=found.said, hint=found.hint)
    why = _doubt(text, found, policy)
    if why is not None:
        return why
    block = found.blocks[0]
    known = Known(tools={tool.name: tool for tool in tools}, pure=pure, agents=agents, ended=ended)
    return _settled(spoken[block.tag], block, known, found)


def write(call: ToolCall, protocol: ProtocolName) -> str:
    """A call as a block of this protocol, which reads back as the same call."""
    return PROTOCOLS[protocol].write(call)


def _doubt(text: str, found: Scan, policy: Policy) -> NotRun | None:
    """Why no block of this reply can be run, whatever stands in it."""
    blocks = found.blocks
    if len(blocks) > 1 and policy == "reject":
        return NotRun(why=_several(blocks))
    if not encodable(text):
        return not_run(blocks[0].tag, "the reply holds half a character. Send the block again.")
    block = blocks[0]
    if found.doubt:
        return not_run(block.tag, found.doubt)
    if not block.clear:
        why = (
            f"its end tag </{block.tag}> must be the last on its line; as it is, nobody can tell whether it ends there."
        )
        return not_run(block.tag, why, shape=f"Write </{block.tag}> on a line of its own, or leave the block out.")
    return None


def _several(blocks: Sequence[Block]) -> str:
    tags = {block.tag for block in blocks}
    if tags == {"SEND_MESSAGE"}:
        return (
            "No message was sent: only one SEND_MESSAGE block at a time. Merge them, or send them over several turns."
        )
    listed = ", ".join(_place(block) for block in blocks)
    return f"Nothing was run: only one operation at a time. Your reply has {listed}. Send one, then wait."


def _place(block: Block) -> str:
    return f"<{block.tag}> in line {block.line}"


def _settled(protocol: TextProtocol, block: Block, known: Known, found: Scan) -> Acts | NotRun:
    """The call, unless it is uncertain and would change something."""
    draft = protocol.read(block, known)
    if isinstance(draft, NotRun):
        return draft if block.whole and known.ended is not False else evolve(draft, repaired="")
    why = _uncertain(block, draft, known)
    if why is not None:
        can_come_back = block.whole and known.ended is not False
        return not_run(block.tag, why, protocol.write(draft.call) if can_come_back else "")
    return Acts(
        call=draft.call,
        protocol=protocol.name,
        said=found.said,
        notes=_notes(block, draft),
        dropped=tuple(_place(block) for block in found.blocks[1:]),
        repaired=bool(draft.repaired),
    )


def _uncertain(block: Block, draft: Draft, known: Known) -> str | None:
    """Why a call that was read is not run."""
    pure = draft.call.name in known.pure
    if known.ended is False and not (pure and block.tagged and not draft.unended):
        return "your reply was cut off, so this may not be what you wanted. Send the block again, with less around it."
    harmless = pure or draft.call.name in HARMLESS
    if draft.unended and not (harmless and known.ended):
        place = "is not on a line of its own" if block.tagged else "is missing"
        return f"its end tag </{block.tag}> {place}, so it may not be whole. Send it again, whole, and end it so."
    if draft.repaired and not harmless:
        return f"{draft.repaired}."
    return None


def _notes(block: Block, draft: Draft) -> tuple[str, ...]:
    notes = []
    if not block.tagged:
        notes.append(f"The end tag </{block.tag}> was missing and was added. Always write it, on a line of its own.")
    if draft.repaired:
        notes.append(f"Your <{block.tag}> block was mended before it was run: {draft.repaired}.")
    return tuple(notes)


PACK: Final = Pack("greenroom.abilities.protocols.prompts")
NOBODY: Final[Mapping[str, str]] = {}


def prompt(
    protocols: Sequence[ProtocolName],
    *,
    tools: Sequence[ToolSpec] = (),
    agents: Mapping[str, str] = NOBODY,
    language: str = ENGLISH,
) -> str:
    """The rules, then each protocol with its example. `agents` are descriptions by name.

    Nothing of it belongs beside native tools: a model that is told of both uses both.
    """
    tags = [PROTOCOLS[name].tag for name in protocols]
    shown_tools = [
        {"name": tool.name, "description": tool.description, "parameters": encode(tool.parameters).decode()}
        for tool in tools
    ]
    values = {"tools": shown_tools, "agents": agents, "tags": tags}
    return "\n\n".join(PACK.render(language, name, values) for name in ("rules", *protocols)) + "\n"


class MessageHandler:
    """Finds a message in a response. It only reads: whoever called it sends. `agents` are descriptions by name."""

    def __init__(self, agents: Mapping[str, str]) -> None:
        self._agents = agents

    def can_handle(self, response: str) -> bool:
        """Whether the opening tag occurs at all; `handle` may still find that it is no message."""
        return f"<{TAG}>" in response

    def handle(self, response: str) -> tuple[Literal[True], dict[str, str]] | tuple[Literal[False], str]:
        """(True, the message as `to` and `content`), or (False, what is wrong and how to write it)."""
        found = read(response, ["send_message"], agents=self._agents, ended=True)
        if isinstance(found, Acts):
            arguments = found.call.arguments
            return True, {"to": str(arguments["receiver"]), "content": str(arguments["message"])}
        if isinstance(found, NotRun):
            return False, str(found)
        return False, found.hint or f"There is no <{TAG}> block in the reply: its opening tag begins a line."

    def prompt(self, language: str = ENGLISH) -> str:
        """How a model is asked to write messages."""
        return prompt(["send_message"], agents=self._agents, language=language)


Kind = Literal["text", "data"]


def _end_of_data(text: str, start: int, indent: int, *, tag: str) -> End:
    return data_end(text, start, tag, indent)


def _end_of_text(text: str, start: int, indent: int, *, tag: str) -> End:
    return cdata_end(text, start, tag) or line_end(text, start, tag, indent)


_ENDS: Final = {"data": _end_of_data, "text": _end_of_text}


def tagged(text: str, tags: Mapping[str, Kind]) -> dict[str, tuple[str, ...]]:
    """The bodies of all blocks of these tags, in their order; `Unreadable` with a whole sentence for the model.

    What is only thought, quoted or shown is no block, and what is cut off is none either.
    """
    enders: dict[str, Ender] = {tag: partial(_ENDS[kind], tag=tag) for tag, kind in tags.items()}
    if not encodable(text):
        raise Unreadable("Your reply holds half a character. Send it again.")
    found = find_blocks(text, enders)
    if found.hint:
        raise Unreadable(found.hint)
    if found.doubt:
        raise Unreadable(f"Your reply cannot be read: {found.doubt}")
    for block in found.blocks:
        if not block.tagged and not block.sure:
            raise Unreadable(
                f"</{block.tag}> is missing, so <{block.tag}> may not be whole. Send it again, and end it."
            )
    return {tag: tuple(_body(block) for block in found.blocks if block.tag == tag) for tag in tags}


def _body(block: Block) -> str:
    inside = sections(block.body, 0)
    whole = inside is not None and not block.body[inside.after :].strip()
    return unframed(inside.text if inside is not None and whole else block.body).strip()


def parsed(body: str) -> Datum:
    """The JSON of a body; `Unreadable` with a whole sentence for the model. One code fence around it is no matter."""
    text = bare(body).strip()
    if not text:
        raise Unreadable("It is empty.")
    try:
        value, flaw = decode_or_repair(text)
    except Unreadable as error:
        sentence = str(error)
        raise Unreadable(sentence[0].upper() + sentence[1:]) from None
    return Datum(value=value, repaired=f"its JSON is not valid ({flaw})" if flaw else "")
