"""What a person has said beforehand of how a run may end. Its first turn keeps it, so whoever takes it up knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from greenroom.core.base.records import Data, record
from greenroom.core.state.step import Step

WANTED: Final = "wanted"
"""Where the first turn has it."""


@record
class Wanted:
    """`question`: an answer is all that is wanted. `tests_may_change`: the request is to change tests, so that those
    which were there before are not what they were proves nothing against the work."""

    question: bool = False
    tests_may_change: bool = False

    @property
    def data(self) -> Data | None:
        """As the first turn keeps it; None when nothing was said."""
        said = {"question": self.question, "tests_may_change": self.tests_may_change}
        return {WANTED: said} if any(said.values()) else None


NOTHING_SAID: Final = Wanted()


def wanted_in(steps: Iterable[Step]) -> Wanted:
    """What was said when these steps began. What an agent has begun itself says nothing about it."""
    for step in steps:
        held = (step.work.instruction_content or {}).get(WANTED)
        if step.cause is None and step.work.executor == "converse" and isinstance(held, Mapping):
            return Wanted(question=bool(held.get("question")), tests_may_change=bool(held.get("tests_may_change")))
    return NOTHING_SAID
