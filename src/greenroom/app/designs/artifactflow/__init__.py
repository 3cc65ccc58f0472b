"""ArtifactFlow's agents: a lead that plans and merges, and sub-agents that search and crawl for it.

    lead = LeadAgent(models=models)
    search = SearchAgent(models=models)
    lead.register_subagent(search.config)
    lead.spec(), search.spec()      two members of one Greenroom team, where the lead calls the other

The design's model names have no provider. Define one in the settings with `[groups.qwen3-next-80b-thinking]`, or pass
your own configuration.

With your own graph, `agent.stream(messages)` makes one model call, and its routing names the next step.
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
