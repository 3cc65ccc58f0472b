"""Confirming: a person who wants to be asked about every call, also about those that only look, is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from greenroom.abilities.permission.judgement import shown
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.ports.tool import Policy, Ruling, Target, ToolCard

RULE: Final = "execute_tool_confirm"

Confirmed: TypeAlias = Callable[[AgentId], bool]
"""Whether the calls of this agent are confirmed."""


def everybody(_: AgentId) -> bool:
    """All agents."""
    return True


class Confirming:
    """Another policy, of which only what it forbids stands as it is. What it would have allowed is asked.

    There is no rule to agree to for good: who wants to be asked each time is asked each time.
    """

    def __init__(self, policy: Policy, whom: Confirmed = everybody) -> None:
        self._policy = policy
        self._whom = whom

    def decide(
        self,
        agent: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> Ruling:
        """The stricter of the policy's answer and a question."""
        ruling = self._policy.decide(agent, card, targets, grants, limits)
        if ruling.verdict == "deny" or not self._whom(agent):
            return ruling
        if ruling.verdict == "ask":
            return evolve(ruling, grant="")
        touched = ", ".join(dict.fromkeys(one.value for one in targets if one.kind != "tool"))
        about = f"It is about {shown(touched)}. " if touched else ""
        return Ruling(verdict="ask", rule=RULE, why=f"{about}Every call is confirmed.")
