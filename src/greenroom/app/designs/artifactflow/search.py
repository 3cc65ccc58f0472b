"""The searcher: finds information on the web with several queries and returns it in a fixed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from greenroom.app.designs.artifactflow.base import PACK, AgentConfig, BaseAgent, to_one_line, wrap_in_tag

TAG: Final = "search_results"
"""The tag of its answer. The prompt asks for the same tag."""


class SearchAgent(BaseAgent):
    """Searches the web. The time is the last part of its prompt, so that the rest can be cached."""

    @classmethod
    def default_config(cls) -> AgentConfig:
        """Return the design's default configuration."""
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
        """Build the prompt: how to work and how to answer. The instruction contains the whole task."""
        variables: dict[str, object] = {
            "now": self.now(),
            "name": to_one_line(self.config.name),
            "rounds": self.config.max_tool_rounds,
            "tag": TAG,
        }
        return PACK.render(self.language, "search", variables)

    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        return wrap_in_tag(TAG, content, tool_history)
