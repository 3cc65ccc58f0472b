"""What a person types in an organisation, as data: whom it is for, or what it is to do. Everything else is a request.

`/answer 2 …` is always a command; without the slash it is one where it can mean nothing else: that letter is open and
answered so, these people are there, and it does not go on like a sentence ("done 3 things today"). What only looks like
one is neither done nor sent: somebody who mistypes is asked. A line that begins with a space is always said, never
done; `//` says a slash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

from immutables import Map

from greenroom.app.organisation.commands import COMMANDS, commands
from greenroom.app.organisation.letters import Kind
from greenroom.app.organisation.names import in_language
from greenroom.app.organisation.refusals import HINTS, WHY, taken_for
from greenroom.core.base.records import Data, evolve, record

OTHER_NAMES: Final = {"quit": "exit", "q": "exit", "bye": "exit", "?": "help", "y": "yes", "n": "no", "mail": "inbox"}
ALONE: Final = ("inbox", "notices", "tasks", "who", "resume", "help", "exit", "quit", "yes", "no", "y", "n")
"""What is a command also without a slash, when nothing else stands on the line."""

SHORT: Final = 4
"""Letters. A shorter word is near to too many others."""

NEAR: Final = 0.8
"""How near a word must be to a command to be a mistyped one."""

SHOWN: Final = 40
"""Characters of a word that is no command."""

GRANTS: Final = ("run", "always")
"""For how long a yes can be."""

DIGITS: Final = 9
"""Digits of a number that can be that of a letter."""

NO_COMMAND: Final = {"en": "There is no command /{word}. {hint} {literal}", "zh": "没有命令 /{word}。{hint}{literal}"}
MEANT: Final = {"en": "Did you mean /{near}?", "zh": "您是想输入 /{near} 吗？"}
SEE_HELP: Final = {"en": "/help says what can be typed.", "zh": "/help 说明可以输入什么。"}
LITERAL: Final = {
    "en": "To say it as it is, begin the line with a space.",
    "zh": "要原样发送，请在行首加一个空格。",
}
HOW: Final = {"en": "Type it like this: /{name} {takes}  ({about})", "zh": "请这样输入：/{name} {takes}（{about}）"}
NOT_SENT: Final = {"en": "That was not sent. {hint} {literal}", "zh": "未发送。{hint}{literal}"}
NO_LETTER: Final = {"en": "No letter {number} waits for you.", "zh": "没有等待您处理的第{number}条消息。"}
OTHER_KIND: Final = {
    "en": "Letter {number} is not answered with `{name}`; `inbox` says how.",
    "zh": "第{number}条消息不能用 {name} 回复；inbox 说明如何回复。",
}
EITHER: Final = {
    "en": "If you mean letter {number}, begin the line with a slash: /{name} {number} …",
    "zh": "如果是指第{number}条消息，请以斜杠开头：/{name} {number} …。",
}
NO_JSON: Final = {
    "en": "What follows the tool's name is no JSON: {error}.",
    "zh": "工具名之后的内容不是JSON：{error}。",
}
PLACE: Final = {"en": "{why}: line {line}, column {column}", "zh": "第{line}行第{column}列"}
NO_TOOL: Final = {"en": "You have no tool {name!r}.", "zh": "您没有工具{name!r}。"}

NUMBERED: Final = re.compile(r"(answer|done|failed|yes|no)\s+(\d+)(?:\s|$)", re.IGNORECASE)
ADDRESSED: Final = re.compile(r"(to|tell|ask|group)\s+([^\s:：]+(?:\s*[,，]\s*[^\s:：,，]+)*)\s*[:：]", re.IGNORECASE)
TOOL: Final = re.compile(r"tool\s+\S+(?:\s+in\s+\S+)?\s*(?:\{|$)", re.IGNORECASE)
CALLED: Final = re.compile(r"@[\w.-]+(?:\s|[,:：，]|$)")
COLON: Final = re.compile("[:：]")
COMMA: Final = re.compile("[,，]")
NAMED: Final = re.compile(r"(?<![A-Za-z0-9_.@-])@([\w.-]+)")
GOES_ON: Final = re.compile(r"[A-Za-z0-9_-]|\.[A-Za-z0-9_]")
"""What makes another name of a name. Chinese has no spaces, and a sentence may end with a name."""


TAKES: Final[Mapping[str, tuple[Kind, ...]]] = {
    "answer": ("question", "approval"),
    **dict.fromkeys(("done", "failed"), ("duty", "stage")),
    **dict.fromkeys(("yes", "no"), ("approval",)),
}
"""The kinds of letters that are answered so."""

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


@record
class Here:
    """What a person can mean: the letters that they owe an answer to, by number; who is there, which groups, and the
    tools that they may use."""

    letters: Mapping[int, Kind] = Map()
    agents: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()


def understood(line: str, here: Here, language: str = "en") -> Typed:
    """What a line means here; what is unclear is said in this language."""
    meant = _understood(line, here, language)
    return evolve(meant, named=called_in(meant.text, here.agents)) if isinstance(meant, InGroup) else meant


def called_in(text: str, agents: Collection[str]) -> tuple[str, ...]:
    """Who is called by `@name`; of what is nobody's name, the whole word."""
    found = []
    for word in NAMED.findall(text):
        known = [one for one in agents if word.startswith(one) and not GOES_ON.match(word[len(one) :])]
        found.append(max(known, key=len, default=word))
    return tuple(dict.fromkeys(found))


