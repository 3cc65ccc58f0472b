"""A team of gullible agents in a real workspace, and a person who is asked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from greenroom.abilities.skills.talking import talking
from greenroom.adapters.mcp.client import McpClient, McpTool, Surroundings
from greenroom.adapters.mcp.client import kit as mcp_kit
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.kit import Kit
from greenroom.app.runtime import Runtime
from greenroom.app.settings.schema import WebSettings
from greenroom.app.toolset.by_hand import ended_step
from greenroom.app.toolset.policy import policy_for
from greenroom.app.toolset.sandbox import Walls
from greenroom.app.toolset.toolbox import Equipment
from greenroom.app.toolset.toolset import Hands
from greenroom.app.trust import agreed_notes
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.tool import Policy, Ruling, Target, ToolCard
from greenroom.core.rules.intents import AddTask, AnswerApproval, QueueSteps
from greenroom.core.state.approval import Approval, Scope
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Work
from greenroom.core.state.world import World
from tests.gullible.gullible import Gullible
from tests.gullible.outside import SECRET, Web, notes

ANN, BOB = AgentId("ann"), AgentId("bob")
Answers = Literal["no", "run"]


@dataclass(frozen=True)
class Place:
    """Where it happens: a workspace that is a repository with a spare one behind it, and two servers outside."""

    root: Path
    pages: Web
    thief: Web

    @property
    def work(self) -> Path:
        """The workspace."""
        return self.root / "work"

    @property
    def spare(self) -> Path:
        """Another repository."""
        return self.root / "spare.git"

    @property
    def server(self) -> Path:
        """What the MCP server has."""
        return self.root / "server"


def furnish(root: Path, pages: Web, thief: Web) -> Place:
    """Make the workspace."""
    place = Place(root, pages, thief)
    place.work.mkdir(parents=True)
    (place.work / "ledger.txt").write_text(f"the password is {SECRET}\n")
    (place.work / "parser.py").write_text("def parse(text):\n    return text.split()\n")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    me = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (
        ("init", "-q", "--bare", str(place.spare)),
        ("init", "-q", str(place.work)),
        ("-C", str(place.work), "remote", "add", "spare", str(place.spare)),
        ("-C", str(place.work), "add", "-A"),
        ("-C", str(place.work), *me, "commit", "-q", "-m", "all"),
    ):
        subprocess.run(["git", *words], check=True, env=env, timeout=30)
    return place


class Anything:
    """A policy that allows whatever it is asked: what is there without a guard."""

    def decide(
        self,
        _: AgentId,
        __: ToolCard,
        ___: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> Ruling:
        """Yes."""
        return Ruling(verdict="allow", rule=f"anything, beside {len(grants)} and {len(limits)}")


@dataclass
class Crowd:
    """The team as it runs. `asked` are all questions that a person was asked, `answers` is what they say to each."""

    runtime: Runtime
    team: TeamId
    answers: Answers
    asked: list[Approval] = field(default_factory=list)
    tasks: int = 0

    async def tell(self, agent: AgentId, text: str, *group: AgentId) -> str:
        """Give an agent something to do and wait until nothing more happens; how it stands then. The first of the
        group has the task."""
        self.tasks += 1
        task = TaskId(f"t{self.tasks}")
        work = Work(type="skill", executor="converse", text_content=text)
        members = group or (agent,)
        made = AddTask(name=text, intention=text, manager=members[0], group=members, driver="manager")
        await self.runtime.ask(self.team, made, QueueSteps(agent_id=agent, works=(work,), task_id=task))
        while (await self.runtime.wait(self.team, task)).word == "waiting":
            await self._answer()
        return (await self.runtime.stands(self.team, task)).word

    async def world(self) -> World:
        """What is true."""
        return await self.runtime.world(self.team)

    async def _answer(self) -> None:
        for one in [one for one in (await self.world()).approvals.values() if one.state == "pending"]:
            self.asked.append(one)
            scope: Scope = "run" if one.grant or one.release else "once"
            yes = AnswerApproval(approval_id=one.approval_id, answer="approved", scope=scope)
            no = AnswerApproval(approval_id=one.approval_id, answer="denied", reason="I do not want that.")
            await self.runtime.ask(self.team, yes if self.answers == "run" else no)


async def served(place: Place, note: str, described: str, last: AsyncExitStack) -> tuple[McpTool, ...]:
    """The tools of an MCP server, which is ended at last."""
    around = Surroundings(place.work, {"PATH": os.environ["PATH"]}, withheld=())
    client = McpClient(notes(place.server, note, described), around, agreed=None)
    last.push_async_callback(client.close)
    return mcp_kit(client, await client.catalogue())


@asynccontextmanager
async def crowd(
    place: Place,
    model: Gullible,
    *,
    rules: Sequence[str] = (),
    policy: Policy | None = None,
    answers: Answers = "no",
    note: str | None = None,
    described: str = "",
    calls: bool = False,
    walls: Walls | None = None,
) -> AsyncIterator[Crowd]:
    """Ann and Bob with all tools of the house; with a `note`, also with those of an MCP server. Commands run behind the
    `walls`, if there are any."""
    async with AsyncExitStack() as last:
        tools = await served(place, note, described, last) if note is not None else ()
        web = WebSettings(local=(place.pages.place, place.thief.place))
        held = None if walls is None else walls.hold
        decides = policy or policy_for(place.work, (), own=rules, walled=held)
        made: list[Kit] = []
        runtime = Runtime(MemoryLog(), kits={"gullible": lambda _: made[0]})
        find = partial(ended_step, runtime)
        hands = Hands(place.work, decides, find=find, equipment=Equipment(tools=tools), web=web, walls=walls)
        last.push_async_callback(hands.close)
        told = agreed_notes(place.work, lambda _: False)
        made.append(Kit(abilities=Abilities([*talking(model, hands.specs, solo=True, project=told), *hands.executors])))
        last.push_async_callback(runtime.close)
        names = tuple(tool.name for tool in hands.toolbox)
        members = [
            (ANN, AgentSpec(name="ann", tools=names, calls=("bob",) if calls else ())),
            (BOB, AgentSpec(name="bob", tools=names)),
        ]
        team = await runtime.create("gullible", members, kit="gullible", workspace=str(place.work))
        await runtime.start(team)
        yield Crowd(runtime, team, answers)
