"""The message catalogue: every sentence for people by table and name, in `en.toml` and `zh.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, TypeAlias

CHINESE: Final = "zh"
LANGUAGES: Final = ("en", CHINESE)
"""Those that there are messages in."""

Phrases: TypeAlias = Mapping[str, str]


class Catalogue:
    """Phrases of a package by table and name: a file `STEM.LANGUAGE.toml` for each language."""

    def __init__(self, package: str, stem: str = "") -> None:
        self._package = package
        self._stem = f"{stem}." if stem else ""
        self._tables: dict[str, Mapping[str, Phrases]] = {}

    def table(self, name: str, language: str) -> Phrases:
        """All phrases of a table in a language; in English where there is no such language."""
        spoken = language.partition("-")[0]
        spoken = spoken if spoken in LANGUAGES else LANGUAGES[0]
        if spoken not in self._tables:
            file = files(self._package) / f"{self._stem}{spoken}.toml"
            self._tables[spoken] = tomllib.loads(file.read_text(encoding="utf-8"))
        return self._tables[spoken][name]

    def phrase(self, table: str, name: str, language: str, /, **known: object) -> str:
        """One phrase with what is known put into it."""
        return self.table(table, language)[name].format(**known)


MESSAGES: Final = Catalogue("greenroom.app.messages")
phrase: Final = MESSAGES.phrase
