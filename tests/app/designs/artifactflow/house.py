"""ArtifactFlow's agents for tests: a fixed clock, and the sections of a prompt."""

from __future__ import annotations

import re
from typing import Final

from greenroom.app.designs.artifactflow import CrawlAgent, LeadAgent, SearchAgent
from greenroom.core.base.clock import Millis
from greenroom.core.ports.model import ToolSpec
from tests.abilities.skills.talks import Played, says

NOON: Final = Millis(1_780_315_259_000)
"""2026-06-01 12:00:59. A prompt shows 12:00."""

SECTION: Final = re.compile(r"^<(\w+)>\n(.*?)\n^</\1>$", re.MULTILINE | re.DOTALL)
"""A tag at the start of a line, up to its end tag. Nested tags are not sections."""

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
    """A fixed clock."""

    def __init__(self, now: int = NOON) -> None:
        self._now = now

    def now(self) -> Millis:
        """Return the fixed time."""
        return Millis(self._now)


def sections(prompt: str) -> dict[str, str]:
    """Return the sections by tag, in order."""
    return {found[1]: found[2] for found in SECTION.finditer(prompt)}


def nobody() -> Played:
    """Return models that must not be called."""
    return Played(lambda _: says("?"))


def lead(language: str = "", *, alone: bool = False) -> LeadAgent:
    """Return a lead, with both other agents unless it is alone."""
    agent = LeadAgent(models=nobody(), language=language, clock=Still())
    for other in () if alone else (SearchAgent(models=nobody()), CrawlAgent(models=nobody())):
        agent.register_subagent(other.config)
    return agent
