"""One server over time, and its tools as agents run them: effectful unless a person says otherwise, and never repeated.

A server is started late, started again after its end, and looked at again when its tools change. A call goes out once:
whatever happens to it then, it is not made a second time by anybody here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from greenroom.adapters.mcp.catalogue import Answer, CallLost, Catalogue, Listed, Offer, Pin, compared
from greenroom.adapters.mcp.configuration import Filled, Server, filled, refuse_absent
from greenroom.adapters.mcp.schemas import brief
from greenroom.core.base.errors import WorldFault, how_to_install
from greenroom.core.base.records import Data, record
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import SIDE_EFFECTS, Effect, Step, StepType, Terms
from greenroom.core.state.world import World

if TYPE_CHECKING:
    from greenroom.adapters.mcp.connection import Connection

BROUGHT: Final = frozenset({"mcp", "mcp_types", "httpx2", "anyio", "pydantic", "jsonschema_rs"})
MISSING: Final = f"MCP servers need an extra: {how_to_install('mcp')}."


@record
class Patience:
    """How many seconds are waited for a start, and for a sign of life."""

    start: float = 30.0
    alive: float = 2.0


PATIENCE: Final = Patience()
SPARE: Final = 20
"""Seconds for loading the SDK, and for ending what hangs."""


@record
class Health:
    """How a server is: what it speaks, and a sentence where it does not work."""

    works: bool
    version: str = ""
    why: str = ""


class Surroundings:
    """Where servers are started: a folder, the person's environment, and the variables that none is given."""

    def __init__(self, folder: Path, environ: Mapping[str, str], withheld: Collection[str] = ()) -> None:
        self.folder = folder
        self.environ = environ
        self.withheld = frozenset(withheld)


class McpClient:
    """One server. `agreed` is what a person has agreed to: only that is offered; None offers whatever there is.

    `looked` hears what was found each time that its tools were looked at.
    """

    def __init__(
        self,
        server: Server,
        surroundings: Surroundings,
        *,
        agreed: Mapping[str, Pin] | None,
        patience: Patience = PATIENCE,
        looked: Callable[[Catalogue], None] = lambda _: None,
    ) -> None:
        self.server: Final = server
        self._starting = float(server.starting or patience.start)
        self._surroundings = surroundings
        self._agreed = agreed
        self._patience = patience
        self._tell_found = looked
        self._link: Connection | None = None
        self._catalogue: Catalogue | None = None
        self._news = 0
        self._lock = asyncio.Lock()
        self._closed = asyncio.Event()

    @property
    def longest(self) -> int:
        """Seconds after which a call is over however it went: it may have to be started and looked at before."""
        return self.server.seconds + round(2 * self._starting + self._patience.alive) + SPARE

    async def catalogue(self) -> Catalogue:
        """What it offers now, starting it if it does not run; `WorldFault` says why it offers nothing."""
        async with self._lock:
            link = await self._living()
            if self._catalogue is not None:
                return self._catalogue
            news = self._news
            found = await self._looked(link)
            # What it says while it lists its tools may be about a page that was read already.
            self._catalogue = found if news == self._news else None
            self._tell_found(found)
            return found

    async def call(self, offer: Offer, arguments: Data) -> Answer:
        """Call a tool as it was offered. `WorldFault`: nothing was done. `CallLost`: nobody knows."""
        self._check(offer, await self.catalogue())
        link = self._link
        if link is None:
            raise WorldFault(f"The MCP server {self.server.name!r} has just ended. Try again.")
        try:
            async with asyncio.timeout(self.server.seconds):
                return await link.call(offer.listed.name, arguments)
        except CallLost:
            raise
        except WorldFault as fault:
            raise self._fault(str(fault)) from None
        except TimeoutError:
            hangs = await self._looked_after(link)
            done = ("was left" if self.server.url else "was ended") if hangs else "was told to stop"
            raise CallLost(f"It did not answer within {self.server.seconds} s and {done}.") from None
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._looked_after(link)))
            raise

    async def check(self) -> Health:
        """Whether it works now."""
        try:
            await self.catalogue()
            if self._link is not None and await self._link.alive(self._patience.alive):
                return Health(works=True, version=self._link.version)
            return Health(works=False, why=f"The MCP server {self.server.name!r} does not answer.")
        except WorldFault as fault:
            return Health(works=False, why=str(fault))

    async def close(self) -> None:
        """End it, for good."""
        self._closed.set()
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    # ------------------------------------------------------------------------------------------------ its life

    async def _living(self) -> Connection:
        if self._closed.is_set():
            raise self._fault("it is not started any more: the run is over.")
        if self._link is not None and self._link.over:
            self._link = self._catalogue = None
        if self._link is None:
            link = await self._started()
            if self._closed.is_set():
                await link.close(now=True)
                return await self._living()
            self._link = link
        return self._link

    async def _started(self) -> Connection:
        given = filled(self.server, self._surroundings.environ, self._surroundings.withheld)
        if not self.server.url:
            refuse_absent(given, self._surroundings.folder)  # known at once; the SDK takes seconds
        begin = await asyncio.to_thread(_loaded)
        try:
            async with asyncio.timeout(self._starting):
                return await begin(given, self._surroundings.folder, self._note_change)
        except TimeoutError:
            raise self._fault(f"it did not answer within {self._starting:g} s after it was started.") from None
        except WorldFault as fault:
            raise self._fault(str(fault)) from None

    async def _looked(self, link: Connection) -> Catalogue:
        try:
            async with asyncio.timeout(self._starting):
                return compared(self.server, *await link.tools(), self._agreed)
        except TimeoutError:
            await self._ended(link)
            raise self._fault(f"it did not list its tools within {self._starting:g} s.") from None
        except WorldFault as fault:
            raise self._fault(str(fault)) from None

    async def _looked_after(self, link: Connection) -> bool:
        """After a call that nobody waits for any more: whether it hung, and so was ended. Others may still wait."""
        if not link.over and await link.alive(self._patience.alive):
            return False
        await self._ended(link)
        return True

    async def _ended(self, link: Connection) -> None:
        if self._link is link:
            self._link = self._catalogue = None
        await link.close(now=True)

    # ------------------------------------------------------------------------------------------------ its tools

    def _note_change(self) -> None:
        """It says that its tools are others: they are looked at when somebody next wants them."""
        self._catalogue = None
        self._news += 1

    def _check(self, offer: Offer, catalogue: Catalogue) -> None:
        now = catalogue.offered.get(offer.name)
        if now is None or now.listed != offer.listed:
            turned = any(one.how == "changed" and one.name == offer.listed.name for one in catalogue.changes)
            why = "has changed since a person agreed to it" if turned else "is not offered any more as it was"
            raise self._fault(f"its tool {offer.name} {why}. Use another one.")

    def _fault(self, why: str) -> WorldFault:
        named = f"The MCP server {self.server.name!r}"
        return WorldFault(why if why.startswith(named) else f"{named}: {why[:1].lower()}{why[1:]}")


