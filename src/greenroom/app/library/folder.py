"""A workspace of a program's agents: the folder in which they have the tools of the house."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from greenroom.app.conversation.kits import Hands as AnyHands
from greenroom.app.functions import Tool
from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.workplace import HouseTerms, Workplace
from greenroom.app.toolset.custom import files_in, meet_servers, servers_in
from greenroom.app.toolset.policy import project_rules
from greenroom.app.toolset.sandbox import Walls
from greenroom.app.toolset.toolbox import Equipment, together
from greenroom.app.toolset.toolset import Hands, toolbox_of
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Models


class FolderWorkplace(Workplace):
    """A folder; `WorldFault` for what is none."""

    root: Path

    def __init__(self, workspace: str | Path, rules: Sequence[str] = ()) -> None:
        super().__init__(rules)
        self.root = _folder(workspace)
        self.house = tuple(toolbox_of(self.root))
        self._unmet: tuple[str, ...] | None = None

    async def meet(self, agents: Iterable[Blueprint[Any]]) -> None:
        """Before a run, once: see what MCP servers have that nobody has looked at, if anybody may want it."""
        wanted = any(one.gear.named or "mcp" in one.spec.groups for one in agents)
        if wanted and self._unmet is None:
            self._unmet = await meet_servers(self.root)
            for note in self.notes:
                logging.getLogger(__name__).warning("%s", note)

    @property
    def notes(self) -> tuple[str, ...]:
        """What files, packages and servers would bring that is not used, and what to do about it."""
        brought = self.brought
        return (*brought.notes, *brought.unagreed, *(self._unmet or ()))

    @cached_property
    def _files(self) -> Equipment:
        """What files and packages give: run once for a house."""
        return files_in(self.root)

    @property
    def brought(self) -> Equipment:
        """That, and the tools of MCP servers, which are made anew for each run and end with it."""
        return together((self._files, servers_in(self.root)))

    def hands(self, own: Sequence[Tool[..., Any]], models: Models, terms: HouseTerms) -> AnyHands:
        """All tools of a run, under the policy and the settings that hold here."""
        settings, names, brought = terms.settings, {one.name for one in own}, self.brought
        walls = Walls(self.root, settings.sandbox, web=settings.web)
        policy = self.policy(self.root, own, project_rules(self.root), walls.hold)
        others = evolve(brought, tools=tuple(one for one in brought.tools if one.name not in names))
        return Hands(
            self.root,
            terms.confirmed_by(policy),
            find=terms.find,
            equipment=together((Equipment(tools=tuple(own)), others)),
            unattended=settings.non_interactive,
            secrets=terms.secrets,
            web=settings.web,
            browser=settings.browser,
            models=models,
            walls=walls,
        )

    def keep(self, grant: str) -> None:
        """What the person agrees to for good, in their own file."""
        for rule in grant.splitlines():
            self._persons.add(rule, self.root)


def _folder(workspace: str | Path) -> Path:
    path = Path(workspace)
    with suppress(OSError, ValueError):
        if path.is_dir():
            return path.resolve()
    raise WorldFault(f"{str(path)!r} cannot be a workspace: it is no folder. Make it first, or name another one.")
