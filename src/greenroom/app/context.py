"""The app context: settings, models, runtime and tools of one process, for the library and the command line."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from greenroom.adapters.storage.memory_files import MemoryFiles
from greenroom.adapters.storage.text_index import SqliteTextIndex
from greenroom.app.messages import translate
from greenroom.app.settings.home import home_folder, worktrees_folder
from greenroom.app.toolset.manual_call import find_ended_step
from greenroom.app.workspace import current_folder, find_workspace_root
from greenroom.core.base.errors import Bug, Rejection
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.ports.model import Model, Models
from greenroom.core.ports.sandbox import CONFINING_TIERS, Tier
from greenroom.core.ports.text_index import TextIndex
from greenroom.core.state.step import Step
from greenroom.core.sync.replay import StepHistory, read_ended_steps

if TYPE_CHECKING:
    from greenroom.app.agents.discovery import Agents
    from greenroom.app.model_registry import ModelSession
    from greenroom.app.runtime import Runtime
    from greenroom.app.settings.schema import Settings
    from greenroom.app.skill_library import WorkspaceSkills
    from greenroom.app.toolset.toolbox import Toolbox, ToolSource
    from greenroom.app.toolset.toolset import MakeArchive, Toolset
    from greenroom.core.ports.tool import Policy
    from greenroom.core.rules.intents import Intent
    from greenroom.runs.workspace import WorktreeTools

ESTIMATED_INPUT_TOKENS: Final = (20_000, 40_000)
ESTIMATED_OUTPUT_TOKENS: Final = (2_000, 4_000)
"""Estimated output tokens of a small change, and the extra tokens per file."""


class AppContext:
    """The context of one process. Each part is loaded when it is first used. It is also the `Models` of the teams in
    this process. `home` is the data folder. With `is_auto_approved`, plans and found checks need no approval."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = home
        self._model_session: ModelSession | None = None
        self._flags: dict[str, object] = {}
        self._runtime: Runtime | None = None
        self._histories: dict[TeamId, StepHistory] = {}
        self.is_auto_approved = False

    @property
    def runtime(self) -> Runtime:
        """The open runtime. Raises `Bug` before it is opened."""
        if self._runtime is None:
            raise Bug("The app context has no open runtime.")
        return self._runtime

    @runtime.setter
    def runtime(self, opened: Runtime) -> None:
        self._runtime = opened
        opened.clean_intent = self._clean_intent

    def _clean_intent(self, intent: Intent) -> Intent | Rejection:
        """Redact an intent. The settings are loaded only when one is submitted."""
        return self.model_session.redaction.clean_intent(intent)

    # ------------------------------------------------------------------------------------------ settings and models

    @property
    def model_session(self) -> ModelSession:
        """The settings, models and recordings."""
        if self._model_session is None:
            from greenroom.app.model_registry import ModelSession

            self._model_session = ModelSession()
        return self._model_session

    @property
    def settings(self) -> Settings:
        return self.model_session.loaded_settings.settings

    @property
    def language(self) -> str:
        return self.settings.language

    @property
    def is_attended(self) -> bool:
        """Whether a person can be asked, according to the settings."""
        return not self.settings.non_interactive

    def get_approval_timeout(self) -> int | None:
        """Return how long an approval request stays open, in milliseconds. None means forever."""
        return self.settings.approval_timeout_ms

    def override(self, flags: Mapping[str, object]) -> None:
        """Override settings by name, with the highest priority. None changes nothing."""
        self._flags |= flags
        self.model_session.set_flags(self._flags)

    def set_attendance(self, *, yes: bool, non_interactive: bool) -> None:
        """Set whether plans are approved in advance, and whether a person can be asked."""
        self.is_auto_approved = yes
        self.override({"non_interactive": True if non_interactive else None})

    def use_recording(self, record: Path | None, replay: Path | None) -> None:
        """Record all model calls to a file, or replay them from one."""
        if record is not None or replay is not None:
            self.model_session.use_recording(record, replay)

    def get_model(self, name: str) -> Model:
        return self.model_session.get_model(name)

    def resolve_alias(self, name: str) -> str:
        """Return the model or group that a role, or an empty name, currently stands for."""
        return self.model_session.resolve_alias(name)

    def use_script(self, script: Model) -> Models:
        """Return a scripted model in place of all others, recorded or replayed if requested."""
        return self.model_session.use_script(script)

    def unused_recording(self) -> str:
        """Return a sentence about recorded answers that were not used, or an empty string."""
        unused = self._model_session.find_unused() if self._model_session is not None else None
        if unused is None:
            return ""
        models = ", ".join(unused.models)
        return translate("models.unused_answers", count=unused.count, file=unused.file, models=models)

    def estimate_cost(self, model: str, files: int) -> tuple[int, int] | None:
        """Estimate the lowest and highest cost of a change of this many files, in millionths of a dollar; None if
        unknown."""
        count, model_to_ask = max(1, files), self.get_model(model)
        lowest = model_to_ask.price(ESTIMATED_INPUT_TOKENS[0], ESTIMATED_OUTPUT_TOKENS[0])
        highest = model_to_ask.price(
            ESTIMATED_INPUT_TOKENS[0] + ESTIMATED_INPUT_TOKENS[1] * count,
            ESTIMATED_OUTPUT_TOKENS[0] + ESTIMATED_OUTPUT_TOKENS[1] * count,
        )
        return (lowest, highest) if lowest and highest else None

    # --------------------------------------------------------------------------------------- workspace and its agents

    @property
    def folder(self) -> Path:
        """The current folder."""
        return current_folder()

    @property
    def root(self) -> Path:
        """The root of its workspace."""
        return find_workspace_root(self.folder)

    def notes(self) -> str:
        """Return the text of AGENTS.md and CLAUDE.md, with untrusted notes labelled."""
        from greenroom.app.trust import open_trust_store, render_trusted_notes

        return render_trusted_notes(self.folder, open_trust_store().make_trust_check(self.root))

    def agents(self) -> Agents:
        """Return the agents of the workspace, without untrusted project agents and those whose skills are unknown."""
        from greenroom.app.agents.discovery import find_agents
        from greenroom.app.skill_library import keep_agents_with_skills
        from greenroom.app.trust import keep_trusted_agents, open_trust_store

        is_trusted = open_trust_store().make_trust_check(self.root)
        agents = keep_trusted_agents(find_agents(self.folder), self.root, is_trusted)
        return keep_agents_with_skills(agents, lambda: self.skills)

    @cached_property
    def skills(self) -> WorkspaceSkills:
        """The skills of the workspace that agents may use."""
        from greenroom.app.skill_library import open_skills

        return open_skills(self.root, self.settings.skills)

    # ------------------------------------------------------------------------------------------------ tools and teams

    def toolset(
        self,
        root: Path,
        worktree: WorktreeTools | None = None,
        *,
        tool_source: ToolSource | None = None,
        read_pages: MakeArchive | None = None,
        wrap_policy: Callable[[Policy], Policy] = lambda policy: policy,
    ) -> Toolset:
        """Build the tools of a workspace, or of a `worktree`, under the rules that the person has approved.

        `tool_source` has the custom tools, if they were loaded already. `read_pages` makes an archive of fetched pages.
        """
        from greenroom.app.toolset.custom import find_tool_source
        from greenroom.app.toolset.policy import ConfirmingPolicy, build_policy, open_user_rules, project_rules
        from greenroom.app.toolset.sandbox import WorkspaceSandbox
        from greenroom.app.toolset.toolset import Toolset

        settings = self.settings
        folder = worktree.folder if worktree is not None else root
        lent_paths = worktree.mounts if worktree is not None else ()
        read_only = worktree is not None and worktree.read_only
        sandbox = WorkspaceSandbox(
            folder, settings.sandbox, at=root, mounts=lent_paths, read_only=read_only, web=settings.web
        )
        known_tools = worktree.trusted_tools if worktree is not None else ()
        rules, project = open_user_rules().rules_for(root), project_rules(root)
        # On a read-only workspace a command runs in a sandbox or not at all: an approval could change nothing.
        is_sandboxed = (lambda: True) if read_only else sandbox.is_holding
        policy = wrap_policy(
            build_policy(root, rules, project, program_tools=known_tools, is_sandboxed=is_sandboxed, files_root=folder)
        )
        return Toolset(
            folder,
            ConfirmingPolicy(policy) if settings.execute_tool_confirm else policy,
            find=self.ended_step,
            read_steps=self.thread_steps,
            tool_source=find_tool_source(root) if tool_source is None else tool_source,
            unattended=settings.non_interactive,
            secrets=self.model_session.list_keys(),
            web=settings.web,
            browser=settings.browser,
            models=self,
            sandbox=sandbox,
            worktree=worktree,
            read_pages=read_pages,
            memories=self.memories(root),
        )

    def toolbox(self, root: Path | None = None) -> Toolbox:
        """Return the tools of a workspace by name, for display only."""
        from greenroom.app.toolset.custom import find_tool_source
        from greenroom.app.toolset.toolset import build_toolbox

        return build_toolbox(root or self.root, find_tool_source(root or self.root))

    @cached_property
    def sandbox_tier(self) -> Tier:
        """The sandbox of commands in a run's worktree. Detection sets up a sandbox, so it happens once."""
        from greenroom.app.toolset.sandbox import find_folder_sandbox

        return find_folder_sandbox(worktrees_folder(), self.settings.sandbox, at=self.root).tier

    @property
    def is_sandboxed(self) -> bool:
        return self.sandbox_tier in CONFINING_TIERS

    @property
    def may_run_checks(self) -> bool:
        """Whether unapproved checks can run: in a sandbox, or with --yes."""
        return self.is_sandboxed or self.is_auto_approved

    async def ended_step(self, team: TeamId, name: StepId) -> Step | None:
        """Find an ended step, so that an agent can read more of its result."""
        return None if self._runtime is None else await find_ended_step(self._runtime, team, name)

    async def thread_steps(self, team: TeamId, last: int, since: int) -> Sequence[Step]:
        """Return the ended steps of a thread from version `since` to its `last` step, so that an agent can search."""
        return await read_ended_steps(self.runtime.log, team, last, since)

    async def steps(self, team: TeamId) -> Sequence[Step]:
        """Return all ended steps of a team, oldest first."""
        if team not in self._histories:
            self._histories[team] = StepHistory(self.runtime.log, team)
        return await self._histories[team].read()

    @cached_property
    def text_index(self) -> TextIndex:
        """The index of memories, skills and moved history, in the data folder."""
        return SqliteTextIndex(home_folder(self.home) / "index.db")

    def memories(self, root: Path | None = None) -> MemoryFiles:
        """Return the long-term memories of a workspace."""
        from greenroom.app.memories import open_memories

        return open_memories(home_folder(self.home), root or self.root, lambda: self.text_index)

    async def blob(self, digest: str) -> bytes:
        """Return the content of a large result."""
        return await self.runtime.log.get_blob(digest)

    async def close(self) -> None:
        if self._model_session is not None:
            await self._model_session.close()


def tune_process() -> None:
    """Tune garbage collection and child processes for this process.

    Records have no cycles and are freed by reference count, so the collector finds nothing. With 1,000 active agents
    this saves a quarter of the CPU time per step. Child processes are awaited without threads.
    """
    gc.set_threshold(50_000, 20, 100)
    if sys.version_info < (3, 12) and _can_wait_by_file():
        # Later Python versions do this by default. Earlier ones use a thread per child, which costs a quarter of the
        # time with the hundreds of git processes of a run.
        asyncio.get_event_loop_policy().set_child_watcher(asyncio.PidfdChildWatcher())


def _can_wait_by_file() -> bool:
    """Whether the system supports process file descriptors. Some containers forbid them."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True