def _loaded() -> Callable[[Filled, Path, Callable[[], None]], Awaitable[Connection]]:
    try:
        from greenroom.adapters.mcp.connection import begin
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in BROUGHT:
            raise
        raise WorldFault(MISSING) from None
    return begin


async def close_all(clients: Sequence[McpClient]) -> None:
    """End these servers together: one that hangs keeps none of the others waiting."""
    await asyncio.gather(*(client.close() for client in clients))


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
            said = f"The MCP server {self._client.server.name!r} gave no answer. {lost}"
            if self.card.effect not in SIDE_EFFECTS:
                return Outcome(state="failed", error=f"{said} {self.name} changes nothing, so it can be called again.")
            return Outcome(state="uncertain", error=f"{said} {UNKNOWN.format(name=self.name)}")
        except WorldFault as fault:
            return Outcome(state="failed", error=f"Not called. {fault}")
        return _outcome(answer)


def kit(client: McpClient, catalogue: Catalogue) -> tuple[McpTool, ...]:
    """All tools of a catalogue."""
    return tuple(McpTool(client, offer) for offer in catalogue.offered.values())


def stored_kit(client: McpClient, listed: tuple[Listed, ...]) -> tuple[McpTool, ...]:
    """The tools as they were listed once. Nothing is started; at a call the client compares."""
    return kit(client, compared(client.server, listed, (), None))


def _outcome(answer: Answer) -> Outcome:
    result: dict[str, object] = {"output": answer.text}
    if answer.parts:
        result["parts"] = [{"media_type": p.media_type, "bytes": p.bytes, "data": p.data} for p in answer.parts]
    if answer.failed:
        more = result if answer.parts or len(answer.text) > SAID else None
        return Outcome(state="failed", error=brief(answer.text, SAID), result=more)
    return Outcome(result=result)
