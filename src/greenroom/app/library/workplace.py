"""What the agents of a program work with: its tools and rules, who takes part, and their models.

Functions of the program are called in the same way, also where there is no folder: their arguments are checked, their
time is limited, of a long result the ends are read. They are asked about only if they or a rule want it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from greenroom.abilities.skills.talk.transcript import Transcripts
from greenroom.abilities.skills.talking import talking
from greenroom.abilities.tools.read_output import FindStep, ReadOutput
from greenroom.abilities.tools.tool import ALWAYS
from greenroom.app.conversation.kits import Hands as AnyHands
from greenroom.app.conversation.start import Cast
from greenroom.app.functions import Misfit, Tool
from greenroom.app.kit import Kit
from greenroom.app.library.blueprint import Blueprint, own, several
from greenroom.app.library.events import EventBus, ToldExecutor, ToldModel
from greenroom.app.reading import TextReader
from greenroom.app.settings.schema import Settings, meant
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.app.toolset.policy import Confirmed, Confirming, persons_rules, policy_for
from greenroom.app.toolset.redaction import Redaction
from greenroom.app.toolset.toolbox import Equipment, Toolbox
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import Data
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
    """Where the functions of a program are all the tools there are; `FolderWorkplace` has those of the house, too.

    `rules` are the program's, and count as those of the person who runs it.
    """

    root: Path | None = None
    house: Sequence[ToolExecutor] = (ReadOutput(),)

    def __init__(self, rules: Sequence[str] = ()) -> None:
        self._rules = tuple(map(str, parse_all(several(rules, "rules", of="a house"))))
        self._persons = persons_rules()

    @property
    def rules(self) -> object:
        """The state of the file in which the person says what agents may do: another one when it was changed."""
        return self._persons.state()

    @property
    def brought(self) -> Equipment:
        """What files, packages and servers give."""
        return Equipment()

    @property
    def notes(self) -> tuple[str, ...]:
        """What they would bring that is not used, and what to do about it."""
        return ()

    async def meet(self, agents: Iterable[Blueprint[Any]]) -> None:
        """Before a run: see what servers have. Here there are none."""

    def cast(self, agents: Mapping[str, Blueprint[Any]]) -> Cast:
        """The agents of a run as the team knows them; the first one has the task."""
        members = tuple((AgentId(name), self.equipped(one)) for name, one in agents.items())
        house = {tool.name for tool in (*self.house, *self.brought.tools)}.difference(ALWAYS)
        works_here = self.root is not None and any(house.intersection(spec.tools) for _, spec in members)
        return Cast(members=members, workspace=str(self.root) if works_here else "")

    def refuse_other(self, team: Team) -> None:
        """A team stays in its workspace, wherever it is taken up again."""
        if team.workspace and team.workspace != str(self.root):
            house = f"Greenroom(workspace={team.workspace!r})"
            raise WorldFault(f"{team.team_id!r} works in {team.workspace}. Go on with it there: `{house}`.")

    def equipped(self, agent: Blueprint[Any]) -> AgentSpec:
        """The agent with its tools by name; `WorldFault` for one that the house does not have."""
        gear, names = agent.gear, {tool.name for tool in self.house}
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
        names = {one.name for one in own}
        return [*own, *self.house, *(tool for tool in self.brought.tools if tool.name not in names)]

    def specs(self, agent: Blueprint[Any]) -> Sequence[ToolSpec]:
        """What a model is told of the tools of an agent."""
        names = self.equipped(agent).tools
        return [tool.card.spec for tool in self._every(agent.gear.own) if tool.name in names]

    def hands(self, own: Sequence[Tool[..., Any]], models: Models, terms: HouseTerms) -> AnyHands:
        """All tools of a run, under the policy and the settings that hold here. What leads a browser is one of the
        models."""
        policy = terms.confirmed_by(self.policy(Path("/"), own))
        return _Own((*own, ReadOutput(terms.find)), policy, terms)

    def policy(
        self,
        root: Path,
        own: Sequence[Tool[..., Any]],
        project: Sequence[str] = (),
        walled: Callable[[], bool] | None = None,
    ) -> Policy:
        """What agents with these functions may do below a folder."""
        names = [one.name for one in own]
        return policy_for(root, self._persons.of(root), project, own=self._rules, brought=names, walled=walled)

    def keep(self, grant: str) -> None:
        """What the person agrees to for good. Without a workspace it holds for the run only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseTerms:
    """Under what tools are called: settings, whose calls are `confirmed`, and `secrets` that are left out of what they
    say. `find` reads the whole of a long result."""

    find: FindStep
    settings: Settings
    confirmed: Confirmed | None
    secrets: Sequence[str]

    def confirmed_by(self, policy: Policy) -> Policy:
        """The policy, with a question before each call that is to be confirmed."""
        return policy if self.confirmed is None else Confirming(policy, self.confirmed)


class _Own:
    """The functions of a program alone."""

    def __init__(self, tools: Sequence[ToolExecutor], policy: Policy, terms: HouseTerms) -> None:
        redaction, unattended = Redaction(terms.secrets), terms.settings.non_interactive
        self.specs: Sequence[ToolSpec] = [tool.card.spec for tool in tools]
        self.executors: Sequence[Executor] = [
            ToolPipeline(tool, policy, redaction=redaction, unattended=unattended) for tool in tools
        ]

    async def close(self) -> None:
        """Nothing runs that does not end with its step."""


def confirmed_of(agents: Mapping[str, Blueprint[Any]], *, house: bool) -> Confirmed | None:
    """Whose calls are confirmed: an agent's own word counts, else the house's. None when nobody's are."""
    said = {AgentId(name): one.confirms for name, one in agents.items()}
    if not house and not any(said.values()):
        return None

    def confirmed(agent: AgentId) -> bool:
        own = said.get(agent)
        return house if own is None else own

    return confirmed
