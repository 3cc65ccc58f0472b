"""ArtifactFlow's agents for tests: a clock that stands still, and the sections of a prompt."""

from __future__ import annotations

import re
from typing import Final

from greenroom.app.designs.artifactflow import CrawlAgent, LeadAgent, SearchAgent
from greenroom.core.base.clock import Millis
from greenroom.core.ports.model import ToolSpec
from tests.abilities.skills.talks import Played, says

NOON: Final = Millis(1_780_315_259_000)
"""2026-06-01 12:00:59, which a prompt calls 12:00."""

SECTION: Final = re.compile(r"^<(\w+)>\n(.*?)\n^</\1>$", re.MULTILINE | re.DOTALL)
"""A tag that begins a line, up to where it ends: what stands inside is no section of its own."""

ORDER: Final = [
    "system_time",
    "agent_role",
    "execution_flow",
    "task_planning_strategy",
    "artifact_management",
    "available_subagents",
    "current_context",
]
"""The sections of a lead's prompt."""

EVERYTHING: Final = tuple(
    ToolSpec(name=name, description=f"Does {name}.")
    for name in (
        "create_artifact",
        "update_artifact",
        "rewrite_artifact",
        "read_artifact",
        "call_subagent",
        "web_search",
        "web_fetch",
        "shell",
    )
)


class Still:
    """A clock that stands."""

    def __init__(self, now: int = NOON) -> None:
        self._now = now

    def now(self) -> Millis:
        """Always the same."""
        return Millis(self._now)


def sections(prompt: str) -> dict[str, str]:
    """The sections by tag, in their order."""
    return {found[1]: found[2] for found in SECTION.finditer(prompt)}


def nobody() -> Played:
    """Models that are never asked."""
    return Played(lambda _: says("?"))


def lead(language: str = "", *, alone: bool = False) -> LeadAgent:
    """A lead, with both others unless it is alone."""
    agent = LeadAgent(models=nobody(), language=language, clock=Still())
    for other in () if alone else (SearchAgent(models=nobody()), CrawlAgent(models=nobody())):
        agent.register_subagent(other.config)
    return agent
