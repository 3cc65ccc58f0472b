"""The lead: plans, lets sub-agents work, merges what they bring, and is the one who talks with the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from greenroom.app.designs.artifactflow.base import PACK, AgentConfig, BaseAgent, line, listed


class LeadAgent(BaseAgent):
    """The coordinator. Register its sub-agents before its prompt is built."""

    @classmethod
    def usual(cls) -> AgentConfig:
        """As the design has it."""
        return AgentConfig(
            name="lead_agent",
            description="Task coordinator and information integrator",
            required_tools=["create_artifact", "update_artifact", "rewrite_artifact", "read_artifact", "call_subagent"],
            model="qwen3-next-80b-thinking",
            temperature=0.7,
            max_tool_rounds=5,
            streaming=True,
        )

    def build_system_prompt(self, context: Mapping[str, Any] | None = None) -> str:
        """Its sections. `context` may have `artifacts_inventory` and `user_feedback`, as texts or lists."""
        given = context or {}
        told: dict[str, object] = {
            "now": self.now(),
            "name": line(self.config.name),
            "rounds": self.config.max_tool_rounds,
            "agents": [_told(one) for one in self.sub_agents.values()],
            "inventory": listed(given.get("artifacts_inventory")),
            "feedback": listed(given.get("user_feedback")),
        }
        return PACK.render(self.language, "lead", told)

    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        """What the user reads: its words, and nothing around them."""
        return content.strip()

    def describe_subagents(self) -> dict[str, str]:
        """Only the names: what they can do stands in a section of the prompt already."""
        return dict.fromkeys(super().describe_subagents(), "")


def _told(config: AgentConfig) -> dict[str, object]:
    """A sub-agent as the lead sees it."""
    return {
        "name": line(config.name),
        "description": line(config.description),
        "capabilities": [line(one) for one in config.capabilities],
    }
