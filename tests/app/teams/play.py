"""A team run in a small repository: real git, real checks, a scripted model."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.capability_factories import make_capability_factories
from greenroom.app.context import AppContext
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import home_folder
from greenroom.app.task_status import TaskStatus
from greenroom.app.teams.profiles import load_profiles
from greenroom.app.teams.start import build_team_toolbox, create_team_run, equip_specialists
from greenroom.app.toolset.custom import find_tool_source
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import StageId, TaskId, TeamId
from greenroom.core.base.records import Data, encode
from greenroom.core.ports.model import Model, ModelEvent, ModelRequest
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import OnFailure, Stage, Subtask
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.runs.workspace import DEFAULT_RUN_FLAGS, RunFlags
from greenroom.teamwork.plan import Plan, PlannedSubtask
from greenroom.testing.scripted import Cue, ReplyMaker, ScriptedCall, ScriptedModel
from tests.tiers import keep_known

E = TypeVar("E")
MODEL = "scripted:script"
TASK = TaskId("t1")
STAGE = StageId("t1.s1")
LIMITS = Limits(steps=2000)
FILES = {
    "shop/__init__.py": "",
    "shop/cart.py": "def total(items):\n    return sum(items)\n",
    "tests/__init__.py": "",
    "tests/test_cart.py": (
        "import unittest\n\nfrom shop.cart import total\n\n\nclass Cart(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    ),
    "README.md": "# Shop\n",
    ".gitignore": "__pycache__/\n",
}
TAX = "def tax(price):\n    return price * 0.2\n"
DISCOUNT = "def discount(price):\n    return price * 0.9\n"
TESTS = (
    "import unittest\n\nfrom shop.tax import tax\n\n\nclass Tax(unittest.TestCase):\n"
    "    def test_tax(self):\n        self.assertEqual(tax(10), 2)\n"
)


# ------------------------------------------------------------------------------------------------------- the script


def call(tool: str, **arguments: object) -> ScriptedCall:
    """Return a tool call."""
    return ScriptedCall(name=tool, arguments=arguments)


def done(summary: str = "done", **report: object) -> ScriptedCall:
    """Return the last call of a specialist."""
    return call("answer", **{"status": "done", "summary": summary, **report})


def report_files(*paths: str) -> dict[str, object]:
    """Return a valid hand-off of a code-writer."""
    return {"modified_files": [{"path": path, "change_type": "created"} for path in paths]}


def writes(agent: str, path: str, content: str, **report: object) -> tuple[Cue, ...]:
    """Return the script of a writer of one file."""
    handoff = report_files(path)
    return plays(agent, call("rewrite", file=path, content=content), done(path, **{"handoff": handoff, **report}))


def plays(agent: str, *replies: ReplyMaker) -> tuple[Cue, ...]:
    """Return the script of an agent, turn by turn. The last reply is repeated."""
    turns = (Cue(agent=agent, turn=turn, reply=reply) for turn, reply in enumerate(replies[:-1], 1))
    return (*turns, Cue(agent=agent, reply=replies[-1]))


def reads(request: ModelRequest) -> str:
    """Return everything that a model reads in a request."""
    return "\n".join(str(message.content) for message in request.messages)


def part(
    name: str, agent: str = "code-writer", *needs: str, tries: int = 1, writes: tuple[str, ...] = ()
) -> PlannedSubtask:
    """Return a planned subtask."""
    return PlannedSubtask(
        id=name,
        agent=agent,
        name=name.capitalize(),
        description=f"do {name}",
        dependencies=needs,
        tries=tries,
        writes=writes,
    )


def make_plan(*parts: PlannedSubtask, on_failure: OnFailure = "stop", max_concurrent: int = 8) -> Plan:
    """Return a plan of these subtasks."""
    return Plan(request="add tax", subtasks=parts, on_failure=on_failure, max_concurrent=max_concurrent)


def set_team(shop: Path, **values: object) -> None:
    """Write a person's settings of teams."""
    rows = [f"{name} = {encode(value).decode()}" for name, value in values.items()]
    path = shop.parent / "config" / "greenroom" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("[team]", *rows, "")))


