"""The sentences of a ruling: read by a person in a second, so they name the thing, the rule, and what would happen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.abilities.permission.rulebook import Hit, Layer

LONGEST: Final = 120
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
    plain = plainly(text)
    if len(plain) > LONGEST:
        half = LONGEST // 2
        plain = f"{plain[:half]} … {plain[-half:]}"
    return f"`{plain}`"


def by(hit: Hit) -> str:
    """Whose rule it is, and which."""
    return f"{_WHOSE[hit.placed.layer]} `{hit.placed.rule}`"


def decided(would: str, hit: Hit) -> str:
    """What a rule says about what would happen."""
    match hit.level:
        case "deny":
            return f"It would {would}: {by(hit)} forbids that."
        case "ask" if not hit.certain:
            return f"It would {would}, and that may be what {by(hit)} forbids or asks about."
        case "ask":
            return f"It would {would}: {by(hit)} asks first."
        case "notify":
            return f"It will {would}: {by(hit)} has you told."
        case "allow":
            return f"It may {would}: {by(hit)} allows it."
