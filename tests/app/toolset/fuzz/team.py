"""A wild team: its agents call wild tools, have others call them, and a person answers as they please."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from greenroom.abilities.permission import rules_policy
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.host import Host
from greenroom.app.kit import Kit
from greenroom.app.runtime import Runtime
from greenroom.app.toolset.pipeline import Guarded
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.ports.executor import Abilities, Bench, Outcome
from greenroom.core.rules.intents import AddTask, AnswerApproval, Intent, ModifyStep, QueueSteps, SendMessage
from greenroom.core.state.approval import Approval, Scope
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepType, Terms, Work
from greenroom.core.state.world import World
from tests.app.toolset.fuzz.checker import Trail, counted, read, violations
from tests.app.toolset.fuzz.tools import Entered, probes, workspace
from tests.app.toolset.fuzz.wild import Wild

AGENTS = tuple(AgentId(f"agent{number}") for number in range(20))
T1 = TaskId("t1")
DOOR = "door"
PATIENCE = 120.0
CALLED = 6
"""Calls that an agent makes when another one has called it."""

SCOPES: tuple[Scope, ...] = ("once", "once", "run", "always")
MakeWorks = Callable[[int], tuple[Work, ...]]


class Converse:
    """What an agent does when it is called by another: tools again, on the other's behalf."""

    type: StepType = "skill"
    name: str = "converse"
    description: str = "Answers."

    def __init__(self, works: MakeWorks) -> None:
        self._works = works

    def terms(self, _: World, __: Step) -> Terms:
        """Free."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Call some tools; when it was told to, let somebody else do so."""
        me = bench.step.agent_id
        queue = QueueSteps(agent_id=me, works=self._works(CALLED), place="next")
        other = bench.step.work.intention
        if other not in AGENTS:
            return Outcome(intents=(queue,))
        asked = SendMessage(
            task_id=T1, receiver=(AgentId(other),), message="do", need_reply=True, waiting=True, delivery="call"
        )
        return Outcome(intents=(asked,))


class WildTeam:
    """One team under one set of rules."""

    def __init__(self, root: Path, seed: str) -> None:
        self.wild = Wild(seed)
        self.entered: list[Entered] = []
        root.mkdir()
        workspace(root)
        self._toolbox: Toolbox = probes(root, self.entered)
        self.rights = {name: self._some_tools() for name in AGENTS}
        policy = rules_policy(self.wild.rules(), str(root))
        guarded = [Guarded(tool, policy) for tool in self._toolbox]
        self._kit = Kit(abilities=Abilities([*guarded, Converse(self._works)]))
        self._log = MemoryLog()

    async def run(self, calls: int) -> tuple[list[str], Counter[str]]:
        """Let them make so many calls; what the checker says."""
        runtime = Runtime(self._log, kits={"wild": lambda _: self._kit})
        try:
            tools = tuple(tool.name for tool in self._toolbox)
            specs = [(name, AgentSpec(name=name, tools=tools, rules=self._limits_of(name))) for name in AGENTS]
            team = await runtime.create("wild", specs, kit="wild")
            host = await runtime.start(team)
            await runtime.ask(team, AddTask(name="t", intention="t", manager=AGENTS[0], group=AGENTS, driver="manager"))
            await runtime.ask(team, *(self._queue(name, calls // len(AGENTS)) for name in AGENTS))
            async with asyncio.timeout(PATIENCE):
                await self._attend(host)
            trail = await self._trail(team)
        finally:
            await runtime.close()
        return violations(trail, self.entered, self.rights), counted(trail)

    async def _trail(self, team: str) -> Trail:
        return read([event async for page in self._log.read(team) for event in page])

    def _queue(self, agent: AgentId, calls: int) -> QueueSteps:
        """Its calls, and now and then one of somebody behind it, so that nobody waits for whom they keep waiting."""
        behind = AGENTS[AGENTS.index(agent) + 1 :]
        works = list(self._works(calls))
        for place in range(0, calls if behind else 0, 20):
            works.insert(place, Work(type="skill", executor="converse", intention=self.wild.one_of(behind)))
        return QueueSteps(agent_id=agent, works=tuple(works), task_id=T1)

    def _works(self, count: int) -> tuple[Work, ...]:
        return tuple(self._work() for _ in range(count))

    def _work(self) -> Work:
        tool = self.wild.one_of(tuple(self._toolbox))
        given = self.wild.arguments(tool.card.spec.parameters)
        return Work(type="tool", executor=tool.name, instruction_content=given)

    def _some_tools(self) -> frozenset[str] | None:
        if self.wild.chance(0.6):
            return None
        return frozenset(tool.name for tool in self._toolbox if self.wild.chance(0.7))

    def _limits_of(self, agent: AgentId) -> tuple[str, ...]:
        """The rules that leave it these tools."""
        left = self.rights[agent]
        return tuple(f"deny tool {tool.name}" for tool in self._toolbox if left is not None and tool.name not in left)

    async def _attend(self, host: Host) -> None:
        """Answer what is asked until nobody has anything left to do."""
        while host.world.steps:
            waiting = [one for one in host.world.approvals.values() if one.state == "pending"]
            if waiting:
                await host.submit(*(intent for one in waiting for intent in self._said(host.world, one)), by=DOOR)
            await asyncio.sleep(0)

    def _said(self, world: World, approval: Approval) -> Iterator[Intent]:
        """An answer; sometimes somebody puts something else into the place of what was answered."""
        yield self._answer(approval)
        if self.wild.chance(0.1):
            tool = self._toolbox.named(world.steps[approval.step_id].work.executor)
            given = self.wild.arguments(tool.card.spec.parameters)
            work = Work(type="tool", executor=tool.name, instruction_content=given)
            yield ModifyStep(step_id=approval.step_id, work=work)

    def _answer(self, approval: Approval) -> AnswerApproval:
        yes = self.wild.chance(0.6)
        scope: Scope = self.wild.one_of(SCOPES) if yes and approval.grant else "once"
        return AnswerApproval(
            approval_id=approval.approval_id, answer="approved" if yes else "denied", scope=scope, reason="so"
        )
