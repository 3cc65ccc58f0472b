"""What reads the replies of agents that act in text: all forms of the house."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.core.base.records import Data
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.reading import Acted, Misread
from greenroom.core.state.spec import AgentSpec


class TextReader:
    """The forms by name, and what they need to know of an agent."""

    def instructions(self, spec: AgentSpec, tools: Sequence[ToolSpec], others: Sequence[str]) -> str:
        """What the agent is told of the forms in which it acts."""
        return ""

    def read(
        self, spec: AgentSpec, text: str, tools: Sequence[ToolSpec], others: Sequence[str]
    ) -> Acted | Misread | None:
        """What a reply asks for; None when it is only text."""
        return None

    def misfit(self, schema: Data, value: object) -> str:
        """Where a value does not fit a JSON Schema, in one sentence; empty when it does."""
        return ""
