"""ArtifactFlow's agents: a lead that plans and merges, and sub-agents that search and crawl for it.

    lead = LeadAgent(models=models)
    search = SearchAgent(models=models)
    lead.register_subagent(search.config)
    lead.spec(), search.spec()      two members of one team of Greenroom, where the lead calls the other

Their models have the design's names, which say no provider: `[groups.qwen3-next-80b-thinking]` in the settings does, or
a configuration of one's own.

Or one by one in a graph of one's own: `agent.stream(messages)` is one model call, whose routing says what follows.
"""

from greenroom.app.designs.artifactflow.base import (
    AgentConfig,
    AgentResponse,
    BaseAgent,
    ExecutionMetrics,
    StreamEvent,
    StreamEventType,
    merge_agent_response_to_state,
)
from greenroom.app.designs.artifactflow.crawl import CrawlAgent
from greenroom.app.designs.artifactflow.lead import LeadAgent
from greenroom.app.designs.artifactflow.search import SearchAgent

__all__ = [
    "AgentConfig",
    "AgentResponse",
    "BaseAgent",
    "CrawlAgent",
    "ExecutionMetrics",
    "LeadAgent",
    "SearchAgent",
    "StreamEvent",
    "StreamEventType",
    "merge_agent_response_to_state",
]
