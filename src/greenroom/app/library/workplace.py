"""What the agents of a program work with: the folder, its tools and rules, who takes part, and their models.

Functions of the program are called in the same way, also where there is no folder: their arguments are checked, their
time is limited, of a long result the ends are read. They are asked about only if they or a rule want it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

from greenroom.abilities.skills.talk.transcript import Transcripts
from greenroom.abilities.skills.talking import talking
from greenroom.abilities.tools.read_output import FindStep, ReadOutput
from greenroom.app.conversation.kits import Hands as AnyHands
from greenroom.app.conversation.start import Cast
from greenroom.app.custom import files_in, meet_servers, servers_in
from greenroom.app.functions import Misfit, Tool
from greenroom.app.kit import Kit
from greenroom.app.library.blueprint import Blueprint, own, several
from greenroom.app.library.events import EventBus, ToldExecutor, ToldModel
from greenroom.app.reading import TextReader
from greenroom.app.settings.schema import Settings, meant
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.app.toolset.policy import Confirmed, Confirming, persons_rules, policy_for, project_rules
from greenroom.app.toolset.redaction import Redaction
from greenroom.app.toolset.sandbox import Walls
from greenroom.app.toolset.toolbox import ALWAYS, Equipment, Toolbox, together
from greenroom.app.toolset.toolset import Hands, toolbox_of
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Abilities, Executor
from greenroom.core.ports.model import Model, Models, ToolSpec
from greenroom.core.ports.tool import Policy, ToolExecutor
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team
from greenroom.policy.rules import parse_all

HandsOf: TypeAlias = Callable[[Sequence[Tool[..., Any]], Models], AnyHands]
"""Makes the tools of a run from those that the program brings, and the models that some of them ask."""


def everybody(agent: Blueprint[Any]) -> dict[str, Blueprint[Any]]:
    """All agents of a run by name; two that are called alike are refused."""
    found: dict[str, Blueprint[Any]] = {}
    todo = [agent]
    while todo:
        one = todo.pop()
        known = found.setdefault(one.name, one)
        if known is not one:
            raise WorldFault(f"Two agents are called {one.name!r}. Give one of them another name.")
        todo += [other for other in one.agents if found.get(other.name) is not other]
    return found


class Voices:
    """The models of a run: those that agents brought themselves, by agent, and all others by name."""

    def __init__(self, agents: dict[str, Blueprint[Any]], models: Models, events: EventBus) -> None:
        self._own = {own(name): one.model for name, one in agents.items() if not isinstance(one.model, str)}
        self._models = models
        self._events = events
        self._addons = {name for name, one in agents.items() if one.spec.turn.protocols}

    def named(self, name: str) -> Model:
        """The model of this name."""
        model = self._own.get(name) or self._models.named(name)
        return ToldModel(model, self._events, self._addons.__contains__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What a run works with and who takes part. `rules` is the state of the person's rules that it was made with."""

    kit: Kit
    cast: Cast
    forget: Callable[[TeamId], None]
    rules: object = None


def kit_of(
    agents: dict[str, Blueprint[Any]],
    models: Models,
    events: EventBus,
    hands: HandsOf,
    transcripts: Transcripts,
    *,
    solo: bool,
    context: object = None,
    filter_above: int = 0,
    approvals_expire: int | None = None,
) -> Kit:
    """What a run (`solo`: its answer ends it) or a conversation works with; `context` is what its tools are given."""
    tools: dict[str, Tool[..., Any]] = {}
    for one in agents.values():
        for each in one.tools:
            if tools.setdefault(each.name, each).function is not each.function:
                raise WorldFault(f"Two tools are called {each.name!r}. Give one of them another name.")
    voices = Voices(agents, models, events)
    mine = hands([one.given(context) for one in tools.values()], voices)
    skills = talking(
        voices, mine.specs, solo=solo, reader=Checked(agents), filter_above=filter_above, transcripts=transcripts
    )
    every = (*skills, *mine.executors)
    return Kit(
        abilities=Abilities(ToldExecutor(one, events) for one in every),
        closing=mine.close,
        approvals_expire=approvals_expire,
    )


