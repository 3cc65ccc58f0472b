"""What a person types in an organisation, as data. A slash begins a command; every other line is for the manager.

`//` says a slash, and a line that begins with a space is said as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias, get_args

from greenroom.app.messages import phrase
from greenroom.app.organisation.words import commands
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.records import Data, record

OTHER_NAMES: Final = {"quit": "exit", "q": "exit", "bye": "exit", "?": "help", "y": "yes", "n": "no", "mail": "inbox"}
GRANTS: Final = ("run", "always")
"""For how long a yes can be."""

SHOWN: Final = 40
"""Characters of an unknown command in its refusal."""

DIGITS: Final = 9
"""Digits of the number of a letter, at most."""

COLON: Final = re.compile("[:：]")
COMMA: Final = re.compile(r"\s*[,，]\s*")
LIST: Final = re.compile(r"[\s,，]+")
NAMED: Final = re.compile(r"(?<![A-Za-z0-9_.@-])@([\w.-]+)")
GOES_ON: Final = re.compile(r"[A-Za-z0-9_-]|\.[A-Za-z0-9_]")
"""What makes another name of a name. Chinese has no spaces, and a sentence may end with a name."""

Look: TypeAlias = Literal["inbox", "notices", "tasks", "who", "history", "help"]
Way: TypeAlias = Literal["to", "tell", "ask"]
LOOKS: Final[Mapping[str, Look]] = {look: look for look in get_args(Look)}
WAYS: Final[Mapping[str, Way]] = {way: way for way in get_args(Way)}


@record
class Plain:
    """Text for the manager."""

    text: str


@record
class Reply:
    """An answer to a letter."""

    number: int
    text: str


@record
class Report:
    """How a duty ended."""

    number: int
    text: str
    failed: bool = False


@record
class Decision:
    """A yes or a no; without a number to the only question that there is. `words` are as they were typed."""

    number: int | None
    words: str


@record
class Address:
    """Text for others: to be answered, only to be known, or to be done."""

    names: tuple[str, ...]
    text: str
    how: Way


@record
class InGroup:
    """Text for a group, and for the agents that it names."""

    group: str
    text: str


@record
class NewGroup:
    """A group to be formed."""

    group: str
    people: tuple[str, ...]


@record
class ByHand:
    """A tool, its arguments, and the stage that it is for."""

    tool: str
    given: Data
    stage: str = ""


@record
class Looks:
    """A view to be shown."""

    what: Look
    about: str = ""


@record
class Resumes:
    """Let go on what stands still."""


@record
class Leaves:
    """Leave."""


Typed: TypeAlias = Plain | Reply | Report | Decision | Address | InGroup | NewGroup | ByHand | Looks | Resumes | Leaves


def parse_line(line: str, language: str = "en") -> Typed:
    """What a line means. `Refused` says in this language how to type a command that is wrong."""
    text = line.strip()
    if line[:1].isspace() or not text.startswith("/"):
        return Plain(text=text)
    if text.startswith("//"):
        return Plain(text=text[1:])
    word, rest = _split(text[1:])
    name = OTHER_NAMES.get(word.lower(), word.lower())
    known = commands(language)
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = phrase("input", "meant", language, near=near[0]) if near else phrase("input", "see_help", language)
        shown = word if len(word) <= SHOWN else f"{word[:SHOWN]}…"
        raise _unclear("no_command", language, word=shown, hint=hint, literal=phrase("input", "literal", language))
    found = _parse_command(name, rest, language)
    if found is None:
        takes, _, about = known[name].partition("  ")
        raise _unclear("how", language, name=name, takes=takes, about=about)
    return found


def names_in(text: str, agents: Collection[str]) -> tuple[str, ...]:
    """The agents that a text names by `@name`; of a name that is not there, the whole word."""
    found = []
    for word in NAMED.findall(text):
        known = [name for name in agents if word.startswith(name) and not GOES_ON.match(word[len(name) :])]
        found.append(max(known, key=len, default=word))
    return tuple(dict.fromkeys(found))


def _unclear(name: str, language: str, /, **known: object) -> Refused:
    return Refused(Rejected(code="unclear", why=phrase("input", name, language, **known)))


def _split(text: str) -> tuple[str, str]:
    """The first word, and all that follows, also on further lines."""
    first, *rest = text.split(maxsplit=1) or ("",)
    return first, "".join(rest).strip()


def _parse_command(name: str, rest: str, language: str) -> Typed | None:
    """A command with what follows it; None when that does not fit."""
    found: Typed | None
    first, text = _split(rest)
    number = int(first) if first.isdecimal() and len(first) <= DIGITS else None
    match name:
        case "answer":
            found = Reply(number=number, text=text) if number is not None and text else None
        case "done" | "failed":
            failed = name == "failed"
            found = Report(number=number, text=text, failed=failed) if number is not None and text else None
        case "yes" | "no":
            more = rest if number is None else text
            granted = name == "yes" and number is not None and more.lower() in GRANTS
            found = Decision(number=number, words=more if granted else f"{name} {more}".strip())
        case "to" | "tell" | "ask" | "group":
            found = _parse_address(name, rest)
        case "form":
            people = tuple(person.lstrip("@") for person in LIST.split(text) if person)
            found = NewGroup(group=first.rstrip(":："), people=people) if people else None
        case "tool":
            found = _parse_tool(rest, language)
        case "resume":
            found = Resumes()
        case "exit":
            found = Leaves()
        case _:
            found = Looks(what=LOOKS[name], about=rest) if rest or name != "history" else None
    return found


def _parse_address(name: str, rest: str) -> Address | InGroup | None:
    colon = COLON.search(rest)
    who, text = (rest[: colon.start()], rest[colon.end() :].strip()) if colon is not None else _split(rest)
    names = tuple(dict.fromkeys(part.lstrip("@") for part in COMMA.split(who.strip()) if part))
    if not names or not text:
        return None
    return InGroup(group=names[0], text=text) if name == "group" else Address(names=names, text=text, how=WAYS[name])


def _parse_tool(rest: str, language: str) -> ByHand | None:
    head, brace, body = rest.partition("{")
    words = head.split()
    stage = words[2] if len(words) == 3 and words[1].lower() == "in" else ""
    if not words or (len(words) > 1 and not stage):
        return None
    try:
        given = json.loads(brace + body) if brace else {}
    except json.JSONDecodeError as error:
        known = {"why": error.msg, "line": error.lineno, "column": error.colno}
        raise _unclear("no_json", language, error=phrase("input", "place", language, **known)) from None
    except (ValueError, RecursionError) as error:
        raise _unclear("no_json", language, error=error) from None
    return ByHand(tool=words[0], given=given, stage=stage)
