"""The searcher: finds information on the web with several queries and returns it in a fixed form."""

from __future__ import annotations

from greenroom.app.designs.artifactflow.base import AgentConfig, TaggedAgent


class SearchAgent(TaggedAgent):
    """Searches the web. The time is the last part of its prompt, so that the rest can be cached."""

    prompt = "search"
    tag = "search_results"

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
