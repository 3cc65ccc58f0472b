"""A command line as rules see it: a plain list of arguments, or a text that only a shell understands.

Nothing here knows a program or the grammar of a shell. A line is *plain* when no sign in it means something to a POSIX
shell, so that the program gets exactly these words; rules about commands open plain lines only. Of every other line its
*tokens* are known: what is left between blanks and signs, without quotes. They serve to find what a rule forbids.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from greenroom.core.base.records import record

Words: TypeAlias = tuple[str, ...]
Meaning: TypeAlias = Literal["", "maybe", "certain"]

LONGEST: Final = 32_768
MOST_WORDS: Final = 300
_PLAIN: Final = re.compile(
    r"""(?:[^\s\\'"`$*?\[{}~;&|()<>\#]+"""
    r"""|[ \t]+|\\[^\n\r]|'[^']*'|"(?:[^"\\$`]|\\["\\])*"|(?<=\S)\#|(?<=[A-Za-z0-9])~|\{[A-Za-z0-9]*\})*"""
)
_ASSIGNS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_QUOTES: Final = str.maketrans("", "", "'\"\\")
_TOKEN: Final = re.compile(r"[^\s;&|<>()$`{},=!@]+")
_EXPANDS: Final = re.compile(r"[$`*?\[{]")
_UNKNOWN: Final = re.compile(r"(?:^|[;&|({!\n]|\b(?:do|then|else)\s)\s*\"?[$`]")
"""Where a program is named by what the shell puts there."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_:-]*")


@record
class CommandLine:
    """A line, its arguments if it is plain, its tokens, and the names of all programs that it may mention.

    It `expands` when the shell may put any other word in the place of one; where a program stands it `hides` that."""

    text: str
    words: Words | None
    tokens: Words
    programs: frozenset[str]
    expands: bool
    hides: bool


@lru_cache(maxsize=256)
def read_line(text: str) -> CommandLine:
    """Take a line apart; of one that is longer than `LONGEST` only the beginning."""
    line = text.strip()
    words = plain_words(line) if len(line) <= LONGEST else None
    if words is not None and (_ASSIGNS.match(words[0]) or words[0] == "!" or len(words) > MOST_WORDS):
        words = None
    tokens = split_tokens(line[:LONGEST])
    programs = frozenset(map(program, (*tokens, *(words or ())[:1])))
    return CommandLine(
        text=line,
        words=words,
        tokens=tokens,
        programs=programs,
        expands=words is None and _EXPANDS.search(line) is not None,
        hides=words is None and _UNKNOWN.search(line[:LONGEST]) is not None,
    )


def plain_words(text: str) -> Words | None:
    """The words of a text in which nothing means something to a shell; None when something does, or it has no word."""
    if special_sign(text):
        return None
    words = tuple(shlex.split(text) if re.search(r"[\\'\"]", text) else text.split())
    return words if words and words[0] else None


def special_sign(text: str) -> str:
    """The first sign of a text that means something to a shell, or that a person cannot see; empty if there is none."""
    found = _PLAIN.match(text)
    end = found.end() if found else 0
    if end < len(text):
        return text[end]
    return next((sign for sign in text if not (sign == "\t" or sign.isprintable())), "")


def split_tokens(text: str) -> Words:
    """What stands between blanks and signs, quotes left out."""
    return tuple(_TOKEN.findall(text.translate(_QUOTES)))


@lru_cache(maxsize=8192)
def program(word: str) -> str:
    """The name of a program, wherever it lies."""
    return word.rpartition("/")[2].casefold()


def meaning(rule: Words, line: CommandLine) -> Meaning:
    """Whether a rule that tightens is about a line. It is certain for a plain line that begins with its words, and for
    any other in which they stand side by side; it may be wherever they are all mentioned, or could be put together."""
    if not rule:
        return "certain"
    first, rest = program(rule[0]), split_tokens(" ".join(rule[1:]))
    if line.words is not None:
        if program(line.words[0]) == first and line.words[1 : len(rule)] == rule[1:]:
            return "certain"
    elif any(
        program(token) == first and line.tokens[at + 1 : at + 1 + len(rest)] == rest
        for at, token in enumerate(line.tokens)
    ):
        return "certain"
    mentioned = first in line.programs and (line.expands or set(rest).issubset(line.tokens))
    return "maybe" if mentioned or line.hides else ""


def useful_prefix(words: Words) -> Words:
    """The first words that are worth a rule: a program with the names that follow it (`npm run build`). None where no
    name follows: what a program does is then said by its other words, and only the whole line is narrow enough."""
    named = next((at for at, word in enumerate(words[1:], 1) if not _NAME.fullmatch(word)), len(words))
    return words[:named] if named > 1 else ()
