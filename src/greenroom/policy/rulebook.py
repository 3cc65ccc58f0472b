"""All rules of a team, and which of them holds.

Layers, from the weakest: *built-in*, *user*, *project* (it comes with a clone, so it is a stranger's word), *granted*
(what a person answered here). For one thing that a call touches, of all rules that are about it:

1. A `deny` of any layer holds. Nothing turns it into something else.
2. An `ask` or `notify` is overruled by a looser rule only if that one is of a stronger layer and not wider, or of the
   same layer and narrower. Never by a rule of the project, whose rules only tighten, nor by one of a weaker layer.
   Narrower means that all it stands for is also meant by the other, not that it looks more specific.
3. Of those that are left, the strictest holds. If none is about it, the house's own answer does.

So the order of rules says nothing, a wide rule never opens what a narrow one closes, a project can only tighten, and a
person's narrow "always" opens an `ask` and no `deny`. Rules that tighten are read generously: anywhere in a line, in
any case, with all below; when it is only likely that a `deny` is meant, a person is asked, and only a rule for exactly
that line overrules it. Rules that loosen are read to the letter.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from greenroom.core.base.hosts import Host, loosens, within
from greenroom.core.base.records import record
from greenroom.policy import paths
from greenroom.policy.command_line import meaning, read_line
from greenroom.policy.paths import Place
from greenroom.policy.rules import KINDS, STRICT, Kind, Level, Rule

Layer: TypeAlias = Literal["built-in", "user", "project", "granted"]
LAYERS: Final[tuple[Layer, ...]] = ("built-in", "user", "project", "granted")
_RANK: Final[Mapping[Layer, int]] = {layer: rank for rank, layer in enumerate(LAYERS)}


@record
class Placed:
    """A rule and who says it."""

    layer: Layer
    rule: Rule

    @property
    def tightens(self) -> bool:
        """Whether it may make something stricter."""
        return self.rule.level != "allow"

    @property
    def loosens(self) -> bool:
        """Whether it may make something looser: a rule of the project never does."""
        return self.rule.level in {"allow", "notify"} and self.layer != "project"


@record
class Hit:
    """A rule that is about the thing. It `opens` when it may make something looser, and is meant to the letter; it is
    not `certain` when it only may be meant: then a deny asks."""

    placed: Placed
    opens: bool = False
    certain: bool = True

    @property
    def level(self) -> Level:
        """What follows from it."""
        level = self.placed.rule.level
        return "ask" if level == "deny" and not self.certain else level


def settle(hits: Sequence[Hit]) -> Hit | None:
    """The hit that holds, if any does. Of several that say the same, the first in the alphabet is named."""
    left = [hit for hit in hits if not any(overrules(loose, hit) for loose in hits if loose.opens)]
    return min(left, key=lambda hit: (-STRICT[hit.level], str(hit.placed.rule), hit.placed.layer), default=None)


def overrules(loose: Hit, strict: Hit) -> bool:
    """Whether the one, which opens, counts more than the other."""
    mine, theirs = loose.placed.rule, strict.placed.rule
    ahead = _RANK[loose.placed.layer] - _RANK[strict.placed.layer]
    if ahead < 0 or strict.level == "deny" or STRICT[loose.level] >= STRICT[strict.level]:
        return False
    if theirs.level == "deny" and mine.kind != "line":
        return False
    return narrower(mine, theirs) and (ahead > 0 or not narrower(theirs, mine))


def narrower(loose: Rule, strict: Rule) -> bool:
    """Whether all that the one stands for is also meant by the other, a rule that tightens."""
    if loose.kind != strict.kind:
        return loose.kind == "line"  # exactly this line, and all that it touches
    match strict.kind:
        case "command":
            return not strict.words or bool(loose.words and meaning(strict.words, read_line(shlex.join(loose.words))))
        case "line":
            return loose.words == strict.words
        case "path":
            return strict.access in {"", loose.access} and paths.includes(strict.words, loose.words)
        case "host":
            return host_includes(strict.host, loose.host)
        case "tool":
            return names_tool(strict.words[0], loose.words[0])


def names_tool(pattern: str, name: str) -> bool:
    """Whether a tool, or all that a pattern of tools stands for, fits a pattern."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def host_tightens(pattern: Host, asked: Host) -> bool:
    """Whether a rule that tightens may be meant for this host: with all below it, on any port unless it names one."""
    if pattern.port and asked.port and pattern.port != asked.port:
        return False
    return within(pattern.name, asked.name) or asked.name.endswith(f".{pattern.name.removeprefix('*.')}")


def host_includes(strict: Host, loose: Host) -> bool:
    """Whether the one, a rule that tightens, stands for every host that the other stands for."""
    if strict.port and strict.port != loose.port:
        return False
    base = strict.name.removeprefix("*.")
    return (
        strict.name in {"*", loose.name}
        or loose.name.removeprefix("*.").endswith(f".{base}")
        or (loose.name == f"*.{base}")
    )


class Rulebook:
    """Rules by what they are about."""

    def __init__(self, rules: Iterable[Placed]) -> None:
        self._by: dict[Kind, list[Placed]] = {kind: [] for kind in KINDS}
        for placed in rules:
            self._by[placed.rule.kind].append(placed)

    def of(self, kind: Kind) -> Sequence[Placed]:
        """All rules of a kind."""
        return self._by[kind]

    def of_path(self, place: Place, access: paths.Access) -> list[Hit]:
        """Rules about a path."""
        return self._find(
            "path",
            lambda rule: rule.access in {"", access} and paths.tightens(rule.words, place),
            lambda rule: rule.access in {"", access} and paths.loosens(rule.words, place),
        )

    def of_host(self, asked: Host) -> list[Hit]:
        """Rules about a host."""
        return self._find("host", lambda rule: host_tightens(rule.host, asked), lambda rule: loosens(rule.host, asked))

    def of_tool(self, name: str) -> list[Hit]:
        """Rules about a tool."""
        return self._find("tool", lambda rule: names_tool(rule.words[0], name))

    def of_line(self, text: str) -> list[Hit]:
        """Rules about exactly this command line."""
        return self._find("line", lambda rule: rule.words[0] == text.strip())

    def _find(
        self, kind: Kind, closes: Callable[[Rule], bool], opens: Callable[[Rule], bool] | None = None
    ) -> list[Hit]:
        rules, opens = self._by[kind], opens or closes
        hits = [Hit(placed=placed) for placed in rules if placed.tightens and closes(placed.rule)]
        return hits + [Hit(placed=placed, opens=True) for placed in rules if placed.loosens and opens(placed.rule)]
