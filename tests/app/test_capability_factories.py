"""The capabilities of an organisation: which agents its managers can make."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.agents.discovery import AgentFile, AgentFolder, Agents
from greenroom.app.capability_factories import make_organisation_capabilities
from greenroom.app.context import AppContext
from greenroom.app.organisation.charter import charter_path
from greenroom.app.organisation.creation import create_organisation
from greenroom.app.runtime import Runtime
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.state.spec import AgentSpec
from greenroom.runs.workspace import WorktreeTools
from tests.app.organisation.office import founders

OWN_AGENTS = {
    "poet": AgentSpec(name="poet", role="a poet", style="plan"),
    "boss": AgentSpec(name="boss", style="plan", manager=True),
}
BUILT_IN = {"researcher", "writer", "analyst", "engineer", "reviewer"}


class Office(AppContext):
    """An app context with these agents in its workspace, and one model."""

    def __init__(self, runtime: Runtime, specs: Mapping[str, AgentSpec]) -> None:
        super().__init__()
        self.runtime, self._specs = runtime, specs

    def resolve_alias(self, name: str) -> str:
        return name or "fake:script"

    def notes(self) -> str:
        return ""

    def agents(self) -> Agents:
        folder, path = AgentFolder(folder=Path("agents"), scope="project"), Path("agents/any.md")
        return Agents(
            by_name={name: AgentFile(spec=spec, path=path, folder=folder) for name, spec in self._specs.items()}
        )

    def toolset(self, root: Path, worktree: WorktreeTools | None = None, **_: object) -> Toolset:
        return Toolset(root, build_policy(root, ()))


@pytest.mark.parametrize(
    ("charter", "names"),
    [("", BUILT_IN | {"poet"}), ('people = ["ann"]\nblueprints = ["poet", "ghost"]\n', {"poet"})],
    ids=["without a charter", "of a charter"],
)
async def test_managers_make_agents_of_what_the_charter_names_and_no_managers(
    tmp_path: Path, charter: str, names: set[str]
) -> None:
    if charter:
        charter_path(tmp_path, "tea").parent.mkdir(parents=True)
        charter_path(tmp_path, "tea").write_text(charter)
    runtime = Runtime(MemoryLog())
    team = await create_organisation(runtime, evolve(founders(), workspace=str(tmp_path)))
    made = await make_organisation_capabilities(Office(runtime, OWN_AGENTS), (await runtime.state(team)).team)
    assert {spec.name for spec in made.agent_specs} == names
    assert {str(spec.llm_config) for spec in made.agent_specs} == {"{'model': 'fake:script'}"}
    await runtime.close()


SING = "---\ndescription: Sing something.\n---\nIn tune.\n"


@pytest.mark.req("MAS-186")
async def test_a_planning_agent_runs_a_skill_of_the_person_as_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "greenroom"
    for name, text in {
        "skills/sing/SKILL.md": SING,
        "agents/poet.md": "---\nstyle: plan\nskills: [think, sing]\n---\nWrite.\n",
        "agents/mute.md": "---\nstyle: plan\nskills: [hum]\n---\nWrite.\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    agents = AppContext().agents()
    assert agents.get("poet").spec.skills == ("think", "sing")
    with pytest.raises(WorldFault, match="`mute` lists the skill `hum`, which is neither a planning skill nor"):
        agents.get("mute")
    runtime = Runtime(MemoryLog())
    organisation = founders()
    managers = tuple(evolve(spec, skills=("sing",)) for spec in organisation.managers)
    team = await create_organisation(runtime, evolve(organisation, managers=managers, workspace=str(tmp_path)))
    made = await make_organisation_capabilities(Office(runtime, {}), (await runtime.state(team)).team)
    sing = made.get("skill", "sing")
    assert sing is not None
    assert sing.description == "Sing something."
    await runtime.close()
