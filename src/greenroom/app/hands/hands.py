"""The hands of one team: the tools of its workspace, under its policy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from greenroom.abilities.permission.policy import rules_policy
from greenroom.abilities.tools.ask_user import AskUser
from greenroom.abilities.tools.commands.toolkit import command_tools
from greenroom.abilities.tools.files.toolbox import file_tools
from greenroom.abilities.tools.output.read_output import FindStep, ReadOutput
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.adapters.files.local import LocalFiles
from greenroom.adapters.workers import processes
from greenroom.app.hands.equipment import Equipment
from greenroom.app.hands.guarded import Guarded
from greenroom.app.hands.toolbox import Toolbox
from greenroom.app.talks.typed.secrets import is_secret
from greenroom.core.ports.executor import Executor
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.policy import Policy

NOTHING_MORE: Final = Equipment()

FindEnded: TypeAlias = FindStep
"""How a step of a team is found that has ended, for whoever reads on in its result."""


class Hands:
    """Made for a workspace, closed when the team is. `equipment` comes to what the house has itself."""

    def __init__(
        self,
        root: Path,
        policy: Policy,
        *,
        find: FindEnded | None = None,
        equipment: Equipment = NOTHING_MORE,
    ) -> None:
        self._commands = PlainCommands(root, mark=processes.mark)
        self.toolbox = Toolbox(
            (
                *file_tools(LocalFiles(root), hides=_hides),
                *command_tools(self._commands),
                AskUser(),
                ReadOutput(find),
                *equipment.tools,
            )
        )
        self._policy = policy
        self._equipment = equipment

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What models are told of them."""
        return self.toolbox.specs

    @property
    def executors(self) -> Sequence[Executor]:
        """The tools as agents meet them."""
        return [Guarded(tool, self._policy, self._equipment.after) for tool in self.toolbox]

    @property
    def notes(self) -> Sequence[str]:
        """What is not there, and what to do about it."""
        return self._equipment.notes

    async def close(self) -> None:
        """End what still runs."""
        async with AsyncExitStack() as last:
            last.callback(self._commands.close)
            for closing in self._equipment.closing:
                last.push_async_callback(closing)


def toolbox_of(root: Path, equipment: Equipment = NOTHING_MORE) -> Toolbox:
    """The tools of a workspace, only to be looked at."""
    return Hands(root, policy_for(root, ()), equipment=equipment).toolbox


def _hides(path: str) -> bool:
    return is_secret(PurePosixPath(path))


def policy_for(root: Path, agreed: Sequence[str], project: Sequence[str] = ()) -> Policy:
    """The policy of a workspace: what the person agreed to for good. A project can only forbid, or want to be asked."""
    return rules_policy({"granted": agreed, "project": project}, str(root))
