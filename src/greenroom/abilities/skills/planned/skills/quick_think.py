"""quick_think: a thought without a look back."""

from __future__ import annotations

from typing import Final

from greenroom.abilities.skills.planned.skill import TEXT, Meant, Skill

QUICK_THINK: Final = Skill(
    name="quick_think",
    tag="quick_think",
    key="quick_think",
    said="quick_think",
    order="plain",
    shape=lambda _: TEXT,
    meaning=lambda _, answer: Meant(value=answer.value),
)
