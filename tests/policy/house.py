"""Shared parts of the policy tests: a policy, the cards of some tools, and short constructors of questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Policy, PolicyDecision, Target, ToolCard
from greenroom.core.state.spec import ToolGroup
from greenroom.policy.policy import RulesPolicy, build_rules_policy
from greenroom.policy.rulebook import Layer

ROOT = "/home/me/project"
ME = AgentId("coder")
ORDER = ("allow", "notify", "ask", "deny")


def card(name: str = "execute_script", group: ToolGroup = "command", source: str = "built-in") -> ToolCard:
    return ToolCard(spec=ToolSpec(name=name, description=""), group=group, source=source)


def policy(rules: Mapping[Layer, Iterable[str]] | None = None) -> RulesPolicy:
    return build_rules_policy(rules or {}, ROOT)


def user(*rules: str) -> RulesPolicy:
    return policy({"user": rules})


def run(house: Policy, command: str, grants: Collection[str] = ()) -> PolicyDecision:
    return house.decide(ME, card(), (Target(kind="command", value=command),), grants)


def touch(house: Policy, path: str, *, writes: bool = False, grants: Collection[str] = ()) -> PolicyDecision:
    return house.decide(ME, card("read_code", "read"), (Target(kind="path", value=path, writes=writes),), grants)


def reach(house: Policy, host: str, grants: Collection[str] = ()) -> PolicyDecision:
    return house.decide(ME, card("fetch", "web"), (Target(kind="host", value=host),), grants)


def looser(one: PolicyDecision, other: PolicyDecision) -> bool:
    return ORDER.index(one.verdict) < ORDER.index(other.verdict)
