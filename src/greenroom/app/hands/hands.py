"""The hands of one team: the tools of its workspace, under its policy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from greenroom.abilities.tools.artifacts.toolkit import artifact_tools
from greenroom.abilities.tools.ask_user import AskUser
from greenroom.abilities.tools.commands.toolkit import command_tools
from greenroom.abilities.tools.files.toolbox import file_tools
from greenroom.abilities.tools.memory.toolkit import memory_tools
from greenroom.abilities.tools.output.read_output import FindStep, ReadOutput
from greenroom.abilities.tools.web.toolkit import web_tools
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.adapters.files.local import LocalFiles
from greenroom.adapters.workers import processes
from greenroom.app.clock import SystemClock
from greenroom.app.hands.equipment import Equipment
from greenroom.app.hands.guarded import Guarded
from greenroom.app.hands.policy import policy_for
from greenroom.app.hands.redaction import Redaction
from greenroom.app.hands.toolbox import Toolbox
from greenroom.app.hands.unattended import Unattended
from greenroom.app.hands.walls import Walls
from greenroom.app.hands.web import LatePages, LateSearch
from greenroom.app.settings.schema import WebSettings
from greenroom.app.talks.typed.secrets import is_secret
from greenroom.core.ports.executor import Executor
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.policy import Policy

NOTHING_MORE: Final = Equipment()
NO_WISHES: Final = WebSettings()

FindEnded: TypeAlias = FindStep
"""How a step of a team is found that has ended, for whoever reads on in its result."""


class Hands:
    """Made for a workspace, closed when the team is. `equipment` comes to what the house has itself.

    `unattended` says that nobody is there to be asked. `secrets` are left out of whatever a tool says. `web` is
    what the person has set for it; `walls` are what commands run behind.
    """

    def __init__(
        self,
        root: Path,
        policy: Policy,
        *,
        find: FindEnded | None = None,
        equipment: Equipment = NOTHING_MORE,
        unattended: bool = False,
        secrets: Iterable[str] = (),
        web: WebSettings = NO_WISHES,
        walls: Walls | None = None,
    ) -> None:
        self._walls = walls
        self._commands = PlainCommands(root, mark=processes.mark, wall=None if walls is None else walls.wall)
        self.toolbox = Toolbox(
            (
                *file_tools(LocalFiles(root), hides=_hides),
                *command_tools(self._commands),
                AskUser(),
                ReadOutput(find),
                *memory_tools(),
                *artifact_tools(),
                *web_tools(LatePages(web), LateSearch(web, os.environ), SystemClock()),
                *equipment.tools,
            ),
            equipment.notes,
        )
        self._policy = policy
        self._equipment = equipment
        self._unattended = unattended
        self._redaction = Redaction(secrets)

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What models are told of them."""
        return self.toolbox.specs

    @property
    def executors(self) -> Sequence[Executor]:
        """The tools as agents meet them."""
        after, redaction = self._equipment.after, self._redaction
        guarded = [Guarded(tool, self._policy, after, redaction, self._reach) for tool in self.toolbox]
        return [Unattended(one) for one in guarded] if self._unattended else guarded

    def _reach(self) -> tuple[str, ...] | None:
        """What commands get to over the network: behind walls nothing, without them whatever they like."""
        return () if self._walls is not None and self._walls.hold() else None

    async def close(self) -> None:
        """End what still runs."""
        async with AsyncExitStack() as last:
            if self._walls is not None:
                last.callback(self._walls.close)
            last.callback(self._commands.close)
            for closing in self._equipment.closing:
                last.push_async_callback(closing)


def toolbox_of(root: Path, equipment: Equipment = NOTHING_MORE) -> Toolbox:
    """The tools of a workspace, only to be looked at."""
    return Hands(root, policy_for(root, ()), equipment=equipment).toolbox


def _hides(path: str) -> bool:
    return is_secret(PurePosixPath(path))
