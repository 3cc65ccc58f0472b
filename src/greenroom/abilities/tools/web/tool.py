"""What the tools for the web share: the house is as it was after them, so they are run again freely; hosts are asked
about."""

from __future__ import annotations

from abc import ABC, abstractmethod

from greenroom.abilities.tools.carded import CardedTool
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import Target
from greenroom.core.ports.web import WebFault


class WebTool(CardedTool, ABC):
    """A tool that leaves this machine. What the web would not give fails the call, never the run."""

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The host that would be asked; where that is not clear, nobody will be."""
        place = self._host(arguments)
        return (Target(kind="host", value=place) if place else Target(kind="tool", value=self.name),)

    async def run(self, bench: Bench) -> Outcome:
        """Do it."""
        try:
            return Outcome(result=await self._result(bench))
        except WebFault as fault:
            return Outcome(state="failed", error=str(fault))

    @abstractmethod
    def _host(self, arguments: Data) -> str:
        """Whom a call with these arguments would reach; empty where that is not clear."""

    @abstractmethod
    async def _result(self, bench: Bench) -> Data:
        """What comes of it."""
