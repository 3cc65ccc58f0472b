"""What is decided about one thing that a call touches: a path, a command line, a host, a tool; and the sentence for it.

Sentences are read by a person in a second, so they name the thing, the rule, and what would happen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from greenroom.core.base import hosts
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.tool import BUILT_IN, ToolCard
from greenroom.policy import command_line
from greenroom.policy.command_line import CommandLine, meaning, read_line, useful_prefix
from greenroom.policy.paths import (
    ANY,
    HARMLESS_DEVICES,
    LONGEST,
    ROOT,
    Access,
    Place,
    folded_parts,
    is_pattern,
    literal,
    placed,
    tightens,
)
from greenroom.policy.rulebook import Hit, Layer, Rulebook, overrules, settle
from greenroom.policy.rules import STRICT, BadRule, Level, Rule, parse
from greenroom.policy.secrets import is_secret, may_name_secrets, names_secrets

_QUIET_GROUPS: Final = frozenset({"read", "memory", "human"})
_SERVERS: Final = "mcp"
_TOLD: Final = 3
_DEEP: Final = 4
"""From so many names on, a folder outside of the workspace is narrow enough to be allowed as a whole."""


SECRET: Final = "may hold secrets"
_VALUE: Final = re.compile(r"-[A-Za-z](?=[./])|(?:--?)?[A-Za-z_][A-Za-z0-9_.-]*=|@")

LeadsOut: TypeAlias = Callable[[str], bool]
"""Whether a path, seen from the workspace's root, leads out of it by a link."""

SHOWN: Final = 120
MOST_LINES: Final = 60
MOST: Final = 4_000
"""Lines and characters of a command line that is shown whole."""

RUN: Final = "It would run "
REACH: Final = "It would reach "
UNRULED: Final = ", which no rule allows."

_WHOSE: Final[dict[Layer, str]] = {
    "built-in": "the built-in rule",
    "user": "your rule",
    "project": "the project's rule",
    "granted": "what you agreed to,",
}
_SAYS: Final = {
    "deny": "It would {would}: {rule} forbids that.",
    "maybe": "It would {would}, and that may be what {rule} forbids or asks about.",
    "ask": "It would {would}: {rule} asks first.",
    "notify": "It will {would}: {rule} has you told.",
    "allow": "It may {would}: {rule} allows it.",
}


