"""Which tools an agent may use, and what is left of that when another agent calls it. Pure: no registry, no world."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from greenroom.core.base.records import record
from greenroom.core.ports.tool import ToolCard
from greenroom.core.state.spec import Group


@record
class Rights:
    """The tools that an agent may use, by name."""

    tools: frozenset[str]

    def __contains__(self, tool: str) -> bool:
        return tool in self.tools


def effective(
    groups: Collection[Group],
    named: Collection[str],
    cards: Iterable[ToolCard],
    whitelist: Collection[str] | None = None,
) -> Rights:
    """(All tools of its groups, and those it names) as far as they exist and are on the whitelist; None: on any."""
    known = {card.spec.name: card.group for card in cards}
    wanted = {name for name, group in known.items() if group in groups or name in named}
    return Rights(tools=frozenset(wanted if whitelist is None else wanted.intersection(whitelist)))


def called_by(child: Rights, *callers: Rights) -> Rights:
    """What an agent may use on behalf of others: nothing that one of them may not use."""
    return Rights(tools=child.tools.intersection(*(caller.tools for caller in callers)))
