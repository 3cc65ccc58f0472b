"""A process with a conversation: an agent with tools, parallel calls and a colleague gets several questions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.adapters.models.openai.model import Endpoint, OpenAICompatible
from greenroom.adapters.models.pricing import FREE_PRICE
from greenroom.adapters.models.retry import RateLimiter, RetryingModel, RetryPolicy
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.function_tool import Tool, tool
from greenroom.app.model_registry import SingleModel
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
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
    """Script Ann, who makes four parallel calls and answers, and Bob, who looks and answers."""
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
    """Return a tool without effects, and a tool that writes a line."""

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
    plain = OpenAICompatible(endpoint, "fake", price=FREE_PRICE.compute_max_cost, cost=FREE_PRICE.compute_cost)
    models = SingleModel(model=RetryingModel(plain, RateLimiter(parallel=8), RetryPolicy(retries=0)))
    hands = tools(home)
    kit = Capabilities([*build_conversation_skills(models, [one.spec for one in hands]), *hands])
    log = await SqliteLog.open(home)
    runtime = Runtime(log, capability_factories={"chat": lambda _: kit})
    team = await _last_chat(runtime) or await _begun(runtime)
    await runtime.start(team)
    while True:
        word = (await asyncio.wait_for(runtime.wait(team, T1), 30)).state
        assert word == "idle", word
        asked = await questions(runtime, team)
        if asked == QUESTIONS:
            break
        work = Work(type="skill", executor="converse", text_content=f"Question {asked + 1}?")
        await runtime.ask(team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
    await runtime.close()
    await endpoint.close()


async def _last_chat(runtime: Runtime) -> TeamId | None:
    """Return the conversation of earlier processes. A conversation that was killed while founded does not count."""
    for one in await runtime.log.streams():
        if (await runtime.state(TeamId(one.stream))).team.tasks_made:
            return TeamId(one.stream)
        await runtime.log.forget(one.stream)
    return None


async def _begun(runtime: Runtime) -> TeamId:
    task = AddTask(name="chat", intention="chat", manager=ANN, group=(ANN, BOB), driver="manager")
    return await runtime.create("chat", AGENTS, capabilities_name="chat", first_intents=(task,))


async def questions(runtime: Runtime, team: TeamId) -> int:
    """Return how many questions are finished."""
    steps = [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
    return sum(one.agent_id == ANN and one.cause is None for one in steps)


def chat_life(home: str, url: str) -> None:
    """Converse until all questions are answered, or the process is killed."""
    asyncio.run(_chat(Path(home), url))
    os._exit(0)
