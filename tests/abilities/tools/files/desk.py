"""A test bench for the file tools: a real folder, and a thread that remembers its ended steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from greenroom.abilities.tools.files.tools import build_file_tools
from greenroom.adapters.files.local_files import LocalFiles
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.files import Files
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.state.step import PreparedEffect, Step, Work
from tests.abilities.skills.talks import ended_step


class FakeBench:
    """The part of a step context that these tools use."""

    def __init__(self, step: Step, history: Sequence[Step]) -> None:
        self.step = step
        self.said: list[PreparedEffect] = []
        self._history = history

    async def prepare(self, *prepared: PreparedEffect) -> None:
        self.said += prepared

    async def history(self) -> Sequence[Step]:
        return self._history


class Desk:
    """One agent's thread in one workspace."""

    def __init__(self, root: Path, files: Files | None = None) -> None:
        self.root = root
        self.files = files or LocalFiles(root)
        self.tools: dict[str, ToolExecutor] = {tool.name: tool for tool in build_file_tools(self.files)}
        self.history: list[Step] = []
        self.said: list[PreparedEffect] = []

    def put(self, name: str, content: str | bytes) -> Path:
        """Write a file from outside the agent."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    async def call(self, tool: str, **arguments: object) -> Outcome:
        return await self.call_again(tool, (), **arguments)

    async def call_again(self, tool: str, prepared: Sequence[PreparedEffect], **arguments: object) -> Outcome:
        """Call a tool as the attempt after an interrupted, prepared attempt."""
        number = len(self.history) + 1
        work = Work(type="tool", executor=tool, instruction_content=arguments)
        step = ended_step(number, work, state="running", attempt=2 if prepared else 1, prepared=tuple(prepared))
        bench = FakeBench(step, tuple(self.history))
        outcome = await self.tools[tool].run(cast("StepContext", bench))
        self.said = bench.said
        self.history.append(evolve(step, state=outcome.state, result=outcome.result, error=outcome.error))
        return outcome

    async def works(self, tool: str, **arguments: object) -> str:
        """Return the output of a call that succeeds."""
        outcome = await self.call(tool, **arguments)
        assert outcome.state == "finished", outcome.error
        return str((outcome.result or {})["output"])

    async def fails(self, tool: str, **arguments: object) -> tuple[str, str]:
        """Return the reason and the message of a call that fails."""
        outcome = await self.call(tool, **arguments)
        assert outcome.state == "failed", outcome
        assert self.said == [], "nothing is prepared by a call that is refused"
        return str((outcome.result or {})["reason"]), outcome.error

    async def patch(self, name: str, *edits: Data) -> str:
        return await self.works("patch", file=name, edits=list(edits))

    async def misfits(self, name: str, *edits: Data) -> tuple[str, str]:
        """Patch a file with a change that does not fit."""
        return await self.fails("patch", file=name, edits=list(edits))