def nowhere(_: str) -> bool:
    """Where there are no files, there are no links."""
    return False


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a line is run: which of its paths lead out by a link, and whether a sandbox around it holds."""

    workspace: str
    leads_out: LeadsOut = nowhere
    walled: Callable[[], bool] = bool


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
    judged = of_hit(hit, would, grants)
    opened = any(one.opens for one in hits)
    return judged if opened or STRICT[judged.level] >= STRICT[house.level] else house


def of_hit(hit: Hit, would: str, grants: tuple[str, ...] | None) -> Judged:
    """What a rule decides, and the sentence that says whose rule it is."""
    rule = str(hit.placed.rule)
    says = _SAYS[hit.level if hit.certain else "maybe"]
    why = says.format(would=would, rule=f"{_WHOSE[hit.placed.layer]} `{rule}`")
    return Judged(level=hit.level, why=why, rule=rule, grants=grants if hit.level == "ask" else (), hit=hit)


# ------------------------------------------------------------------------------------------------------------ paths


def path(book: Rulebook, value: str, access: Access, workspace: str) -> Judged:
    """Reading in the workspace is silent but for likely secrets, writing too but for what governs us."""
    if value in HARMLESS_DEVICES:
        return Judged(level="allow", why=f"{shown(value)} is no file.", rule="built-in: devices")
    place = placed(value[:LONGEST], workspace)
    would = f"{'write' if access == 'write' else 'read'} {shown(str(place))}"
    grants: tuple[str, ...] | None = (path_grant(place, access),)
    hits = book.of_path(place, access)
    if len(value) > LONGEST or not value.isprintable():  # what is forbidden stays so, and no rule can allow it
        why, grants = f"{shown(value)} has signs that no file's name should have.", None
        house = Judged(level="deny" if "\0" in value else "ask", why=why, grants=grants)
        hits = [hit for hit in hits if hit.level == "deny"]
    elif access == "read" and is_secret(place.folded_inside):
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


def path_grant(place: Place, access: Access) -> str:
    """A rule for this file; for reading far outside, for its folder."""
    inside = place.inside is not None
    names = place.inside if place.inside is not None else place.whole
    words = tuple(name if name == ROOT else literal(name) for name in names) or (ANY,)
    hidden = any(name.startswith(".") for name in names)
    if access == "read" and not inside and len(words) > _DEEP and not hidden:
        words = (*words[:-1], ANY)
    return str(Rule(level="allow", kind="path", words=words, access=access))


# --------------------------------------------------------------------------------------------------------- commands


def line(book: Rulebook, text: str, ground: Ground, *, networked: bool = False) -> Judged:
    """What is decided about a command line. One that no rule is about runs unasked inside a sandbox, unless it is not
    plain and its call names hosts (`networked`); everywhere else somebody is asked."""
    read = read_line(text)
    parts = [_command(book, read, ground, networked=networked), *_named_files(book, read, ground)]
    if len(read.text) > command_line.LONGEST:
        why = f"It would run a command line of more than {command_line.LONGEST:,} characters."
        parts.append(Judged(level="ask", why=why, rule="built-in: too long", grants=None))
    hits = book.of_line(text)
    exact = settle(hits)
    if exact is None:
        return together(parts)
    # A rule for exactly this line counts more than what was decided about a part of it, unless that is a denial.
    opening = [hit for hit in hits if hit.opens and hit.level == exact.level]
    left = [
        part
        for part in parts
        if part.level == "deny"
        or (part.hit and not part.hit.opens and not any(overrules(hit, part.hit) for hit in opening))
        or not opening
    ]
    return together([of_hit(exact, f"run {shown(read.text)}", None), *left])


def line_grant(text: str) -> str:
    """The rule for exactly this line, if there can be one."""
    try:
        return str(parse(f"allow line {text.strip()}"))
    except BadRule:
        return ""


def _command(book: Rulebook, read: CommandLine, ground: Ground, *, networked: bool) -> Judged:
    """The line itself: rules that tighten may be about any, rules that loosen cover plain ones."""
    hits: list[Hit] = []
    near = ""
    for one in book.of("command"):
        meant = meaning(one.rule.words, read) if one.tightens else ""
        if meant:
            hits.append(Hit(placed=one, certain=meant == "certain"))
        words = one.rule.words
        if not one.loosens or read.words is None or read.words[: len(words)] != words:
            continue
        rest = read.words[max(1, len(words)) :]
        trouble = next((f"{shown(word)} {why}" for word in rest if (why := _trouble(word, ground))), "")
        if not trouble:
            hits.append(Hit(placed=one, opens=True))
        elif not near:
            near = f" (`{one.rule}` does not: {trouble})"
    would, prefix = f"run {shown(read.text)}", useful_prefix(read.words or ())
    # The narrowest rule of use for this line; None when that is one for the line itself.
    grants = (str(Rule(level="allow", kind="command", words=prefix)),) if prefix else None
    if not (networked and read.words is None) and ground.walled():
        house = Judged(level="allow", why=f"It may {would}: a sandbox is around it.", rule="built-in: sandboxed")
    else:
        why = f"It would {would}, which no rule allows{near}."
        house = Judged(level="ask", why=why, rule="built-in: commands", grants=grants)
    return answer(hits, house, would, grants)


def _named_files(book: Rulebook, read: CommandLine, ground: Ground) -> Iterator[Judged]:
    """What a line names may be a file that holds secrets, or one that a rule forbids: no sandbox keeps the first from
    those who read what is printed, and no rule about commands opens the second."""
    would = f"run {shown(read.text)}"
    denied = [one for one in book.of("path") if one.rule.level == "deny"]
    secret = False
    for value in dict.fromkeys(map(_value, read.tokens if read.words is None else read.words[1:])):
        if not value or len(value) > LONGEST or value.startswith("-") or "\0" in value:
            continue
        place = placed(value, ground.workspace)
        wild = read.words is None and is_pattern(value)
        if not secret and (_holds_secrets(place) or (wild and may_name_secrets(value))):
            secret = True
            why = f"It would {would}, and {shown(str(place))} {SECRET}."
            yield Judged(level="ask", why=why, rule="built-in: secrets", grants=None)
        found = next((one for one in denied if tightens(one.rule.words, place)), None)
        if found is not None:
            denied = []  # it is said once
            touches = f"{would}, and may touch {shown(str(place))}"
            yield of_hit(Hit(placed=found, certain=False), touches, None)


def _trouble(word: str, ground: Ground) -> str:
    """What is wrong with a word, or the value of an option, that may be a path; nothing if nothing is."""
    value = _value(word)
    if value in HARMLESS_DEVICES:
        return ""
    rooted = value.startswith("/") or value.casefold().startswith("file:")
    place = placed(value, ground.workspace)
    if (rooted and ":" in value) or (place.inside is None and (rooted or ".." in value.split("/"))):
        return "leads out of the workspace"
    if place.inside and ground.leads_out("/".join(place.inside)):
        return "is a link that leads out of the workspace"
    return SECRET if _holds_secrets(place) else ""


def _holds_secrets(place: Place) -> bool:
    return bool(place.inside) and is_secret(place.folded_inside)


def _value(word: str) -> str:
    """What may be a path in a word."""
    found = _VALUE.match(word)
    return word[found.end() :] if found else word


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
    return answer(book.of_host(asked), house, f"reach {name}", grants)


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
    return answer(book.of_tool(name), house, would, grants)


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


# -------------------------------------------------------------------------------------------------------- sentences


def plainly(text: str) -> str:
    """A text in which nothing is obeyed by a terminal, and nothing is hidden from whoever reads it."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def in_full(line: str, why: str) -> str:
    """A command line that `why` does not show as it is: nobody says yes to what they have not seen."""
    if f"`{line.strip()}`" in why:
        return ""
    lines = line[: MOST + 1].replace("\t", "    ").split("\n")
    told = "\n".join(f"  | {plainly(one)}" for one in lines[:MOST_LINES])
    more = len(lines) > MOST_LINES or len(line) > MOST or len(told) > 2 * MOST
    return f"\n{told[: 2 * MOST]}" + ("\n  [… There is more of it than can be shown here …]" if more else "")


def joined(reasons: Sequence[str]) -> list[str]:
    """Sentences that differ only in the host are one, and one with the command that goes there."""
    hosts = [one.removeprefix(REACH).removesuffix(UNRULED) for one in reasons if one.startswith(REACH) and _plain(one)]
    others = [one for one in reasons if not (one.startswith(REACH) and _plain(one))]
    if not hosts:
        return others
    reach = f"reach {' and '.join((', '.join(hosts[:-1]), hosts[-1])) if hosts[1:] else hosts[0]}{UNRULED}"
    if others and others[0].startswith(RUN) and _plain(others[0]):
        return [f"{others[0].removesuffix(UNRULED)} and {reach}", *others[1:]]
    return [*others, f"It would {reach}"]


def _plain(reason: str) -> bool:
    return reason.endswith(UNRULED)


def shown(text: str) -> str:
    """A thing as it is put before a person: one line, not too long, nothing in it that a terminal obeys."""
    plain = plainly(text if len(text) <= 2 * SHOWN else text[:SHOWN] + text[-SHOWN:])
    if len(plain) > SHOWN:
        half = SHOWN // 2
        plain = f"{plain[:half]} … {plain[-half:]}"
    return f"`{plain}`"
