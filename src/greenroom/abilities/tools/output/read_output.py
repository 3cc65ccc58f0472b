"""`read_output`: more of a result that was too long to be shown. It reads what this team's steps have made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from greenroom.abilities.tools.output.given import given
from greenroom.abilities.tools.output.paging import PARAMETERS, Page, read
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import Data
from greenroom.core.base.unseen import seen
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import WHOLE, Target, ToolCard
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

FindStep: TypeAlias = Callable[[TeamId, StepId], Awaitable[Step | None]]
"""An ended step of a team, wherever in it; None when it has none of that name."""

DESCRIPTION: Final = (
    "Read more of a result that was too long to be shown whole. Its placeholder names the handle. "
    "Look for a pattern first when you know what you need. Not for files: they have tools of their own. "
    'Example: {"handle": "coder#12", "pattern": "error|failed"} or {"handle": "coder#12", "from_line": 31}.'
)


class Asked(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which result, and what of it."""

    handle: str


class ReadOutput:
    """Pure: what a step has made does not change. Without `find` it knows the steps of its own conversation."""

    type: StepType = "tool"
    name: str = "read_output"
    description: str = DESCRIPTION

    def __init__(self, find: FindStep | None = None) -> None:
        self._find = find
        handle = {"type": "string", "description": "As the placeholder names it."}
        schema: Data = {
            "type": "object",
            "properties": {"handle": handle, **PARAMETERS},
            "required": ["handle"],
            "additionalProperties": False,
        }
        spec = ToolSpec(name=self.name, description=self.description, parameters=schema, pure=True)
        self.card = ToolCard(spec=spec, group="read", effect="pure")

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing outside."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: World, __: Step) -> Terms:
        """Run again freely."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Read the page that was asked for."""
        asked = given(Asked, bench.step)
        step = await self._step(bench, asked.handle)
        text = await whole_text(step, bench.blob)
        # Searching millions of characters takes a while, and others have things to do.
        page = await asyncio.to_thread(read, text, asked, self.card.shown)
        return Outcome(result={"output": page}, origins=step.origins)

    async def _step(self, bench: Bench, handle: str) -> Step:
        step = next((one for one in await bench.history() if one.step_id == handle), None)
        if step is None and self._find is not None:
            step = await self._find(bench.world.team.team_id, StepId(handle))
        if step is None or step.result is None:
            raise ModelFault(
                f"There is no output {handle!r} in this team. A handle stands in the placeholder of a long result: "
                "copy it from there."
            )
        return step


async def whole_text(step: Step, blob: Callable[[str], Awaitable[bytes]]) -> str:
    """The text of an ended step's result, whole; `blob` reads what the log keeps beside it."""
    result = step.result or {}
    digest = result.get("blob")
    if isinstance(digest, str) and digest in step.blobs:
        result = await asyncio.to_thread(json.loads, await blob(digest))
    return seen(str(result.get(WHOLE, result.get("output", ""))))
