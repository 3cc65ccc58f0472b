"""What all tests of permission need: a policy, the cards of some tools, and short words for a question."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Policy, Ruling, Target, ToolCard
from greenroom.core.state.spec import Group
from greenroom.policy import Layer, RulesPolicy, rules_policy

ROOT = "/home/me/project"
ME = AgentId("coder")
ORDER = ("allow", "notify", "ask", "deny")


def card(name: str = "execute_script", group: Group = "command", source: str = "built-in") -> ToolCard:
    return ToolCard(spec=ToolSpec(name=name, description=""), group=group, source=source)


def policy(rules: Mapping[Layer, Iterable[str]] | None = None) -> RulesPolicy:
    return rules_policy(rules or {}, ROOT)


def user(*rules: str) -> RulesPolicy:
    return policy({"user": rules})


def run(house: Policy, command: str, grants: Collection[str] = ()) -> Ruling:
    return house.decide(ME, card(), (Target(kind="command", value=command),), grants)


def touch(house: Policy, path: str, *, writes: bool = False, grants: Collection[str] = ()) -> Ruling:
    return house.decide(ME, card("read_code", "read"), (Target(kind="path", value=path, writes=writes),), grants)


def reach(house: Policy, host: str, grants: Collection[str] = ()) -> Ruling:
    return house.decide(ME, card("fetch", "web"), (Target(kind="host", value=host),), grants)


def looser(one: Ruling, other: Ruling) -> bool:
    return ORDER.index(one.verdict) < ORDER.index(other.verdict)
