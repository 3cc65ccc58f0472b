"""The tools of a server: as listed by it, as offered to agents, and as approved by a person (pins).

A tool that cannot be offered is skipped with a reason. A tool that differs from its approval is not offered.

Agents call a tool `mcp__SERVER__TOOL`, with characters that every provider accepts. A name that had to be changed ends
with a hash of the original, so a tool always gets the same name. It cannot take the name of another server's tool,
because the first part contains no `__`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from greenroom.adapters.mcp.configuration import McpServer
from greenroom.adapters.mcp.schemas import UnusableToolError, clean_schema, clip_middle, remove_invisible, to_one_line
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, record

NAME_PREFIX: Final = "mcp__"
MAX_NAME_CHARS: Final = 64
MAX_SERVER_CHARS: Final = 24
HASH_CHARS: Final = 6

_UNSAFE_CHARS: Final = re.compile(r"[^A-Za-z0-9_-]")
_UNDERSCORES: Final = re.compile(r"__+")


def make_tool_name(server: str, tool: str) -> str:
    """Return the name by which agents call a tool."""
    safe_server = _UNDERSCORES.sub("_", _UNSAFE_CHARS.sub("_", server)).strip("_")
    front = f"{NAME_PREFIX}{_fit_name(server, safe_server, MAX_SERVER_CHARS)}__"
    return front + _fit_name(tool, _UNSAFE_CHARS.sub("_", tool), MAX_NAME_CHARS - len(front))


def _fit_name(raw: str, clean: str, max_chars: int) -> str:
    if clean == raw and 0 < len(raw) <= max_chars:
        return raw
    mark = hashlib.sha256(raw.encode(errors="surrogatepass")).hexdigest()[:HASH_CHARS]
    return f"{clean[: max_chars - HASH_CHARS - 1].rstrip('_')}_{mark}".lstrip("_")


MAX_DESCRIPTION_CHARS: Final = 8_000
"""Longest description in characters. Text beyond it is not shown, so it cannot influence the model."""

MAX_LISTED_NAME_CHARS: Final = 256
MAX_TOOLS: Final = 1_000
"""How many tools a server may offer."""


@record
class ListedTool:
    """A tool exactly as its server describes it; the text is untrusted."""

    name: str
    description: str
    schema: Data
    read_only: bool | None = None
    destructive: bool | None = None

    @property
    def has_effects(self) -> bool:
        """Whether the server declares that the tool has effects. The opposite claim is not trusted."""
        return self.read_only is False or self.destructive is True


@record
class OfferedTool:
    """A tool as offered to agents: `name` is Greenroom's, `listed` is the server's description."""

    name: str
    description: str
    schema: Data
    listed: ListedTool


@record
class SkippedTool:
    """A tool that is not offered, and the reason as a sentence."""

    name: str
    why: str


class CallLost(WorldFault):
    """A call was sent and no reply came: it is unknown whether it was done."""


@record
class ResultPart:
    """An image, a recording or a file in a result. It is kept, but only described to the model."""

    media_type: str
    bytes: int
    data: str = ""


@record
class McpResult:
    """The result of a call. `failed` means that the server reported an error."""

    text: str
    failed: bool = False
    parts: tuple[ResultPart, ...] = ()


def make_offers(server: str, listed: Iterable[ListedTool]) -> tuple[tuple[OfferedTool, ...], tuple[SkippedTool, ...]]:
    """Return the tools that can be offered, in a fixed order, and those that cannot."""
    offered: dict[str, OfferedTool] = {}
    singles, skipped = split_unique(listed)
    for listed_tool in sorted(singles, key=lambda tool: tool.name):
        try:
            offer = _make_offer(server, listed_tool)
            if offer.name in offered:
                raise UnusableToolError(translate("mcp_tool.same_name"))
            if len(offered) >= MAX_TOOLS:
                raise UnusableToolError(translate("mcp_tool.too_many", limit=MAX_TOOLS))
        except UnusableToolError as unfit:
            skipped.append(SkippedTool(name=to_one_line(listed_tool.name, 80), why=str(unfit)))
        else:
            offered[offer.name] = offer
    return tuple(offered.values()), tuple(skipped)


def split_unique(listed: Iterable[ListedTool]) -> tuple[tuple[ListedTool, ...], list[SkippedTool]]:
    """Return the tools with a unique name. For a duplicate name, it is unclear which tool a call would reach."""
    tools = tuple(listed)
    counts = Counter(tool.name for tool in tools)
    doubles = sorted(name for name, count in counts.items() if count > 1)
    skipped = [SkippedTool(name=to_one_line(name, 80), why=translate("mcp_tool.same_name")) for name in doubles]
    return tuple(tool for tool in tools if counts[tool.name] == 1), skipped


def _make_offer(server: str, listed: ListedTool) -> OfferedTool:
    if not 0 < len(listed.name) <= MAX_LISTED_NAME_CHARS:
        raise UnusableToolError(translate("mcp_tool.long_name", count=len(listed.name)))
    try:
        schema = clean_schema(listed.schema)
    except UnusableToolError as unfit:
        raise UnusableToolError(translate("mcp_tool.bad_schema", unfit=unfit)) from None
    description = clip_middle(remove_invisible(listed.description).strip(), MAX_DESCRIPTION_CHARS)
    return OfferedTool(
        name=make_tool_name(server, listed.name),
        description=description or f"The tool {to_one_line(listed.name, 80)} of {server}. It is not described.",
        schema=schema,
        listed=listed,
    )


MAX_PIN_CHARS: Final = 20_000
"""How many characters of a description or schema are kept, to show changes later."""


@record
class ToolPin:
    """The approved state of a tool. `digest` decides; the rest lets a person compare."""

    digest: str
    description: str
    schema: str
    hints: str = ""


@record
class ToolChange:
    """A difference between a tool and its approved state; `diff` has the changed lines."""

    name: str
    how: Literal["new", "changed", "gone"]
    diff: str = ""


def compute_tool_digest(tool: ListedTool) -> str:
    """Return the hash of a tool's exact description."""
    facts = [tool.name, tool.description, tool.schema, tool.read_only, tool.destructive]
    text = json.dumps(facts, sort_keys=True, default=dict)
    return hashlib.sha256(text.encode()).hexdigest()


