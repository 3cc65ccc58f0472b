"""A team of gullible agents in a real workspace, and a person who answers approval requests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.adapters.mcp.client import McpClient, McpTool, ServerEnvironment
from greenroom.adapters.mcp.client import make_tools as mcp_kit
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.app.settings.schema import WebSettings
from greenroom.app.toolset.manual_call import find_ended_step
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.sandbox import WorkspaceSandbox
from greenroom.app.toolset.toolbox import ToolSource
from greenroom.app.toolset.toolset import Toolset
from greenroom.app.trust import render_trusted_notes
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.tool import Policy, PolicyDecision, Target, ToolCard
from greenroom.core.rules.intents import AddTask, AnswerApproval, QueueSteps
from greenroom.core.state.approval import Approval, ApprovalScope
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Work
from greenroom.core.state.team_state import TeamState
from tests.gullible.gullible import Gullible
from tests.gullible.outside import SECRET, Web, notes

ANN, BOB = AgentId("ann"), AgentId("bob")
Answers = Literal["no", "run"]


@dataclass(frozen=True)
class Place:
    """The place: a workspace that is a repository with a spare remote, and two servers outside."""

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
        """The files of the MCP server."""
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
    """A policy that allows everything: the behaviour without protection."""

    def decide(
        self,
        _: AgentId,
        __: ToolCard,
        ___: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> PolicyDecision:
        """Allow."""
        return PolicyDecision(verdict="allow", rule=f"anything, beside {len(grants)} and {len(limits)}")


@dataclass
class Crowd:
    """The running team. `asked` are all questions to the person, `answers` the person's answers."""

    runtime: Runtime
    team: TeamId
    answers: Answers
    asked: list[Approval] = field(default_factory=list)
    tasks: int = 0

    async def tell(self, agent: AgentId, text: str, *group: AgentId) -> str:
        """Give an agent work, wait until the team is idle, and return the task status. The first of the group manages
        the task."""
        self.tasks += 1
        task = TaskId(f"t{self.tasks}")
        work = Work(type="skill", executor="converse", text_content=text)
        members = group or (agent,)
        made = AddTask(name=text, intention=text, manager=members[0], group=members, driver="manager")
        await self.runtime.ask(self.team, made, QueueSteps(agent_id=agent, works=(work,), task_id=task))
        while (await self.runtime.wait(self.team, task)).state == "waiting":
            await self._answer()
        return (await self.runtime.status(self.team, task)).state

    async def state(self) -> TeamState:
        """Return the team state."""
        return await self.runtime.state(self.team)

    async def _answer(self) -> None:
        for one in [one for one in (await self.state()).approvals.values() if one.state == "pending"]:
            self.asked.append(one)
            scope: ApprovalScope = "run" if one.grant or one.release else "once"
            yes = AnswerApproval(approval_id=one.approval_id, answer="approved", scope=scope)
            no = AnswerApproval(approval_id=one.approval_id, answer="denied", reason="I do not want that.")
            await self.runtime.ask(self.team, yes if self.answers == "run" else no)


async def served(place: Place, note: str, described: str, last: AsyncExitStack) -> tuple[McpTool, ...]:
    """Return the tools of an MCP server that is stopped at the end."""
    around = ServerEnvironment(place.work, {"PATH": os.environ["PATH"]}, withheld=())
    client = McpClient(notes(place.server, note, described), around, agreed=None)
    last.push_async_callback(client.close)
    return mcp_kit(client, await client.get_catalogue())


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
    walls: WorkspaceSandbox | None = None,
) -> AsyncIterator[Crowd]:
    """Start Ann and Bob with all built-in tools; with a `note`, also with those of an MCP server. Commands
    run in the given sandbox, if any."""
    async with AsyncExitStack() as last:
        tools = await served(place, note, described, last) if note is not None else ()
        web = WebSettings(local=(place.pages.place, place.thief.place))
        held = None if walls is None else walls.is_holding
        decides = policy or build_policy(place.work, (), stated_rules=rules, is_sandboxed=held)
        made: list[Capabilities] = []
        runtime = Runtime(MemoryLog(), capability_factories={"gullible": lambda _: made[0]})
        find = partial(find_ended_step, runtime)
        hands = Toolset(place.work, decides, find=find, tool_source=ToolSource(tools=tools), web=web, sandbox=walls)
        last.push_async_callback(hands.close)
        told = render_trusted_notes(place.work, lambda _: False)
        made.append(
            Capabilities([*build_conversation_skills(model, hands.specs, solo=True, project=told), *hands.executors])
        )
        last.push_async_callback(runtime.close)
        names = tuple(tool.name for tool in hands.toolbox)
        members = [
            (ANN, AgentSpec(name="ann", tools=names, calls=("bob",) if calls else ())),
            (BOB, AgentSpec(name="bob", tools=names)),
        ]
        team = await runtime.create("gullible", members, capabilities_name="gullible", workspace=str(place.work))
        await runtime.start(team)
        yield Crowd(runtime, team, answers)
