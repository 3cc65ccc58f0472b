"""Calls that a model writes as text: how to ask for them and how to parse them. Native tool calls do not pass here."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, Literal

from greenroom.abilities.protocols.blocks import (
    find_blocks,
    find_data_end,
    find_text_end,
    read_whole_cdata,
    strip_tag_newlines,
    strip_wrapper,
)
from greenroom.abilities.protocols.calls import reject_block
from greenroom.abilities.protocols.edits import PatchBlocks, RewriteBlocks
from greenroom.abilities.protocols.parse_result import (
    Block,
    BlockCall,
    BlockRejection,
    BlockScan,
    CallDraft,
    EndFinder,
    MultiBlockPolicy,
    NoBlock,
    ParseContext,
    ParsedReply,
    ProtocolName,
    TextProtocol,
)
from greenroom.abilities.protocols.send_message import SendMessageBlocks
from greenroom.abilities.protocols.strict_json import ParseError, decode, decode_or_repair, is_encodable
from greenroom.abilities.protocols.tool_call import ToolCallBlocks
from greenroom.abilities.protocols.xml_tool import XmlToolCalls
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.model import ToolCall, ToolSpec
from greenroom.core.ports.prompt_pack import DEFAULT_LANGUAGE, PromptPack
from greenroom.core.ports.reply_reader import ParsedValue

PROTOCOLS: Final[Mapping[ProtocolName, TextProtocol]] = MappingProxyType(
    {
        "tool_call": ToolCallBlocks(),
        "xml_tool": XmlToolCalls(),
        "send_message": SendMessageBlocks(),
        "patch": PatchBlocks(),
        "rewrite": RewriteBlocks(),
    }
)

HARMLESS_CALLS: Final = frozenset({"send_message"})
"""Built-in calls that change nothing outside the team."""


def read(
    text: str,
    protocols: Sequence[ProtocolName],
    *,
    tools: Sequence[ToolSpec] = (),
    agents: Collection[str] = (),
    pure: Container[str] = frozenset(),
    policy: MultiBlockPolicy = "reject",
    ended: bool | None = None,
    arbiter: bool = False,
) -> ParsedReply:
    """Parse the call that a reply asks for.

    `tools` are the tools that the reply may call, `pure` the names of tools without side effects, `agents` the possible
    receivers. `ended` comes from the provider. True: the model stopped by itself, so a message without its end tag is
    complete. False: the reply was cut off, so nothing with side effects runs. None: unknown. With an `arbiter` a
    message may name no receiver.
    """
    protocols_by_tag = {PROTOCOLS[name].tag: PROTOCOLS[name] for name in protocols}
    if not protocols_by_tag:
        return NoBlock(said=text.strip())
    scan = find_blocks(text, {tag: protocol.find_end for tag, protocol in protocols_by_tag.items()})
    if not scan.blocks:
        return NoBlock(said=scan.said, hint=scan.hint or _find_bare_call(scan.said, tuple(protocols_by_tag), tools))
    why = _find_doubt(text, scan, policy)
    if why is not None:
        return why
    block = scan.blocks[0]
    tools_by_name = {tool.name: tool for tool in tools}
    known = ParseContext(tools=tools_by_name, pure=pure, agents=agents, ended=ended, arbiter=arbiter)
    return _accept_or_reject(protocols_by_tag[block.tag], block, known, scan)


def write(call: ToolCall, protocol: ProtocolName) -> str:
    """Write a call as a block of this protocol that parses to the same call."""
    return PROTOCOLS[protocol].write(call)


def _find_bare_call(said: str, tags: tuple[str, ...], tools: Sequence[ToolSpec]) -> str:
    """Return the hint about a reply that is the JSON of a call and nothing else."""
    tag = next((tag for tag in tags if tag in (ToolCallBlocks.tag, XmlToolCalls.tag)), "")
    try:
        value = decode(said) if tag and said.startswith("{") else None
    except ParseError:
        return ""
    name = value.get("name") if isinstance(value, dict) else None
    if not any(tool.name == name for tool in tools):
        return ""
    return f"Your call of {name!r} was not run: it has no tags. Write <{tag}> before it and </{tag}> behind it."


def _find_doubt(text: str, scan: BlockScan, policy: MultiBlockPolicy) -> BlockRejection | None:
    """Return why no block of this reply can run, regardless of its content."""
    blocks = scan.blocks
    if len(blocks) > 1 and policy == "reject":
        return BlockRejection(why=_explain_several_blocks(blocks))
    if not is_encodable(text):
        return reject_block(blocks[0].tag, "the reply holds half a character. Send the block again.")
    block = blocks[0]
    if scan.doubt:
        return reject_block(block.tag, scan.doubt)
    if not block.clear:
        why = (
            f"its end tag </{block.tag}> must be the last on its line; as it is, it is not clear whether it ends there."
        )
        return reject_block(block.tag, why, shape=f"Write </{block.tag}> on a line of its own, or leave the block out.")
    return None


def _explain_several_blocks(blocks: Sequence[Block]) -> str:
    tags = {block.tag for block in blocks}
    if tags == {"SEND_MESSAGE"}:
        return (
            "No message was sent: only one SEND_MESSAGE block at a time. Merge them, or send them over several turns."
        )
    listed = ", ".join(_describe_place(block) for block in blocks)
    return f"Nothing was run: only one operation at a time. Your reply has {listed}. Send one, then wait."


def _describe_place(block: Block) -> str:
    return f"<{block.tag}> in line {block.line}"


def _accept_or_reject(
    protocol: TextProtocol, block: Block, known: ParseContext, scan: BlockScan
) -> BlockCall | BlockRejection:
    """Return the call, or reject it if it is uncertain and has side effects."""
    draft = protocol.read(block, known)
    if isinstance(draft, BlockRejection):
        return draft if block.is_whole and known.ended is not False else evolve(draft, repaired="")
    why = _find_uncertainty(block, draft, known)
    if why is not None:
        can_come_back = block.is_whole and known.ended is not False
        return reject_block(block.tag, why, protocol.write(draft.call) if can_come_back else "")
    notes = []
    if not block.tagged:
        notes.append(f"The end tag </{block.tag}> was missing and was added. Always write it, on a line of its own.")
    if draft.repaired:
        notes.append(f"Your <{block.tag}> block was mended before it was run: {draft.repaired}.")
    return BlockCall(
        call=draft.call,
        protocol=protocol.name,
        said=scan.said,
        notes=tuple(notes),
        dropped=tuple(_describe_place(block) for block in scan.blocks[1:]),
        repaired=bool(draft.repaired),
    )


def _find_uncertainty(block: Block, draft: CallDraft, known: ParseContext) -> str | None:
    """Return why a parsed call does not run."""
    pure = draft.call.name in known.pure
    if known.ended is False and not (pure and block.tagged and not draft.unended):
        return "your reply was cut off, so this may not be what you wanted. Send the block again, with less around it."
    harmless = pure or draft.call.name in HARMLESS_CALLS
    if draft.unended and not (harmless and known.ended):
        place = "is not on a line of its own" if block.tagged else "is missing"
        return f"its end tag </{block.tag}> {place}, so it may not be whole. Send it again, whole, and end it so."
    if draft.repaired and not harmless:
        return f"{draft.repaired}."
    return None


PACK: Final = PromptPack("greenroom.abilities.protocols.prompts")
NO_AGENTS: Final[Mapping[str, str]] = {}


def render_prompt(
    protocols: Sequence[ProtocolName],
    *,
    tools: Sequence[ToolSpec] = (),
    agents: Mapping[str, str] = NO_AGENTS,
    language: str = DEFAULT_LANGUAGE,
) -> str:
    """Render the rules, then each protocol with its example. `agents` maps names to descriptions.

    Do not combine this prompt with native tools: a model that knows both ways uses both.
    """
    tags = [PROTOCOLS[name].tag for name in protocols]
    shown_tools = [
        {"name": tool.name, "description": tool.description, "parameters": encode(tool.parameters).decode()}
        for tool in tools
    ]
    values = {"tools": shown_tools, "agents": agents, "tags": tags}
    return "\n\n".join(PACK.render(language, name, values) for name in ("rules", *protocols)) + "\n"


BodyKind = Literal["text", "data"]


_END_FINDERS: Final = {"data": find_data_end, "text": find_text_end}


def read_tagged_bodies(text: str, tags: Mapping[str, BodyKind]) -> dict[str, tuple[str, ...]]:
    """Return the bodies of all blocks of these tags, in order. Reasoning, quotes, examples and truncated blocks do not
    count. Raise `ParseError` with a full sentence for the model."""
    end_finders: dict[str, EndFinder] = {tag: partial(_END_FINDERS[kind], tag=tag) for tag, kind in tags.items()}
    if not is_encodable(text):
        raise ParseError("Your reply holds half a character. Send it again.")
    scan = find_blocks(text, end_finders)
    if scan.hint:
        raise ParseError(scan.hint)
    if scan.doubt:
        raise ParseError(f"Your reply cannot be read: {scan.doubt}")
    for block in scan.blocks:
        if not block.tagged and not block.sure:
            raise ParseError(
                f"</{block.tag}> is missing, so <{block.tag}> may not be whole. Send it again, and end it."
            )
    return {tag: tuple(_read_body(block) for block in scan.blocks if block.tag == tag) for tag in tags}


def _read_body(block: Block) -> str:
    inside = read_whole_cdata(block.body)
    return strip_tag_newlines(block.body if inside is None else inside).strip()


def parse_json_body(body: str) -> ParsedValue:
    """Parse the JSON of a body, with or without a code fence. Raise `ParseError` with a full sentence for the model."""
    text = strip_wrapper(body).strip()
    if not text:
        raise ParseError("It is empty.")
    try:
        value, flaw = decode_or_repair(text)
    except ParseError as error:
        sentence = str(error)
        raise ParseError(sentence[0].upper() + sentence[1:]) from None
    return ParsedValue(value=value, repaired=f"its JSON is not valid ({flaw})" if flaw else "")
