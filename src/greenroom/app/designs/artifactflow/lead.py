"""The lead: plans, calls sub-agents, merges their results and talks with the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from greenroom.app.designs.artifactflow.base import PACK, AgentConfig, BaseAgent, render_list, to_one_line


class LeadAgent(BaseAgent):
    """The coordinator. Register its sub-agents before its prompt is built."""

    @classmethod
    def default_config(cls) -> AgentConfig:
        """Return the design's default configuration."""
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
        """Build the prompt. `context` can have `artifacts_inventory` and `user_feedback`, as texts or lists."""
        values = context or {}
        variables: dict[str, object] = {
            "now": self.now(),
            "name": to_one_line(self.config.name),
            "rounds": self.config.max_tool_rounds,
            "agents": [_describe_subagent(config) for config in self.sub_agents.values()],
            "inventory": render_list(values.get("artifacts_inventory")),
            "feedback": render_list(values.get("user_feedback")),
        }
        return PACK.render(self.language, "lead", variables)

    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        """Return the text for the user, without a tag."""
        return content.strip()

    def describe_subagents(self) -> dict[str, str]:
        """Return only the names. Another section of the prompt describes the sub-agents."""
        return dict.fromkeys(super().describe_subagents(), "")


def _describe_subagent(config: AgentConfig) -> dict[str, object]:
    return {
        "name": to_one_line(config.name),
        "description": to_one_line(config.description),
        "capabilities": [to_one_line(capability) for capability in config.capabilities],
    }
