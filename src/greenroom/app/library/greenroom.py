"""`Greenroom`: the place where agents run, with its log, its models and its workspace."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack
from weakref import WeakKeyDictionary

from greenroom.abilities.skills.conversation.model_call import pick_model
from greenroom.abilities.skills.conversation.transcript import Transcripts
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.context import AppContext
from greenroom.app.conversation.agent_files import AgentFiles, read_agent_files
from greenroom.app.conversation.attachments import Attachments, make_prompt
from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.conversation.chat import Chat
from greenroom.app.conversation.start import (
    FIRST_TASK_ID,
    Participants,
    create_single_task_team,
    let_others_join_later,
)
from greenroom.app.library.agent_definition import AgentDefinition, check_arguments, require_kind
from greenroom.app.library.approval import ApprovalCallback, ApprovalHandler
from greenroom.app.library.environment import (
    AgentEnvironment,
    PreparedAgent,
    collect_agents,
    make_confirmation_check,
    make_library_capabilities,
)
from greenroom.app.library.events import TASK_STARTED, EventBus
from greenroom.app.library.run import MAX_EARLY_EVENTS, Conversation, Run, RunArguments, RunObserver
from greenroom.app.library.run_result import (
    LIBRARY_CHAT,
    LIBRARY_RUN,
    ExecutedTools,
    RunEvent,
    RunInfo,
    RunLimits,
    RunResult,
    T,
    attach_run_id,
    check_value,
    find_executed_tools,
    list_runs,
    refuse_program_team,
)
from greenroom.app.lookup import LAST
from greenroom.app.runtime import Runtime
from greenroom.app.settings import values
from greenroom.app.settings.home import HOME_VARIABLE, home_folder, write_gitignore
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Capabilities, CapabilitiesFactory
from greenroom.core.ports.model import Model, Models, ToolSpec
from greenroom.core.rules.intents import ChangeAgent
from greenroom.core.state.team import Team

if TYPE_CHECKING:
    from greenroom.app.library.teams import Teams

FOLDER: Final = ".greenroom"
MAX_RUNS_LISTED: Final = 50
MODELS_FOR_TESTS: Final[list[Models]] = []
"""Models that replace those of the settings; the last counts. See `greenroom.testing.scripted.use_models`."""


class Greenroom:
    """Where agents run: `async with Greenroom() as greenroom:`.

    Args:

    - `home`: The folder of the log. Default: `$GREENROOM_HOME`, else `.greenroom/` in the current folder.
    - `in_memory`: Keep the log in memory; nothing is stored.
    - `models`: Models to use instead of those of the settings. Then only `limits` apply.
    - `limits`: Limits of each run. They replace those of the settings.
    - `max_cost`: The limit of each run in dollars. Default: the setting `limits.cost`.
    - `max_tokens`: The limit of each run in tokens. Default: the setting `limits.tokens`.
    - `max_time`: The limit of each run in seconds of work. Default: the setting `limits.time`.
    - `filter_tools_above`: An agent with more tools first selects those that it needs. Default: 30; 0 disables this.
    - `workspace`: The folder in which built-in tools work. Without it there are no built-in tools.
    - `rules`: Permission rules for the workspace, such as `allow command pytest`, added to those of the person.
    - `approve`: A function that decides about tool calls that need approval, in all runs without their own.
    - `confirm_calls`: Whether every tool call needs approval. Default: the setting `execute_tool_confirm`.
    - `non_interactive`: Deny every call that would need approval. Default: the setting.

    `RunArguments` lists what `run`, `stream`, `start` and `resume` accept beside the prompt.

    `events` holds callbacks by event name; see `EventBus`.
    """

    @check_arguments
    def __init__(
        self,
        home: str | Path | None = None,
        *,
        in_memory: bool = False,
        models: Models | None = None,
        limits: Limits | None = None,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        max_time: float | None = None,
        filter_tools_above: int = 30,
        workspace: str | Path | None = None,
        rules: Sequence[str] = (),
        approve: ApprovalCallback | None = None,
        confirm_calls: bool | None = None,
        non_interactive: bool | None = None,
    ) -> None:
        if in_memory and home is not None:
            raise WorldFault("library.home_or_memory")
        require_kind(models is None or hasattr(models, "get_model"), models, "models")
        require_kind(limits is None or isinstance(limits, Limits), limits, "limits")
        require_kind(approve is None or callable(approve), approve, "approve")
        for field, value, reader in (
            ("max_cost", max_cost, values.parse_cost),
            ("max_tokens", max_tokens, values.parse_tokens),
            ("max_time", max_time, values.parse_time),
        ):
            if value is not None:
                check_value(reader, value, field)
        home_path = Path(os.environ.get(HOME_VARIABLE) or FOLDER) if home is None else Path(home)
        self.home = None if in_memory else home_folder(home_path)
        self._given_models = models
        self._given_limits = limits
        self._app = AppContext(self.home)
        self._app.override(
            {
                "limits.cost": max_cost,
                "limits.tokens": max_tokens,
                "limits.time": max_time,
                "execute_tool_confirm": confirm_calls,
                "non_interactive": non_interactive,
            }
        )
        self._environment = _make_environment(self._app, workspace, rules)
        self._approve = approve
        self.events = EventBus()
        self._filter_above = filter_tools_above
        self._runtime: Runtime | None = None
        self._capabilities: dict[TeamId, Capabilities] = {}
        self._clear_prepared()

    async def __aenter__(self) -> Self:
        factories: dict[str, CapabilitiesFactory] = {
            LIBRARY_RUN: self._get_capabilities,
            LIBRARY_CHAT: self._get_capabilities,
            TEAM_RUN: self._make_team_capabilities,
        }
        self._clear_prepared()
        if self.home is None:
            self._runtime = Runtime(MemoryLog(), capability_factories=factories)
        else:
            self._runtime = await Runtime.open(self.home, capability_factories=factories)
            if self.home.name == FOLDER:
                write_gitignore(self.home)
        self._app.runtime = self._runtime
        return self

    def _clear_prepared(self) -> None:
        """Clear prepared agents and teams. They refer to a runtime, and each opening creates a new one."""
        self._teams: Teams | None = None
        self._prepared = {solo: WeakKeyDictionary[AgentDefinition[Any], PreparedAgent]() for solo in (True, False)}

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        runtime, self._runtime = self._runtime, None
        self._clear_prepared()
        try:
            if runtime is not None:
                await runtime.close()
        finally:
            await self._environment.close()
            await self._app.close()

    @property
    def runtime(self) -> Runtime:
        """The runtime below: all teams, their events and their archive."""
        if self._runtime is None:
            raise WorldFault("library.not_open")
        return self._runtime

    @property
    def models(self) -> Models:
        """The models that agents use."""
        return self._given_models or (MODELS_FOR_TESTS[-1] if MODELS_FOR_TESTS else self._app)

    async def run(self, agent: AgentDefinition[T], text: str = "", **arguments: Unpack[RunArguments]) -> RunResult[T]:
        """Run an agent on a prompt and wait for the result. Pass either `text` or `resume`."""
        async with self._open_run(agent, text, 0, **arguments) as run:
            return await run.result()

    async def stream(
        self, agent: AgentDefinition[T], text: str = "", **arguments: Unpack[RunArguments]
    ) -> AsyncIterator[RunEvent[T]]:
        """Run an agent and yield events as they happen. The last event is the `RunResult`."""
        async with self._open_run(agent, text, None, **arguments) as run:
            async for event in run.stream():
                yield event

    def start(
        self, agent: AgentDefinition[T], text: str = "", **arguments: Unpack[RunArguments]
    ) -> AbstractAsyncContextManager[Run[T]]:
        """Start a run that you can send messages to or cancel. Leaving the context stops it; `resume` continues it."""
        return self._open_run(agent, text, MAX_EARLY_EVENTS, **arguments)

    @check_arguments
    @asynccontextmanager
    async def _open_run(
        self,
        agent: AgentDefinition[T],
        text: str,
        max_early: int | None,
        /,
        *,
        resume: str = "",
        approve: ApprovalCallback | None = None,
        context: object = None,
        attachments: Attachments = (),
        limits: RunLimits | None = None,
    ) -> AsyncIterator[Run[T]]:
        if bool(text.strip()) == bool(resume) or (resume and attachments):
            raise WorldFault("library.text_or_resume")
        prepared = await self._prepare(agent, solo=True, context=context)
        observer = self._make_observer(approve, max_early)
        if resume:
            team = await self._find_resumable(agent, resume, LIBRARY_RUN)
        else:
            model = self._require_models(prepared)
            files = read_agent_files(agent.spec, self._environment.root or Path.cwd(), model.card)
            prompt = await make_prompt(text, attachments, model, self.runtime.log, files.media)
            participants, task_limits = await prepared.instruct(text, context), self._limits()
            participants = let_others_join_later(evolve(participants, routing=agent.routing))
            if limits is not None:
                (name, spec), *others = participants.members
                participants = evolve(participants, members=((name, limits.apply_to_spec(spec)), *others))
                task_limits = limits.apply_to(task_limits)
            team = await create_single_task_team(
                self.runtime,
                LIBRARY_RUN,
                participants,
                prompt.text,
                typed=prompt.typed,
                media=prompt.media,
                limits=task_limits,
                capabilities=prepared.capabilities,
                on_open=observer.attach,
            )
        run = Run(agent, team, observer)
        self._capabilities[team] = prepared.capabilities
        with attach_run_id(lambda: team):
            try:
                if resume:
                    await run.begin(limits)
                yield run
            finally:
                await run.close()
                self._capabilities.pop(team, None)
                prepared.forget_team(team)

    async def resume(self, agent: AgentDefinition[T], run_id: str, **arguments: Unpack[RunArguments]) -> RunResult[T]:
        """Continue the interrupted run `run_id` where it stopped. Pass the agent that the run started with."""
        arguments["resume"] = run_id
        return await self.run(agent, **arguments)

    @check_arguments
    @asynccontextmanager
    async def chat(
        self,
        agent: AgentDefinition[T],
        *,
        resume: str = "",
        approve: ApprovalCallback | None = None,
        context: object = None,
    ) -> AsyncIterator[Conversation[T]]:
        """Open a conversation: `async with greenroom.chat(agent) as conversation: await conversation.send("Hello")`.

        `resume` is the id of an earlier conversation, or `"last"`.
        """
        prepared = await self._prepare(agent, solo=False, context=context)
        chat = Chat(self.runtime, agent=AgentId(agent.name))
        if resume:
            chat.team = await self._find_resumable(agent, resume, LIBRARY_CHAT)
            self._capabilities[chat.team] = prepared.capabilities

        async def submit(text: str, attachments: Attachments) -> None:
            model = self._require_models(prepared)
            files = AgentFiles()
            if chat.team is None:
                files = read_agent_files(agent.spec, self._environment.root or Path.cwd(), model.card)
            prompt = await make_prompt(text, attachments, model, self.runtime.log, files.media)
            participants = await prepared.instruct(text, context)
            if chat.team is not None:
                await self._change_instructions(chat.team, prepared, participants)
                await chat.send(prompt.text, typed=prompt.typed, media=prompt.media)
                return
            team = await chat.create_team(
                participants,
                prompt.text,
                typed=prompt.typed,
                media=prompt.media,
                limits=self._limits(),
                capabilities_name=LIBRARY_CHAT,
            )
            self._capabilities[team] = prepared.capabilities
            self.events.emit(TASK_STARTED, run_id=team, task=FIRST_TASK_ID)

        conversation = Conversation(agent, chat, self._make_observer(approve), submit)
        try:
            yield conversation
        finally:
            await conversation.close()
            if chat.team is not None:
                self._capabilities.pop(chat.team, None)
                prepared.forget_team(chat.team)

    @check_arguments
    async def runs(self, agent: AgentDefinition[T] | None = None, *, limit: int = MAX_RUNS_LISTED) -> list[RunInfo]:
        """Return up to `limit` stored runs and conversations of an agent, or of all agents, newest first."""
        return await list_runs(self.runtime, agent=agent.name if agent is not None else "", limit=limit)

    @property
    def teams(self) -> Teams:
        """Teams of specialists in the workspace. Raise `WorldFault` without a workspace."""
        if self._teams is None:
            from greenroom.app.library.teams import TeamContext, Teams

            if self._environment.root is None:
                raise WorldFault("library.teams_need_workspace")
            models = None if self.models is self._app else self.models
            context = TeamContext(self._app, self._environment.root, models)
            context.runtime = self.runtime
            is_given = self._given_limits is not None or self._given_models is not None
            self._teams = Teams(context, self._limits() if is_given else None, self.home)
        return self._teams

    async def _make_team_capabilities(self, team: Team) -> Capabilities:
        return await self.teams.make_capabilities(team)

    async def executed_tools(self, run_id: str) -> ExecutedTools:
        """Return the tools that a run or conversation has executed, with counts."""
        return await find_executed_tools(self.runtime, TeamId(run_id))

    @property
    def notes(self) -> tuple[str, ...]:
        """Which tools of files, packages and MCP servers agents do not get, and why."""
        return self._environment.notes

    def tools_of(self, agent: AgentDefinition[Any]) -> Sequence[ToolSpec]:
        """Return the tool specs that the agent's model receives; those of an `MCPServer` once it has started."""
        return self._environment.specs(agent)

    async def _prepare(self, agent: AgentDefinition[T], *, solo: bool, context: object) -> PreparedAgent:
        """Prepare an agent for a run: its capabilities and participants. Raise `WorldFault` before anything starts.

        Without a workspace and a context, the result is cached until the models or the person's rules change.
        """
        made_for, cached = (id(self.models), self._environment.rules_state), self._prepared[solo].get(agent)
        if cached is not None and context is None and cached.made_for == made_for:
            return cached
        if self.models is self._app:
            await self._app.model_session.find_local_servers()
        agents, transcripts = collect_agents(agent), Transcripts()
        await self._environment.discover_servers(agents.values())
        needs_confirmation = make_confirmation_check(agents, default=self._app.settings.execute_tool_confirm)
        capabilities = make_library_capabilities(
            agents,
            self.models,
            self.events,
            partial(self._environment.make_tools, needs_confirmation=needs_confirmation),
            transcripts,
            solo=solo,
            context=context,
            filter_above=self._filter_above,
            approvals_expire=self._app.get_approval_timeout(),
            redaction=self._app.model_session.redaction,
        )
        prepared = PreparedAgent(
            agents=agents,
            capabilities=capabilities,
            participants=self._environment.make_participants(agents),
            forget_team=transcripts.forget,
            made_for=made_for,
        )
        if self._environment.root is None and context is None:
            self._prepared[solo][agent] = prepared
        return prepared

    def _require_models(self, prepared: PreparedAgent) -> Model:
        """Return the agent's model. Raise `WorldFault` if an agent of the run has none: nothing is stored that could
        not run."""
        found = [
            pick_model(self.models, item.spec) if isinstance(item.model, str) else item.model
            for item in prepared.agents.values()
        ]
        return found[0]

    async def _change_instructions(self, team: TeamId, prepared: PreparedAgent, participants: Participants) -> None:
        """Give the agents of a conversation the instructions for its next turn."""
        state = await self.runtime.state(team)
        changes = [
            ChangeAgent(agent_id=name, spec=evolve(state.agents[name].spec, prompt=spec.prompt, version=spec.version))
            for name, spec in participants.members
            if not isinstance(prepared.agents[name].instructions, str) and state.agents[name].spec.prompt != spec.prompt
        ]
        if changes:
            await self.runtime.ask(team, *changes)

    def _make_observer(self, approve: ApprovalCallback | None, max_early: int | None = MAX_EARLY_EVENTS) -> RunObserver:
        is_attended = self._app.is_attended
        callback = (approve or self._approve) if is_attended else None
        approvals = ApprovalHandler(self.runtime, callback, self._environment.save_grant)
        return RunObserver(self.runtime, self.events, approvals, unattended=not is_attended, max_early=max_early)

    async def _find_resumable(self, agent: AgentDefinition[T], name: str, capabilities_name: str) -> TeamId:
        """Return the run or conversation to continue. Raise `WorldFault` if it cannot continue."""
        kind = "conversation" if capabilities_name == LIBRARY_CHAT else "run"
        if name == LAST:
            runs = await list_runs(self.runtime, agent=agent.name, limit=MAX_RUNS_LISTED)
            resumable = [
                run_info.run_id
                for run_info in runs
                if run_info.is_conversation == (capabilities_name == LIBRARY_CHAT) and not run_info.is_over
            ]
            if not resumable:
                raise WorldFault(f"library.no_{kind}", agent=agent.name)
            name = resumable[0]
        state = await self.runtime.state(TeamId(name))
        if state.team.kit != capabilities_name or AgentId(agent.name) not in state.agents:
            raise WorldFault(f"library.not_a_{kind}", name=name, agent=agent.name)
        self._environment.refuse_other_workspace(state.team)
        if capabilities_name == LIBRARY_CHAT and FIRST_TASK_ID not in state.tasks:
            raise WorldFault("library.conversation_over", name=name)
        return TeamId(name)

    def _limits(self) -> Limits:
        if self._given_limits is not None or self._given_models is not None:
            return self._given_limits or Limits()
        return self._app.settings.limits.limits

    def _get_capabilities(self, team: Team) -> Capabilities:
        capabilities = self._capabilities.get(team.team_id)
        return refuse_program_team(team) if capabilities is None else capabilities


def _make_environment(app: AppContext, workspace: str | Path | None, rules: Sequence[str]) -> AgentEnvironment:
    if workspace is None:
        return AgentEnvironment(app, rules)
    from greenroom.app.library.workspace_environment import WorkspaceEnvironment

    return WorkspaceEnvironment(app, workspace, rules)
