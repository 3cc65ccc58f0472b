"""The conformance suite of `Log` and `Blobs`: every sentence of the port, as a test.

    class TestMyLog(LogConformance):
        async def open_store(self, folder, clock):
            return await MyLog.open(folder, clock=clock)

It wants pytest and pytest-asyncio.
"""

from __future__ import annotations

from greenroom.testing.conformance.appends import AppendsConformance
from greenroom.testing.conformance.beside import BesideConformance
from greenroom.testing.conformance.sharing import InboxConformance, LeaseConformance, UpkeepConformance


class LogConformance(AppendsConformance, BesideConformance, InboxConformance, LeaseConformance, UpkeepConformance):
    """Inherit from it, and give `open_store`."""