def is_state(stage: Stage, name: str, state: str) -> bool:
    """Return whether a subtask has this state."""
    return any(subtask.name == name and subtask.state == state for subtask in stage.subtasks)


def git(root: Path, *words: str) -> str:
    """Run git and return its output."""
    return subprocess.run(("git", *words), cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def make_repository(root: Path, files: Mapping[str, str] = FILES) -> None:
    """Make the repository of a shop, with one commit."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q", "-b", "main")
    for key, value in (("user.name", "You"), ("user.email", "you@localhost"), ("commit.gpgsign", "false")):
        git(root, "config", key, value)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "The shop")


def make_environment(folder: Path) -> dict[str, str]:
    """Return the variables that keep everything of Greenroom in a folder."""
    places = {"GREENROOM_HOME": "home", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config"}
    keep_known(folder / "cache")
    return {name: str(folder / place) for name, place in places.items()}


# --------------------------------------------------------------------------------------------------------- the run


class Gate:
    """Holds a turn back until a test lets it go on."""

    def __init__(self) -> None:
        self.is_reached, self.is_open = asyncio.Event(), asyncio.Event()


class GatedModel(ScriptedModel):
    """A scripted model that waits before a turn of an agent until its gate is open."""

    gates: Mapping[tuple[str, int], Gate] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Wait, then stream the reply."""
        if gate := self.gates.get((request.purpose.agent, request.purpose.turn)):
            gate.is_reached.set()
            await gate.is_open.wait()
        async for event in super().stream(request):
            yield event


class ScriptedApp(AppContext):
    """An app context with one model."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model
        self.set_attendance(yes=True, non_interactive=False)

    def get_model(self, _: str) -> Model:
        """Return the model."""
        return self._model

    def resolve_alias(self, name: str) -> str:
        """Return the only model."""
        return name or MODEL


class TeamPlay:
    """One process of a team run in the current folder: `async with TeamPlay.open(*cues) as play`."""

    def __init__(self, app: ScriptedApp, model: ScriptedModel, root: Path) -> None:
        self.app, self.model, self.root = app, model, root
        self.team = TeamId("")

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        *cues: Cue,
        pace: float = 0.0,
        gates: Mapping[tuple[str, int], Gate] | None = None,
        store: type[SqliteLog] = SqliteLog,
    ) -> AsyncIterator[TeamPlay]:
        """Open a process. The newest run of the folder is found again."""
        model = GatedModel(cues, pace=pace)
        model.gates = gates or {}
        app = ScriptedApp(model)
        runtime = Runtime(await store.open(home_folder()), capability_factories=make_capability_factories(app))
        app.runtime = runtime
        play = cls(app, model, Path.cwd())
        try:
            known = await runtime.log.streams()
            play.team = TeamId(known[-1].stream) if known else play.team
            yield play
        finally:
            await runtime.close()
            await app.close()

    @property
    def runtime(self) -> Runtime:
        """The runtime."""
        return self.app.runtime

    def equip(self, specs: Iterable[AgentSpec] | None = None) -> dict[str, AgentSpec]:
        """Return the specialists as they join a team."""
        tools = build_team_toolbox(self.app, self.root, (), find_tool_source(self.root))
        found = load_profiles(self.app.agents(), "en").list() if specs is None else specs
        return equip_specialists(self.app, tools, found, model=MODEL, language="en")

    async def create(
        self,
        plan: Plan,
        *,
        splits: bool = True,
        setup: bool = False,
        confirms: bool = False,
        wanted: RunFlags = DEFAULT_RUN_FLAGS,
    ) -> None:
        """Create the run."""
        self.team = await create_team_run(
            self.runtime,
            plan,
            self.equip(),
            model=MODEL,
            language="en",
            workspace=str(self.root),
            limits=LIMITS,
            splits=splits,
            setup=setup,
            confirms=confirms,
            wanted=wanted,
        )

    async def start(self, plan: Plan, *, splits: bool = True, wanted: RunFlags = DEFAULT_RUN_FLAGS) -> None:
        """Create and start the run."""
        await self.create(plan, splits=splits, wanted=wanted)
        await self.runtime.start(self.team)

    async def end(self, timeout: float = 90) -> TaskStatus:
        """Wait for the end. Without a sandbox, checks need an approval: a person gives it."""
        async with asyncio.timeout(timeout):
            while True:
                status = await self.runtime.wait(self.team, TASK)
                asked = (await self.runtime.state(self.team)).approvals.values()
                pending = [approval.approval_id for approval in asked if approval.state == "pending"]
                if not pending:
                    return status
                await self.runtime.ask(
                    self.team, *(AnswerApproval(approval_id=name, answer="approved") for name in pending)
                )

    async def play(self, plan: Plan, *, splits: bool = True, wanted: RunFlags = DEFAULT_RUN_FLAGS) -> TaskStatus:
        """Play the run to its end."""
        await self.start(plan, splits=splits, wanted=wanted)
        return await self.end()

    async def until(self, is_there: Callable[[Stage], bool]) -> Stage:
        """Wait until the stage is like that, commit by commit."""
        async with asyncio.timeout(60):
            async for state in self.states():
                stage = state.stages.get(STAGE)
                if stage is not None and is_there(stage):
                    return stage
        raise AssertionError("the team ended")

    async def states(self) -> AsyncGenerator[TeamState, None]:
        """Yield the state of the team, which runs here, now and after commits. The log can be ahead of it."""
        host, changed = await self.runtime.start(self.team), asyncio.Event()
        unsubscribe = host.listen(lambda _: changed.set())
        try:
            while True:
                yield host.state
                await changed.wait()
                changed.clear()
        finally:
            unsubscribe()

    async def subtasks(self) -> dict[str, Subtask]:
        """Return the subtasks by name."""
        state = await self.runtime.state(self.team)
        stages = [*state.stages.values()]
        stages += [stage async for stage in self.runtime.archive(self.team, "stage") if isinstance(stage, Stage)]
        return {subtask.name: subtask for stage in stages for subtask in stage.subtasks}

    async def ends(self) -> dict[str, str]:
        """Return the state of each subtask."""
        return {name: subtask.state for name, subtask in (await self.subtasks()).items()}

    async def events(self, kind: type[E]) -> list[E]:
        """Return the events of a kind."""
        return [entry.event async for entry in self.runtime.events(self.team) if isinstance(entry.event, kind)]

    async def steps(self, executor: str, agent: str = "") -> list[Step]:
        """Return the ended steps of an executor."""
        found = await self.app.steps(self.team)
        return [step for step in found if step.work.executor == executor and agent in ("", step.agent_id)]

    async def results(self, executor: str, agent: str = "") -> list[Data]:
        """Return the results of the ended steps of an executor."""
        return [step.result or {} for step in await self.steps(executor, agent)]

    def asked(self, agent: str) -> list[ModelRequest]:
        """Return the model requests of an agent."""
        return [request for request in self.model.requests if request.purpose.agent == agent]

    def ref(self, thread: str = "main") -> str:
        """Return the ref of a thread."""
        return f"refs/greenroom/{self.team}/{thread}"

    def files(self, thread: str = "main") -> dict[str, str]:
        """Return the files at the tip of a thread that are new or changed."""
        names = git(self.root, "diff", "--name-only", "HEAD", self.ref(thread)).split()
        return {name: git(self.root, "show", f"{self.ref(thread)}:{name}") + "\n" for name in names}

    def worktrees(self) -> set[str]:
        """Return the names of the worktrees that are there."""
        cache = Path(os.environ["XDG_CACHE_HOME"])
        return {path.name for trees in cache.glob("greenroom/**/trees") for path in trees.iterdir()}
