"""The kits of talks: with what a question is answered, a piece of work is done, a chat goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from greenroom.abilities.skills.talking import talking
from greenroom.app.conversation.names import ASK, CHAT, RUN
from greenroom.app.kit import Kit, KitMaker
from greenroom.app.reading import TextReader
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Abilities, Executor
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.state.team import Team

MANY: Final = 30
"""Tools above which an agent is first asked which of them its task needs."""


class Hands(Protocol):
    """The tools of a team, which are closed with it."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What models are told of them."""
        ...

    @property
    def executors(self) -> Sequence[Executor]:
        """The tools."""
        ...

    async def close(self) -> None:
        """End what still runs."""
        ...


HandsOf: TypeAlias = Callable[[Path], Hands]


def talk_kits(
    models: Models,
    notes: Callable[[], str],
    hands: HandsOf | None = None,
    expire: Callable[[], int | None] = lambda: None,
) -> Mapping[str, KitMaker]:
    """The kits by name. Neither models nor the workspace are touched before a team runs with one.

    `hands` makes the tools of a workspace: for teams that have one. `expire` is how long (ms) their questions wait.
    """

    def kit(team: Team, *, solo: bool) -> Kit:
        mine = hands(Path(team.workspace)) if hands is not None and team.workspace else None
        kit = _kit(models, mine, solo=solo, project=notes())
        return evolve(kit, approvals_expire=expire()) if mine is not None else kit

    return {
        ASK: lambda _: _kit(models, None, solo=True),
        RUN: lambda team: kit(team, solo=True),
        CHAT: lambda team: kit(team, solo=False),
    }


def _kit(models: Models, hands: Hands | None, *, solo: bool, project: str = "") -> Kit:
    tools = hands.specs if hands is not None else ()
    skills = talking(models, tools, solo=solo, reader=TextReader(), project=project, filter_above=MANY)
    if hands is None:
        return Kit(abilities=Abilities(skills))
    return Kit(abilities=Abilities((*skills, *hands.executors)), closing=hands.close)
