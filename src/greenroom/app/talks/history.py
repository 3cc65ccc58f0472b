"""What was said in a chat, read from its log: exchanges, and the lines that a person typed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from greenroom.abilities.skills.talk.meaning import unfenced
from greenroom.abilities.skills.talk.own import ANSWER, given
from greenroom.abilities.skills.talk.transcript import calls_of
from greenroom.actors.agents.payload import made_whole
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import encode, evolve, record
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step
from greenroom.core.state.thread import Thread

SPOKEN: Final = ("converse", "summarize")
"""The skills whose words are the agent's."""


@record
class Exchange:
    """What was said, and what was answered. Without an answer, `error` says why there is none."""

    asked: str
    answer: str = ""
    error: str = ""


async def exchanges(runtime: Runtime, team: TeamId, thread: Thread) -> list[Exchange]:
    """The turns of a thread that are in its window."""
    found: list[Exchange] = []
    spec = (await runtime.world(team)).agents[thread.agent_id].spec
    async for step in runtime.archive(team, "step"):
        if not isinstance(step, Step) or step.thread_id != thread.thread_id or step.ended_in < thread.window_from:
            continue
        if step.work.executor not in SPOKEN or "deferred" in (step.result or {}):
            continue
        asked, text = typed_in(step), said_in(await made_whole(step, runtime.log), spec)
        if asked or not found:
            found.append(Exchange(asked=asked))
        told = evolve(found[-1], answer="\n\n".join(one for one in (found[-1].answer, text) if one), error=step.error)
        found[-1] = told
    return found


def said_in(step: Step, spec: AgentSpec) -> str:
    """What the agent said in it: its words, or (as JSON) the answer that has the shape it is to have."""
    result = step.result or {}
    text = str(result.get("text", ""))
    if spec.answer is None or result.get("over") != ANSWER:
        return text
    call = next((one for one in calls_of(result) if one.name == ANSWER), None)
    return unfenced(text) if call is None else encode(given(spec.answer, call.arguments)).decode()


def typed_in(step: Step) -> str:
    """What a person typed to begin this step; empty when it goes on with another one."""
    if step.cause is not None or step.message_id is not None:
        return ""
    return step.work.intention or step.work.text_content


async def typed_before(runtime: Runtime, teams: list[TeamId], *, most: int) -> AsyncIterator[str]:
    """What was typed in these chats (newest first), the last thing first."""
    left = most
    for team in teams:
        lines = [
            text async for step in runtime.archive(team, "step") if isinstance(step, Step) and (text := typed_in(step))
        ]
        for line in list(reversed(lines))[:left]:
            yield line
        left -= len(lines)
        if left <= 0:
            return
