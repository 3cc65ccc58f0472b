"""The workplace of a house: the folder in which agents of a program have the tools of the house, and the rules there.

Functions of the program are called in the same way, also where there is no folder: their arguments are checked, their
time is limited, of a long result the ends are read. Nobody is asked about them unless they or a rule want it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from greenroom.abilities.permission.rules import parse_all
from greenroom.abilities.tools.output.read_output import FindStep, ReadOutput
from greenroom.app.hands.confirming import Confirmed, Confirming
from greenroom.app.hands.equipment import Equipment
from greenroom.app.hands.guarded import Guarded
from greenroom.app.hands.hands import Hands, toolbox_of
from greenroom.app.hands.policy import policy_for
from greenroom.app.hands.project_rules import project_rules
from greenroom.app.hands.redaction import Redaction
from greenroom.app.hands.rules_file import persons_rules
from greenroom.app.hands.toolbox import ALWAYS, Toolbox
from greenroom.app.hands.unattended import Unattended
from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.gear import several
from greenroom.app.library.tools import Tool
from greenroom.app.settings.reading import meant
from greenroom.app.talks.founding import Cast
from greenroom.app.talks.kits import Hands as AnyHands
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.executor import Executor
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.policy import Policy
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team

OPEN: Final = 'Open it with one: `Greenroom(workspace=".")`.'


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What holds for all calls of a run: whose are confirmed, whether nobody is there, and what no tool may say."""

    confirmed: Confirmed
    unattended: bool = False
    secrets: tuple[str, ...] = ()


class Workplace:
    """A folder, or none; `rules` are the program's, and count as those of the person who runs it."""

    def __init__(self, workspace: str | Path | None, rules: Sequence[str] = ()) -> None:
        self.root = None if workspace is None else _folder(workspace)
        self._rules = tuple(map(str, parse_all(_lines(rules))))
        self._house: Sequence[ToolExecutor] = tuple(toolbox_of(self.root)) if self.root is not None else (ReadOutput(),)

    def cast(self, agents: Mapping[str, Blueprint[Any]]) -> Cast:
        """The agents of a run as the team knows them; the first one has the task."""
        members = tuple((AgentId(name), self.equipped(one)) for name, one in agents.items())
        house = {tool.name for tool in self._house}.difference(ALWAYS)
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
        known = [tool.name for tool in (*gear.own, *self._house)]
        for name in (*gear.named, *gear.only):
            if name not in known:
                raise WorldFault(f"{agent.name!r} can have no tool {name!r}. {meant(name, known)}")
        return Toolbox((*gear.own, *self._house)).equipped(agent.spec, only=gear.only or None)

    def specs(self, agent: Blueprint[Any]) -> Sequence[ToolSpec]:
        """What a model is told of the tools of an agent."""
        names = self.equipped(agent).tools
        return [tool.card.spec for tool in (*agent.gear.own, *self._house) if tool.name in names]

    def hands(self, own: Sequence[Tool[..., Any]], find: FindStep, asking: Asking) -> AnyHands:
        """All tools of a run, under the policy that holds here."""
        policy = Confirming(self._policy(own), asking.confirmed)
        if self.root is None:
            return _Own((*own, ReadOutput(find)), policy, asking)
        more = Equipment(tools=tuple(own))
        unattended, secrets = asking.unattended, asking.secrets
        return Hands(self.root, policy, find=find, equipment=more, unattended=unattended, secrets=secrets)

    def keep(self, grant: str) -> None:
        """What the person agrees to for good, in their own file. Without a workspace it holds for the run only."""
        for rule in grant.splitlines() if self.root is not None else ():
            persons_rules().add(rule, self.root)

    def _policy(self, own: Sequence[Tool[..., Any]]) -> Policy:
        root, project = self.root or Path("/"), project_rules(self.root) if self.root is not None else ()
        names = [one.name for one in own]
        return policy_for(root, persons_rules().of(root), project, own=self._rules, brought=names)


class _Own:
    """The functions of a program alone."""

    def __init__(self, tools: Sequence[ToolExecutor], policy: Policy, asking: Asking) -> None:
        redaction = Redaction(asking.secrets)
        guarded = [Guarded(tool, policy, redaction=redaction) for tool in tools]
        self.specs: Sequence[ToolSpec] = [tool.card.spec for tool in tools]
        self.executors: Sequence[Executor] = [Unattended(one) for one in guarded] if asking.unattended else guarded

    async def close(self) -> None:
        """Nothing runs that does not end with its step."""


def _lines(rules: object) -> Sequence[str]:
    given = several(rules, "rules", of="a house")
    odd = next((one for one in given if not isinstance(one, str)), None)
    if odd is not None:
        raise WorldFault(f"{odd!r} cannot be a rule. Write a line, such as 'allow command npm test'.")
    return given


def _folder(workspace: object) -> Path:
    if not isinstance(workspace, str | PurePath):
        raise WorldFault(f"{workspace!r} cannot be a workspace. Give the path of a folder: `Greenroom(workspace='.')`.")
    path = Path(workspace)
    with suppress(OSError, ValueError):
        if path.is_dir():
            return path.resolve()
    raise WorldFault(f"{str(path)!r} cannot be a workspace: it is no folder. Make it first, or name another one.")


def confirmed_of(agents: Mapping[str, Blueprint[Any]], *, house: bool) -> Confirmed:
    """Whose calls are confirmed: an agent's own word counts, else the house's."""
    said = {AgentId(name): one.confirms for name, one in agents.items()}

    def confirmed(agent: AgentId) -> bool:
        own = said.get(agent)
        return house if own is None else own

    return confirmed
