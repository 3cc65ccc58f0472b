"""The message catalogue: all messages for people by table and name, in `en.toml` and `zh.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, TypeAlias

from greenroom.core.base import errors

CHINESE: Final = "zh"
LANGUAGES: Final = ("en", CHINESE)

Phrases: TypeAlias = Mapping[str, str]


class MessageCatalogue:
    """Messages of a package by table and name, with one file `STEM.LANGUAGE.toml` per language."""

    def __init__(self, package: str, stem: str = "") -> None:
        self._package = package
        self._stem = f"{stem}." if stem else ""
        self._tables: dict[str, Mapping[str, Phrases]] = {}

    def table(self, name: str, language: str) -> Phrases:
        """Return a table of messages in a language, or in English if the language is unknown."""
        code = language.partition("-")[0]
        code = code if code in LANGUAGES else LANGUAGES[0]
        if code not in self._tables:
            file = files(self._package) / f"{self._stem}{code}.toml"
            self._tables[code] = tomllib.loads(file.read_text(encoding="utf-8"))
        return self._tables[code][name]

    def phrase(self, table: str, name: str, language: str, /, **values: object) -> str:
        """Return one message with its values filled in."""
        return self.table(table, language)[name].format(**values)


MESSAGES: Final = MessageCatalogue("greenroom.app.messages")
phrase: Final = MESSAGES.phrase


class _Language:
    """The language of this process's messages."""

    code = LANGUAGES[0]


def set_language(language: str) -> None:
    """Set the language of all messages that do not name one."""
    _Language.code = language


def translate(key: str, /, **values: object) -> str:
    """Return the message with the key `TABLE.NAME` in the language of this process."""
    return render_message(key, values)


def render_message(key: str, values: Mapping[str, object]) -> str:
    """Return a message with its values, or the key itself if there is no such message."""
    table, _, name = key.partition(".")
    try:
        template = MESSAGES.table(table, _Language.code)[name]
    except KeyError:
        return key
    return template.format(**values)


errors.render = render_message
