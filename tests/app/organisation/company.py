"""A running organisation in memory, with the standard capabilities and a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.agents.discovery import AgentFile, AgentFolder, Agents
from greenroom.app.capability_factories import make_organisation_capabilities
from greenroom.app.context import AppContext
from greenroom.app.organisation.charter import Charter, CharterPerson
from greenroom.app.organisation.creation import build_organisation_spec, create_organisation, merge_agents
from greenroom.app.organisation.inbox import summarise_status
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.phrases import ORGANISATION_KIT
from greenroom.app.runtime import Runtime
from greenroom.app.settings.schema import LimitSettings
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.model import Model
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team_state import TeamState
from greenroom.runs.workspace import WorktreeTools
from tests.abilities.skills.planned.planners import Line, Script

MODEL = "fake:script"


@dataclass(frozen=True, slots=True)
class Company:
    """A running organisation. ann is one of its people."""

    runtime: Runtime
    team: TeamId
    ann: HumanAgent
    model: Script

    async def world(self) -> TeamState:
        """Return the team state."""
        return await self.runtime.world(self.team)

    async def rested(self) -> str:
        """Wait until the team is idle and return its status."""
        while True:
            for task in tuple((await self.world()).tasks):
                await self.runtime.wait(self.team, task)
            stands = summarise_status(await self.world())
            if stands.is_settled:
                return stands.state


class Office(AppContext):
    """An app context with a scripted model, these tools, and these agents in its workspace."""

    def __init__(self, model: Script, hands: Toolset, others: Mapping[str, AgentSpec]) -> None:
        super().__init__()
        self._script, self._hands, self._others = model, hands, others

    def get_model(self, name: str) -> Model:
        return self._script.get_model(name)

    def resolve_alias(self, name: str) -> str:
        return name or MODEL

    def notes(self) -> str:
        return ""

    def agents(self) -> Agents:
        place, path = AgentFolder(folder=Path("agents"), scope="project"), Path("agents/any.md")
        return Agents(
            by_name={name: AgentFile(spec=spec, path=path, folder=place) for name, spec in self._others.items()}
        )

    def toolset(self, root: Path, copied: WorktreeTools | None = None) -> Toolset:
        return self._hands


@asynccontextmanager
async def company(
    folder: Path,
    lines: Mapping[tuple[str, str], Sequence[Line]],
    *,
    language: str = "en",
    others: Mapping[str, AgentSpec] | None = None,
    wanted: tuple[str, ...] = (),
) -> AsyncIterator[Company]:
    """Found an organisation in this folder in the usual way."""
    model, staff = Script(lines), merge_agents(language, others or {})
    hands = Toolset(folder, build_policy(folder, ()))
    app = Office(model, hands, others or {})
    app.runtime = runtime = Runtime(
        MemoryLog(), capability_factories={ORGANISATION_KIT: partial(make_organisation_capabilities, app)}
    )
    path = folder / ".greenroom" / "teams" / "tea.toml"
    if wanted:
        path.parent.mkdir(parents=True)
        path.write_text(f'people = ["ann", "ben"]\nblueprints = {list(wanted)}\n')
    charter = Charter(
        name="tea", path=path, people=(CharterPerson(name="ann"), CharterPerson(name="ben")), language=language
    )
    try:
        team = await create_organisation(
            runtime,
            build_organisation_spec(
                charter, staff, hands.toolbox, resolve_model=lambda name: name or MODEL, caps=LimitSettings()
            ),
        )
        await runtime.start(team)
        yield Company(runtime, team, HumanAgent(runtime, team, AgentId("ann")), model)
    finally:
        await runtime.close()
