"""The hands of one team: the tools of its workspace, under its policy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from greenroom.abilities.tools.artifacts import artifact_tools
from greenroom.abilities.tools.commands import Background, command_tools
from greenroom.abilities.tools.files.tools import file_tools
from greenroom.abilities.tools.human import AskUser
from greenroom.abilities.tools.memory import memory_tools
from greenroom.abilities.tools.read_output import FindStep, ReadOutput
from greenroom.abilities.tools.web import web_tools
from greenroom.adapters.files.local import LocalFiles
from greenroom.adapters.processes.plain import PlainCommands
from greenroom.app.clock import SystemClock
from greenroom.app.conversation.typed import is_secret
from greenroom.app.settings.home import home_folder
from greenroom.app.settings.schema import BrowserSettings, WebSettings
from greenroom.app.toolset.exposure import anywhere
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.app.toolset.policy import policy_for
from greenroom.app.toolset.redaction import Redaction
from greenroom.app.toolset.sandbox import Walls, closed, closed_for
from greenroom.app.toolset.toolbox import After, Equipment, Toolbox
from greenroom.app.toolset.web import LatePages, LateSearch, browser_tool
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.tool import Policy, ToolExecutor
from greenroom.runs.workspace import Copied

NOTHING_MORE: Final = Equipment()
NO_WISHES: Final = WebSettings()
USUAL_BROWSER: Final = BrowserSettings()

FindEnded: TypeAlias = FindStep
"""How a step of a team is found that has ended, for whoever reads on in its result."""


class Hands:
    """Made for a workspace, closed when the team is. `equipment` comes to what the house has itself.

    `unattended` says that nobody is there to be asked. `secrets` are left out of whatever a tool says. `web` is
    what the person has set for it, and `browser` for the browser, which one of the `models` leads; `walls` are what
    commands run behind. A `copied` workspace has its own place and tools.
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
        browser: BrowserSettings = USUAL_BROWSER,
        models: Models | None = None,
        walls: Walls | None = None,
        copied: Copied | None = None,
    ) -> None:
        self._walls = walls
        self._copied = copied
        self.commands = _commands(root, policy, walls)
        background = Background(self.commands)
        own = (
            *file_tools(
                LocalFiles(root, at=copied.at if copied is not None else None),
                hides=lambda path: is_secret(PurePosixPath(path)),
            ),
            *command_tools(self.commands, background),
            AskUser(),
            ReadOutput(find),
            *memory_tools(),
            *artifact_tools(),
            *web_tools(LatePages(web, closed(policy)), LateSearch(web, os.environ), SystemClock()),
            browser_tool(models, browser, web, home_folder(), partial(closed_for, policy)),
        )
        more = copied.more(self.commands, background.quiet) if copied is not None else ()
        self.toolbox = Toolbox((*own, *more, *equipment.tools), equipment.notes)
        self._policy = policy
        self._equipment = equipment
        self._unattended = unattended
        self._redaction = Redaction(secrets)

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What models are told of them."""
        return self.toolbox.specs

    @property
    def executors(self) -> Sequence[ToolPipeline]:
        """The tools as agents meet them."""
        tools = self.toolbox if self._copied is None else map(self._copied.wrap, self.toolbox)
        reach = self._walls.reach if self._walls is not None else anywhere
        return [
            ToolPipeline(tool, self._policy, self._after(tool), self._redaction, reach, unattended=self._unattended)
            for tool in tools
        ]

    def _after(self, tool: ToolExecutor) -> Sequence[After]:
        """Who hears of its calls. The house's own steps in a copy are no calls of an agent."""
        own = self._copied is not None and tool.name in self._copied.known
        return () if own else self._equipment.after

    async def close(self) -> None:
        async with AsyncExitStack() as last:
            if self._walls is not None:
                last.push_async_callback(self._walls.close)
            last.callback(self.commands.close)
            for closing in self._equipment.closing:
                last.push_async_callback(closing)


def _commands(root: Path, policy: Policy, walls: Walls | None) -> PlainCommands:
    if walls is None:
        return PlainCommands(root)
    walls.outlet.closed = lambda named: closed(policy, named)
    return PlainCommands(root, wall=walls.opened, outlet=walls.outlet)


def toolbox_of(root: Path, equipment: Equipment = NOTHING_MORE) -> Toolbox:
    """The tools of a workspace, only to be looked at."""
    return Hands(root, policy_for(root, ()), equipment=equipment).toolbox
