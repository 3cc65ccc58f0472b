"""The searcher: finds information on the web, in a loop of queries, and brings it back in a form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from greenroom.app.designs.artifactflow.base import PACK, AgentConfig, BaseAgent, line, wrapped

TAG: Final = "search_results"
"""What its answer stands in; the prompt asks for the same."""


class SearchAgent(BaseAgent):
    """The one who searches. It is told the time last, so that all before it stays the same."""

    @classmethod
    def usual(cls) -> AgentConfig:
        """As the design has it."""
        return AgentConfig(
            name="search_agent",
            description="Web search and information retrieval specialist",
            capabilities=["Web search", "Information retrieval"],
            required_tools=["web_search"],
            model="qwen3-next-80b-instruct",
            temperature=0.5,
            max_tool_rounds=3,
            streaming=True,
        )

    def build_system_prompt(self, context: Mapping[str, Any] | None = None) -> str:
        """How it works and in which form it answers. All it needs to know of a task is in its instruction."""
        told: dict[str, object] = {
            "now": self.now(),
            "name": line(self.config.name),
            "rounds": self.config.max_tool_rounds,
            "tag": TAG,
        }
        return PACK.render(self.language, "search", told)

    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        return wrapped(TAG, content, tool_history)
