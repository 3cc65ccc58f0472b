"""The crawler: fetches given pages and returns their cleaned content."""

from __future__ import annotations

from greenroom.app.designs.artifactflow.base import AgentConfig, TaggedAgent


class CrawlAgent(TaggedAgent):
    """Reads pages. A page that cannot be fetched is a result too, and the run continues."""

    prompt = "crawl"
    tag = "extracted_content"

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
