"""Rules, as people write them: one line each, `LEVEL KIND WHAT`.

    allow command git status            this program with these words first, and whatever words after them
    deny command *                      any command
    allow line python build.py          exactly this command line
    allow path docs/** write            files, from the workspace's root; `read`, `write`, or without a word both
    ask host *.example.org:8080         a host; with `*.` all hosts below it
    allow tool mcp__files__*            a tool; with `*` at the end all that begin so

Levels are allow, notify (done, and told), ask and deny; public, confirm and restricted are other words for three.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

from greenroom.core.base import hosts
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.policy.command_line import plain_words, special_sign
from greenroom.policy.paths import ANY, ROOT, Access

Level: TypeAlias = Literal["allow", "notify", "ask", "deny"]
Kind: TypeAlias = Literal["command", "line", "path", "host", "tool"]

STRICT: Final[dict[Level, int]] = {"allow": 0, "notify": 1, "ask": 2, "deny": 3}
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
OTHER_WORDS: Final[dict[str, Level]] = {"public": "allow", "confirm": "ask", "restricted": "deny"}
LEVELS: Final[dict[str, Level]] = {**{level: level for level in STRICT}, **OTHER_WORDS}
LONGEST: Final = 1000
MOST_STARS: Final = 6
EVERYTHING: Final = "*"
_TOOL: Final = re.compile(r"[A-Za-z0-9_.:/-]*\*?")
_PLAIN_PATH: Final = re.compile(r"[\w@%+=:,./*?\[\]!-]+")
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")


class BadRule(WorldFault):
    """A rule that cannot be read. It says what, which and what to do."""


@record
class Rule:
    """One rule. `words` are a command's first words (none: any command), a whole line, the names of a path's pattern,
    a host with its port, or a tool's name."""

    level: Level
    kind: Kind
    words: tuple[str, ...]
    access: Access = ""

    def __str__(self) -> str:
        match self.kind:
            case "command":
                what = shlex.join(self.words) if self.words else EVERYTHING
            case "path":
                path = "/".join(self.words).replace("//", "/", 1)  # the root is a word by itself
                # Its stars need no quotation, for no shell reads it.
                what = f"{path if _PLAIN_PATH.fullmatch(path) else shlex.quote(path)} {self.access}".rstrip()
            case "host":
                what = str(self.host)
            case _:
                what = self.words[0]
        return f"{self.level} {self.kind} {what}"

    @property
    def host(self) -> hosts.Host:
        """The host of a rule about one."""
        return hosts.Host(name=self.words[0], port=int(self.words[1]))


@lru_cache(maxsize=8192)
def parse(text: str) -> Rule:
    """Read a rule; `BadRule` when it is none."""
    line = text.strip()
    if len(line) > LONGEST or _UNSEEN.search(line) or not line.isprintable():
        raise BadRule(f"The rule {line[:60]!r} has invisible signs or is longer than {LONGEST} characters. Shorten it.")
    level, kind, what = (*line.split(maxsplit=2), "", "", "")[:3]
    if level not in LEVELS:
        raise _bad(line, f"begins with {level!r}, which is no level", level, LEVELS)
    if kind not in KINDS:
        raise _bad(line, f"is about a {kind!r}, which is nothing rules are about", kind, KINDS)
    if not what:
        raise BadRule(f"The rule {line!r} ends too early: say which {kind}, for instance {_EXAMPLES[kind]!r}.")
    words, access = _read(kind, line, what)
    return Rule(level=LEVELS[level], kind=kind, words=words, access=access)


def parse_all(lines: Iterable[str]) -> tuple[Rule, ...]:
    """Read several rules. Empty lines and those that begin with # are none."""
    texts = (one.strip() for line in lines for one in line.split("\n"))
    return tuple(parse(text) for text in texts if text and not text.startswith("#"))


_EXAMPLES: Final = {
    "command": "allow command git fetch origin",
    "line": "allow line python build.py",
    "path": "deny path secrets/**",
    "host": "allow host docs.python.org",
    "tool": "ask tool mcp__files__write",
}


def _bad(line: str, why: str, word: str, known: Iterable[str]) -> BadRule:
    names = list(known)
    near = get_close_matches(word.lower(), names, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return BadRule(f"The rule {line!r} {why}. {hint}There are: {', '.join(names)}.")


def _read(kind: Kind, line: str, what: str) -> tuple[tuple[str, ...], Access]:
    """What a rule is about: its words, and for a path whether it is read or written."""
    match kind:
        case "command":
            return _command(line, what), ""
        case "line":
            return (what,), ""
        case "path":
            return _path(line, what)
        case "host":
            try:
                found = hosts.host(what, pattern=True)
            except hosts.BadHost as why:
                raise BadRule(f"The rule {line!r} is about {what!r}, which {why}.") from None
            return (found.name, str(found.port)), ""
        case "tool":
            if _TOOL.fullmatch(what) is None:
                no_tool = "which is no tool's name. A star may stand at its end only."
                raise BadRule(f"The rule {line!r} is about {what!r}, {no_tool}")
            return (what,), ""


def _command(line: str, what: str) -> tuple[str, ...]:
    if what == EVERYTHING:
        return ()
    words = plain_words(what)
    if words is None:
        _split(line, what)
        raise BadRule(
            f"The rule {line!r} is not a plain list of words: {special_sign(what)!r} means something to the shell. "
            "Leave it out, as a rule covers all words that follow its own, or quote it if it is meant literally. "
            "For exactly one command line write 'allow line …'."
        )
    return words


def _path(line: str, what: str) -> tuple[tuple[str, ...], Access]:
    words = _split(line, what)
    access: Access = ""
    if len(words) > 1 and words[-1] in {"read", "write"}:
        access = "read" if words.pop() == "read" else "write"
    if len(words) != 1:
        wrong = words[-1] if len(words) == 2 else what
        raise _bad(line, f"has {wrong!r} after its path (quote a path with spaces)", wrong, ("read", "write"))
    return pattern(line, words[0]), access


def pattern(line: str, text: str) -> tuple[str, ...]:
    """The names of a path's pattern. A folder is written with a slash at its end, and means all in it."""
    if text.startswith("~"):
        raise BadRule(f"The rule {line!r} begins a path with ~. Write the whole path: rules know nobody's home.")
    names = [name for name in text.split("/") if name not in {"", "."}]
    if ".." in names:
        raise BadRule(f"The rule {line!r} has '..' in its path. Write the path from the workspace's root, or from /.")
    if any(ANY in name and name != ANY for name in names):
        raise BadRule(f"The rule {line!r} has '**' beside other signs. Between two slashes it stands alone.")
    if text.count("*") - text.count(ANY) > MOST_STARS:
        raise BadRule(f"The rule {line!r} has more than {MOST_STARS} stars. Write several rules.")
    if text.endswith("/") and names[-1:] != [ANY]:
        names.append(ANY)
    once = [name for at, name in enumerate(names) if name != ANY or names[at - 1 : at] != [ANY]]
    if not once and not text.startswith("/"):
        raise BadRule(f"The rule {line!r} names no path. For the whole workspace write '**'.")
    return (ROOT, *once) if text.startswith("/") else tuple(once)


def _split(line: str, what: str) -> list[str]:
    try:
        return shlex.split(what)
    except ValueError:
        raise BadRule(f"The rule {line!r} has a quotation without its end. Close it.") from None
