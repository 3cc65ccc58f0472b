"""A client for one MCP server, and its tools as agents run them: effectful unless a person says otherwise, never
retried.

A server is started late, restarted after its end, and listed again when its tools change. A call is sent once. It is
never repeated here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from greenroom.adapters.mcp.catalogue import (
    CallLost,
    ListedTool,
    McpResult,
    OfferedTool,
    ToolCatalogue,
    ToolPin,
    build_catalogue,
)
from greenroom.adapters.mcp.configuration import McpServer, ResolvedServer, refuse_missing_program, resolve_server
from greenroom.adapters.mcp.schemas import clip_middle
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, record
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.installation import how_to_install
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import SIDE_EFFECTS, Effect, Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState

if TYPE_CHECKING:
    from greenroom.adapters.mcp.connection import McpConnection

SDK_PACKAGES: Final = frozenset({"mcp", "mcp_types", "httpx2", "anyio", "pydantic", "jsonschema_rs"})


@record
class McpTimeouts:
    """How long to wait for a start and for a sign of life, in seconds."""

    start: float = 30.0
    alive: float = 2.0


DEFAULT_TIMEOUTS: Final = McpTimeouts()
SPARE_S: Final = 20
"""Seconds for loading the SDK and ending a server that hangs."""


@record
class ServerHealth:
    """The health of a server: its protocol version, or why it does not work."""

    works: bool
    version: str = ""
    why: str = ""


class ServerEnvironment:
    """Where servers start: a folder, the person's environment, and the variables that no server gets."""

    def __init__(self, folder: Path, environ: Mapping[str, str], withheld: Collection[str] = ()) -> None:
        self.folder = folder
        self.environ = environ
        self.withheld = frozenset(withheld)


class McpClient:
    """A client for one server. Only tools in `agreed` are offered; None offers all.

    `on_catalogue` is called with the catalogue each time the tools are listed.
    """

    def __init__(
        self,
        server: McpServer,
        environment: ServerEnvironment,
        *,
        agreed: Mapping[str, ToolPin] | None,
        timeouts: McpTimeouts = DEFAULT_TIMEOUTS,
        on_catalogue: Callable[[ToolCatalogue], None] = lambda _: None,
    ) -> None:
        self.server: Final = server
        self._start_timeout = float(server.starting or timeouts.start)
        self._environment = environment
        self._agreed = agreed
        self._timeouts = timeouts
        self._on_catalogue = on_catalogue
        self._connection: McpConnection | None = None
        self._catalogue: ToolCatalogue | None = None
        self._change_count = 0
        self._lock = asyncio.Lock()
        self._closed = asyncio.Event()

    @property
    def max_call_seconds(self) -> int:
        """The longest duration of a call in seconds, including a start and a listing of tools."""
        return self.server.seconds + round(2 * self._start_timeout + self._timeouts.alive) + SPARE_S

    async def get_catalogue(self) -> ToolCatalogue:
        """Return what the server offers now, and start it if necessary. Raise `WorldFault` if that fails."""
        async with self._lock:
            connection = await self._ensure_connection()
            if self._catalogue is not None:
                return self._catalogue
            change_count = self._change_count
            catalogue = await self._read_catalogue(connection)
            # A change during the listing may affect a page that was already read.
            self._catalogue = catalogue if change_count == self._change_count else None
            self._on_catalogue(catalogue)
            return catalogue

    async def call(self, offer: OfferedTool, arguments: Data) -> McpResult:
        """Call a tool as it was offered. Raise `WorldFault` if nothing was done, `CallLost` if that is unknown."""
        self._check_offer(offer, await self.get_catalogue())
        connection = self._connection
        if connection is None:
            raise WorldFault("mcp.server_just_ended", name=self.server.name)
        try:
            async with asyncio.timeout(self.server.seconds):
                return await connection.call(offer.listed.name, arguments)
        except CallLost:
            raise
        except WorldFault as fault:
            raise self._make_fault(str(fault)) from None
        except TimeoutError:
            has_hung = await self._end_if_hung(connection)
            code = ("mcp.was_left" if self.server.url else "mcp.process_ended") if has_hung else "mcp.told_to_stop"
            raise CallLost("mcp.call_timed_out", seconds=self.server.seconds, done=translate(code)) from None
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._end_if_hung(connection)))
            raise

    async def check(self) -> ServerHealth:
        """Return whether the server works now."""
        try:
            await self.get_catalogue()
            if self._connection is not None and await self._connection.is_alive(self._timeouts.alive):
                return ServerHealth(works=True, version=self._connection.version)
            return ServerHealth(works=False, why=translate("mcp.no_answer", name=self.server.name))
        except WorldFault as fault:
            return ServerHealth(works=False, why=str(fault))

    async def close(self) -> None:
        """End the server permanently."""
        self._closed.set()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _ensure_connection(self) -> McpConnection:
        if self._closed.is_set():
            raise self._make_fault(translate("mcp.run_is_over"))
        if self._connection is not None and self._connection.end_reason:
            self._connection = self._catalogue = None
        if self._connection is None:
            connection = await self._start()
            if self._closed.is_set():
                await connection.close(now=True)
                return await self._ensure_connection()
            self._connection = connection
        return self._connection

    async def _start(self) -> McpConnection:
        resolved = resolve_server(self.server, self._environment.environ, self._environment.withheld)
        if not self.server.url:
            refuse_missing_program(resolved, self._environment.folder)  # fails fast; loading the SDK takes seconds
        connect = await asyncio.to_thread(_load_connect)
        try:
            async with asyncio.timeout(self._start_timeout):
                return await connect(resolved, self._environment.folder, self._note_change)
        except TimeoutError:
            raise self._make_fault(translate("mcp.slow_start", seconds=self._start_timeout)) from None
        except WorldFault as fault:
            raise self._make_fault(str(fault)) from None

    async def _read_catalogue(self, connection: McpConnection) -> ToolCatalogue:
        try:
            async with asyncio.timeout(self._start_timeout):
                return build_catalogue(self.server, *await connection.list_tools(), self._agreed)
        except TimeoutError:
            await self._end_connection(connection)
            raise self._make_fault(translate("mcp.slow_listing", seconds=self._start_timeout)) from None
        except WorldFault as fault:
            raise self._make_fault(str(fault)) from None

    async def _end_if_hung(self, connection: McpConnection) -> bool:
        """After an abandoned call, end the server if it hangs; return whether it did. Other calls may still wait."""
        if not connection.end_reason and await connection.is_alive(self._timeouts.alive):
            return False
        await self._end_connection(connection)
        return True

    async def _end_connection(self, connection: McpConnection) -> None:
        if self._connection is connection:
            self._connection = self._catalogue = None
        await connection.close(now=True)

    def _note_change(self) -> None:
        """Drop the catalogue, because the server reports changed tools. They are listed again on demand."""
        self._catalogue = None
        self._change_count += 1

    def _check_offer(self, offer: OfferedTool, catalogue: ToolCatalogue) -> None:
        current = catalogue.offered.get(offer.name)
        if current is None or current.listed != offer.listed:
            has_changed = any(
                change.how == "changed" and change.name == offer.listed.name for change in catalogue.changes
            )
            why = translate("mcp.changed_since_review" if has_changed else "mcp.no_longer_offered")
            raise self._make_fault(translate("mcp.tool_changed", name=offer.name, why=why))

    def _make_fault(self, why: str) -> WorldFault:
        prefix = translate("mcp.server", name=self.server.name)
        return WorldFault(why if why.startswith(prefix) else f"{prefix}: {why[:1].lower()}{why[1:]}")


