"""The toolset of a team: the tools of its workspace, under its policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, Protocol, TypeAlias

from greenroom.abilities.tools.artifacts import PageSource, build_artifact_tools
from greenroom.abilities.tools.commands import BackgroundCommands, build_command_tools
from greenroom.abilities.tools.files.tools import build_file_tools
from greenroom.abilities.tools.human import AskUserTool
from greenroom.abilities.tools.memory import LongTermMemory, MemoryScopes, build_memory_tools
from greenroom.abilities.tools.read_output import FindStep, ReadOutputTool
from greenroom.abilities.tools.search_history import ReadSteps, SearchHistoryTool
from greenroom.abilities.tools.web import build_web_tools
from greenroom.adapters.files.local_files import LocalFiles
from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.storage.text_index import make_temporary_index
from greenroom.app.clock import SystemClock
from greenroom.app.conversation.chat_input import is_secret
from greenroom.app.settings.home import home_folder
from greenroom.app.settings.schema import BrowserSettings, WebSettings
from greenroom.app.toolset.exposure import reach_anywhere
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.redaction import SecretRedactor
from greenroom.app.toolset.sandbox import WorkspaceSandbox, make_host_blocker, make_step_host_blocker
from greenroom.app.toolset.toolbox import Toolbox, ToolObserver, ToolSource
from greenroom.app.toolset.web import LazyPages, LazySearch, browser_tool
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.tool import Policy, ToolExecutor
from greenroom.core.ports.web import PageFetcher
from greenroom.runs.workspace import WorktreeTools

NO_TOOL_SOURCE: Final = ToolSource()
DEFAULT_WEB: Final = WebSettings()
DEFAULT_BROWSER: Final = BrowserSettings()

FindEndedStep: TypeAlias = FindStep
"""Finds an ended step of a team, so that an agent can read more of its result."""


class CitablePages(PageFetcher, PageSource, Protocol):
    """Fetches pages and keeps them."""


MakeArchive: TypeAlias = Callable[[PageFetcher], CitablePages]


class Toolset:
    """The tools of a workspace, closed together with the team.

    `tool_source` adds custom tools. With `unattended`, no person can be asked. `secrets` are redacted from all results.
    `web` and `browser` are settings; one of the `models` controls the browser. Commands run in `sandbox`. A `worktree`
    has its own path and tools, and none that edit if it is read-only. `read_pages` makes an archive of fetched pages,
    which can be cited. `memories` are
    those beyond the team.
    """

    def __init__(
        self,
        root: Path,
        policy: Policy,
        *,
        find: FindEndedStep | None = None,
        read_steps: ReadSteps | None = None,
        tool_source: ToolSource = NO_TOOL_SOURCE,
        unattended: bool = False,
        secrets: Iterable[str] = (),
        web: WebSettings = DEFAULT_WEB,
        browser: BrowserSettings = DEFAULT_BROWSER,
        models: Models | None = None,
        sandbox: WorkspaceSandbox | None = None,
        worktree: WorktreeTools | None = None,
        read_pages: MakeArchive | None = None,
        memories: LongTermMemory | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._worktree = worktree
        self.commands = _make_commands(root, policy, sandbox)
        background = BackgroundCommands(self.commands)
        pages = LazyPages(web, make_host_blocker(policy))
        archive = read_pages(pages) if read_pages is not None else None
        built_in_tools = (
            *build_file_tools(
                LocalFiles(root, at=worktree.mount_point if worktree is not None else None),
                hides=lambda path: is_secret(PurePosixPath(path)),
            ),
            *build_command_tools(self.commands, background),
            AskUserTool(),
            ReadOutputTool(find),
            SearchHistoryTool(read_steps, make_temporary_index),
            *build_memory_tools(MemoryScopes(store=memories, keeps_project=worktree is not None)),
            *build_artifact_tools(archive),
            *build_web_tools(archive or pages, LazySearch(web, os.environ), SystemClock()),
            browser_tool(models, browser, web, home_folder(), partial(make_step_host_blocker, policy)),
        )
        worktree_tools = worktree.extra_tools(self.commands, background.stop_all) if worktree is not None else ()
        tools = (*built_in_tools, *worktree_tools, *tool_source.tools)
        left_out = "edit" if worktree is not None and worktree.read_only else None
        self.toolbox = Toolbox((tool for tool in tools if tool.card.group != left_out), tool_source.notes)
        self._policy = policy
        self._tool_source = tool_source
        self._unattended = unattended
        self._redaction = SecretRedactor(secrets)

    @property
    def specs(self) -> Sequence[ToolSpec]:
        return self.toolbox.specs

    @property
    def executors(self) -> Sequence[ToolPipeline]:
        tools = self.toolbox if self._worktree is None else map(self._worktree.wrap, self.toolbox)
        reach = self._sandbox.reach if self._sandbox is not None else reach_anywhere
        return [
            ToolPipeline(
                tool, self._policy, self._observers_of(tool), self._redaction, reach, unattended=self._unattended
            )
            for tool in tools
        ]

    def _observers_of(self, tool: ToolExecutor) -> Sequence[ToolObserver]:
        """Return the observers of a tool. Greenroom's own steps in a worktree have none."""
        is_internal = self._worktree is not None and tool.name in self._worktree.trusted_tools
        return () if is_internal else self._tool_source.observers

    async def close(self) -> None:
        async with AsyncExitStack() as exit_stack:
            if self._sandbox is not None:
                exit_stack.push_async_callback(self._sandbox.close)
            exit_stack.callback(self.commands.close)
            for closing in self._tool_source.close_callbacks:
                exit_stack.push_async_callback(closing)


def _make_commands(root: Path, policy: Policy, sandbox: WorkspaceSandbox | None) -> LocalCommands:
    if sandbox is None:
        return LocalCommands(root)
    sandbox.egress_proxy.make_blocker = lambda host_names: make_host_blocker(policy, host_names)
    return LocalCommands(root, sandbox=sandbox.open_sandbox, egress=sandbox.egress_proxy)


def build_toolbox(root: Path, tool_source: ToolSource = NO_TOOL_SOURCE) -> Toolbox:
    """Return the tools of a workspace, for display only."""
    return Toolset(root, build_policy(root, ()), tool_source=tool_source).toolbox
