"""The crawler: fetches the pages that it is given and brings back what stands on them, cleaned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from greenroom.app.designs.artifactflow.base import PACK, AgentConfig, BaseAgent, line, wrapped

TAG: Final = "extracted_content"
"""What its answer stands in; the prompt asks for the same."""


class CrawlAgent(BaseAgent):
    """The one who reads pages. A page that cannot be had is a result too: the run goes on."""

    @classmethod
    def usual(cls) -> AgentConfig:
        """As the design has it."""
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
        """How it works and in which form it answers. All it needs to know of a task is in its instruction."""
        told: dict[str, object] = {
            "name": line(self.config.name),
            "rounds": self.config.max_tool_rounds,
            "tag": TAG,
        }
        return PACK.render(self.language, "crawl", told)

    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        return wrapped(TAG, content, tool_history)
