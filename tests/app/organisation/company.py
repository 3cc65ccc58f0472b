"""An organisation that really runs, in memory, with the kit of the house and a model that says what a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.agents.finding import Agents, Found, Place
from greenroom.app.context import AppContext
from greenroom.app.kits import organisation_kit
from greenroom.app.organisation.charter import Charter, Someone
from greenroom.app.organisation.founders import all_staff, found, founders_of
from greenroom.app.organisation.inbox import at_rest
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.words import KIT
from greenroom.app.runtime import Runtime
from greenroom.app.settings.schema import Caps
from greenroom.app.toolset.policy import policy_for
from greenroom.app.toolset.toolset import Hands
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.model import Model
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.world import World
from greenroom.runs.workspace import Copied
from tests.abilities.skills.planned.planners import Line, Script

MODEL = "fake:script"


@dataclass(frozen=True, slots=True)
class Company:
    """It runs; ann is one of its people."""

    runtime: Runtime
    team: TeamId
    ann: HumanAgent
    model: Script

    async def world(self) -> World:
        """What is true."""
        return await self.runtime.world(self.team)

    async def rested(self) -> str:
        """Wait until nothing more happens by itself; how it stands then."""
        while True:
            for task in tuple((await self.world()).tasks):
                await self.runtime.wait(self.team, task)
            stands = at_rest(await self.world())
            if stands.settled:
                return stands.word


class Office(AppContext):
    """An app context with a scripted model, these tools, and these agents in its workspace."""

    def __init__(self, model: Script, hands: Hands, others: Mapping[str, AgentSpec]) -> None:
        super().__init__()
        self._script, self._hands, self._others = model, hands, others

    def named(self, name: str) -> Model:
        return self._script.named(name)

    def settled(self, name: str) -> str:
        return name or MODEL

    def notes(self) -> str:
        return ""

    def agents(self) -> Agents:
        place, path = Place(folder=Path("agents"), whose="project"), Path("agents/any.md")
        return Agents(found={name: Found(spec=spec, path=path, place=place) for name, spec in self._others.items()})

    def toolset(self, root: Path, copied: Copied | None = None) -> Hands:
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
    """Founded like every other one, in this folder."""
    model, staff = Script(lines), all_staff(language, others or {})
    hands = Hands(folder, policy_for(folder, ()))
    app = Office(model, hands, others or {})
    app.runtime = runtime = Runtime(MemoryLog(), kits={KIT: partial(organisation_kit, app)})
    path = folder / ".greenroom" / "teams" / "tea.toml"
    if wanted:
        path.parent.mkdir(parents=True)
        path.write_text(f'people = ["ann", "ben"]\nblueprints = {list(wanted)}\n')
    charter = Charter(name="tea", path=path, people=(Someone(name="ann"), Someone(name="ben")), language=language)
    try:
        team = await found(
            runtime, founders_of(charter, staff, hands.toolbox, settled=lambda name: name or MODEL, caps=Caps())
        )
        await runtime.start(team)
        yield Company(runtime, team, HumanAgent(runtime, team, AgentId("ann")), model)
    finally:
        await runtime.close()
