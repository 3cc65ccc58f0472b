"""One tool of a server as the house runs it: effectful unless a person says otherwise, and never repeated."""

from __future__ import annotations

from typing import Final

from greenroom.adapters.mcp.catalogue import Answer, CallLost, Catalogue, Listed, Listing, Offer, compared
from greenroom.adapters.mcp.client import McpClient
from greenroom.adapters.mcp.schemas import brief
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import SIDE_EFFECTS, Effect, Step, StepType, Terms
from greenroom.core.state.world import World

SAID: Final = 8_000
"""Characters of a failure that an agent reads; of a longer one all is in the result."""

UNKNOWN: Final = (
    "It is not known whether {name} was done; it is not called again by itself. Look before you try it again."
)


class McpTool:
    """What its server says about it never makes it more harmless, only less."""

    type: StepType = "tool"

    def __init__(self, client: McpClient, offer: Offer) -> None:
        self._client = client
        self._offer = offer
        server = client.server
        effect: Effect = "effectful"
        if offer.listed.name in server.read_only and not offer.listed.admits_effects:
            effect = "pure"
        self.name = offer.name
        self.description = offer.description
        self.card = ToolCard(
            spec=ToolSpec(
                name=offer.name, description=offer.description, parameters=offer.schema, pure=effect == "pure"
            ),
            group="mcp",
            effect=effect,
            seconds=client.longest,
            source=f"mcp:{server.name}",
        )

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing is known of what it touches."""
        return (Target(kind="tool", value=self.name, writes=self.card.effect in SIDE_EFFECTS),)

    def terms(self, _: World, __: Step) -> Terms:
        """Free; permission is somebody else's business."""
        return Terms(effect=self.card.effect)

    async def run(self, bench: Bench) -> Outcome:
        """Call it once."""
        try:
            answer = await self._client.call(self._offer, bench.step.work.instruction_content or {})
        except CallLost as lost:
            return self._lost(str(lost))
        except WorldFault as fault:
            return Outcome(state="failed", error=f"Not called. {fault}")
        return _outcome(answer)

    def _lost(self, why: str) -> Outcome:
        said = f"The MCP server {self._client.server.name!r} gave no answer. {why}"
        if self.card.effect not in SIDE_EFFECTS:
            return Outcome(state="failed", error=f"{said} {self.name} changes nothing, so it can be called again.")
        return Outcome(state="uncertain", error=f"{said} {UNKNOWN.format(name=self.name)}")


def kit(client: McpClient, catalogue: Catalogue) -> tuple[McpTool, ...]:
    """All tools of a catalogue."""
    return tuple(McpTool(client, offer) for offer in catalogue.offered.values())


def stored_kit(client: McpClient, listed: tuple[Listed, ...]) -> tuple[McpTool, ...]:
    """The tools as they were listed once. Nothing is started; at a call the client compares."""
    return kit(client, compared(client.server, Listing(listed=listed), None))


def _outcome(answer: Answer) -> Outcome:
    result: dict[str, object] = {"output": answer.text}
    if answer.parts:
        result["parts"] = [{"media_type": p.media_type, "bytes": p.bytes, "data": p.data} for p in answer.parts]
    if answer.failed:
        more = result if answer.parts or len(answer.text) > SAID else None
        return Outcome(state="failed", error=brief(answer.text, SAID), result=more)
    return Outcome(result=result)
