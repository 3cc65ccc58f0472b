"""The policy of a team: rules of four layers, and the default decision without a rule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from greenroom.core.base.errors import translate
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.files import GOVERNING_FILES
from greenroom.core.ports.tool import PolicyDecision, Target, ToolCard
from greenroom.policy import decision
from greenroom.policy.decision import (
    CommandContext,
    LeadsOut,
    TargetDecision,
    combine_decisions,
    is_never_outside,
    render_full_command,
)
from greenroom.policy.paths import Access
from greenroom.policy.rulebook import LAYERS, Layer, LayeredRule, Rulebook
from greenroom.policy.rules import BadRule, Rule, parse_all

BUILT_IN_RULES: Final = (
    "deny path **/.git/** write",
    "deny path **/.greenroom/** write",
)
"""Agents may not change Greenroom's own files. All other defaults are in `decision`."""

GOVERNING_RULES: Final = tuple(f"ask path **/{name} write" for name in GOVERNING_FILES)
"""Agents may change what configures agents and tools only with approval, unless they work in a worktree."""

MAX_TARGETS: Final = 200
MAX_GRANTS: Final = 3
MAX_HOSTS: Final = 8
HOST_RULE_PREFIX: Final = "allow host "


def build_rules_policy(
    rules: Mapping[Layer, Iterable[str]],
    workspace: str,
    leads_out: LeadsOut = is_never_outside,
    *,
    is_sandboxed: Callable[[], bool] = bool,
    in_worktree: bool = False,
) -> RulesPolicy:
    """Build a policy from rules by layer, one per line. Raise `BadRule` for an invalid one.

    `workspace` is the absolute path of its root. `is_sandboxed` returns whether a sandbox confines commands. What is
    written `in_worktree` reaches the person's files by `apply` only, which asks about files that govern agents.
    """
    rules_by_layer: dict[Layer, tuple[Rule, ...]] = {layer: parse_all(rules.get(layer, ())) for layer in LAYERS}
    rules_by_layer["built-in"] = (
        *parse_all((*BUILT_IN_RULES, *(() if in_worktree else GOVERNING_RULES))),
        *rules_by_layer["built-in"],
    )
    placed = [
        LayeredRule(layer=layer, rule=rule) for layer, layer_rules in rules_by_layer.items() for rule in layer_rules
    ]
    return RulesPolicy(placed, CommandContext(workspace, leads_out, is_sandboxed))


class RulesPolicy:
    """Decides by rules. It holds no other state: the same call always gets the same decision."""

    def __init__(self, rules: Iterable[LayeredRule], context: CommandContext) -> None:
        self._rules = tuple(rules)
        self._book = Rulebook(self._rules)
        self._context = context

    def decide(
        self,
        _: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> PolicyDecision:
        """Return the strictest decision over everything that the call touches."""
        bound = [LayeredRule(layer="project", rule=rule) for rule in parse_all(limits)]
        rules = (*self._rules, *_parse_grants(grants), *bound)
        book = self._book if len(rules) == len(self._rules) else Rulebook(rules)
        decisions = list(self._decide_targets(book, card, targets))
        worst = combine_decisions(decisions)
        proposal = self._propose_rules(decisions, card, targets, rules) if worst.level == "ask" else ""
        lines = [target.value for target in targets if target.kind == "command"] if worst.level == "ask" else []
        why = worst.why + "".join(render_full_command(target, worst.why) for target in lines[:MAX_TARGETS])
        return PolicyDecision(verdict=worst.level, rule=worst.rule, why=why, grant=proposal)

    def _decide_targets(self, book: Rulebook, card: ToolCard, targets: tuple[Target, ...]) -> Iterator[TargetDecision]:
        if len(targets) > MAX_TARGETS:
            why = translate("decision.too_much", count=len(targets))
            yield TargetDecision(level="ask", why=why, rule="built-in: too much", grants=None)
        networked = any(target.kind == "host" for target in targets)
        for target in targets[:MAX_TARGETS]:
            match target.kind:
                case "path":
                    access: Access = "write" if target.writes else "read"
                    yield decision.decide_path(book, target.value, access, self._context.workspace)
                case "command":
                    yield decision.decide_line(book, target.value, self._context, networked=networked)
                case "host":
                    yield decision.decide_host(book, target.value)
                case "tool":
                    pass  # the card names it
        yield decision.decide_tool(book, card, alone=all(target.kind == "tool" for target in targets))

    def _propose_rules(
        self,
        decisions: list[TargetDecision],
        card: ToolCard,
        targets: tuple[Target, ...],
        rules: tuple[LayeredRule, ...],
    ) -> str:
        """Return the narrowest rules that would allow the call, one per line; empty if there are none or too many.

        Each proposal is tested first, so that people only grant rules that help.
        """
        asking = [target_decision.grants for target_decision in decisions if target_decision.level == "ask"]
        wanted = list(dict.fromkeys(rule for grant_rules in asking for rule in grant_rules or ()))
        lines = [decision.propose_line_rule(target.value) for target in targets if target.kind == "command"]
        hosts = [rule for rule in wanted if rule.startswith(HOST_RULE_PREFIX)]
        is_short = len(wanted) - len(hosts) <= MAX_GRANTS and len(hosts) <= MAX_HOSTS
        narrow = wanted if is_short and None not in asking else []
        exact = [*lines, *hosts] if len(lines) == 1 and all(lines) and len(hosts) <= MAX_HOSTS else []
        for proposed in (narrow, exact):
            # A model chose these words, and text of several lines could become another rule when it is stored. It is
            # parsed like a line of the rules file: text that cannot be parsed allows nothing.
            book = Rulebook((*rules, *_parse_grants(proposed)))
            if proposed and combine_decisions(list(self._decide_targets(book, card, targets))).level in {
                "allow",
                "notify",
            }:
                return "\n".join(proposed)
        return ""


def _parse_grants(grants: Iterable[str]) -> Iterator[LayeredRule]:
    """Parse the rules that a person granted. A grant that cannot be parsed allows nothing."""
    for grant in grants:
        try:
            yield from (LayeredRule(layer="granted", rule=rule) for rule in parse_all([grant]))
        except BadRule:
            continue
