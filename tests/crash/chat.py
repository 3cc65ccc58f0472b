"""A life that chats: an agent with tools, parallel calls and a colleague, asked one question after the other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greenroom.abilities.skills.talking import talking
from greenroom.adapters.models.openai.model import Endpoint, OpenAICompatible
from greenroom.adapters.models.pricing import FREE
from greenroom.adapters.models.retry import Gate, Patience, Retrying
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.functions import Tool, tool
from greenroom.app.kit import Kit
from greenroom.app.model_registry import One
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Abilities
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from tests.fake_openai.answers import Answer, Call

ANN, BOB, T1 = AgentId("ann"), AgentId("bob"), TaskId("t1")
QUESTIONS = 8
PACE = 0.01

AGENTS = (
    (ANN, AgentSpec(name="Ann", tools=("look", "note"), calls=("bob",), manager=True)),
    (BOB, AgentSpec(name="Bob", tools=("look",))),
)


def script(body: Mapping[str, object], _: int) -> Answer:
    """Ann does four things at once, then answers; Bob looks, then answers."""
    messages = body["messages"]
    assert isinstance(messages, list)
    last = next(place for place in range(len(messages) - 1, -1, -1) if messages[place]["role"] == "user")
    number = sum(one["role"] == "user" for one in messages)
    acted = any(one["role"] == "tool" for one in messages[last:])
    if "You are Bob" in str(messages[0]["content"]):
        return Answer(text="Bob has looked.") if acted else Answer(calls=(Call(name="look", arguments={"at": "b"}),))
    if acted:
        return Answer(text=f"Answer {number}.")
    return Answer(
        calls=(
            Call(name="look", arguments={"at": "a"}, id=f"look-{number}"),
            Call(name="note", arguments={"text": f"n{number}"}, id=f"note-{number}"),
            Call(name="call_agent", arguments={"agent_name": "bob", "instruction": "Look."}, id=f"bob-{number}"),
            Call(name="look", arguments={"at": "c"}, id=f"again-{number}"),
        )
    )


def tools(home: Path) -> list[Tool[..., Any]]:
    """One that changes nothing, and one that writes a line."""

    @tool(effect="pure")
    async def look(at: str) -> str:
        """Look at something."""
        await asyncio.sleep(PACE)
        return f"saw {at}"

    @tool
    async def note(text: str) -> str:
        """Write something down."""
        with (home / "notes.txt").open("a", encoding="utf-8") as notes:
            notes.write(f"{text}\n")
        await asyncio.sleep(PACE)
        return "noted"

    return [look, note]


async def _chat(home: Path, url: str) -> None:
    endpoint = Endpoint("fake", url)
    plain = OpenAICompatible(endpoint, "fake", price=FREE.most, cost=FREE.of)
    models = One(model=Retrying(plain, Gate(parallel=8), Patience(retries=0)))
    hands = tools(home)
    kit = Kit(abilities=Abilities([*talking(models, [one.spec for one in hands]), *hands]))
    log = await SqliteLog.open(home)
    runtime = Runtime(log, kits={"chat": lambda _: kit})
    team = await _last_chat(runtime) or await _begun(runtime)
    await runtime.start(team)
    while True:
        word = (await asyncio.wait_for(runtime.wait(team, T1), 30)).word
        assert word == "idle", word
        asked = await questions(runtime, team)
        if asked == QUESTIONS:
            break
        work = Work(type="skill", executor="converse", text_content=f"Question {asked + 1}?")
        await runtime.ask(team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
    await runtime.close()
    await endpoint.close()


async def _last_chat(runtime: Runtime) -> TeamId | None:
    """The chat of the lives before. One that was killed while it was founded has promised nobody anything."""
    for one in await runtime.log.streams():
        if (await runtime.world(TeamId(one.stream))).team.tasks_made:
            return TeamId(one.stream)
        await runtime.log.forget(one.stream)
    return None


async def _begun(runtime: Runtime) -> TeamId:
    task = AddTask(name="chat", intention="chat", manager=ANN, group=(ANN, BOB), driver="manager")
    return await runtime.create("chat", AGENTS, kit="chat", begin=(task,))


async def questions(runtime: Runtime, team: TeamId) -> int:
    """How many were asked and are over."""
    steps = [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
    return sum(one.agent_id == ANN and one.cause is None for one in steps)


def chat_life(home: str, url: str) -> None:
    """Chat until all questions are answered, or somebody kills us."""
    asyncio.run(_chat(Path(home), url))
    os._exit(0)
