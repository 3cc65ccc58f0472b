"""The environment of a program's agents: tools, rules, participants and models.

Functions of the program run through the same pipeline as built-in tools. Arguments are validated, time is limited and
long results are shortened. A function needs approval only if it or a rule asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from greenroom.abilities.skills.conversation.builtin_calls import CALL_AGENT
from greenroom.abilities.skills.conversation.transcript import Transcripts
from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.abilities.tools.read_output import ReadOutputTool
from greenroom.abilities.tools.search_history import SearchHistoryTool
from greenroom.abilities.tools.tool import ALWAYS_OFFERED
from greenroom.adapters.storage.text_index import make_temporary_index
from greenroom.app.agents.specs import find_missing_tools
from greenroom.app.context import AppContext
from greenroom.app.conversation.factories import TeamTools
from greenroom.app.conversation.start import Participants
from greenroom.app.function_tool import Tool
from greenroom.app.library.agent_definition import (
    AgentDefinition,
    instruct_agent,
    name_own_model,
    require_list,
    validate_answer,
)
from greenroom.app.library.events import EventBus, ObservedCapabilities, ObservedModel
from greenroom.app.library.mcp_servers import ProgramServers
from greenroom.app.settings.schema import suggest_name
from greenroom.app.text_reader import TextReader
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.app.toolset.policy import ConfirmingPolicy, ConfirmsAgent, build_policy, open_user_rules
from greenroom.app.toolset.redaction import NO_REDACTION, SecretRedactor
from greenroom.app.toolset.toolbox import Toolbox, ToolSource
from greenroom.core.base.errors import GreenroomError, ModelFault, OutputError, WorldFault, translate
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Capabilities, Executor
from greenroom.core.ports.model import Model, Models, ToolSpec
from greenroom.core.ports.tool import Policy, ToolExecutor
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team
from greenroom.policy.rules import parse_all

RunToolsFactory: TypeAlias = Callable[[Sequence[Tool[..., Any]], Models], TeamTools]
"""Makes the tools of a run from the program's functions and the models that tools use."""


def collect_agents(agent: AgentDefinition[Any]) -> dict[str, AgentDefinition[Any]]:
    """Return all agents of a run by name. Raise `WorldFault` if two have the same name."""
    by_name: dict[str, AgentDefinition[Any]] = {}
    pending = [agent]
    while pending:
        definition = pending.pop()
        existing = by_name.setdefault(definition.name, definition)
        if existing is not definition:
            raise WorldFault("library.agents_same_name", name=definition.name)
        pending += [other for other in definition.agents if by_name.get(other.name) is not other]
    return by_name