def _load_connect() -> Callable[[ResolvedServer, Path, Callable[[], None]], Awaitable[McpConnection]]:
    try:
        from greenroom.adapters.mcp.connection import connect
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SDK_PACKAGES:
            raise
        raise WorldFault("mcp.sdk_missing", command=how_to_install("mcp")) from None
    return connect


async def close_all(clients: Sequence[McpClient]) -> None:
    """End these servers in parallel, so that one that hangs does not delay the others."""
    await asyncio.gather(*(client.close() for client in clients))


MAX_ERROR_CHARS: Final = 8_000
"""How many characters of an error an agent reads. A longer error is complete in the result."""

OUTCOME_UNKNOWN: Final = (
    "It is not known whether {name} was done; it is not called again by itself. Look before you try it again."
)


class McpTool:
    """A tool of a server. The server's own hints can only make it less trusted, never more."""

    type: StepType = "tool"

    def __init__(self, client: McpClient, offer: OfferedTool) -> None:
        self._client = client
        self._offer = offer
        server = client.server
        effect: Effect = "effectful"
        if offer.listed.name in server.read_only and not offer.listed.has_effects:
            effect = "pure"
        self.name = offer.name
        self.description = offer.description
        self.card = ToolCard(
            spec=ToolSpec(
                name=offer.name, description=offer.description, parameters=offer.schema, pure=effect == "pure"
            ),
            group="mcp",
            effect=effect,
            seconds=client.max_call_seconds,
            source=f"mcp:{server.name}",
        )

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return the tool itself as target: what it touches is unknown."""
        return (Target(kind="tool", value=self.name, writes=self.card.effect in SIDE_EFFECTS),)

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return the terms: it costs nothing. Permissions are checked elsewhere."""
        return StepTerms(effect=self.card.effect)

    async def run(self, context: StepContext) -> Outcome:
        """Call the tool once."""
        try:
            answer = await self._client.call(self._offer, context.step.work.instruction_content or {})
        except CallLost as lost:
            problem = f"The MCP server {self._client.server.name!r} gave no answer. {lost}"
            if self.card.effect not in SIDE_EFFECTS:
                return Outcome(
                    state="failed", error=f"{problem} {self.name} changes nothing, so it can be called again."
                )
            return Outcome(state="uncertain", error=f"{problem} {OUTCOME_UNKNOWN.format(name=self.name)}")
        except WorldFault as fault:
            return Outcome(state="failed", error=f"Not called. {fault}")
        result: dict[str, object] = {"output": answer.text}
        if answer.parts:
            result["parts"] = [{"media_type": p.media_type, "bytes": p.bytes, "data": p.data} for p in answer.parts]
        if answer.failed:
            full_result = result if answer.parts or len(answer.text) > MAX_ERROR_CHARS else None
            return Outcome(state="failed", error=clip_middle(answer.text, MAX_ERROR_CHARS), result=full_result)
        return Outcome(result=result)


def make_tools(client: McpClient, catalogue: ToolCatalogue) -> tuple[McpTool, ...]:
    return tuple(McpTool(client, offer) for offer in catalogue.offered.values())


def make_stored_tools(client: McpClient, listed: tuple[ListedTool, ...]) -> tuple[McpTool, ...]:
    """Return tools from a stored listing. Nothing is started; the client compares them at a call."""
    return make_tools(client, build_catalogue(client.server, listed, (), None))
