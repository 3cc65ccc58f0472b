"""think: a thought that uses what was done before."""

from __future__ import annotations

from typing import Final

from greenroom.abilities.skills.planned.skill import TEXT, Meant, Skill

THINK: Final = Skill(
    name="think",
    tag="think_result",  # what stands in <think> is thought, not said: models put their reasoning there
    key="think",
    said="think",
    order="history",
    shape=lambda _: TEXT,
    meaning=lambda _, answer: Meant(value=answer.value),
)
