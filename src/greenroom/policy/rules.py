"""Rules, as people write them: one line each, `LEVEL KIND WHAT`.

    allow command git status            this program with these first words, and any words after them
    deny command *                      any command
    allow line python build.py          exactly this command line
    allow path docs/** write            files, relative to the workspace root; `read`, `write`, or both without a word
    ask host *.example.org:8080         a host; with `*.` all hosts below the domain
    allow tool mcp__files__*            a tool; with a final `*` all tools with this prefix

Levels are allow, notify (run and reported), ask and deny; public, confirm and restricted are aliases for three.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

from greenroom.core.base import hosts
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import record
from greenroom.policy.command_line import find_special_sign, split_plain_words
from greenroom.policy.paths import ANY, ROOT, Access

Level: TypeAlias = Literal["allow", "notify", "ask", "deny"]
RuleKind: TypeAlias = Literal["command", "line", "path", "host", "tool"]

STRICTNESS: Final[dict[Level, int]] = {"allow": 0, "notify": 1, "ask": 2, "deny": 3}
KINDS: Final[tuple[RuleKind, ...]] = get_args(RuleKind)
LEVEL_ALIASES: Final[dict[str, Level]] = {"public": "allow", "confirm": "ask", "restricted": "deny"}
LEVELS: Final[dict[str, Level]] = {**{level: level for level in STRICTNESS}, **LEVEL_ALIASES}
MAX_RULE_CHARS: Final = 1000
MAX_STARS: Final = 6
ANY_COMMAND: Final = "*"
_TOOL: Final = re.compile(r"[A-Za-z0-9_.:/-]*\*?")
_PLAIN_PATH: Final = re.compile(r"[\w@%+=:,./*?\[\]!-]+")
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")


class BadRule(WorldFault):
    """A rule is invalid. The message says which, why, and how to fix it."""


@record
class Rule:
    """One rule. `words` are a command's first words (none: any command), a whole line, the names of a path pattern, a
    host and its port, or a tool's name."""

    level: Level
    kind: RuleKind
    words: tuple[str, ...]
    access: Access = ""

    def __str__(self) -> str:
        match self.kind:
            case "command":
                what = shlex.join(self.words) if self.words else ANY_COMMAND
            case "path":
                path = "/".join(self.words).replace("//", "/", 1)  # the root is a word of its own
                # Its stars need no quotes: no shell reads it.
                what = f"{path if _PLAIN_PATH.fullmatch(path) else shlex.quote(path)} {self.access}".rstrip()
            case "host":
                what = str(self.host)
            case _:
                what = self.words[0]
        return f"{self.level} {self.kind} {what}"

    @property
    def host(self) -> hosts.Host:
        return hosts.Host(name=self.words[0], port=int(self.words[1]))


@lru_cache(maxsize=8192)
def parse(text: str) -> Rule:
    """Parse a rule. Raise `BadRule` if it is invalid."""
    line = text.strip()
    if len(line) > MAX_RULE_CHARS or _UNSEEN.search(line) or not line.isprintable():
        raise BadRule("policy.rule_not_printable", line=line[:60], max_rule_chars=MAX_RULE_CHARS)
    level, kind, what = (*line.split(maxsplit=2), "", "", "")[:3]
    if level not in LEVELS:
        raise _build_error(line, translate("policy.unknown_level", level=level), level, STRICTNESS)
    if kind not in KINDS:
        raise _build_error(line, translate("policy.unknown_kind", kind=kind), kind, KINDS)
    if not what:
        raise BadRule("policy.rule_incomplete", line=line, kind=kind, examples=_EXAMPLES[kind])
    words, access = _read_subject(kind, line, what)
    return Rule(level=LEVELS[level], kind=kind, words=words, access=access)


def parse_all(lines: Iterable[str]) -> tuple[Rule, ...]:
    """Parse several rules. Empty lines and lines that begin with # are skipped."""
    texts = (part.strip() for line in lines for part in line.split("\n"))
    return tuple(parse(text) for text in texts if text and not text.startswith("#"))


_EXAMPLES: Final = {
    "command": "allow command git fetch origin",
    "line": "allow line python build.py",
    "path": "deny path secrets/**",
    "host": "allow host docs.python.org",
    "tool": "ask tool mcp__files__write",
}


def _build_error(line: str, why: str, word: str, known: Iterable[str]) -> BadRule:
    names = list(known)
    near = get_close_matches(word.lower(), names, n=1)
    code = "policy.misspelled_rule_word" if near else "policy.unknown_rule_word"
    return BadRule(code, line=line, why=why, near="".join(near), names=", ".join(names))


def _read_subject(kind: RuleKind, line: str, what: str) -> tuple[tuple[str, ...], Access]:
    """Parse a rule's subject: its words and, for a path, read or write access."""
    match kind:
        case "command":
            return _read_command(line, what), ""
        case "line":
            return (what,), ""
        case "path":
            return _read_path(line, what)
        case "host":
            try:
                found = hosts.parse_host(what, pattern=True)
            except hosts.BadHost as why:
                raise BadRule("policy.bad_rule_host", line=line, what=what, why=why) from None
            return (found.name, str(found.port)), ""
        case "tool":
            if _TOOL.fullmatch(what) is None:
                raise BadRule("policy.bad_tool_name", line=line, what=what)
            return (what,), ""


def _read_command(line: str, what: str) -> tuple[str, ...]:
    if what == ANY_COMMAND:
        return ()
    words = split_plain_words(what)
    if words is None:
        _split_words(line, what)
        raise BadRule("policy.command_not_plain", line=line, special_sign=find_special_sign(what))
    return words


def _read_path(line: str, what: str) -> tuple[tuple[str, ...], Access]:
    words = _split_words(line, what)
    access: Access = ""
    if len(words) > 1 and words[-1] in {"read", "write"}:
        access = "read" if words.pop() == "read" else "write"
    if len(words) != 1:
        wrong = words[-1] if len(words) == 2 else what
        raise _build_error(line, translate("policy.word_after_path", wrong=wrong), wrong, ("read", "write"))
    return parse_path_pattern(line, words[0]), access


def parse_path_pattern(line: str, text: str) -> tuple[str, ...]:
    """Return the names of a path pattern. A trailing slash means a folder with all its content."""
    if text.startswith("~"):
        raise BadRule("policy.path_with_tilde", line=line)
    names = [name for name in text.split("/") if name not in {"", "."}]
    if ".." in names:
        raise BadRule("policy.path_with_parent", line=line)
    if any(ANY in name and name != ANY for name in names):
        raise BadRule("policy.double_star_mixed", line=line)
    if text.count("*") - text.count(ANY) > MAX_STARS:
        raise BadRule("policy.too_many_stars", line=line, max_stars=MAX_STARS)
    if text.endswith("/") and names[-1:] != [ANY]:
        names.append(ANY)
    once = [name for at, name in enumerate(names) if name != ANY or names[at - 1 : at] != [ANY]]
    if not once and not text.startswith("/"):
        raise BadRule("policy.rule_without_path", line=line)
    return (ROOT, *once) if text.startswith("/") else tuple(once)


def _split_words(line: str, what: str) -> list[str]:
    try:
        return shlex.split(what)
    except ValueError:
        raise BadRule("policy.unclosed_quotation_mark", line=line) from None
