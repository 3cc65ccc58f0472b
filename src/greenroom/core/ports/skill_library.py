"""The skill library: know-how of people, in files, from which an agent is given what fits its task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from greenroom.core.base.records import record

READ_SKILL: Final = "read_skill"
"""The name of the tool that reads a skill."""


@record
class OfferedSkill:
    """A skill for a task. `chosen` ones fit it. With a `text`, the agent gets all of it at once, else it can read it
    with `read_skill`."""

    name: str
    description: str
    text: str = ""
    chosen: bool = False


class SkillLibrary(Protocol):
    """The skills that agents may use here."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        ...

    async def choose(self, task: str, max_bytes: int) -> Sequence[OfferedSkill]:
        """Return the skills that fit a task, best first, then others, as far as there is room for them."""
        ...

    async def read(self, name: str, file: str = "") -> str:
        """Return the text of a skill, or of a file in its folder. Raise `ModelFault` if there is none."""
        ...

    async def save(self, skill: OfferedSkill) -> str:
        """Save a skill of the person, under the next free name. Return its path."""
        ...
