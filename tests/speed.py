"""How slow this machine is now: other programs share its processors, and some machines are slower."""

import time

USUAL_S = 0.12
"""CPU seconds of the loop on the machine for which the limits were chosen."""


def measure_slowness() -> float:
    """Return how many times longer a fixed loop takes than usual, at least 1."""
    begin = time.process_time()
    sum(range(5_000_000))
    return max((time.process_time() - begin) / USUAL_S, 1.0)


def is_soon(spent: float, limit: float) -> bool:
    """Return whether something took less than a limit, which is higher on a slower machine."""
    return spent < limit or spent < limit * measure_slowness()