def _understood(line: str, here: Here, language: str) -> Typed:
    if line[:1].isspace():
        return Plain(text=line.strip())
    text = line.strip()
    if text.startswith("//"):
        return Plain(text=text[1:])
    if text.startswith("/"):
        return _command(text[1:], language)
    if text.lower() in ALONE or any(one.match(text) for one in (NUMBERED, ADDRESSED, TOOL)):
        meant = _command(text, language)
        doubt = _doubt(text, meant, here, language)
        return meant if not doubt else _not_sent(doubt, language)
    return _mistyped(text, language) or Plain(text=text)


def _doubt(text: str, meant: Typed, here: Here, language: str) -> str:
    """Why a line without a slash may be meant otherwise than as the command that it looks like."""
    match meant:
        case Reply(number=int(number)) | Report(number=int(number)) | Decision(number=int(number)):
            name, _, rest = (*text.split(maxsplit=2), "")[:3]
            other = _other_letter(name.lower(), number, here, language)
            return other or _sentence(name.lower(), number, rest, language)
        case Address(names=names):
            gone = next((one for one in names if one not in here.agents), None)
            return _nobody(gone, here, language) if gone is not None else ""
        case InGroup(group=group) if group not in here.groups:
            return in_language(WHY["unknown_group"], language).format(name=group)
        case ByHand(tool=tool) if tool not in here.tools and "{" not in text:
            return in_language(NO_TOOL, language).format(name=tool)
        case _:
            return ""


def _nobody(name: str, here: Here, language: str) -> str:
    """Nobody is called so; who can be taken for them is named."""
    near = taken_for(name, here.agents)
    hint = f" {in_language(HINTS['meant'], language).format(near=near)}" if near is not None else ""
    return in_language(WHY["unknown_agent"], language).format(name=name) + hint


def _other_letter(name: str, number: int, here: Here, language: str) -> str:
    """That letter is not there, or takes another answer."""
    kind = here.letters.get(number)
    if kind in TAKES[name]:
        return ""
    return in_language(NO_LETTER if kind is None else OTHER_KIND, language).format(number=number, name=name)


def _sentence(name: str, number: int, rest: str, language: str) -> str:
    """It goes on in lower case after the number, as in "No 2 cups are alike": nobody can tell."""
    if not rest[:1].islower() or (name == "yes" and rest.lower() in GRANTS):
        return ""
    return in_language(EITHER, language).format(number=number, name=name)


def _not_sent(hint: str, language: str) -> Unclear:
    literal = in_language(LITERAL, language)
    return Unclear(why=in_language(NOT_SENT, language).format(hint=hint, literal=literal))


def _mistyped(text: str, language: str) -> Unclear | None:
    """A line of one word that is a command without what it takes, or nearly one that takes nothing; or a call to
    somebody, which is for them and not for the manager."""
    word = text.lower()
    if word in COMMANDS or CALLED.match(text):
        return _not_sent(_how(word if word in COMMANDS else "to", language).why, language)
    near = get_close_matches(word, (one for one in ALONE if len(one) >= SHORT), n=1, cutoff=NEAR)
    if not near or len(word) < SHORT or not word.isalpha():
        return None
    return _not_sent(in_language(MEANT, language).format(near=near[0]), language)


