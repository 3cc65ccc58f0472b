"""The crawler: fetches given pages and returns their cleaned content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from greenroom.app.designs.artifactflow.base import PACK, AgentConfig, BaseAgent, to_one_line, wrap_in_tag

TAG: Final = "extracted_content"
"""The tag of its answer. The prompt asks for the same tag."""


class CrawlAgent(BaseAgent):
    """Reads pages. A page that cannot be fetched is a result too, and the run continues."""

    @classmethod
    def default_config(cls) -> AgentConfig:
        """Return the design's default configuration."""
        return AgentConfig(
            name="crawl_agent",
            description="Web content extraction and cleaning specialist",
            capabilities=[
                "Deep content extraction",
                "Web scraping",
                "IMPORTANT: Instructions must include a specific URL to crawl",
            ],
            required_tools=["web_fetch"],
            model="qwen3-next-80b-instruct",
            temperature=0.3,
            max_tool_rounds=2,
            streaming=True,
        )

    def build_system_prompt(self, context: Mapping[str, Any] | None = None) -> str:
        """Build the prompt: how to work and how to answer. The instruction contains the whole task."""
        variables: dict[str, object] = {
            "name": to_one_line(self.config.name),
            "rounds": self.config.max_tool_rounds,
            "tag": TAG,
        }
        return PACK.render(self.language, "crawl", variables)

    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        return wrap_in_tag(TAG, content, tool_history)
