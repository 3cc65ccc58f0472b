"""Reads the states of runs for the server."""

from __future__ import annotations

from greenroom.app.messages import translate
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import StoreFault, make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.core.state.team_state import TeamState


class StateReader:
    """The states of all runs of a home, now and at past versions."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def find_run(self, name: str) -> TeamId:
        """Return the run with this id. Raise `RefusedError` if there is none."""
        try:
            head = await self._runtime.log.head(name)
        except StoreFault:
            head = None
        if head is None or not head.version:
            raise make_refusal("unknown_run", translate("server.unknown_run", run=name[:80]))
        return TeamId(name)

    async def read(self, run: TeamId, at: int | None = None) -> TeamState:
        """Return the state of a run, now or at a version."""
        return await self._runtime.state(run, at)
