"""Parses what a person types in an organisation. A slash starts a command; every other line goes to the manager.

`//` sends a literal slash. A line that starts with a space is sent unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias, get_args

from greenroom.app.messages import phrase
from greenroom.app.organisation.phrases import command_phrases
from greenroom.core.base.errors import RefusedError, make_refusal
from greenroom.core.base.records import Data, record

COMMAND_ALIASES: Final = {
    "quit": "exit",
    "q": "exit",
    "bye": "exit",
    "?": "help",
    "y": "yes",
    "n": "no",
    "mail": "inbox",
}
GRANT_WORDS: Final = ("run", "always")
MAX_COMMAND_CHARS_SHOWN: Final = 40
MAX_NUMBER_DIGITS: Final = 9
COLON: Final = re.compile("[:：]")
COMMA: Final = re.compile(r"\s*[,，]\s*")
LIST: Final = re.compile(r"[\s,，]+")
MENTION: Final = re.compile(r"(?<![A-Za-z0-9_.@-])@([\w.-]+)")
NAME_CONTINUES: Final = re.compile(r"[A-Za-z0-9_-]|\.[A-Za-z0-9_]")
"""What continues a name. Chinese has no spaces, and a sentence can end with a name."""

ViewName: TypeAlias = Literal["inbox", "notices", "tasks", "who", "history", "help"]
SendMode: TypeAlias = Literal["to", "tell", "ask"]
VIEW_NAMES: Final[Mapping[str, ViewName]] = {look: look for look in get_args(ViewName)}
SEND_MODES: Final[Mapping[str, SendMode]] = {way: way for way in get_args(SendMode)}


@record
class ManagerText:
    text: str


@record
class ReplyCommand:
    """A reply to an inbox message."""

    number: int
    text: str


@record
class ReportCommand:
    """A report on a duty."""

    number: int
    text: str
    failed: bool = False


@record
class DecisionCommand:
    """An approval decision. Without a number it applies to the only request. `words` are unchanged."""

    number: int | None
    words: str


@record
class MessageCommand:
    """A message to others: to be answered, for information, or a request."""

    names: tuple[str, ...]
    text: str
    mode: SendMode


@record
class GroupMessageCommand:
    """A message to a group and to the agents that it mentions."""

    group: str
    text: str


@record
class NewGroupCommand:
    group: str
    people: tuple[str, ...]


@record
class ToolCommand:
    """A tool call with its arguments and stage."""

    tool: str
    arguments: Data
    stage: str = ""


@record
class ViewCommand:
    """A view to show."""

    what: ViewName
    about: str = ""


@record
class ResumeCommand:
    """Resume paused work."""


@record
class ExitCommand:
    """Leave the organisation's prompt."""


TypedCommand: TypeAlias = (
    ManagerText
    | ReplyCommand
    | ReportCommand
    | DecisionCommand
    | MessageCommand
    | GroupMessageCommand
    | NewGroupCommand
    | ToolCommand
    | ViewCommand
    | ResumeCommand
    | ExitCommand
)


def parse_line(line: str, language: str = "en") -> TypedCommand:
    """Parse a line. Raise `RefusedError` with the correct form of a command, in this language."""
    text = line.strip()
    if line[:1].isspace() or not text.startswith("/"):
        return ManagerText(text=text)
    if text.startswith("//"):
        return ManagerText(text=text[1:])
    word, rest = _split(text[1:])
    name = COMMAND_ALIASES.get(word.lower(), word.lower())
    phrases = command_phrases(language)
    if name not in phrases:
        near = get_close_matches(name, phrases, n=1)
        hint = phrase("input", "meant", language, near=near[0]) if near else phrase("input", "see_help", language)
        shown = word if len(word) <= MAX_COMMAND_CHARS_SHOWN else f"{word[:MAX_COMMAND_CHARS_SHOWN]}…"
        raise _make_unclear_error(
            "no_command", language, word=shown, hint=hint, literal=phrase("input", "literal", language)
        )
    command = _parse_command(name, rest, language)
    if command is None:
        takes, _, about = phrases[name].partition("  ")
        raise _make_unclear_error("how", language, name=name, takes=takes, about=about)
    return command


def find_mentions(text: str, agents: Collection[str]) -> tuple[str, ...]:
    """Return the agents that a text mentions as `@name`. An unknown mention is the whole word."""
    mentions = []
    for word in MENTION.findall(text):
        candidates = [name for name in agents if word.startswith(name) and not NAME_CONTINUES.match(word[len(name) :])]
        mentions.append(max(candidates, key=len, default=word))
    return tuple(dict.fromkeys(mentions))


def _make_unclear_error(name: str, language: str, /, **known: object) -> RefusedError:
    return make_refusal("unclear", phrase("input", name, language, **known))


def _split(text: str) -> tuple[str, str]:
    """Split the first word from the rest, which can have several lines."""
    first, *rest = text.split(maxsplit=1) or ("",)
    return first, "".join(rest).strip()


def _parse_command(name: str, rest: str, language: str) -> TypedCommand | None:
    """Parse a command and its arguments. Return None if the arguments do not fit."""
    command: TypedCommand | None
    first, text = _split(rest)
    number = int(first) if first.isdecimal() and len(first) <= MAX_NUMBER_DIGITS else None
    match name:
        case "answer":
            command = ReplyCommand(number=number, text=text) if number is not None and text else None
        case "done" | "failed":
            failed = name == "failed"
            command = ReportCommand(number=number, text=text, failed=failed) if number is not None and text else None
        case "yes" | "no":
            words = rest if number is None else text
            granted = name == "yes" and number is not None and words.lower() in GRANT_WORDS
            command = DecisionCommand(number=number, words=words if granted else f"{name} {words}".strip())
        case "to" | "tell" | "ask" | "group":
            command = _parse_address(name, rest)
        case "form":
            people = tuple(person.lstrip("@") for person in LIST.split(text) if person)
            command = NewGroupCommand(group=first.rstrip(":："), people=people) if people else None
        case "tool":
            command = _parse_tool(rest, language)
        case "resume":
            command = ResumeCommand()
        case "exit":
            command = ExitCommand()
        case _:
            command = ViewCommand(what=VIEW_NAMES[name], about=rest) if rest or name != "history" else None
    return command


def _parse_address(name: str, rest: str) -> MessageCommand | GroupMessageCommand | None:
    colon = COLON.search(rest)
    who, text = (rest[: colon.start()], rest[colon.end() :].strip()) if colon is not None else _split(rest)
    names = tuple(dict.fromkeys(part.lstrip("@") for part in COMMA.split(who.strip()) if part))
    if not names or not text:
        return None
    if name == "group":
        return GroupMessageCommand(group=names[0], text=text)
    return MessageCommand(names=names, text=text, mode=SEND_MODES[name])


def _parse_tool(rest: str, language: str) -> ToolCommand | None:
    head, brace, body = rest.partition("{")
    words = head.split()
    stage = words[2] if len(words) == 3 and words[1].lower() == "in" else ""
    if not words or (len(words) > 1 and not stage):
        return None
    try:
        arguments = json.loads(brace + body) if brace else {}
    except json.JSONDecodeError as error:
        position = {"why": error.msg, "line": error.lineno, "column": error.colno}
        raise _make_unclear_error("no_json", language, error=phrase("input", "place", language, **position)) from None
    except (ValueError, RecursionError) as error:
        raise _make_unclear_error("no_json", language, error=error) from None
    return ToolCommand(tool=words[0], arguments=arguments, stage=stage)
