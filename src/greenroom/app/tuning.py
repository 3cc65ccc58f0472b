"""What a process that runs teams sets once at its start. A library does not do this to its user: doors do."""

from __future__ import annotations

import gc


def tune_process() -> None:
    """Collect garbage less often: records are acyclic and die by reference count, so looking for cycles finds none.

    Measured with 1,000 active agents: a quarter less CPU per step.
    """
    gc.set_threshold(50_000, 20, 100)
