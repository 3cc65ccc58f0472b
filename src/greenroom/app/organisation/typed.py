"""What a person types in an organisation, as data: whom it is for, or what it is to do. Everything else is a request.

`/answer 2 …` is always a command; without the slash it is one where it can mean nothing else. A line that begins with a
space is always said, never done.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

from greenroom.core.base.records import Data, record

COMMANDS: Final = {
    "answer": "N TEXT  answer letter N",
    "done": "N REPORT  your duty in letter N is done",
    "failed": "N WHY  your duty in letter N cannot be done",
    "yes": "N  let the step of letter N run; `yes N run`, `yes N always`",
    "no": "N WHY  do not let it run",
    "to": "NAME: TEXT  write to somebody who is to answer; to two: a,b: TEXT",
    "tell": "NAME: TEXT  write to somebody who need not answer",
    "ask": "NAME: TEXT  want something of somebody",
    "group": "NAME: TEXT  say it in a group, and to agents that you @name",
    "form": "GROUP ann, ben  talk with others in a group",
    "tool": "NAME {…}  use a tool by hand; for a stage: tool NAME in t2.s1 {…}",
    "inbox": "what waits for you",
    "notices": "what the house has told you",
    "tasks": "what is worked on",
    "who": "who there is, and what they do",
    "history": "NAME  what was said between you and somebody",
    "resume": "let go on what stands still",
    "help": "what can be typed here",
    "exit": "leave; the organisation stays",
}
"""The commands, and what each does. What it takes comes before two spaces."""

OTHER_NAMES: Final = {"quit": "exit", "q": "exit", "bye": "exit", "?": "help", "y": "yes", "n": "no", "mail": "inbox"}
ALONE: Final = ("inbox", "notices", "tasks", "who", "help", "exit", "quit", "yes", "no", "y", "n")
"""What is a command also without a slash, when nothing else stands on the line."""

NUMBERED: Final = re.compile(r"(answer|done|failed|yes|no)\s+(\d+)(?:\s|$)", re.IGNORECASE)
ADDRESSED: Final = re.compile(r"(to|tell|ask|group)\s+([^\s:]+(?:\s*,\s*[^\s:,]+)*)\s*:", re.IGNORECASE)
TOOL: Final = re.compile(r"tool\s+\S+(?:\s+in\s+\S+)?\s*(?:\{|$)", re.IGNORECASE)
NAMED: Final = re.compile(r"(?<![\w@])@([\w.-]+)")

Look: TypeAlias = Literal["inbox", "notices", "tasks", "who", "history", "help"]


@record
class Plain:
    """Something for whoever manages."""

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
    """Something for others: to be answered, only to be known, or to be done."""

    names: tuple[str, ...]
    text: str
    how: Literal["to", "tell", "ask"]


@record
class InGroup:
    """Something for a group, and for those who are named in it."""

    group: str
    text: str
    named: tuple[str, ...]


@record
class NewGroup:
    """A group to be."""

    group: str
    people: tuple[str, ...]


@record
class ByHand:
    """A tool, what it is given, and for which stage."""

    tool: str
    given: Data
    stage: str = ""


@record
class Looks:
    """Something to be looked at."""

    what: Look
    about: str = ""


@record
class Resumes:
    """Let go on what stands still."""


@record
class Leaves:
    """Leave."""


@record
class Unclear:
    """Something that cannot be done as it was typed: why, and how to type it."""

    why: str


Typed: TypeAlias = (
    Plain | Reply | Report | Decision | Address | InGroup | NewGroup | ByHand | Looks | Resumes | Leaves | Unclear
)


def understood(line: str) -> Typed:
    """What a line means."""
    if line[:1].isspace():
        return Plain(text=line.strip())
    text = line.strip()
    if text.startswith("/"):
        return _command(text[1:])
    meant = text.lower() in ALONE or any(one.match(text) for one in (NUMBERED, ADDRESSED, TOOL))
    return _command(text) if meant else Plain(text=text)


def _command(text: str) -> Typed:
    word, _, rest = text.partition(" ")
    name = OTHER_NAMES.get(word.lower(), word.lower())
    make = _COMMANDS.get(name)
    if make is None:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"Did you mean /{near[0]}?" if near else "/help says what can be typed."
        return Unclear(why=f"There is no command /{word}. {hint}")
    return make(name, rest.strip())


def _how(name: str) -> Unclear:
    takes, _, about = COMMANDS[name].partition("  ")
    return Unclear(why=f"Type it like this: {name} {takes}  ({about})")


def _numbered(name: str, rest: str) -> Typed:
    number, _, text = rest.partition(" ")
    if not number.isdecimal() or not text.strip():
        return _how(name)
    if name == "answer":
        return Reply(number=int(number), text=text.strip())
    return Report(number=int(number), text=text.strip(), failed=name == "failed")


def _decided(name: str, rest: str) -> Typed:
    number, _, more = rest.partition(" ")
    if not number.isdecimal():
        return Decision(number=None, words=f"{name} {rest}".strip())
    said = more.strip()
    words = said if name == "yes" and said.lower() in ("run", "always") else f"{name} {said}".strip()
    return Decision(number=int(number), words=words)


def _addressed(name: str, rest: str) -> Typed:
    who, colon, text = rest.partition(":") if ":" in rest else rest.partition(" ")
    names = tuple(one.strip().lstrip("@") for one in who.split(",") if one.strip())
    if not colon or not names or not text.strip():
        return _how(name)
    if name == "group":
        return InGroup(group=names[0], text=text.strip(), named=tuple(dict.fromkeys(NAMED.findall(text))))
    how: Literal["to", "tell", "ask"] = "ask" if name == "ask" else "tell" if name == "tell" else "to"
    return Address(names=tuple(dict.fromkeys(names)), text=text.strip(), how=how)


def _formed(name: str, rest: str) -> Typed:
    group, _, people = rest.partition(" ")
    names = tuple(one.lstrip("@") for one in re.split(r"[\s,]+", people.strip()) if one)
    return NewGroup(group=group.rstrip(":"), people=names) if group and names else _how(name)


def _by_hand(name: str, rest: str) -> Typed:
    head, brace, body = rest.partition("{")
    words = head.split()
    stage = words[2] if len(words) == 3 and words[1].lower() == "in" else ""
    if not words or (len(words) > 1 and not stage):
        return _how(name)
    try:
        given = json.loads(brace + body) if brace else {}
    except ValueError as error:
        return Unclear(why=f"What follows the tool's name is no JSON: {error}.")
    return ByHand(tool=words[0], given=given, stage=stage)


def _looked(name: str, rest: str) -> Typed:
    looks: Mapping[str, Look] = {one: one for one in ("inbox", "notices", "tasks", "who", "history", "help")}
    if name == "history" and not rest:
        return _how(name)
    return Looks(what=looks[name], about=rest)


_COMMANDS: Final[Mapping[str, Callable[[str, str], Typed]]] = {
    **dict.fromkeys(("answer", "done", "failed"), _numbered),
    **dict.fromkeys(("yes", "no"), _decided),
    **dict.fromkeys(("to", "tell", "ask", "group"), _addressed),
    "form": _formed,
    "tool": _by_hand,
    **dict.fromkeys(("inbox", "notices", "tasks", "who", "history", "help"), _looked),
    "resume": lambda _, __: Resumes(),
    "exit": lambda _, __: Leaves(),
}
