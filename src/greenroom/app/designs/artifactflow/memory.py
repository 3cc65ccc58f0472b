"""What a graph of one's own keeps of ArtifactFlow's agents: each agent's memory, and what a run took."""

from __future__ import annotations

import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from greenroom.app.designs.artifactflow.base import AgentResponse
from greenroom.core.base.records import Data


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
