"""A person and a project with custom tools, and calls through the whole tool pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.capabilities import TeamCapabilities
from greenroom.app.runtime import Runtime
from greenroom.app.settings.schema import Settings
from greenroom.app.toolset.custom import load_custom_tools
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.toolbox import ToolSource
from greenroom.app.toolset.toolset import Toolset
from greenroom.app.trust import TrustItem
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.rules.intents import AddTask, AnswerApproval, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work

ANN, T1 = AgentId("ann"), TaskId("t1")


@dataclass(kw_only=True)
class Place:
    """Where tools and callbacks can be. `agreed` are the names of what the person has approved."""

    config: Path
    root: Path
    packages: Path
    agreed: set[str] = field(default_factory=set)
    callbacks: tuple[str, ...] = ()

    def yours(self, file: str, text: str) -> Path:
        """Write a file of the person."""
        return _written(self.config / file, text)

    def project(self, file: str, text: str) -> Path:
        """Write a file of the project."""
        return _written(self.root / ".greenroom" / file, text)

    def package(self, name: str, text: str, entry: str) -> None:
        """Install a package."""
        _written(self.packages / f"{name}.py", text)
        _written(self.packages / f"{name}-1.dist-info" / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1")
        _written(self.packages / f"{name}-1.dist-info" / "entry_points.txt", f"[greenroom.tools]\n{entry}\n")

    def trusted(self, one: TrustItem) -> bool:
        """Return whether the person has approved it."""
        return one.name in self.agreed

    def equipment(self) -> ToolSource:
        """Return the loaded tools and callbacks."""
        return load_custom_tools(self.root, Settings(after_tool_call=self.callbacks), self.trusted)

    def tools(self) -> dict[str, str]:
        """Return the tools by name, with their origin."""
        return {tool.name: tool.card.source for tool in self.equipment().tools}

    async def call(self, name: str, given: Mapping[str, object], answer: str = "") -> Step:
        """Let an agent call a tool. Return the step at its end, or while it waits for an answer."""
        hands = Toolset(self.root, build_policy(self.root, ()), tool_source=self.equipment())
        kit = TeamCapabilities(executors=Capabilities(hands.executors), on_close=hands.close)
        runtime = Runtime(MemoryLog(), capability_factories={"test": lambda _: kit})
        try:
            team = await runtime.create("test", [(ANN, AgentSpec(name="ann", tools=(name,)))], capabilities_name="test")
            await runtime.start(team)
            await runtime.ask(team, AddTask(name="t", intention="t", manager=ANN, group=(ANN,), driver="manager"))
            work = Work(type="tool", executor=name, instruction_content=given)
            await runtime.ask(team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
            await _settled(runtime, team)
            for one in (await runtime.world(team)).approvals.values() if answer else ():
                said: Literal["approved", "denied"] = "approved" if answer == "yes" else "denied"
                await runtime.ask(team, AnswerApproval(approval_id=one.approval_id, answer=said))
                await _settled(runtime, team)
            return await _step(runtime, team)
        finally:
            await runtime.close()


async def _settled(runtime: Runtime, team: TeamId) -> None:
    async with asyncio.timeout(20):
        await runtime.wait(team, T1)


async def _step(runtime: Runtime, team: TeamId) -> Step:
    steps = list((await runtime.world(team)).steps.values())
    (step,) = steps or [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
    return step


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path