class RunModels:
    """The models of a run: `Model` objects of agents first, then models by name."""

    def __init__(
        self,
        agents: dict[str, AgentDefinition[Any]],
        models: Models,
        events: EventBus,
        redaction: SecretRedactor = NO_REDACTION,
    ) -> None:
        self._redaction = redaction
        self._agent_models = {
            name_own_model(name): agent.model for name, agent in agents.items() if not isinstance(agent.model, str)
        }
        self._models = models
        self._events = events
        self._addons = {name for name, agent in agents.items() if agent.spec.turn.protocols}

    def get_model(self, name: str) -> Model:
        """Return the model with this name. It emits events if there are callbacks."""
        model = self._redaction.wrap_model(self._agent_models.get(name) or self._models.get_model(name))
        return model if self._events.is_silent else ObservedModel(model, self._events, self._addons.__contains__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAgent:
    """An agent and those that it calls, prepared for a run. `made_for` are the models and the version of the person's
    rules then."""

    agents: Mapping[str, AgentDefinition[Any]]
    capabilities: Capabilities
    participants: Participants
    forget_team: Callable[[TeamId], None]
    made_for: object = None

    async def instruct(self, text: str, context: object) -> Participants:
        """Return the participants with the instructions for this prompt."""
        members = [
            (name, await instruct_agent(self.agents[name], spec, text, context))
            for name, spec in self.participants.members
        ]
        return evolve(self.participants, members=tuple(members))


def make_library_capabilities(
    agents: dict[str, AgentDefinition[Any]],
    models: Models,
    events: EventBus,
    make_tools: RunToolsFactory,
    transcripts: Transcripts,
    *,
    solo: bool,
    context: object = None,
    filter_above: int = 0,
    approvals_expire: int | None = None,
    redaction: SecretRedactor = NO_REDACTION,
) -> Capabilities:
    """Build the capabilities of a run (`solo`: the answer ends it) or a conversation. `context` goes to its tools."""
    tools: dict[str, Tool[..., Any]] = {}
    for item in agents.values():
        for function in item.tools:
            if tools.setdefault(function.name, function).function is not function.function:
                raise WorldFault("library.tools_same_name", name=function.name)
    run_models = RunModels(agents, models, events, redaction)
    run_tools = make_tools([item.with_context(context) for item in tools.values()], run_models)
    skills = build_conversation_skills(
        run_models,
        run_tools.specs,
        solo=solo,
        reader=TypedAnswerReader(agents, context, events),
        filter_above=filter_above,
        transcripts=transcripts,
    )
    return ObservedCapabilities(
        (*skills, *run_tools.executors), events, on_close=run_tools.close, approvals_expire=approvals_expire
    )


class TypedAnswerReader(TextReader):
    """Reads agents' replies, and validates answers with the `output_type` rather than its schema."""

    def __init__(self, agents: dict[str, AgentDefinition[Any]], context: object, events: EventBus) -> None:
        super().__init__()
        self._agents = agents
        self._events = events
        self._context = context
        self._adapters = [agent.output_adapter for agent in agents.values() if agent.output_adapter is not None]

    def find_schema_error(self, schema: Data, value: object) -> str:
        """Return why a value does not match, or an empty string."""
        adapter = next((adapter for adapter in self._adapters if adapter.schema == schema), None)
        if adapter is None:
            return super().find_schema_error(schema, value)
        try:
            adapter.validate(value)
        except OutputError as error:
            return str(error)
        return ""

    async def check_answer(self, spec: AgentSpec, value: object) -> tuple[object, str]:
        """Validate an answer with the agent's type and validators."""
        agent = self._agents.get(spec.name)
        if agent is None or agent.output_adapter is None:
            return await super().check_answer(spec, value)
        try:
            return await validate_answer(agent, agent.output_adapter, value, self._context), ""
        except ModelFault as error:
            return value, str(error)
        except GreenroomError as error:
            self._events.validator_faults.append(error)
            raise


class AgentEnvironment:
    """An environment without a workspace: the program's functions are the only tools.

    `WorkspaceEnvironment` adds the built-in tools. `rules` of the program count as rules of the person who runs it.
    """

    root: Path | None = None
    builtin_tools: Sequence[ToolExecutor] = (ReadOutputTool(),)

    def __init__(self, app: AppContext, rules: Sequence[str] = ()) -> None:
        self._app = app
        self._rules = tuple(map(str, parse_all(require_list(rules, "rules", owner="a Greenroom"))))
        self._person_rules = open_user_rules()
        self._policies: dict[tuple[object, ...], Policy] = {}
        self._program_servers: ProgramServers | None = None

    @property
    def rules_state(self) -> object:
        """The version of the person's rules file. It changes when the file changes."""
        return self._person_rules.state()

    @property
    def equipment(self) -> ToolSource:
        """The tools of files, packages and servers."""
        return ToolSource()

    @property
    def notes(self) -> tuple[str, ...]:
        """Which of those tools are not used, and how to enable them."""
        return () if self._program_servers is None else tuple(self._program_servers.notes)

    async def discover_servers(self, agents: Iterable[AgentDefinition[Any]]) -> None:
        """Start the MCP servers of the program's agents and read their tools."""
        servers = [server for agent in agents for server in agent.mcp_servers]
        if not servers:
            return
        if self._program_servers is None:
            self._program_servers = ProgramServers(self._app.settings)
        await self._program_servers.start(servers)

    async def close(self) -> None:
        """End the MCP servers of the program's agents."""
        servers, self._program_servers = self._program_servers, None
        self._policies.clear()  # they know which tools of the servers need approval
        if servers is not None:
            await servers.close()

    def list_server_tools(self, agent: AgentDefinition[Any] | None = None) -> Sequence[ToolExecutor]:
        """Return the tools of the program's MCP servers, of all or of an agent."""
        if self._program_servers is None:
            return ()
        return self._program_servers.list_tools(None if agent is None else agent.mcp_servers)

    def make_participants(self, agents: Mapping[str, AgentDefinition[Any]]) -> Participants:
        """Return the agents of a run as members of a team. The first agent gets the task."""
        members = tuple((AgentId(name), self.equip(agent)) for name, agent in agents.items())
        workspace_tools = {tool.name for tool in (*self.builtin_tools, *self.equipment.tools)}.difference(
            ALWAYS_OFFERED
        )
        needs_workspace = self.root is not None and any(workspace_tools.intersection(spec.tools) for _, spec in members)
        return Participants(members=members, workspace=str(self.root) if needs_workspace else "")

    def refuse_other_workspace(self, team: Team) -> None:
        """Raise `WorldFault` if the team belongs to another workspace."""
        if team.workspace and team.workspace != str(self.root):
            call = f"Greenroom(workspace={team.workspace!r})"
            raise WorldFault("library.other_workspace", team_id=team.team_id, workspace=team.workspace, call=call)

    def equip(self, agent: AgentDefinition[Any]) -> AgentSpec:
        """Return the agent's spec with its tools by name. Raise `WorldFault` for an unknown tool."""
        names = {tool.name for tool in self.builtin_tools}
        duplicate = next((function.name for function in agent.tools if function.name in names), None)
        if duplicate is not None:
            raise WorldFault("library.builtin_tool_exists", name=duplicate)
        server_tools = self.list_server_tools(agent)
        tools = self._list_tools((*agent.tools, *server_tools))
        self._refuse_missing_tools(agent, [tool.name for tool in tools])
        names_by_servers = [tool.name for tool in server_tools]
        return Toolbox(tools).equip(evolve(agent.spec, tools=(*agent.spec.tools, *names_by_servers)))

    def _refuse_missing_tools(self, agent: AgentDefinition[Any], known_names: list[str]) -> None:
        missing = find_missing_tools(agent.builtin_names, known_names)
        if self.root is None and missing:
            from greenroom.app.toolset.toolset import build_toolbox

            known_names += [tool.name for tool in build_toolbox(Path("/"))]
        for name in find_missing_tools(missing, known_names):
            why = " ".join(self.notes) or suggest_name(name, known_names)
            if agent.file is not None and name in agent.file.spec.tools:
                raise WorldFault(f"{agent.file.path} {translate('agents.no_such_tool', name=name, hint=why)}")
            raise WorldFault("library.tool_unusable", agent=agent.name, name=name, why=why)
        if self.root is None and (missing or agent.toolsets):
            listed_names = ", ".join((*missing, *agent.toolsets))
            raise WorldFault("library.tools_need_workspace", name=agent.name, tools=listed_names)

    def _list_tools(self, functions: Sequence[ToolExecutor]) -> list[ToolExecutor]:
        """Return all tools available to an agent with these functions. A function replaces a custom tool of the same
        name."""
        names = {function.name for function in functions}
        return [*functions, *self.builtin_tools, *(tool for tool in self.equipment.tools if tool.name not in names)]

    def specs(self, agent: AgentDefinition[Any]) -> Sequence[ToolSpec]:
        """Return the tool specs that the agent's model receives."""
        names, own_tools = self.equip(agent).tools, (*agent.tools, *self.list_server_tools(agent))
        found = [tool.card.spec for tool in self._list_tools(own_tools) if tool.name in names]
        return [*found, CALL_AGENT] if agent.spec.calls else found

    def make_tools(
        self, functions: Sequence[ToolExecutor], models: Models, needs_confirmation: ConfirmsAgent | None
    ) -> TeamTools:
        """Build the tools of a run under the policy and settings. One of the `models` controls the browser."""
        functions = (*functions, *self.list_server_tools())
        key = (self.rules_state, *(function.name for function in functions))
        policy = self._policies.get(key)
        if policy is None:
            policy = self._policies[key] = self.make_policy(Path("/"), functions, None)
        if needs_confirmation is not None:
            policy = ConfirmingPolicy(policy, needs_confirmation)
        readers = (
            ReadOutputTool(self._app.ended_step),
            SearchHistoryTool(self._app.thread_steps, make_temporary_index),
        )
        return _FunctionTools((*functions, *readers), policy, self._app)

    def make_policy(
        self,
        root: Path,
        functions: Sequence[ToolExecutor],
        needs_confirmation: ConfirmsAgent | None,
        project_rules: Sequence[str] = (),
        is_sandboxed: Callable[[], bool] | None = None,
    ) -> Policy:
        """Build the policy for agents with these functions in a folder."""
        asking = self._program_servers.asking_names if self._program_servers is not None else ()
        names = [function.name for function in functions if function.name not in asking]
        policy = build_policy(
            root,
            self._person_rules.rules_for(root),
            project_rules,
            stated_rules=self._rules,
            program_tools=names,
            is_sandboxed=is_sandboxed,
        )
        return policy if needs_confirmation is None else ConfirmingPolicy(policy, needs_confirmation)

    def save_grant(self, grant: str) -> None:
        """Save a permanent grant. Without a workspace the grant applies to the run only."""


class _FunctionTools:
    """The tools of a run without a workspace."""

    def __init__(self, tools: Sequence[ToolExecutor], policy: Policy, app: AppContext) -> None:
        redaction, is_unattended = app.model_session.redaction, not app.is_attended
        self.specs: Sequence[ToolSpec] = [tool.card.spec for tool in tools]
        self.executors: Sequence[Executor] = [
            ToolPipeline(tool, policy, redaction=redaction, unattended=is_unattended) for tool in tools
        ]

    async def close(self) -> None:
        """Do nothing: no process outlives its step."""


def make_confirmation_check(agents: Mapping[str, AgentDefinition[Any]], *, default: bool) -> ConfirmsAgent | None:
    """Return which agents need confirmation, or None if none does. An agent's own setting wins over the default."""
    by_agent = {AgentId(name): definition.confirm_calls for name, definition in agents.items()}
    if not default and not any(by_agent.values()):
        return None

    def needs_confirmation(agent: AgentId) -> bool:
        setting = by_agent.get(agent)
        return default if setting is None else setting

    return needs_confirmation
