"""Command lines, read as far as it takes to see which files they name: recipes, scripts, the settings of tox and nox.

This is no shell. What it cannot read it leaves, and whoever asks looks at names as well.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.core.base.records import record

LONGEST: Final = 10_000
"""Characters of a line that is read."""

DEEP: Final = 3
"""Command lines inside of command lines."""

BETWEEN: Final = re.compile(r"[;&|()`{}]+")
"""What stands between two commands."""

SET: Final = re.compile(r"^(?:export\s+|override\s+|local\s+)*([A-Za-z_]\w*)\s*[:?+]?=\s*(.*)$")
USED: Final = re.compile(r"\$[({]([A-Za-z_]\w*)[)}]|\$([A-Za-z_]\w*)")
KEY: Final = re.compile(r"^[\w.\-:]+(?:\s*=|:)\s+")
"""`commands = …` of tox, `test: …` of package.json and of a recipe."""

QUOTED: Final = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
ALWAYS: Final = (
    *(("$(CURDIR)", "."), ("${CURDIR}", "."), ("$(MAKE)", "make"), ("${MAKE}", "make")),
    *(("$PWD", "."), ("$(pwd)", ".")),
)
"""What is set without anybody setting it."""

WORDS_FIRST: Final = frozenset({"do", "then", "else", "if", "elif", "while", "until", "!", "time", "exec", "command"})
PREFIXES: Final = frozenset({"env", "sudo", "nice", "nohup", "timeout", "xargs"})
QUIET: Final = "-@+"
"""What make reads before a command."""


@record
class Command:
    """One command, in the `folder` in which it runs, as far as that is told."""

    folder: str
    words: tuple[str, ...]


def commands(text: str, folder: str = ".", *, depth: int = 0) -> Iterator[Command]:
    """All commands of a text, each in its folder: `cd` counts until the end of its line, and on its own until the
    end of the text."""
    known = set_in(text)
    here = folder
    for line in text.replace("\\\n", " ").splitlines():
        if len(line) > LONGEST:
            continue
        now = here
        for words in _simple(with_settings(line.strip(), known)):
            if words[0] in ("cd", "pushd") and len(words) > 1:
                now = placed(now, words[1])
                continue
            yield Command(folder=now, words=words)
            inner = [one for one in words[1:] if " " in one] if depth < DEEP else []
            yield from (found for one in inner for found in commands(one, now, depth=depth + 1))
        if line.strip().startswith(("cd ", "pushd ")) and not BETWEEN.search(line):
            here = now


def as_called(source: str) -> str:
    """Calls of a program's source as command lines: `session.run("sh", "ci/t.sh")` is `sh ci/t.sh`."""
    lines = ([one or other for one, other in QUOTED.findall(line)] for line in source.splitlines())
    return "\n".join(" ".join(words) for words in lines if words)


def placed(folder: str, path: str) -> str:
    """A path as seen from the root; it may lead out of it."""
    return posixpath.normpath(posixpath.join(folder, path))


def set_in(text: str) -> dict[str, str]:
    """What is set in a text, by name."""
    return {match[1]: match[2] for line in text.splitlines() if (match := SET.match(line.strip()))}


def with_settings(line: str, known: Mapping[str, str]) -> str:
    """With what is set in the place of its name, also where that names something else that is set."""
    for name, meant in ALWAYS:
        line = line.replace(name, meant)
    for _ in range(DEEP):
        filled = USED.sub(lambda match: known.get(match[1] or match[2], match[0]), line)
        if filled == line or len(filled) > LONGEST:
            break
        line = filled
    return line


def _simple(line: str) -> Iterator[tuple[str, ...]]:
    told = KEY.sub("", line.lstrip(QUIET))
    for part in dict.fromkeys((line.lstrip(QUIET), told)):
        for words in _split(part):
            rest = _without_prefixes(words)
            if rest:
                yield rest


def _split(line: str) -> Iterator[list[str]]:
    try:
        reader = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
        reader.whitespace_split = True
        reader.commenters = "#" if line.startswith("#") or " #" in line else ""
        words = list(reader)
    except ValueError:  # a quote that goes on in the next line
        words = line.replace('"', " ").replace("'", " ").split()
    found: list[str] = []
    for word in words:
        if BETWEEN.fullmatch(word):
            yield found
            found = []
        else:
            found.append(word)
    yield found


def _without_prefixes(words: list[str]) -> tuple[str, ...]:
    """Without what only says how: variables that are set, `env`, `do`. What a variable is set to is a word, though."""
    set_to: list[str] = []
    while words:
        first = words[0].lstrip(QUIET) or words[0]
        variable = SET.match(first)
        if variable is None and first not in WORDS_FIRST and first not in PREFIXES:
            return (first, *words[1:], *set_to)
        set_to += [variable[2]] if variable is not None and "/" in variable[2] else []
        words = words[1:]
    return ("set", *set_to) if set_to else ()
