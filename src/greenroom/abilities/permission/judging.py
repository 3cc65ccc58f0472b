"""What is decided about one thing that a call touches: a path, a host, a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.abilities.permission import hosts
from greenroom.abilities.permission.paths import (
    ANY,
    HARMLESS_DEVICES,
    LONGEST,
    ROOT,
    Access,
    Place,
    folded_parts,
    literal,
    placed,
)
from greenroom.abilities.permission.rulebook import Hit, Rulebook, settle
from greenroom.abilities.permission.rules import STRICT, BadRule, Level, Rule, parse
from greenroom.abilities.permission.saying import REACH, UNRULED, decided, joined, shown
from greenroom.abilities.permission.secrets import is_secret, names_secrets
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.tool import BUILT_IN, ToolCard

_QUIET_GROUPS: Final = frozenset({"read", "memory", "human"})
_SERVERS: Final = "mcp"
_TOLD: Final = 3
_DEEP: Final = 4
"""From so many names on, a folder outside of the workspace is narrow enough to be allowed as a whole."""


@record
class Judged:
    """What is decided about one thing, by a rule (`hit`) or by the house. `grants` are the rules that would allow it;
    None: no rule can, but one for the whole line."""

    level: Level
    why: str
    rule: str = ""
    grants: tuple[str, ...] | None = ()
    hit: Hit | None = None


def together(judged: Sequence[Judged]) -> Judged:
    """The strictest one, of equals the first; what has to be granted is said by all that ask."""
    worst = max(judged, key=lambda one: STRICT[one.level])
    if worst.level != "ask":
        return worst
    asking = [one for one in judged if one.level == "ask"]
    known = [one.grants for one in asking if one.grants is not None]
    merged = tuple(dict.fromkeys(rule for some in known for rule in some))
    reasons = joined(list(dict.fromkeys(one.why for one in asking)))
    more = [f"And {len(reasons) - _TOLD} more."] if len(reasons) > _TOLD else []
    why = " ".join([*reasons[:_TOLD], *more])
    return evolve(worst, why=why, grants=merged if len(known) == len(asking) else None)


def answer(hits: Sequence[Hit], house: Judged, would: str, grants: tuple[str, ...] | None) -> Judged:
    """What rules decide. Unless one of them opens, they can only tighten the house's own answer."""
    hit = settle(hits)
    if hit is None:
        return house
    opened = any(one.opens for one in hits)
    judged = of_hit(hit, would, grants)
    return judged if opened or STRICT[judged.level] >= STRICT[house.level] else house


def of_hit(hit: Hit, would: str, grants: tuple[str, ...] | None) -> Judged:
    """What a rule decides."""
    return Judged(
        level=hit.level,
        why=decided(would, hit),
        rule=str(hit.placed.rule),
        grants=grants if hit.level == "ask" else (),
        hit=hit,
    )


# ------------------------------------------------------------------------------------------------------------ paths


def path(book: Rulebook, value: str, access: Access, workspace: str, folder: str = "") -> Judged:
    """Reading in the workspace is silent but for likely secrets, writing too but for what governs us."""
    if len(value) > LONGEST or not value.isprintable():
        return _odd_path(book, value, access, workspace, folder)
    if value in HARMLESS_DEVICES:
        return Judged(level="allow", why=f"{shown(value)} is no file.", rule="built-in: devices")
    place = placed(value, workspace, folder)
    would = f"{'write' if access == 'write' else 'read'} {shown(str(place))}"
    grants = (path_grant(place, access),)
    hits = list(book.of_path(place, access))
    if access == "read" and is_secret(place.folded_inside):
        why = f"It would {would}, which may hold secrets."
        house = Judged(level="ask", why=why, rule="built-in: secrets", grants=grants)
        # Who opens a likely secret has to name it as one: a wide rule was not written with it in mind.
        hits = [hit for hit in hits if not hit.opens or names_secrets(folded_parts(hit.placed.rule.words))]
    elif place.inside is None or value.startswith("~"):  # a tool may take it for somebody's home
        why = f"It would {would}, which is outside of the workspace."
        house = Judged(level="ask", why=why, rule="built-in: outside", grants=grants)
    else:
        house = Judged(level="allow", why=f"It may {would}: that is in its workspace.", rule="built-in: workspace")
    return answer(hits, house, would, grants)


def _odd_path(book: Rulebook, value: str, access: Access, workspace: str, folder: str) -> Judged:
    """One that no file should have. What is forbidden where it leads stays forbidden; no rule can allow it."""
    if len(value) <= LONGEST:
        place = placed(value, workspace, folder)
        hit = settle(list(book.of_path(place, access)))
        if hit is not None and hit.level == "deny":
            return of_hit(hit, f"{access} {shown(value)}", None)
    level: Level = "deny" if "\0" in value else "ask"
    return Judged(level=level, why=f"{shown(value)} has signs that no file's name should have.", grants=None)


def path_grant(place: Place, access: Access) -> str:
    """A rule for this file; for reading far outside, for its folder."""
    inside = place.inside is not None
    names = place.inside if place.inside is not None else place.whole
    words = tuple(name if name == ROOT else literal(name) for name in names) or (ANY,)
    hidden = any(name.startswith(".") for name in names)
    if access == "read" and not inside and len(words) > _DEEP and not hidden:
        words = (*words[:-1], ANY)
    return str(Rule(level="allow", kind="path", words=words, access=access))


# -------------------------------------------------------------------------------------------------- hosts and tools


def host(book: Rulebook, value: str) -> Judged:
    """The network is asked for."""
    try:
        asked = hosts.host(value)
    except hosts.BadHost as why:
        return Judged(level="deny", why=f"The host {shown(value)} {why}.", rule="built-in: host names")
    name = shown(str(asked))
    port = 0 if asked.port in hosts.USUAL else asked.port
    grants = (str(Rule(level="allow", kind="host", words=(asked.name, str(port)))),)
    house = Judged(level="ask", why=f"{REACH}{name}{UNRULED}", rule="built-in: network", grants=grants)
    return answer(list(book.of_host(asked)), house, f"reach {name}", grants)


def tool(book: Rulebook, card: ToolCard, *, alone: bool) -> Judged:
    """A tool that only looks, or ends what was begun here, is silent. Of a call that says what it touches (not `alone`)
    only that counts, and rules about the tool can but tighten it."""
    name, built_in = card.spec.name, card.source == BUILT_IN
    would = f"call the tool {shown(name)}"
    grants = _tool_grant(name)
    if not alone:
        house = Judged(level="allow", why=f"It may {would}.")
    elif _only_looks(card):
        house = Judged(level="allow", why=f"It may {would}: it only looks.", rule="built-in: tools that look")
    elif built_in and card.ends_own:
        why = f"It may {would}: it only ends what was begun here."
        house = Judged(level="allow", why=why, rule="built-in: what was begun here")
    else:
        known = "without saying what it touches" if built_in else "of which nothing is known but its name"
        house = Judged(level="ask", why=f"It would {would}, {known}.", rule="built-in: unknown tools", grants=grants)
    return answer(list(book.of_tool(name)), house, would, grants)


def _only_looks(card: ToolCard) -> bool:
    """Of what a server says of itself we believe nothing; of a file that a person put there, that it is pure."""
    if card.source == BUILT_IN:
        return card.effect == "pure" or card.group in _QUIET_GROUPS
    return card.effect == "pure" and not card.source.startswith(_SERVERS)


def _tool_grant(name: str) -> tuple[str, ...] | None:
    try:
        rule = parse(f"allow tool {name}")
    except BadRule:
        return None
    return (str(rule),) if rule.words == (name,) and not name.endswith("*") else None