class Checked(TextReader):
    """Reads what agents say; what they answer is checked by the type that was asked for, not only by its schema."""

    def __init__(self, agents: dict[str, Blueprint[Any]]) -> None:
        super().__init__()
        self._shapes = [one.shape for one in agents.values() if one.shape is not None]

    def misfit(self, schema: Data, value: object) -> str:
        """Where it does not fit."""
        shape = next((one for one in self._shapes if one.schema == schema), None)
        if shape is None:
            return super().misfit(schema, value)
        try:
            shape.read(value)
        except Misfit as misfit:
            return str(misfit)
        return ""


OPEN: Final = 'Open it with one: `Greenroom(workspace=".")`.'


class Workplace:
    """A folder, or none; `rules` are the program's, and count as those of the person who runs it."""

    def __init__(self, workspace: str | Path | None, rules: Sequence[str] = ()) -> None:
        self.root = None if workspace is None else _folder(workspace)
        self._rules = tuple(map(str, parse_all(several(rules, "rules", of="a house"))))
        self._house: Sequence[ToolExecutor] = tuple(toolbox_of(self.root)) if self.root is not None else (ReadOutput(),)
        self._unmet: tuple[str, ...] | None = None
        self._persons = persons_rules()

    @property
    def rules(self) -> object:
        """The state of the file in which the person says what agents may do: another one when it was changed."""
        return self._persons.state()

    async def meet(self, agents: Iterable[Blueprint[Any]]) -> None:
        """Before a run, once: see what MCP servers have that nobody has looked at, if anybody may want it."""
        wanted = any(one.gear.named or "mcp" in one.spec.groups for one in agents)
        if self.root is not None and wanted and self._unmet is None:
            self._unmet = await meet_servers(self.root)
            for one in self.notes:
                logging.getLogger(__name__).warning("%s", one)

    @property
    def notes(self) -> tuple[str, ...]:
        """What files, packages and servers would bring that is not used, and what to do about it."""
        brought = self._brought
        return (*brought.notes, *brought.unagreed, *(self._unmet or ()))

    @cached_property
    def _files(self) -> Equipment:
        """What files and packages give: run once for a house."""
        return Equipment() if self.root is None else files_in(self.root)

    @property
    def _brought(self) -> Equipment:
        """That, and the tools of MCP servers, which are made anew for each run and end with it."""
        return Equipment() if self.root is None else together((self._files, servers_in(self.root)))

    def cast(self, agents: Mapping[str, Blueprint[Any]]) -> Cast:
        """The agents of a run as the team knows them; the first one has the task."""
        members = tuple((AgentId(name), self.equipped(one)) for name, one in agents.items())
        house = {tool.name for tool in (*self._house, *self._brought.tools)}.difference(ALWAYS)
        works_here = self.root is not None and any(house.intersection(spec.tools) for _, spec in members)
        return Cast(members=members, workspace=str(self.root) if works_here else "")

    def refuse_other(self, team: Team) -> None:
        """A team stays in its workspace, wherever it is taken up again."""
        if team.workspace and team.workspace != str(self.root):
            house = f"Greenroom(workspace={team.workspace!r})"
            raise WorldFault(f"{team.team_id!r} works in {team.workspace}. Go on with it there: `{house}`.")

    def equipped(self, agent: Blueprint[Any]) -> AgentSpec:
        """The agent with its tools by name; `WorldFault` for one that the house does not have."""
        gear, names = agent.gear, {tool.name for tool in self._house}
        if self.root is None and gear.of_house:
            said = ", ".join((*gear.named, *gear.groups))
            raise WorldFault(f"{agent.name!r} has tools of the house ({said}), which has no workspace. {OPEN}")
        double = next((one.name for one in gear.own if one.name in names), None)
        if double is not None:
            raise WorldFault(f"The house has a tool {double!r} itself. Give yours another name.")
        every = self._every(gear.own)
        known = [tool.name for tool in every]
        for name in (*gear.named, *gear.only):
            if name not in known:
                why = " ".join(self.notes) or meant(name, known)
                raise WorldFault(f"{agent.name!r} can have no tool {name!r}. {why}")
        return Toolbox(every).equipped(agent.spec, only=gear.only or None)

    def _every(self, own: Sequence[Tool[..., Any]]) -> list[ToolExecutor]:
        """All tools that an agent with these of its own can have. Of two with one name, what the program says stays."""
        return [*own, *self._house, *_others(self._brought, own).tools]

    def specs(self, agent: Blueprint[Any]) -> Sequence[ToolSpec]:
        """What a model is told of the tools of an agent."""
        names = self.equipped(agent).tools
        return [tool.card.spec for tool in self._every(agent.gear.own) if tool.name in names]

    def hands(
        self,
        own: Sequence[Tool[..., Any]],
        find: FindStep,
        settings: Settings,
        *,
        confirmed: Confirmed | None,
        secrets: Sequence[str],
        models: Models,
    ) -> AnyHands:
        """All tools of a run, under the policy and the settings that hold here; `secrets` are left out of what they
        say. What leads a browser is one of the models."""
        walls = Walls(self.root, settings.sandbox, web=settings.web) if self.root is not None else None
        policy = self._policy(own, walls)
        if confirmed is not None:
            policy = Confirming(policy, confirmed)
        if self.root is None:
            tools: tuple[ToolExecutor, ...] = (*own, ReadOutput(find))
            return _Own(tools, policy, Redaction(secrets), unattended=settings.non_interactive)
        more = together((Equipment(tools=tuple(own)), _others(self._brought, own)))
        return Hands(
            self.root,
            policy,
            find=find,
            equipment=more,
            unattended=settings.non_interactive,
            secrets=secrets,
            web=settings.web,
            browser=settings.browser,
            models=models,
            walls=walls,
        )

    def keep(self, grant: str) -> None:
        """What the person agrees to for good, in their own file. Without a workspace it holds for the run only."""
        for rule in grant.splitlines() if self.root is not None else ():
            self._persons.add(rule, self.root)

    def _policy(self, own: Sequence[Tool[..., Any]], walls: Walls | None) -> Policy:
        root, project = self.root or Path("/"), project_rules(self.root) if self.root is not None else ()
        names = [one.name for one in own]
        walled = walls.hold if walls is not None else None
        return policy_for(root, self._persons.of(root), project, own=self._rules, brought=names, walled=walled)


