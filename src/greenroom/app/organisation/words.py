"""Names, languages and sentences of an organisation. It imports no skills, so it loads at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Final, TypeAlias

from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import TaskId, looks_like, task_id

KIT: Final = "organisation"
BASE: Final[TaskId] = task_id(1)
"""The task that an organisation begins with, and that only a person ends."""

MANAGER: Final = "manager"
"""Who manages when the charter names no manager."""

ROLES: Final = ("researcher", "writer", "analyst", "engineer", "reviewer")
"""Blueprints that are always there."""

CHINESE: Final = "zh"
LANGUAGES: Final = ("en", CHINESE)
"""Those that an organisation speaks."""

STATES: Final = {"finished": "已完成", "failed": "失败", "cancelled": "已取消"}
"""How work ends, in Chinese."""


def in_language(words: Mapping[str, str], language: str) -> str:
    """The words of a language; English where it has none."""
    return words.get(language.partition("-")[0], words["en"])


Phrases: TypeAlias = Mapping[str, str]


class Catalogue:
    """Phrases of a package by table and name: a file `STEM.LANGUAGE.toml` for each language."""

    def __init__(self, package: str, stem: str) -> None:
        self._package = package
        self._stem = stem
        self._tables: dict[str, Mapping[str, Phrases]] = {}

    def table(self, name: str, language: str) -> Phrases:
        """All phrases of a table in a language; in English where there is no such language."""
        spoken = language.partition("-")[0]
        spoken = spoken if spoken in LANGUAGES else LANGUAGES[0]
        if spoken not in self._tables:
            file = files(self._package) / f"{self._stem}.{spoken}.toml"
            self._tables[spoken] = tomllib.loads(file.read_text(encoding="utf-8"))
        return self._tables[spoken][name]

    def phrase(self, table: str, name: str, language: str, /, **known: object) -> str:
        """One phrase with what is known put into it."""
        return self.table(table, language)[name].format(**known)


CATALOGUE: Final = Catalogue("greenroom.app.organisation", "words")
phrase: Final = CATALOGUE.phrase


def commands(language: str) -> Phrases:
    """What each command of a person's room does. What it takes comes first, before two spaces."""
    return CATALOGUE.table("commands", language)


def refused(code: str, hint: str, language: str, **known: object) -> Refused:
    """Why something cannot be done, and what to do instead. `there` lists what there is; an empty list is said too."""
    known["there"] = known.get("there") or phrase("hints", "none", language)
    why = phrase("refusals", code, language, **known)
    return Refused(Rejected(code=code, why=why, hint=phrase("hints", hint, language, **known)))


def sent_away(team: str, language: str) -> Refused:
    """A person who was dismissed wants something of the organisation."""
    return refused("sent_away", "come_back", language, name=team)


def nobody(name: str, agents: Iterable[str], language: str) -> Refused:
    """There is no agent of this name. One whose name looks like it is offered: ben for `Ben`, or in another script."""
    there = sorted(agents)
    near = next((agent for agent in there if looks_like(agent, name)), None)
    hint = "there" if near is None else "meant"
    return refused("unknown_agent", hint, language, name=name, near=near, there=", ".join(there))