def make_pins(tools: Iterable[ListedTool]) -> dict[str, ToolPin]:
    """Return the pins to store when a person approves these tools."""
    return {
        tool.name: ToolPin(
            digest=compute_tool_digest(tool),
            description=_render_description(tool),
            schema=_render_schema(tool),
            hints=_render_hints(tool),
        )
        for tool in tools
    }


def find_changes(agreed: Mapping[str, ToolPin], tools: Iterable[ListedTool]) -> tuple[ToolChange, ...]:
    """Return the differences to the approved tools, by name; empty if there are none."""
    current = {tool.name: tool for tool in tools}
    changes = [_compare_tool(agreed.get(name), tool) for name, tool in sorted(current.items())]
    removed = [ToolChange(name=to_one_line(name, 80), how="gone") for name in sorted(agreed.keys() - current.keys())]
    return (*(tool for tool in changes if tool is not None), *removed)


def _compare_tool(before: ToolPin | None, current: ListedTool) -> ToolChange | None:
    if before is None:
        return ToolChange(
            name=to_one_line(current.name, 80), how="new", diff=_render_diff("", _render_description(current))
        )
    if before.digest == compute_tool_digest(current):
        return None
    diff = "".join(
        _render_diff(old, new)
        for old, new in (
            (before.description, _render_description(current)),
            (before.schema, _render_schema(current)),
            (before.hints, _render_hints(current)),
        )
    )
    fallback = translate("mcp_tool.invisible_change")
    return ToolChange(name=to_one_line(current.name, 80), how="changed", diff=diff or fallback)


def _render_hints(tool: ListedTool) -> str:
    """Render the server's hints about effects, one per line."""
    hints = (("changes nothing", tool.read_only), ("destroys", tool.destructive))
    return "".join(f"it says: {what}: {'yes' if word else 'no'}\n" for what, word in hints if word is not None)


def _render_description(tool: ListedTool) -> str:
    return clip_middle(remove_invisible(tool.description), MAX_PIN_CHARS)


def _render_schema(tool: ListedTool) -> str:
    return clip_middle(remove_invisible(json.dumps(tool.schema, indent=1, sort_keys=True, default=dict)), MAX_PIN_CHARS)


def _render_diff(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return "".join(f"{line}\n" for line in lines if not line.startswith(("---", "+++", "@@")))


@record
class ToolCatalogue:
    """The tools offered to agents by name, the skipped ones, and the changes that a person must review."""

    offered: Mapping[str, OfferedTool] = msgspec.field(default_factory=dict)
    left_out: tuple[SkippedTool, ...] = ()
    changes: tuple[ToolChange, ...] = ()
    listed: tuple[ListedTool, ...] = ()

    def describe_left_out(self, server: str) -> list[str]:
        """Return a sentence for each tool that agents do not get."""
        return [translate("mcp.tool_left_out", name=server, tool=left.name, why=left.why) for left in self.left_out]


def build_catalogue(
    server: McpServer,
    listed: Sequence[ListedTool],
    left_out: Sequence[SkippedTool],
    agreed: Mapping[str, ToolPin] | None,
) -> ToolCatalogue:
    """Build the catalogue of a server from its listing. Without approvals (None), all tools are offered."""
    offered, skipped = make_offers(server.name, listed)
    singles, _ = split_unique(listed)
    agreed_offers = [
        offer
        for offer in offered
        if agreed is None
        or (offer.listed.name in agreed and agreed[offer.listed.name].digest == compute_tool_digest(offer.listed))
    ]
    return ToolCatalogue(
        offered={offer.name: offer for offer in agreed_offers},
        left_out=(*left_out, *skipped),
        changes=() if agreed is None else find_changes(agreed, singles),
        listed=singles,
    )
