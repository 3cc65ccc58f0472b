"""A person and a project with custom tools, and calls through the whole tool pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from greenroom.app.settings.schema import Settings
from greenroom.app.toolset.custom import load_custom_tools
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.toolbox import ToolSource
from greenroom.app.toolset.toolset import Toolset
from greenroom.app.trust import TrustItem
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.step import Step
from tests.abilities.tools.calling import T1, caller
from tests.app.agents.folders import written


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
        return written(self.config / file, text)

    def project(self, file: str, text: str) -> Path:
        """Write a file of the project."""
        return written(self.root / ".greenroom" / file, text)

    def package(self, name: str, text: str, entry: str) -> None:
        """Install a package."""
        written(self.packages / f"{name}.py", text)
        written(self.packages / f"{name}-1.dist-info" / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1")
        written(self.packages / f"{name}-1.dist-info" / "entry_points.txt", f"[greenroom.tools]\n{entry}\n")

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
        try:
            async with caller(hands.executors) as team, asyncio.timeout(20):
                await team.begin(name, **given)
                await team.runtime.wait(team.team, T1)
                for asked in (await team.runtime.state(team.team)).approvals.values() if answer else ():
                    said: Literal["approved", "denied"] = "approved" if answer == "yes" else "denied"
                    await team.runtime.ask(team.team, AnswerApproval(approval_id=asked.approval_id, answer=said))
                    await team.runtime.wait(team.team, T1)
                waiting = tuple((await team.runtime.state(team.team)).steps.values())
                (step,) = waiting or await team.steps()
                return step
        finally:
            await hands.close()
