"""The environment of agents with a workspace: the folder in which built-in tools work."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from greenroom.app.context import AppContext
from greenroom.app.conversation.factories import TeamTools
from greenroom.app.library.agent_definition import AgentDefinition
from greenroom.app.library.environment import AgentEnvironment
from greenroom.app.toolset.custom import check_new_servers, find_file_tools, find_server_tools
from greenroom.app.toolset.policy import ConfirmsAgent, project_rules
from greenroom.app.toolset.sandbox import WorkspaceSandbox
from greenroom.app.toolset.toolbox import ToolSource, merge_tool_sources
from greenroom.app.toolset.toolset import Toolset, build_toolbox
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Models
from greenroom.core.ports.tool import ToolExecutor


class WorkspaceEnvironment(AgentEnvironment):
    """An environment with a workspace folder. Raises `WorldFault` if the folder does not exist."""

    root: Path

    def __init__(self, app: AppContext, workspace: str | Path, rules: Sequence[str] = ()) -> None:
        super().__init__(app, rules)
        self.root = _check_folder(workspace)
        self.builtin_tools = tuple(build_toolbox(self.root))
        self._unread_servers: tuple[str, ...] | None = None
        self._memories = app.memories(self.root) if app.home is not None else None

    async def discover_servers(self, agents: Iterable[AgentDefinition[Any]]) -> None:
        """Read the tools of MCP servers once, if an agent can use them."""
        all_agents = tuple(agents)
        await super().discover_servers(all_agents)
        needs_servers = any(agent.builtin_names or "mcp" in agent.spec.groups for agent in all_agents)
        if needs_servers and self._unread_servers is None:
            self._unread_servers = await check_new_servers(self.root)
            logged = super().notes
            for note in (note for note in self.notes if note not in logged):
                logging.getLogger(__name__).warning("%s", note)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which tools of files, packages and servers are not used, and how to enable them."""
        equipment = self.equipment
        return (*equipment.notes, *equipment.untrusted, *(self._unread_servers or ()), *super().notes)

    @cached_property
    def _file_equipment(self) -> ToolSource:
        """The tools of files and packages. The files run once per `Greenroom`."""
        return find_file_tools(self.root)

    @property
    def equipment(self) -> ToolSource:
        """The tools of files and packages, and those of MCP servers. Server tools are created for each run."""
        return merge_tool_sources((self._file_equipment, find_server_tools(self.root)))

    def make_tools(
        self, functions: Sequence[ToolExecutor], models: Models, needs_confirmation: ConfirmsAgent | None
    ) -> TeamTools:
        """Build the tools of a run under the policy and settings of the workspace."""
        functions = (*functions, *self.list_server_tools())
        settings, function_names, equipment = self._app.settings, {tool.name for tool in functions}, self.equipment
        sandbox = WorkspaceSandbox(self.root, settings.sandbox, web=settings.web)
        rules = project_rules(self.root)
        policy = self.make_policy(self.root, functions, needs_confirmation, rules, sandbox.is_holding)
        other_equipment = evolve(
            equipment, tools=tuple(tool for tool in equipment.tools if tool.name not in function_names)
        )
        return Toolset(
            self.root,
            policy,
            find=self._app.ended_step,
            read_steps=self._app.thread_steps,
            tool_source=merge_tool_sources((ToolSource(tools=tuple(functions)), other_equipment)),
            unattended=settings.non_interactive,
            secrets=self._app.model_session.list_keys(),
            web=settings.web,
            browser=settings.browser,
            models=models,
            sandbox=sandbox,
            memories=self._memories,
        )

    def save_grant(self, grant: str) -> None:
        """Save permission rules to the person's rules file."""
        for rule in grant.splitlines():
            self._person_rules.add(rule, self.root)


def _check_folder(workspace: str | Path) -> Path:
    path = Path(workspace)
    with suppress(OSError, ValueError):
        if path.is_dir():
            return path.resolve()
    raise WorldFault("library.workspace_not_folder", path=str(path))