def _command(text: str, language: str) -> Typed:
    word, rest = _parted(text)
    name = OTHER_NAMES.get(word.lower(), word.lower())
    make = _COMMANDS.get(name)
    if make is None:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = in_language(MEANT, language).format(near=near[0]) if near else in_language(SEE_HELP, language)
        known = {
            "word": word if len(word) <= SHOWN else f"{word[:SHOWN]}…",
            "hint": hint,
            "literal": in_language(LITERAL, language),
        }
        return Unclear(why=in_language(NO_COMMAND, language).format(**known))
    return make(name, rest, language)


def _how(name: str, language: str) -> Unclear:
    takes, _, about = commands(language)[name].partition("  ")
    return Unclear(why=in_language(HOW, language).format(name=name, takes=takes, about=about))


def _parted(text: str) -> tuple[str, str]:
    """The first word, and all that follows, also on further lines."""
    first, *rest = text.split(maxsplit=1) or ("",)
    return first, "".join(rest).strip()


def _number(text: str) -> int | None:
    """The number of a letter, if it can be one."""
    return int(text) if text.isdecimal() and len(text) <= DIGITS else None


def _numbered(name: str, rest: str, language: str) -> Typed:
    first, text = _parted(rest)
    number = _number(first)
    if number is None or not text:
        return _how(name, language)
    if name == "answer":
        return Reply(number=number, text=text)
    return Report(number=number, text=text, failed=name == "failed")


def _decided(name: str, rest: str, _language: str) -> Typed:
    first, more = _parted(rest)
    number = _number(first)
    if number is None:
        return Decision(number=None, words=f"{name} {rest}".strip())
    words = more if name == "yes" and more.lower() in GRANTS else f"{name} {more}".strip()
    return Decision(number=number, words=words)


def _addressed(name: str, rest: str, language: str) -> Typed:
    found = COLON.search(rest)
    who, text = (rest[: found.start()], rest[found.end() :].strip()) if found is not None else _parted(rest)
    names = tuple(one.strip().lstrip("@") for one in COMMA.split(who) if one.strip())
    if not names or not text:
        return _how(name, language)
    if name == "group":
        return InGroup(group=names[0], text=text, named=called_in(text, ()))
    how: Literal["to", "tell", "ask"] = "ask" if name == "ask" else "tell" if name == "tell" else "to"
    return Address(names=tuple(dict.fromkeys(names)), text=text, how=how)


def _formed(name: str, rest: str, language: str) -> Typed:
    group, people = _parted(rest)
    names = tuple(one.lstrip("@") for one in re.split(r"[\s,，]+", people) if one)
    return NewGroup(group=group.rstrip(":："), people=names) if group and names else _how(name, language)


def _by_hand(name: str, rest: str, language: str) -> Typed:
    head, brace, body = rest.partition("{")
    words = head.split()
    stage = words[2] if len(words) == 3 and words[1].lower() == "in" else ""
    if not words or (len(words) > 1 and not stage):
        return _how(name, language)
    try:
        given = json.loads(brace + body) if brace else {}
    except (ValueError, RecursionError) as error:
        return Unclear(why=in_language(NO_JSON, language).format(error=_place(error, language)))
    return ByHand(tool=words[0], given=given, stage=stage)


def _place(error: ValueError | RecursionError, language: str) -> str:
    """Where JSON is none; Python says it in English only."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    return in_language(PLACE, language).format(why=error.msg, line=error.lineno, column=error.colno)


def _looked(name: str, rest: str, language: str) -> Typed:
    looks: Mapping[str, Look] = {one: one for one in ("inbox", "notices", "tasks", "who", "history", "help")}
    if name == "history" and not rest:
        return _how(name, language)
    return Looks(what=looks[name], about=rest)


_COMMANDS: Final[Mapping[str, Callable[[str, str, str], Typed]]] = {
    **dict.fromkeys(("answer", "done", "failed"), _numbered),
    **dict.fromkeys(("yes", "no"), _decided),
    **dict.fromkeys(("to", "tell", "ask", "group"), _addressed),
    "form": _formed,
    "tool": _by_hand,
    **dict.fromkeys(("inbox", "notices", "tasks", "who", "history", "help"), _looked),
    "resume": lambda *_: Resumes(),
    "exit": lambda *_: Leaves(),
}
