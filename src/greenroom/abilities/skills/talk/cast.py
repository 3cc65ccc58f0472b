"""Casting: who speaks in a thread, what it is told before all else, and which calls it may make. Worked out once."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from greenroom.abilities.skills.prompts.builder import Other, Scene, addon, system_prompt
from greenroom.abilities.skills.talk import endings, own
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.base.text import origins_of
from greenroom.core.ports.model import ChatMessage, ModelCard, ToolSpec
from greenroom.core.ports.reading import Reader
from greenroom.core.state.origin import Labels, label, merged
from greenroom.core.state.spec import AgentSpec, Ends
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.world import World

KEPT: Final = 4096

SERVERS: Final = "mcp__"
"""How the names of tools begin that a server describes: `mcp__SERVER__TOOL`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Somebody in a thread: `spec` as it is here, made of `source`.

    `tools` are what it may call natively, `all_tools` also what it may ask for in text.
    """

    source: AgentSpec
    spec: AgentSpec
    system: ChatMessage
    version: str
    addon: str
    ends: Ends
    auto_complete: bool
    unattended: bool
    owns: bool
    others: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    all_tools: tuple[ToolSpec, ...]
    offered: frozenset[str]
    size: int
    read: Labels = ()

    @property
    def native(self) -> bool:
        """Whether it makes native calls."""
        return not self.spec.turn.protocols

    @property
    def origins(self) -> Labels:
        """Where the words come from that it is told: what a server says of its tools strangers have written, and what
        the project says others, unless a person has agreed to it (`read`)."""
        found = (one.name.split("__") for one in self.all_tools if one.name.startswith(SERVERS))
        return merged(self.read, (label("description", parts[1]) for parts in found))


@dataclass(frozen=True, slots=True)
class _Place:
    """What a role depends on beside the spec: whose work it is, who else is there."""

    subtask: bool
    owns: bool
    unattended: bool
    writes: bool
    company: bool
    native: bool
    chosen: frozenset[str] | None
    others: tuple[Other, ...]


class Cast:
    """All roles. With `solo`, who manages a task alone ends it: nobody else is there to do so."""

    def __init__(self, tools: Iterable[ToolSpec], reader: Reader | None, *, solo: bool, project: str) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._reader = reader
        self._solo = solo
        self._project = project
        self._kept: OrderedDict[tuple[str, str, _Place], Role] = OrderedDict()

    def role(self, world: World, step: Step, card: ModelCard, chosen: frozenset[str] | None = None) -> Role:
        """Who speaks in this step, with a model of this `card`. Of its tools it has the `chosen` ones, if any are."""
        spec, task = world.agents[step.agent_id].spec, world.tasks.get(step.task_id)
        manages = task is not None and task.manager == step.agent_id
        place = _Place(
            subtask=step.subtask_id is not None,
            owns=step.subtask_id is not None or manages,
            unattended=step.subtask_id is not None or (self._solo and manages),
            writes=task is not None and len(task.group) > 1 and not spec.calls,
            company=len(world.agents) > 1,
            native=card.tools,
            chosen=chosen,
            others=tuple(_other(world, name) for name in _reachable(spec, step, task)),
        )
        key = (spec.name, spec.version, place)
        found = self._kept.get(key)
        if found is None or (found.source is not spec and found.source != spec):
            found = self._kept[key] = self._made(spec, place)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found

    def _made(self, source: AgentSpec, place: _Place) -> Role:
        ends = endings.ends_of(source, subtask=place.subtask)
        acts = bool(source.tools or source.calls or place.writes or ends == "finish")
        spec = source
        if acts and not place.native and self._reader is not None and not source.turn.protocols:
            # A model that knows no calls acts in text, and ends as it would.
            spec = evolve(source, turn=evolve(source.turn, protocols=("tool_call",), ends=ends))
        completes = endings.auto_completes(
            spec.turn.auto_complete,
            non_interactive=place.unattended,
            in_multi_agent=place.company and not place.owns,
        )
        wanted = [name for name in spec.tools if place.chosen is None or name in place.chosen]
        finishes = ends == "finish" and place.unattended
        every = (
            *(self._tools[name] for name in wanted if name in self._tools),
            *own.offered(spec, finishes=finishes, writes=place.writes),
        )
        names = {one.name: one.description for one in place.others}
        if spec.turn.protocols and self._reader is None:
            raise WorldFault(f"{spec.name!r} acts in text, and nothing here reads that. Give `Converse` a reader.")
        scene = Scene(
            spec=spec,
            ends=ends,
            auto_complete=completes,
            others=place.others if spec.calls else (),
            project=self._project,
            actions=self._reader.instructions(spec, every, names) if self._reader and spec.turn.protocols else "",
            calls=place.native or bool(spec.turn.protocols),
        )
        text = system_prompt(scene)
        native = () if spec.turn.protocols else every
        return Role(
            source=source,
            spec=spec,
            system=ChatMessage(role="system", content=text),
            version=hashlib.sha256(text.encode()).hexdigest()[:12],
            addon=addon(scene),
            ends=ends,
            auto_complete=completes,
            unattended=place.unattended,
            owns=place.owns,
            others=tuple(names),
            tools=native,
            all_tools=every,
            offered=frozenset(tool.name for tool in every),
            size=len(text.encode()) + sum(tool.size for tool in native),
            read=origins_of(self._project),
        )


def _reachable(spec: AgentSpec, step: Step, task: Task | None) -> tuple[str, ...]:
    """Whom it may call, but not itself: it would wait for its own answer. Who writes in text may write to its group."""
    callable_names = tuple(name for name in spec.calls if name not in (spec.name, step.agent_id))
    if callable_names or task is None or "send_message" not in spec.turn.protocols:
        return callable_names
    return tuple(name for name in task.group if name != step.agent_id)


def _other(world: World, name: str) -> Other:
    """Somebody who can be called, as others see it."""
    found = world.agents.get(AgentId(name))
    if found is None:  # by the name in its spec: only people write that
        found = next((one for one in world.agents.values() if name == one.spec.name), None)
    spec = found.spec if found is not None else None
    return Other(name=found.agent_id if found else name, description=(spec.description or spec.role) if spec else "")
