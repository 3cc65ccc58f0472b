"""All rules of a team, and which of them decides.

Layers, from the weakest: *built-in*, *user*, *project* (it comes with a clone, so it is untrusted), *granted* (what a
person answered here). For one target of a call, among all rules that apply to it:

1. A `deny` of any layer decides. Nothing overrules it.
2. A looser rule overrules an `ask` or `notify` only if it is of a stronger layer and not wider, or of the same layer
   and narrower. Rules of the project and of a weaker layer never do: a project's rules only tighten. Narrower means
   that the other rule covers everything it matches, not that it looks more specific.
3. Of the remaining rules, the strictest decides. Without any, the default decision applies.

So the order of rules does not matter, and a wide rule never opens what a narrow one closes. A project can only tighten.
A person's narrow "always" opens an `ask` but no `deny`. Tightening rules are read generously: anywhere in a line, in
any case, with everything below. If a `deny` only may apply, a person is asked, and only a rule for exactly that line
overrules it. Loosening rules are read literally.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from greenroom.core.base.hosts import Host, allows_host, matches_host_pattern
from greenroom.core.base.records import record
from greenroom.policy import paths
from greenroom.policy.command_line import match_rule, read_line
from greenroom.policy.paths import PolicyPath
from greenroom.policy.rules import KINDS, STRICTNESS, Level, Rule, RuleKind

Layer: TypeAlias = Literal["built-in", "user", "project", "granted"]
LAYERS: Final[tuple[Layer, ...]] = ("built-in", "user", "project", "granted")
_RANK: Final[Mapping[Layer, int]] = {layer: rank for rank, layer in enumerate(LAYERS)}


@record
class LayeredRule:
    layer: Layer
    rule: Rule

    @property
    def is_tightening(self) -> bool:
        """Whether the rule can make a decision stricter."""
        return self.rule.level != "allow"

    @property
    def is_loosening(self) -> bool:
        """Whether the rule can make a decision looser. A project's rule never can."""
        return self.rule.level in {"allow", "notify"} and self.layer != "project"


@record
class Hit:
    """A rule that applies to a target. It `opens` if it can loosen the decision and matches literally. If it is not
    `certain`, it only may apply: then a deny becomes an ask."""

    placed: LayeredRule
    opens: bool = False
    certain: bool = True

    @property
    def level(self) -> Level:
        """The resulting level."""
        level = self.placed.rule.level
        return "ask" if level == "deny" and not self.certain else level


def settle(hits: Sequence[Hit]) -> Hit | None:
    """Return the deciding hit, or None. Of equal ones, the alphabetically first rule is named."""
    left = [hit for hit in hits if not any(can_overrule(loose, hit) for loose in hits if loose.opens)]
    return min(left, key=lambda hit: (-STRICTNESS[hit.level], str(hit.placed.rule), hit.placed.layer), default=None)


def can_overrule(loose: Hit, strict: Hit) -> bool:
    """Return whether an opening hit overrules a stricter one."""
    loose_rule, strict_rule = loose.placed.rule, strict.placed.rule
    ahead = _RANK[loose.placed.layer] - _RANK[strict.placed.layer]
    if ahead < 0 or strict.level == "deny" or STRICTNESS[loose.level] >= STRICTNESS[strict.level]:
        return False
    if strict_rule.level == "deny" and loose_rule.kind != "line":
        return False
    return is_narrower(loose_rule, strict_rule) and (ahead > 0 or not is_narrower(strict_rule, loose_rule))


def is_narrower(loose: Rule, strict: Rule) -> bool:
    """Return whether a tightening rule covers everything that the looser rule matches."""
    if loose.kind != strict.kind:
        return loose.kind == "line"  # exactly this line, and everything it touches
    match strict.kind:
        case "command":
            return not strict.words or bool(
                loose.words and match_rule(strict.words, read_line(shlex.join(loose.words)))
            )
        case "line":
            return loose.words == strict.words
        case "path":
            return strict.access in {"", loose.access} and paths.covers_pattern(strict.words, loose.words)
        case "host":
            return covers_host(strict.host, loose.host)
        case "tool":
            return matches_tool(strict.words[0], loose.words[0])


def matches_tool(pattern: str, name: str) -> bool:
    """Return whether a pattern covers a tool, or all tools of another pattern."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def matches_tightening_host(pattern: Host, asked: Host) -> bool:
    """Return whether a tightening rule may apply to a host: with all subdomains, on any port unless it names one."""
    if pattern.port and asked.port and pattern.port != asked.port:
        return False
    return matches_host_pattern(pattern.name, asked.name) or asked.name.endswith(f".{pattern.name.removeprefix('*.')}")


def covers_host(strict: Host, loose: Host) -> bool:
    """Return whether a tightening rule covers every host of a looser one."""
    if strict.port and strict.port != loose.port:
        return False
    base = strict.name.removeprefix("*.")
    return (
        strict.name in {"*", loose.name}
        or loose.name.removeprefix("*.").endswith(f".{base}")
        or (loose.name == f"*.{base}")
    )


class Rulebook:
    """Rules, grouped by kind."""

    def __init__(self, rules: Iterable[LayeredRule]) -> None:
        self._by_kind: dict[RuleKind, list[LayeredRule]] = {kind: [] for kind in KINDS}
        for placed in rules:
            self._by_kind[placed.rule.kind].append(placed)

    def list_rules(self, kind: RuleKind) -> Sequence[LayeredRule]:
        return self._by_kind[kind]

    def find_path_rules(self, place: PolicyPath, access: paths.Access) -> list[Hit]:
        return self._find(
            "path",
            lambda rule: rule.access in {"", access} and paths.matches_tightening(rule.words, place),
            lambda rule: rule.access in {"", access} and paths.matches_loosening(rule.words, place),
        )

    def find_host_rules(self, asked: Host) -> list[Hit]:
        return self._find(
            "host", lambda rule: matches_tightening_host(rule.host, asked), lambda rule: allows_host(rule.host, asked)
        )

    def find_tool_rules(self, name: str) -> list[Hit]:
        return self._find("tool", lambda rule: matches_tool(rule.words[0], name))

    def find_line_rules(self, text: str) -> list[Hit]:
        """Return the rules for exactly this command line."""
        return self._find("line", lambda rule: rule.words[0] == text.strip())

    def _find(
        self, kind: RuleKind, closes: Callable[[Rule], bool], opens: Callable[[Rule], bool] | None = None
    ) -> list[Hit]:
        rules, opens = self._by_kind[kind], opens or closes
        hits = [Hit(placed=placed) for placed in rules if placed.is_tightening and closes(placed.rule)]
        return hits + [Hit(placed=placed, opens=True) for placed in rules if placed.is_loosening and opens(placed.rule)]
