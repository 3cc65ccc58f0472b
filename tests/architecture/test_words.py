"""User-visible text, docstrings and pages use plain technical English."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.house import ROOT, Finding, listing

BANNED = re.compile(
    r"\b(?:who|what)ever\b|\b(?:some|no)body\b|\bthe house\b|\bwalls?\b(?!_)|\bhands\b"
    r"|(?<!there )\b(?:is|are|was|were) no\b(?! longer\b)",
    re.IGNORECASE,
)
"""`there is no …` and `is no longer` are fine."""

PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md", "src/greenroom/**/en.toml", "src/greenroom/**/*.en.toml")
KEPT = ("docs/requirements.md",)
"""The requirements keep the words of their sources."""

NAMES = ("sandbox.walls", "`walls`", 'walls = "')
"""Setting keys keep their names."""


def find_sentences(text: str) -> Iterator[str]:
    """Yield docstrings and other string literals of more than one word."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.value


def find_banned(text: str) -> Iterator[str]:
    """Yield each banned word with some words around it."""
    for name in NAMES:
        text = text.replace(name, "")
    flat = " ".join(text.split())
    for found in BANNED.finditer(flat):
        yield flat[max(0, found.start() - 30) : found.end() + 20]


def read_texts() -> Iterator[tuple[Path, str]]:
    for path in sorted((ROOT / "src").rglob("*.py")):
        for sentence in find_sentences(path.read_text("utf-8")):
            yield path, sentence
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            if path.relative_to(ROOT).as_posix() not in KEPT:
                text = path.read_text("utf-8")
                yield path, re.sub(r"^\w+ = ", "", text, flags=re.MULTILINE) if path.suffix == ".toml" else text


def test_texts_use_plain_words() -> None:
    found = [Finding(str(path.relative_to(ROOT)), word) for path, text in read_texts() for word in find_banned(text)]
    assert not found, listing(found)


def test_the_check_finds_what_it_is_for() -> None:
    bad = "Whoever asks. Nobody knows. It is no folder. The house has walls. In good hands."
    assert len(list(find_banned(bad))) == 6
    assert not list(find_banned("There is no folder here. It is no longer used. `sandbox.walls` is a key."))
