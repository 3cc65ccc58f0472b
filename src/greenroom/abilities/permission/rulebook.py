"""All rules of a team, found quickly, and which of them holds.

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

import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from typing import Final, Literal, TypeAlias

from greenroom.abilities.permission import paths
from greenroom.abilities.permission.command_line import CommandLine, meaning, program, read_line
from greenroom.abilities.permission.paths import ANY, ROOT, Place, folded
from greenroom.abilities.permission.rules import STRICT, Kind, Level, Rule
from greenroom.core.base.hosts import Host, loosens, within
from greenroom.core.base.records import record

Layer: TypeAlias = Literal["built-in", "user", "project", "granted"]
LAYERS: Final[tuple[Layer, ...]] = ("built-in", "user", "project", "granted")
_RANK: Final[Mapping[Layer, int]] = {layer: rank for rank, layer in enumerate(LAYERS)}


@record
class Placed:
    """A rule and who says it."""

    layer: Layer
    rule: Rule


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


class _Shelf:
    """Rules by a word that stands in all that they are about. Those without one are behind one look at all of them."""

    def __init__(self) -> None:
        self._by: defaultdict[tuple[Kind, str], list[Placed]] = defaultdict(list)
        self._any: dict[Kind, re.Pattern[str]] = {}

    def put(self, placed: Placed, key: str) -> None:
        self._by[placed.rule.kind, key].append(placed)

    def find(self, kind: Kind, keys: Collection[str]) -> Iterator[Placed]:
        wide = self._by.get((kind, ""))
        if wide and self._may_fit(kind, wide, keys):
            yield from wide
        for key in keys:
            yield from self._by.get((kind, key), ())

    def all(self, kind: Kind) -> Iterator[Placed]:
        for (about, _), found in self._by.items():
            yield from found if about == kind else ()

    def _may_fit(self, kind: Kind, wide: Sequence[Placed], keys: Collection[str]) -> bool:
        if kind not in {"path", "tool"}:
            return True
        if kind not in self._any:
            self._any[kind] = re.compile("|".join(dict.fromkeys(_needs(placed.rule) for placed in wide)))
        return any(map(self._any[kind].match, keys))


def _needs(rule: Rule) -> str:
    """What one of the names must look like, if any of them has to."""
    if rule.kind == "tool":
        return re.escape(rule.words[0][:-1])
    name = next((one for one in rule.words if one not in {ANY, ROOT}), None)
    return "" if name is None else translate(folded(name))


class Rulebook:
    """Rules by what they are about. It is made once, and asked often; a few more rules are laid over it (`under`)."""

    def __init__(self, rules: Iterable[Placed], under: Rulebook | None = None) -> None:
        self._under = under
        self._loose, self._strict = _Shelf(), _Shelf()
        for placed in rules:
            rule = placed.rule
            key = _key(rule)
            if rule.level in {"allow", "notify"} and placed.layer != "project":
                self._loose.put(placed, key)
            if rule.level != "allow":
                self._strict.put(placed, program(key) if rule.kind == "command" else key)

    def loose(self, kind: Kind, *keys: str) -> Iterator[Placed]:
        """Rules that may make something looser, and may be about these."""
        yield from self._loose.find(kind, keys)
        if self._under is not None:
            yield from self._under.loose(kind, *keys)

    def strict(self, kind: Kind, *keys: str) -> Iterator[Placed]:
        """Rules that notify, ask or deny, and may be about these."""
        yield from self._strict.find(kind, keys)
        if self._under is not None:
            yield from self._under.strict(kind, *keys)

    def commands(self) -> Iterator[Placed]:
        """All rules about commands that tighten."""
        yield from self._strict.all("command")
        if self._under is not None:
            yield from self._under.commands()

    def of_path(self, place: Place, access: paths.Access, *, only: Level | None = None) -> Iterator[Hit]:
        """Rules about a path; those of one level alone only if they tighten."""
        keys = set(place.folded)
        for placed in self.strict("path", *keys):
            rule = placed.rule
            meant = (only is None or only == rule.level) and (not rule.access or not access or rule.access == access)
            if meant and paths.tightens(rule.words, place):
                yield Hit(placed=placed)
        for placed in self.loose("path", *keys) if only is None else ():
            if placed.rule.access in {"", access} and paths.loosens(placed.rule.words, place):
                yield Hit(placed=placed, opens=True)

    def of_host(self, asked: Host) -> Iterator[Hit]:
        """Rules about a host."""
        labels = asked.name.split(".")
        keys = {".".join(labels[at:]) for at in range(len(labels))}
        for placed in self.strict("host", *keys):
            if host_tightens(placed.rule.host, asked):
                yield Hit(placed=placed)
        for placed in self.loose("host", *keys):
            if loosens(placed.rule.host, asked):
                yield Hit(placed=placed, opens=True)

    def of_tool(self, name: str) -> Iterator[Hit]:
        """Rules about a tool."""
        yield from self._named("tool", name)

    def of_line(self, text: str) -> Iterator[Hit]:
        """Rules about exactly this command line."""
        yield from self._named("line", text.strip())

    def _named(self, kind: Kind, name: str) -> Iterator[Hit]:
        for placed in self.strict(kind, name):
            if kind == "line" or names_tool(placed.rule.words[0], name):
                yield Hit(placed=placed)
        for placed in self.loose(kind, name):
            if kind == "line" or names_tool(placed.rule.words[0], name):
                yield Hit(placed=placed, opens=True)

    def of_command(self, line: CommandLine) -> Iterator[Hit]:
        """Rules that tighten and are, or may be, about a command line."""
        for placed in self.commands() if line.hides else self.strict("command", *line.programs):
            found = meaning(placed.rule.words, line)
            if found:
                yield Hit(placed=placed, certain=found == "certain")


def _key(rule: Rule) -> str:
    """A word that stands in all that the rule is about; nothing when there is none."""
    match rule.kind:
        case "command" | "line":
            return rule.words[0] if rule.words else ""
        case "path":
            return next(
                (folded(name) for name in rule.words if name not in {ANY, ROOT} and not paths.is_pattern(name)), ""
            )
        case "host":
            return "" if rule.words[0] == "*" else rule.words[0].removeprefix("*.")
        case "tool":
            return "" if rule.words[0].endswith("*") else rule.words[0]
