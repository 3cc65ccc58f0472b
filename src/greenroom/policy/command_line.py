"""A command line as rules see it: a plain list of arguments, or text that only a shell understands.

Nothing here knows a program or the grammar of a shell. A line is *plain* if no character in it is special to a POSIX
shell, so that the program gets exactly these words. Rules that allow commands apply to plain lines only. Other lines
are split into *tokens*: the text between blanks and special characters, without quotes. Rules that forbid search them.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from greenroom.core.base.records import record

Words: TypeAlias = tuple[str, ...]
Relevance: TypeAlias = Literal["", "maybe", "certain"]

MAX_LINE_CHARS: Final = 32_768
MAX_WORDS: Final = 300
_PLAIN: Final = re.compile(
    r"""(?:[^\s\\'"`$*?\[{}~;&|()<>\#]+"""
    r"""|[ \t]+|\\[^\n\r]|'[^']*'|"(?:[^"\\$`]|\\["\\])*"|(?<=\S)\#|(?<=[A-Za-z0-9])~|\{[A-Za-z0-9]*\})*"""
)
_ASSIGNS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_QUOTES: Final = str.maketrans("", "", "'\"\\")
_TOKEN: Final = re.compile(r"[^\s;&|<>()$`{},=!@]+")
_EXPANDS: Final = re.compile(r"[$`*?\[{]")
_UNKNOWN: Final = re.compile(r"(?:^|[;&|({!\n]|\b(?:do|then|else)\s)\s*\"?[$`]")
"""Where the program's name comes from a shell expansion."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_:-]*")


@record
class CommandLine:
    """A line, its words if it is plain, its tokens, and the names of all programs that it may mention. It `expands` if
    the shell may replace a word; it `hides` if that word is a program's name."""

    text: str
    words: Words | None
    tokens: Words
    programs: frozenset[str]
    expands: bool
    hides: bool


@lru_cache(maxsize=256)
def read_line(text: str) -> CommandLine:
    """Parse a line; only the beginning if it is longer than `MAX_LINE_CHARS`."""
    line = text.strip()
    words = split_plain_words(line) if len(line) <= MAX_LINE_CHARS else None
    if words is not None and (_ASSIGNS.match(words[0]) or words[0] == "!" or len(words) > MAX_WORDS):
        words = None
    tokens = split_tokens(line[:MAX_LINE_CHARS])
    programs = frozenset(map(read_program_name, (*tokens, *(words or ())[:1])))
    return CommandLine(
        text=line,
        words=words,
        tokens=tokens,
        programs=programs,
        expands=words is None and _EXPANDS.search(line) is not None,
        hides=words is None and _UNKNOWN.search(line[:MAX_LINE_CHARS]) is not None,
    )


def split_plain_words(text: str) -> Words | None:
    """Return the words of a text without shell syntax; None if it has any, or has no word."""
    if find_special_sign(text):
        return None
    words = tuple(shlex.split(text) if re.search(r"[\\'\"]", text) else text.split())
    return words if words and words[0] else None


def find_special_sign(text: str) -> str:
    """Return the first character that is special to a shell or invisible; empty if there is none."""
    found = _PLAIN.match(text)
    end = found.end() if found else 0
    if end < len(text):
        return text[end]
    return next((sign for sign in text if not (sign == "\t" or sign.isprintable())), "")


def split_tokens(text: str) -> Words:
    """Split a text at blanks and special characters, without quotes."""
    return tuple(_TOKEN.findall(text.translate(_QUOTES)))


@lru_cache(maxsize=8192)
def read_program_name(word: str) -> str:
    """Return the name of a program without its folder."""
    return word.rpartition("/")[2].casefold()


def match_rule(rule: Words, line: CommandLine) -> Relevance:
    """Return whether a tightening rule applies. It is certain for a plain line that begins with its words, and for any
    other line that holds them side by side. It is possible if the line mentions all of them, or could assemble them."""
    if not rule:
        return "certain"
    first, rest = read_program_name(rule[0]), split_tokens(" ".join(rule[1:]))
    if line.words is not None:
        if read_program_name(line.words[0]) == first and line.words[1 : len(rule)] == rule[1:]:
            return "certain"
    elif any(
        read_program_name(token) == first and line.tokens[at + 1 : at + 1 + len(rest)] == rest
        for at, token in enumerate(line.tokens)
    ):
        return "certain"
    mentioned = first in line.programs and (line.expands or set(rest).issubset(line.tokens))
    return "maybe" if mentioned or line.hides else ""


def find_useful_prefix(words: Words) -> Words:
    """Return the first words that make a useful rule: a program and the names after it (`npm run build`). Without such
    a name the result is empty: only a rule for the whole line is narrow enough."""
    named = next((at for at, word in enumerate(words[1:], 1) if not _NAME.fullmatch(word)), len(words))
    return words[:named] if named > 1 else ()
