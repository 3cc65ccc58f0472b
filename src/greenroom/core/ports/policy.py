"""Policy: whether a call may be made, decided in code and per call. What a model says about one counts for nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, Protocol

from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import record
from greenroom.core.ports.tool import Target, ToolCard


@record
class Ruling:
    """What is decided. `rule` is the rule that decided it, `why` a sentence for the person or the agent that reads it.

    *notify* is done and told; *ask* needs a person. `grant` is the narrowest useful rule that would have allowed it:
    what "always" proposes.
    """

    verdict: Literal["allow", "notify", "ask", "deny"]
    rule: str = ""
    why: str = ""
    grant: str = ""


class Policy(Protocol):
    """One for a team. `grants` are the rules that a person has agreed to for this run, `limits` those that bind this
    agent: they only tighten."""

    def decide(
        self,
        agent: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> Ruling:
        """Whether the agent may make this call. Quick, without effects, and the same for the same question."""
        ...
