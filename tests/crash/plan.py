"""A process that works on a plan of two parts, and waits in the second one to be killed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from greenroom import Agent, Greenroom, ModelRequest
from greenroom.app.agents.specs import parse_spec
from greenroom.testing.scripted import Cue, ScriptedModel

PLAN = "<PLAN>\n- Count the sheep.\n- Count the goats.\n</PLAN>"


def planner() -> Agent[str]:
    keys = {"name": "ann", "prompt": "You count.", "plan": True, "plan_max_depth": 1}
    return Agent("ann", spec=parse_spec(keys))


def script(second: Callable[[ModelRequest], str]) -> ScriptedModel:
    """Plan two parts; answer the first with a number, and the second one like this."""

    def plan(request: ModelRequest) -> str:
        return "Ten animals." if "was split" in request.messages[-1].content else PLAN

    def part(request: ModelRequest) -> str:
        return "Seven." if "part 1 of" in request.messages[-1].content else second(request)

    cues = [Cue(skill="plan_task", reply=plan), Cue(skill="converse", answering=True, reply=part)]
    return ScriptedModel([*cues, Cue(skill="converse", reply="There are ten.")])


def live(home: str) -> None:
    """Run until the second part is asked for, and wait to be killed."""

    def wait(_: ModelRequest) -> str:
        (Path(home) / "up").touch()
        threading.Event().wait()
        return ""

    async def run() -> None:
        async with Greenroom(Path(home), models=script(wait)) as greenroom:
            await greenroom.run(planner(), "Count the animals.")

    asyncio.run(run())
