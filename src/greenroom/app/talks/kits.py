"""The kits of talks: with what a question is answered, a piece of work is done, a chat goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from greenroom.abilities.skills.talking import talking
from greenroom.app.kit import Kit, KitMaker
from greenroom.app.reading import TextReader
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import Models

ASK: Final = "ask"
RUN: Final = "run"
CHAT: Final = "chat"
ALONE: Final = (ASK, RUN)
"""Those whose only task ends with the answer."""

TALKS: Final = (*ALONE, CHAT)


def talk_kits(models: Models, notes: Callable[[], str]) -> Mapping[str, KitMaker]:
    """The kits by name. Neither models nor the notes of the workspace are touched before a team runs with one."""
    return {
        ASK: lambda _: _kit(models, solo=True),
        RUN: lambda _: _kit(models, solo=True, project=notes()),
        CHAT: lambda _: _kit(models, solo=False, project=notes()),
    }


def _kit(models: Models, *, solo: bool, project: str = "") -> Kit:
    return Kit(abilities=Abilities(talking(models, solo=solo, reader=TextReader(), project=project)))
