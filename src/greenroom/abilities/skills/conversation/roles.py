"""Roles: which agent acts in a thread, its system prompt, and the calls that it may make. Roles are cached."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from greenroom.abilities.skills.conversation import builtin_calls, completion
from greenroom.abilities.skills.prompts.builder import OtherAgent, PromptContext, render_addon, render_system_prompt
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.base.text import origins_of
from greenroom.core.ports.model import ChatMessage, ModelCard, ToolSpec
from greenroom.core.ports.reply_reader import ReplyReader
from greenroom.core.state.origin import Labels, make_label, merge_labels
from greenroom.core.state.spec import SEARCH_HISTORY, AgentSpec, Handoff, TurnEnd
from greenroom.core.state.step import Step
from greenroom.core.state.task import Routing, Task
from greenroom.core.state.team_state import TeamState

MAX_CACHED_ROLES: Final = 4096

MCP_TOOL_PREFIX: Final = "mcp__"
"""Prefix of the names of tools that an MCP server describes: `mcp__SERVER__TOOL`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """An agent in a thread. `spec` is `source`, adapted to the thread. `tools` are its native tools; `all_tools` also
    contain those it calls in text. An agent of a routing team has a `handoff`."""

    source: AgentSpec
    spec: AgentSpec
    system: ChatMessage
    version: str
    addon: str
    ends: TurnEnd
    auto_complete: bool
    unattended: bool
    owns: bool
    others: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    all_tools: tuple[ToolSpec, ...]
    offered_names: frozenset[str]
    size: int
    project_origins: Labels = ()
    handoff: Handoff | None = None

    @property
    def is_native(self) -> bool:
        """Whether the agent makes native calls."""
        return not self.spec.turn.protocols

    @property
    def origins(self) -> Labels:
        """The origins of the prompt: MCP servers that describe tools, and the project's text unless a person has
        approved it (`project_origins`)."""
        found = (tool.name.split("__") for tool in self.all_tools if tool.name.startswith(MCP_TOOL_PREFIX))
        return merge_labels(self.project_origins, (make_label("description", parts[1]) for parts in found))


@dataclass(frozen=True, slots=True)
class _RoleKey:
    """What a role depends on in addition to the spec: the kind of work, and the other agents."""

    subtask: bool
    owns: bool
    unattended: bool
    writes: bool
    company: bool
    native: bool
    chosen: frozenset[str] | None
    summed_up: bool
    others: tuple[OtherAgent, ...]
    routed: bool = False
    question: str = ""


