"""Files that a sentence names, in quotes or without: careful rather than complete, for many other words have a dot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from greenroom.abilities.checks.prose import QUOTED, unquoted
from greenroom.core.base.records import record

PATH: Final = re.compile(r"(?:\./)?(?:[\w.@+-]+/)*[\w.@+-]*\w\.[A-Za-z][A-Za-z0-9]{0,5}")
LINE: Final = re.compile(r":\d+(?:-\d+)?$")
SUFFIXES: Final = (
    *(".py", ".pyi", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".json", ".toml", ".yaml", ".yml", ".md", ".rst"),
    *(".txt", ".cfg", ".ini", ".sh", ".html", ".css", ".scss", ".sql", ".go", ".rs", ".rb", ".java", ".kt", ".c"),
    *(".h", ".cc", ".cpp", ".hpp", ".php", ".ex", ".exs", ".swift", ".cs", ".lock", ".csv", ".xml", ".vue"),
)
ALSO_CODE: Final = (".json", ".c", ".h", ".lock", ".csv", ".xml", ".html", ".sql", ".css", ".ex", ".go", ".txt", ".sh")
"""Suffixes that are also names of attributes: without a folder before it, such a word may be code."""

CODE_TOO: Final = (".js", ".ts", ".rs", ".vue", ".java", ".cs", ".rb", ".php", ".swift", ".mjs", ".cjs")
"""Suffixes that are also how things are called, as in Node.js: without a folder or a quote such a word is no file."""

OF_PROGRAMS: Final = (
    *(".json", ".toml", ".yaml", ".yml", ".txt", ".cfg", ".ini", ".html", ".lock", ".csv", ".xml", ".sql"),
)
"""Suffixes of what programs write while they run: *out/a.json was created* may tell how that went."""

SITES: Final = (".com", ".org", ".net", ".io", ".dev", ".cn", ".de")
WORD: Final = re.compile(r"[A-Za-z0-9_./@+-]+|[\u4e00-\u9fff]+|[^\s\w]")
"""The words of a sentence, and the signs between them."""

NO_NAME: Final = frozenset("$~%{<>}\\:/")
"""What stands before the rest of a name that is not all of it: `$HOME/a.md`."""


@record
class Named:
    """A file in a sentence, and where its name stands there."""

    path: str
    start: int
    end: int


def in_quotes(said: str) -> Iterator[Named]:
    """Those in quotes."""
    for match in QUOTED.finditer(said):
        if path := _path(match[1]):
            yield Named(path=path, start=match.start(), end=match.end())


def without_quotes(said: str) -> Iterator[Named]:
    """Words outside of quotes that can only be files."""
    for word in WORD.finditer(unquoted(said)):
        found = bare_file(word) if "." in word[0] else None
        if found is not None and said[word.start() - 1 : word.start()] not in NO_NAME:
            yield found


def bare_file(word: re.Match[str]) -> Named | None:
    """The file that a word without quotes is."""
    text = word[0].rstrip(".")
    first, slash, _ = text.partition("/")
    if text.startswith("/") or (slash and first.lower().endswith(SITES)):
        return None
    path = _path(text) if slash or not text.lower().endswith(CODE_TOO) else ""
    return Named(path=path, start=word.start(), end=word.start() + len(text)) if path else None


def _path(quoted: str) -> str:
    """What can only be a file: it has a suffix that files have, and nothing that only code has."""
    word = LINE.sub("", quoted.partition("::")[0].removeprefix("./"))
    if not word.lower().endswith(SUFFIXES) or not PATH.fullmatch(word) or word.startswith(("http", "www.")):
        return ""
    return word if "/" in word or not word.lower().endswith(ALSO_CODE) else ""
