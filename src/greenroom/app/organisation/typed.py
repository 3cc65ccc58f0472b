"""What a person types in an organisation, as data: whom it is for, or what it is to do. Everything else is a request.

`/answer 2 …` is always a command; without the slash it is one where it can mean nothing else. What only looks like one
is not sent: somebody who mistypes is asked. A line that begins with a space is always said, never done; `//` says a
slash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

from greenroom.app.organisation.names import CHINESE, in_language
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

COMMANDS_ZH: Final = {
    "answer": "N 内容  回复第N条消息",
    "done": "N 汇报  第N条消息中的职责已完成",
    "failed": "N 原因  第N条消息中的职责无法完成",
    "yes": "N  批准第N条消息中的步骤；yes N run 或 yes N always 表示长期批准",
    "no": "N 原因  拒绝第N条消息中的步骤",
    "to": "名字: 内容  给某人发消息并要求回复；多人：a,b: 内容",
    "tell": "名字: 内容  给某人发消息，无需回复",
    "ask": "名字: 内容  请某人办事；直接输入文字则发给管理者",
    "group": "群组: 内容  在群组中发言；用@点名的Agent也会收到",
    "form": "群组 ann, ben  与他人建立群组",
    "tool": "工具 {…}  手动使用工具；绑定到阶段：tool 工具 in t2.s1 {…}",
    "inbox": "等您处理的消息",
    "notices": "系统通知",
    "tasks": "进行中的任务",
    "who": "有谁，在做什么",
    "history": "名字  您与某人的对话",
    "resume": "继续暂停的内容",
    "help": "可以输入什么",
    "exit": "离开；组织保留",
}
"""The same in Chinese."""

OTHER_NAMES: Final = {"quit": "exit", "q": "exit", "bye": "exit", "?": "help", "y": "yes", "n": "no", "mail": "inbox"}
ALONE: Final = ("inbox", "notices", "tasks", "who", "resume", "help", "exit", "quit", "yes", "no", "y", "n")
"""What is a command also without a slash, when nothing else stands on the line."""

SHORT: Final = 4
"""Letters. A shorter word is near to too many others."""

NEAR: Final = 0.8
"""How near a word must be to a command to be a mistyped one."""

SHOWN: Final = 40
"""Characters of a word that is no command."""

DIGITS: Final = 9
"""Digits of a number that can be that of a letter."""

NO_COMMAND: Final = {"en": "There is no command /{word}. {hint} {literal}", "zh": "没有命令 /{word}。{hint}{literal}"}
MEANT: Final = {"en": "Did you mean /{near}?", "zh": "您是想输入 /{near} 吗？"}
SEE_HELP: Final = {"en": "/help says what can be typed.", "zh": "/help 说明可以输入什么。"}
LITERAL: Final = {
    "en": "To say it as it is, begin the line with a space.",
    "zh": "要原样发送，请在行首加一个空格。",
}
HOW: Final = {"en": "Type it like this: {name} {takes}  ({about})", "zh": "请这样输入：{name} {takes}（{about}）"}
NOT_SENT: Final = {"en": "That was not sent. {hint} {literal}", "zh": "未发送。{hint}{literal}"}
NO_JSON: Final = {
    "en": "What follows the tool's name is no JSON: {error}.",
    "zh": "工具名之后的内容不是JSON：{error}。",
}

NUMBERED: Final = re.compile(r"(answer|done|failed|yes|no)\s+(\d+)(?:\s|$)", re.IGNORECASE)
ADDRESSED: Final = re.compile(r"(to|tell|ask|group)\s+([^\s:：]+(?:\s*[,，]\s*[^\s:：,，]+)*)\s*[:：]", re.IGNORECASE)
TOOL: Final = re.compile(r"tool\s+\S+(?:\s+in\s+\S+)?\s*(?:\{|$)", re.IGNORECASE)
CALLED: Final = re.compile(r"@[\w.-]+(?:\s|[,:：，]|$)")
COLON: Final = re.compile("[:：]")
COMMA: Final = re.compile("[,，]")
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


def understood(line: str, language: str = "en") -> Typed:
    """What a line means; what is unclear is said in this language."""
    if line[:1].isspace():
        return Plain(text=line.strip())
    text = line.strip()
    if text.startswith("//"):
        return Plain(text=text[1:])
    if text.startswith("/"):
        return _command(text[1:], language)
    meant = text.lower() in ALONE or any(one.match(text) for one in (NUMBERED, ADDRESSED, TOOL))
    return _command(text, language) if meant else _mistyped(text, language) or Plain(text=text)


def _mistyped(text: str, language: str) -> Unclear | None:
    """A line of one word that is a command without what it takes, or nearly one that takes nothing; or a call to
    somebody, which is for them and not for the manager."""
    word, literal = text.lower(), in_language(LITERAL, language)
    if word in COMMANDS or CALLED.match(text):
        how = _how(word if word in COMMANDS else "to", language)
        return Unclear(why=in_language(NOT_SENT, language).format(hint=how.why, literal=literal))
    near = get_close_matches(word, (one for one in ALONE if len(one) >= SHORT), n=1, cutoff=NEAR)
    if not near or len(word) < SHORT or not word.isalpha():
        return None
    hint = in_language(MEANT, language).format(near=near[0])
    return Unclear(why=in_language(NOT_SENT, language).format(hint=hint, literal=literal))


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


def commands(language: str) -> Mapping[str, str]:
    """The commands, and what each does, in a language."""
    return COMMANDS_ZH if language.partition("-")[0] == CHINESE else COMMANDS


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
    words = more if name == "yes" and more.lower() in ("run", "always") else f"{name} {more}".strip()
    return Decision(number=number, words=words)


def _addressed(name: str, rest: str, language: str) -> Typed:
    found = COLON.search(rest)
    who, text = (rest[: found.start()], rest[found.end() :].strip()) if found is not None else _parted(rest)
    names = tuple(one.strip().lstrip("@") for one in COMMA.split(who) if one.strip())
    if not names or not text:
        return _how(name, language)
    if name == "group":
        return InGroup(group=names[0], text=text, named=tuple(dict.fromkeys(NAMED.findall(text))))
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
        return Unclear(why=in_language(NO_JSON, language).format(error=error))
    return ByHand(tool=words[0], given=given, stage=stage)


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
