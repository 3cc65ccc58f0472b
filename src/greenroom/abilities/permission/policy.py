"""The policy of a team: rules of four layers, and what the house answers where there is none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from greenroom.abilities.permission import commands, judging
from greenroom.abilities.permission.judging import Judged, together
from greenroom.abilities.permission.paths import Access
from greenroom.abilities.permission.rights import Rights
from greenroom.abilities.permission.rulebook import LAYERS, Layer, Placed, Rulebook
from greenroom.abilities.permission.rules import BadRule, Rule, parse_all
from greenroom.abilities.permission.saying import in_full, shown
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.policy import Ruling
from greenroom.core.ports.tool import Target, ToolCard

BUILT_IN: Final = (
    "deny path **/.git/** write",
    "deny path **/.greenroom/** write",
)
"""What governs us is not ours to change. Everything else of the house's own is in `judging` and `readonly`."""

MOST_TARGETS: Final = 200
MOST_GRANTS: Final = 3
_KEPT: Final = 64


def rules_policy(
    rules: Mapping[Layer, Iterable[str]],
    workspace: str,
    rights: Callable[[AgentId], Rights | None] | None = None,
) -> RulesPolicy:
    """A policy from rules by layer, each one line; `BadRule` for one that cannot be read.

    `workspace` is the absolute path of its root. `rights` gives the tools of an agent; None: any.
    """
    said: dict[Layer, tuple[Rule, ...]] = {layer: parse_all(rules.get(layer, ())) for layer in LAYERS}
    said["built-in"] = (*parse_all(BUILT_IN), *said["built-in"])
    placed = [Placed(layer=layer, rule=rule) for layer, some in said.items() for rule in some]
    return RulesPolicy(placed, workspace, rights)


class RulesPolicy:
    """Decides by rules. It keeps nothing but the rules, sorted once; the same question has the same answer."""

    def __init__(
        self, rules: Iterable[Placed], workspace: str, rights: Callable[[AgentId], Rights | None] | None = None
    ) -> None:
        self._rules = Rulebook(rules)
        self._workspace = workspace
        self._rights = rights
        self._books: dict[frozenset[str], Rulebook] = {}

    def decide(
        self, agent: AgentId, card: ToolCard, targets: tuple[Target, ...], grants: Collection[str] = ()
    ) -> Ruling:
        """Whether the agent may make this call: the together answer about all that it touches."""
        rights = self._rights(agent) if self._rights is not None else None
        if rights is not None and card.spec.name not in rights:
            why = f"{agent} has no tool {shown(card.spec.name)}. It is not in its groups, or not on its list."
            return Ruling(verdict="deny", rule="built-in: tools of an agent", why=why)
        judged = list(self._judged(self._book(grants), card, targets))
        worst = together(judged)
        proposal = self._proposal(judged, card, targets, grants) if worst.level == "ask" else ""
        lines = [one.value for one in targets if one.kind == "command"] if worst.level == "ask" else []
        why = worst.why + "".join(in_full(one, worst.why) for one in lines[:MOST_TARGETS])
        return Ruling(verdict=worst.level, rule=worst.rule, why=why, grant=proposal)

    def _judged(self, book: Rulebook, card: ToolCard, targets: tuple[Target, ...]) -> Iterator[Judged]:
        if len(targets) > MOST_TARGETS:
            why = f"It would touch {len(targets):,} things at once, more than anybody would read."
            yield Judged(level="ask", why=why, rule="built-in: too much", grants=None)
        for target in targets[:MOST_TARGETS]:
            match target.kind:
                case "path":
                    access: Access = "write" if target.writes else "read"
                    yield judging.path(book, target.value, access, self._workspace)
                case "command":
                    yield commands.line(book, target.value, self._workspace)
                case "host":
                    yield judging.host(book, target.value)
                case "tool":
                    pass  # the card names it
        yield judging.tool(book, card, alone=all(target.kind == "tool" for target in targets))

    def _book(self, grants: Collection[str]) -> Rulebook:
        """The rules with those that a person has agreed to. One that cannot be read is none: nobody is let in by it."""
        key = frozenset(grants)
        if key not in self._books:
            if len(self._books) >= _KEPT:
                self._books.clear()
            agreed = [Placed(layer="granted", rule=rule) for rule in _readable(key)]
            self._books[key] = Rulebook(agreed, under=self._rules)
        return self._books[key]

    def _proposal(
        self, judged: list[Judged], card: ToolCard, targets: tuple[Target, ...], grants: Collection[str]
    ) -> str:
        """The narrowest rules that would have allowed it, one a line; nothing if there are none, or too many.

        They are tried before they are proposed: nobody is asked for something that would not help.
        """
        asking = [one.grants for one in judged if one.level == "ask"]
        wanted = list(dict.fromkeys(rule for some in asking for rule in some or ()))
        lines = [commands.line_grant(target.value) for target in targets if target.kind == "command"]
        narrow = [] if None in asking or len(wanted) > MOST_GRANTS else wanted
        for rules in (narrow, lines if len(lines) == 1 and all(lines) else []):
            # A model chose these words: what is not one plain line could become another rule when it is kept.
            if rules and all(map(str.isprintable, rules)) and self._would_do(rules, card, targets, grants):
                return "\n".join(rules)
        return ""

    def _would_do(self, rules: list[str], card: ToolCard, targets: tuple[Target, ...], grants: Collection[str]) -> bool:
        agreed = [Placed(layer="granted", rule=rule) for rule in _readable([*grants, *rules])]
        book = Rulebook(agreed, under=self._rules)
        return together(list(self._judged(book, card, targets))).level in {"allow", "notify"}


def _readable(grants: Iterable[str]) -> Iterator[Rule]:
    for grant in grants:
        try:
            yield from parse_all([grant])
        except BadRule:
            continue
