"""What of a tree a command line may run, by the words in it.

Nobody can say what a script does without running it. So a name is enough: a line that has the name of a file, or of a
folder that it lies in, may run it; and a line that runs whatever a variable or a pattern stands for may run anything.
Only lines of programs that are known to read and never to run what they are given say nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

DOCS: Final = (".md", ".rst", ".adoc", ".txt")
"""Files for people. One of them runs only where a line has its own name: `sh notes.txt`."""

IMPORTED: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pm", ".pl")
"""Files that are named without their ending."""

READERS: Final = (
    *("ruff", "black", "isort", "gofmt", "rustfmt", "clang-format", "shellcheck", "shfmt", "codespell", "typos"),
    *("pyright", "tsc", "git", "echo", "printf", "cat", "grep", "exit", "true", "false", "export", "set"),
)
READS: Final = re.compile(
    r"[\s@{]*(?:(?:then|else|do|!|exec|npx|(?:uv|poetry|pdm|hatch) run|pnpm exec)\s+)*"
    rf"(?:{'|'.join(map(re.escape, READERS))})(?:\s[^|$`()<>]*)?"
)
APART: Final = re.compile(r"&&|\|\||;|\n")
SHELLS: Final = r"(?:ba|z|da|k)?sh|source|\.|eval|-exec|python[\d.]*|node|deno|bun|ruby|perl|php"
RUNS: Final = re.compile(rf"(?:^|[\s(@{{'\"`|])(?:{SHELLS})\s+(?:-[\w-]+\s+)*([^\s;|&]+)", re.MULTILINE)
ANYTHING: Final = re.compile(rf"\brun-parts\b|\b(?:xargs|parallel)\b[^\n|;]*\s(?:{SHELLS})(?=\s|$)", re.MULTILINE)
OPEN: Final = re.compile(r"[$*?`\[{]")
LOOPS: Final = re.compile(r"\bfor\s+(\w+)\s+in\b|\bread\s+(?:-\w+\s+)*(\w+)")
TOP: Final = re.compile(r"(?:\$\(|`)(?:git rev-parse --show-toplevel|pwd|dirname (?:--\s+)?\"?\$0\"?)(?:\)|`)")
LOADS: Final = re.compile(r"\b(?:import|from|require|use|load|python[\d.]*|node|deno|bun|ruby|perl)\b")
QUOTED: Final = re.compile(r"\"([^\"\n]+)\"|'([^'\n]+)'")
OUTSIDE: Final = re.compile(r"(?<![\w.})/*-])/[\w.+/-]+")


def spoken(text: str, root: Path) -> str:
    """A script without what says nothing about the tree: notes, paths elsewhere, and commands that only read."""
    joined = text.replace("\\\n", " ").replace("\\ ", " ").replace(f"{root}/", "./")
    plain = OUTSIDE.sub(" ", TOP.sub(".", re.sub(r"(?m)^\s*#.*$", "", joined)))
    pieces = [one for one in APART.split(plain) if not READS.fullmatch(one.strip())]
    return re.sub(r"(?<!\S)-([A-Za-z])(?=[\w.])", r"-\1 ", "\n".join(pieces))


def runs_anything(text: str) -> bool:
    """Whether a script runs what only a run of it can tell."""
    if ANYTHING.search(text) or any(OPEN.search(posixpath.basename(one)) for one in RUNS.findall(text)):
        return True
    names = {name for pair in LOOPS.findall(text) for name in pair if name}
    begins = r"(?:^|\b(?:do|then|exec)\s)\s*[\"']?(?:\./)?\$\{?"
    return any(re.search(rf"{begins}{name}\b", text, re.MULTILINE) for name in names)


def of_code(text: str) -> str:
    """Of a program that is no shell's: what it loads, and what it has in quotes. Its own names mean nothing."""
    lines = [one for one in text.splitlines() if LOADS.search(one)]
    return "\n".join((*lines, *(one for pair in QUOTED.findall(text) for one in pair if one)))


def mentioned(paths: Iterable[str], text: str, *, around: bool = True) -> set[str]:
    """Those of these files of which a script has the name, or that of a folder `around` them."""
    low = text.casefold()
    loads = "\n".join(one for one in low.splitlines() if LOADS.search(one))
    known = dict[tuple[str, bool], bool]()

    def says(name: str, *, loaded: bool = False) -> bool:
        if (name, loaded) not in known:
            known[name, loaded] = _says(loads if loaded else low, name.casefold())
        return known[name, loaded]

    def is_meant(path: str) -> bool:
        *folders, name = path.split("/")
        stem, ending = posixpath.splitext(name)
        within = around and not path.lower().endswith(DOCS) and any(map(says, folders))
        return says(name) or within or (ending in IMPORTED and says(stem, loaded=True))

    return {one for one in paths if is_meant(one)}


def _says(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None
