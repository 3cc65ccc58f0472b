"""Reading one reply over several protocols: at most one block is run, and only if there is no doubt about it."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from greenroom.abilities.protocols.blocks import Block, Scan
from greenroom.abilities.protocols.calls import not_run
from greenroom.abilities.protocols.edits import PatchBlocks, RewriteBlocks
from greenroom.abilities.protocols.jsons import encodable
from greenroom.abilities.protocols.outcome import (
    Acts,
    Draft,
    Known,
    Nothing,
    NotRun,
    Policy,
    ProtocolName,
    Read,
    TextProtocol,
)
from greenroom.abilities.protocols.scanner import scan
from greenroom.abilities.protocols.send_message import SendMessageBlocks
from greenroom.abilities.protocols.tool_call import ToolCallBlocks
from greenroom.abilities.protocols.xml_tool import XmlToolCalls
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import ToolCall, ToolSpec

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
    found = scan(text, {tag: protocol.end for tag, protocol in spoken.items()})
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
    return f"Nothing was run: only one operation at a time. Your reply has {_listed(blocks)}. Send one, then wait."


def _listed(blocks: Sequence[Block]) -> str:
    return ", ".join(f"<{block.tag}> in line {block.line}" for block in blocks)


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
        dropped=tuple(f"<{block.tag}> in line {block.line}" for block in found.blocks[1:]),
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
