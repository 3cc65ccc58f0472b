"""How a model is asked to write blocks: the rules, then a prompt for each protocol, from `prompts/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.abilities.protocols.outcome import ProtocolName
from greenroom.abilities.protocols.reading import PROTOCOLS
from greenroom.core.base.records import encode
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.packs import ENGLISH, Pack

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
    told = {"tools": [_told(tool) for tool in tools], "agents": agents, "tags": tags}
    return "\n\n".join(PACK.render(language, name, told) for name in ("rules", *protocols)) + "\n"


def _told(tool: ToolSpec) -> dict[str, str]:
    return {"name": tool.name, "description": tool.description, "parameters": encode(tool.parameters).decode()}
