"""process_message: a message is taken in. Nothing is sent."""

from __future__ import annotations

from typing import Final

from greenroom.abilities.skills.planned.skill import TEXT, Meant, Skill

PROCESS_MESSAGE: Final = Skill(
    name="process_message",
    tag="process_message",
    key="process_message",
    said="process_message",
    order="message",
    shape=lambda _: TEXT,
    meaning=lambda _, answer: Meant(value=answer.value),
)
