"""All faults of a fake server, by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from greenroom.core.base.records import evolve
from tests.fake_openai.answers import Answer
from tests.fake_openai.faults.bodies import BODIES
from tests.fake_openai.faults.calls import CALLS
from tests.fake_openai.faults.connections import CONNECTIONS
from tests.fake_openai.faults.dialects import DIALECTS
from tests.fake_openai.faults.framing import FRAMING
from tests.fake_openai.faults.shape import Fault as Fault
from tests.fake_openai.faults.statuses import STATUSES

FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {fault.name: fault for fault in (*STATUSES, *CONNECTIONS, *DIALECTS, *BODIES, *FRAMING, *CALLS)}
)


def fault(name: str, *, wait: float | None = None, answer: Answer | None = None) -> Fault:
    """Return the fault of this name, optionally with another delay or answer."""
    found = FAULTS.get(name)
    if found is None:
        near = difflib.get_close_matches(name, FAULTS, n=3)
        raise KeyError(f"There is no fault {name!r}. Near: {', '.join(near) or 'none'}; all are in FAULTS.")
    return evolve(found, wait=found.wait if wait is None else wait, answer=answer or found.answer)