class RoleFactory:
    """Builds and caches roles. With `solo`, an agent that manages a task ends it by itself."""

    def __init__(self, tools: Iterable[ToolSpec], reader: ReplyReader | None, *, solo: bool, project: str) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._reader = reader
        self._solo = solo
        self._project = project
        self._roles: OrderedDict[tuple[str, str, _RoleKey], Role] = OrderedDict()

    def get_role(self, state: TeamState, step: Step, card: ModelCard, chosen: frozenset[str] | None = None) -> Role:
        """Return the role of this step for a model with this `card`. It has only the `chosen` tools, unless that is
        None."""
        spec, task = state.agents[step.agent_id].spec, state.tasks.get(step.task_id)
        if step.answers is not None and spec.proof:
            spec = evolve(spec, answer=None)  # its report ends a subtask; a question gets a plain answer
        manages = task is not None and task.manager == step.agent_id
        group = task.group if task is not None else ()
        routing = task.routing if task is not None and spec.handoff is not None else None
        place = _RoleKey(
            subtask=step.subtask_id is not None,
            owns=step.subtask_id is not None or manages,
            unattended=step.subtask_id is not None or (self._solo and manages),
            writes=not spec.planner.depth and _are_several(state, group) and not spec.calls and routing is None,
            company=_are_several(state, state.agents) or routing is not None,
            native=card.tools,
            chosen=chosen,
            summed_up=(thread := state.threads.get(step.thread_id)) is not None and thread.window_from > 0,
            others=tuple(_describe_other_agent(state, name) for name in _list_reachable_agents(state, spec, step))
            if routing is None
            else _list_members(state, step, routing),
            routed=routing is not None,
            question=task.intention if task is not None and _needs_question(state, step, routing) else "",
        )
        key = (spec.name, spec.version, place)
        found = self._roles.get(key)
        if found is None or (found.source is not spec and found.source != spec):
            found = self._roles[key] = self._build_role(spec, place)
            if len(self._roles) > MAX_CACHED_ROLES:
                self._roles.popitem(last=False)
        return found

    def _build_role(self, source: AgentSpec, place: _RoleKey) -> Role:
        ends = completion.find_ending(source, subtask=place.subtask)
        acts = bool(source.tools or source.calls or place.writes or ends == "finish")
        spec = source
        if acts and not place.native and self._reader is not None and not source.turn.protocols:
            # A model without native calls acts in text, but ends its work the same way.
            spec = evolve(source, turn=evolve(source.turn, protocols=("tool_call",), ends=ends))
        completes = completion.can_auto_complete(
            spec.turn.auto_complete,
            non_interactive=place.unattended,
            in_multi_agent=place.company and not place.owns,
        )
        wanted = [name for name in spec.tools if place.chosen is None or name in place.chosen if name != SEARCH_HISTORY]
        wanted += [SEARCH_HISTORY] if place.summed_up else []
        finishes = ends == "finish" and place.unattended
        all_tools = (
            *(self._tools[name] for name in wanted if name in self._tools),
            *builtin_calls.list_builtin_calls(spec, finishes=finishes, writes=place.writes),
        )
        names = {other.name: other.description for other in place.others}
        if spec.turn.protocols and self._reader is None:
            raise WorldFault(f"{spec.name!r} acts in text, and nothing here reads that. Give `Converse` a reader.")
        scene = PromptContext(
            spec=spec,
            ends=ends,
            auto_complete=completes,
            others=place.others if spec.calls else (),
            project=self._project,
            actions=self._reader.instructions(spec, all_tools, names) if self._reader and spec.turn.protocols else "",
            calls=place.native or bool(spec.turn.protocols),
            routed=place.routed,
            question=place.question,
        )
        text = render_system_prompt(scene)
        native = () if spec.turn.protocols else all_tools
        return Role(
            source=source,
            spec=spec,
            system=ChatMessage(role="system", content=text),
            version=hashlib.sha256(text.encode()).hexdigest()[:12],
            addon=render_addon(scene),
            ends=ends,
            auto_complete=completes,
            unattended=place.unattended,
            owns=place.owns,
            others=tuple(names),
            tools=native,
            all_tools=all_tools,
            offered_names=frozenset(tool.name for tool in all_tools).union(["send_message"] if place.routed else ()),
            size=len(text.encode()) + sum(tool.size for tool in native),
            project_origins=origins_of(self._project),
            handoff=source.handoff if place.routed else None,
        )


def _are_several(state: TeamState, names: Iterable[AgentId]) -> bool:
    """Return whether there are two of these agents, without copies that work on the parts of a plan."""
    others = (name for name in names if not state.agents[name].spec.planner.depth)
    return len(list(islice(others, 2))) > 1


def _list_group(state: TeamState, task: Task | None) -> tuple[AgentId, ...]:
    """List the agents of a task, without the copies that work on the parts of a plan."""
    group = task.group if task is not None else ()
    return tuple(name for name in group if not state.agents[name].spec.planner.depth)


def _list_reachable_agents(state: TeamState, spec: AgentSpec, step: Step) -> tuple[str, ...]:
    """List the agents that may be called, without the agent itself. An agent that writes in text may write to its
    group."""
    callable_names = tuple(name for name in spec.calls if name not in (spec.name, step.agent_id))
    if callable_names or "send_message" not in spec.turn.protocols:
        return callable_names
    return tuple(name for name in _list_group(state, state.tasks.get(step.task_id)) if name != step.agent_id)


def _list_members(state: TeamState, step: Step, routing: Routing) -> tuple[OtherAgent, ...]:
    """List the agents that the task can be handed to, also those that have not joined yet."""
    return tuple(
        OtherAgent(name=member.name, description=member.description or member.role)
        for member in routing.members
        if member.name != step.agent_id and AgentId(member.name) not in state.retired
    )


def _needs_question(state: TeamState, step: Step, routing: Routing | None) -> bool:
    """Return whether an agent of a routing team has not read the person's request, or no longer holds it."""
    thread = state.threads.get(step.thread_id)
    is_cleared = thread is not None and thread.window_from > 0
    return routing is not None and (step.agent_id != routing.main or is_cleared)


def _describe_other_agent(state: TeamState, name: str) -> OtherAgent:
    found = state.agents.get(AgentId(name))
    if found is None:  # by the name in its spec, which only people write
        found = next((agent for agent in state.agents.values() if name == agent.spec.name), None)
    spec = found.spec if found is not None else None
    return OtherAgent(
        name=found.agent_id if found else name,
        description=(spec.description or spec.role) if spec else "",
        capabilities=spec.capabilities if spec else (),
    )
