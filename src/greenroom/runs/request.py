"""What a person allowed when they began a run, kept in the run's first turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from greenroom.core.base.records import Data, record
from greenroom.core.state.step import Step

WANTED: Final = "wanted"
"""Where the first turn has it."""

FIELDS: Final = ("question", "tests_may_change", "allow_unverified")


@record
class Wanted:
    """`question`: an answer is all that is wanted. `tests_may_change`: the request is to change tests, so that those
    which were there before are not what they were proves nothing against the work. `allow_unverified`: go on where
    nothing can verify the change."""

    question: bool = False
    tests_may_change: bool = False
    allow_unverified: bool = False

    @property
    def data(self) -> Data | None:
        """As the first turn keeps it; None when nothing was said."""
        said = {name: True for name in FIELDS if getattr(self, name)}
        return {WANTED: said} if said else None


NOTHING_SAID: Final = Wanted()


def wanted_in(steps: Iterable[Step]) -> Wanted:
    """What was said when these steps began. What an agent has begun itself says nothing about it."""
    for step in steps:
        held = (step.work.instruction_content or {}).get(WANTED)
        if step.cause is None and step.work.executor == "converse" and isinstance(held, Mapping):
            return Wanted(**{name: bool(held.get(name)) for name in FIELDS})
    return NOTHING_SAID
