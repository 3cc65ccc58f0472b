"""The log in ArtifactFlow's words: a turn is an `AgentResponse`, a run that goes on `StreamEvent`s."""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from greenroom.app.designs.artifactflow.base import AgentResponse, StreamEvent, StreamEventType, take
from greenroom.app.host import Host
from greenroom.core.base.ids import AgentId, StepId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Live
from greenroom.core.state.step import Step, StepStarted
from greenroom.core.sync.bus import Commit

TURN = "converse"


def response_of(step: Step, before: Sequence[Step] = ()) -> AgentResponse:
    """A turn that has ended. `before` are the steps of its conversation, of which it takes the calls and results."""
    result = cast("dict[str, Any]", step.result or {})
    calls = [{"name": one["name"], "params": dict(one["arguments"])} for one in result.get("calls", ())]
    usage = result.get("usage")
    return AgentResponse(
        success=step.state == "finished",
        content=str(result.get("text", "")) or step.error,
        tool_calls=calls,
        tool_interactions=interactions(before),
        reasoning_content=result.get("reasoning"),
        metadata={"step": step.step_id, "state": step.state},
        routing=_routing(calls),
        token_usage={"input_tokens": usage.get("input", 0), "output_tokens": usage.get("output", 0)} if usage else None,
    )


def interactions(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """What was called and what came of it, as it was said: with it the conversation can be taken up again."""
    found: list[dict[str, Any]] = []
    for step in steps:
        result = step.result or {}
        if step.work.type == "tool":
            said = step.error or result.get("output", "")
            found.append({"role": "tool", "name": step.work.executor, "content": said})
        elif step.work.executor == TURN and result.get("calls"):
            found.append({"role": "assistant", "content": result.get("text", "")})
    return found


def _routing(calls: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if not calls:
        return None
    name, params = calls[0]["name"], calls[0]["params"]
    if name == "call_agent":
        return {"type": "subagent", "target": params.get("agent_name"), "instruction": params.get("instruction")}
    return {"type": "tool_call", "tool_name": name, "params": params}


def follow(host: Host, tell: Callable[[StreamEvent], None]) -> Callable[[], None]:
    """Tell of every turn of a team as it happens, in the order in which it happens; returns what ends it."""
    teller = _Teller(tell)
    stops = (host.watch(teller.watch), host.listen(teller.listen))

    def stop() -> None:
        for one in stops:
            one()

    return stop


class _Teller:
    """Knows the turns that go on."""

    def __init__(self, tell: Callable[[StreamEvent], None]) -> None:
        self._tell = tell
        self._said: dict[StepId, AgentResponse] = {}

    def watch(self, step: Step, event: Live) -> None:
        """A piece of a reply."""
        if step.work.executor == TURN and take(self._begun(step.step_id, step.agent_id), event):
            self._say(StreamEventType.LLM_CHUNK, step.agent_id, self._said[step.step_id])

    def listen(self, commit: Commit) -> None:
        """What has begun and what has ended."""
        for event in commit.events:
            step = commit.world.steps.get(event.step_id) if isinstance(event, StepStarted) else None
            if step is not None and step.work.executor == TURN:
                self._begun(step.step_id, step.agent_id)
        for row in commit.archived:
            if isinstance(row.record, Step) and row.record.step_id in self._said:
                self._ended(row.record)

    def _ended(self, step: Step) -> None:
        del self._said[step.step_id]
        if "deferred" in (step.result or {}):
            return
        response = response_of(step)
        self._say(StreamEventType.LLM_COMPLETE, step.agent_id, response)
        self._say(StreamEventType.AGENT_COMPLETE, step.agent_id, response)

    def _begun(self, name: StepId, agent: AgentId) -> AgentResponse:
        if name not in self._said:
            self._said[name] = AgentResponse()
            self._say(StreamEventType.AGENT_START, agent, self._said[name])
        return self._said[name]

    def _say(self, kind: StreamEventType, agent: AgentId, response: AgentResponse) -> None:
        self._tell(StreamEvent(type=kind, agent=agent, data=response))


def merge_agent_response_to_state(state: MutableMapping[str, Any], agent: str, response: AgentResponse) -> None:
    """Keep a turn in the agent's own memory: exchanges are appended, the last response is replaced."""
    memories = state.setdefault("agent_memories", {})
    memory = memories.setdefault(agent, {"tool_interactions": [], "last_response": {}, "tool_round_count": 0})
    if response.tool_interactions:
        memory["tool_interactions"] = [*memory["tool_interactions"], *response.tool_interactions]
    memory["last_response"] = {
        "success": response.success,
        "content": response.content,
        "tool_calls": response.tool_calls,
        "metadata": response.metadata,
        "reasoning": response.reasoning_content,
    }
    if response.routing is not None and response.routing.get("type") == "tool_call":
        memory["tool_round_count"] += 1


@dataclass(kw_only=True)
class ExecutionMetrics:
    """What a run took: kept by the graph, never in an agent's memory."""

    started: float = field(default_factory=time.monotonic)
    executions: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)

    def record(self, agent: str, usage: Data | None) -> None:
        """One execution."""
        self.executions[agent] = self.executions.get(agent, 0) + 1
        spent = sum(value for value in (usage or {}).values() if isinstance(value, int))
        self.tokens[agent] = self.tokens.get(agent, 0) + spent

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.started