def _others(brought: Equipment, own: Sequence[Tool[..., Any]]) -> Equipment:
    """What is brought, without what a program has a function of that name for."""
    names = {one.name for one in own}
    return evolve(brought, tools=tuple(one for one in brought.tools if one.name not in names))


class _Own:
    """The functions of a program alone."""

    def __init__(
        self, tools: Sequence[ToolExecutor], policy: Policy, redaction: Redaction, *, unattended: bool
    ) -> None:
        self.specs: Sequence[ToolSpec] = [tool.card.spec for tool in tools]
        self.executors: Sequence[Executor] = [
            ToolPipeline(tool, policy, redaction=redaction, unattended=unattended) for tool in tools
        ]

    async def close(self) -> None:
        """Nothing runs that does not end with its step."""


def _folder(workspace: str | Path) -> Path:
    path = Path(workspace)
    with suppress(OSError, ValueError):
        if path.is_dir():
            return path.resolve()
    raise WorldFault(f"{str(path)!r} cannot be a workspace: it is no folder. Make it first, or name another one.")


def confirmed_of(agents: Mapping[str, Blueprint[Any]], *, house: bool) -> Confirmed | None:
    """Whose calls are confirmed: an agent's own word counts, else the house's. None when nobody's are."""
    said = {AgentId(name): one.confirms for name, one in agents.items()}
    if not house and not any(said.values()):
        return None

    def confirmed(agent: AgentId) -> bool:
        own = said.get(agent)
        return house if own is None else own

    return confirmed
