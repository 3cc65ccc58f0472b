"""The policy of a team: rules of four layers, and what the house answers where there is none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from greenroom.core.base.ids import AgentId
from greenroom.core.ports.tool import Ruling, Target, ToolCard
from greenroom.policy import judgement
from greenroom.policy.judgement import Ground, Judged, LeadsOut, in_full, nowhere, together
from greenroom.policy.paths import Access
from greenroom.policy.rulebook import LAYERS, Layer, Placed, Rulebook
from greenroom.policy.rules import BadRule, Rule, parse_all

BUILT_IN: Final = (
    "deny path **/.git/** write",
    "deny path **/.greenroom/** write",
    "ask path **/AGENTS.md write",
    "ask path **/CLAUDE.md write",
)
"""What governs us is not ours to change, and what agents are told tomorrow only with a person. Everything else of the
house's own is in `judgement`."""

MOST_TARGETS: Final = 200
MOST_GRANTS: Final = 3
MOST_HOSTS: Final = 8
HOST: Final = "allow host "


def rules_policy(
    rules: Mapping[Layer, Iterable[str]],
    workspace: str,
    leads_out: LeadsOut = nowhere,
    *,
    walled: Callable[[], bool] = bool,
) -> RulesPolicy:
    """A policy from rules by layer, each one line; `BadRule` for one that cannot be read.

    `workspace` is the absolute path of its root. `walled` says whether commands run behind walls that hold.
    """
    said: dict[Layer, tuple[Rule, ...]] = {layer: parse_all(rules.get(layer, ())) for layer in LAYERS}
    said["built-in"] = (*parse_all(BUILT_IN), *said["built-in"])
    placed = [Placed(layer=layer, rule=rule) for layer, some in said.items() for rule in some]
    return RulesPolicy(placed, Ground(workspace, leads_out, walled))


class RulesPolicy:
    """Decides by rules. It keeps nothing but the rules: the same question has the same answer."""

    def __init__(self, rules: Iterable[Placed], ground: Ground) -> None:
        self._rules = tuple(rules)
        self._book = Rulebook(self._rules)
        self._ground = ground

    def decide(
        self,
        _: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> Ruling:
        """Whether the agent may make this call: the strictest answer about all that it touches."""
        bound = [Placed(layer="project", rule=rule) for rule in parse_all(limits)]
        rules = (*self._rules, *_granted(grants), *bound)
        book = self._book if len(rules) == len(self._rules) else Rulebook(rules)
        judged = list(self._judged(book, card, targets))
        worst = together(judged)
        proposal = self._proposal(judged, card, targets, rules) if worst.level == "ask" else ""
        lines = [one.value for one in targets if one.kind == "command"] if worst.level == "ask" else []
        why = worst.why + "".join(in_full(one, worst.why) for one in lines[:MOST_TARGETS])
        return Ruling(verdict=worst.level, rule=worst.rule, why=why, grant=proposal)

    def _judged(self, book: Rulebook, card: ToolCard, targets: tuple[Target, ...]) -> Iterator[Judged]:
        if len(targets) > MOST_TARGETS:
            why = f"It would touch {len(targets):,} things at once, more than anybody would read."
            yield Judged(level="ask", why=why, rule="built-in: too much", grants=None)
        networked = any(target.kind == "host" for target in targets)
        for target in targets[:MOST_TARGETS]:
            match target.kind:
                case "path":
                    access: Access = "write" if target.writes else "read"
                    yield judgement.path(book, target.value, access, self._ground.workspace)
                case "command":
                    yield judgement.line(book, target.value, self._ground, networked=networked)
                case "host":
                    yield judgement.host(book, target.value)
                case "tool":
                    pass  # the card names it
        yield judgement.tool(book, card, alone=all(target.kind == "tool" for target in targets))

    def _proposal(
        self, judged: list[Judged], card: ToolCard, targets: tuple[Target, ...], rules: tuple[Placed, ...]
    ) -> str:
        """The narrowest rules that would have allowed it, one a line; nothing if there are none, or too many.

        They are tried before they are proposed: nobody is asked for something that would not help.
        """
        asking = [one.grants for one in judged if one.level == "ask"]
        wanted = list(dict.fromkeys(rule for some in asking for rule in some or ()))
        lines = [judgement.line_grant(target.value) for target in targets if target.kind == "command"]
        hosts = [rule for rule in wanted if rule.startswith(HOST)]
        few = len(wanted) - len(hosts) <= MOST_GRANTS and len(hosts) <= MOST_HOSTS
        narrow = wanted if few and None not in asking else []
        exact = [*lines, *hosts] if len(lines) == 1 and all(lines) and len(hosts) <= MOST_HOSTS else []
        for proposed in (narrow, exact):
            # A model chose these words, and what is not one plain line could become another rule when it is kept. It is
            # read as a line of the file would be: what cannot be read like that allows nothing.
            book = Rulebook((*rules, *_granted(proposed)))
            if proposed and together(list(self._judged(book, card, targets))).level in {"allow", "notify"}:
                return "\n".join(proposed)
        return ""


def _granted(grants: Iterable[str]) -> Iterator[Placed]:
    """What a person has agreed to. A grant that cannot be read is none: nobody is let in by it."""
    for grant in grants:
        try:
            yield from (Placed(layer="granted", rule=rule) for rule in parse_all([grant]))
        except BadRule:
            continue
