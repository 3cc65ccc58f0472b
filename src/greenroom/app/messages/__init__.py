"""The message catalogue: all messages for people by table and name, in `en.toml` and `zh.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from importlib.resources import files
from typing import Final, TypeAlias

from greenroom.core.base import errors

CHINESE: Final = "zh"
LANGUAGES: Final = ("en", CHINESE)
MAX_NAMES_SHOWN: Final = 5

Phrases: TypeAlias = Mapping[str, str]


class MessageCatalogue:
    """Messages of a package by table and name, with one file `STEM.LANGUAGE.toml` per language."""

    def __init__(self, package: str, stem: str = "") -> None:
        self._package = package
        self._stem = f"{stem}." if stem else ""
        self._tables: dict[str, Mapping[str, Phrases]] = {}

    def table(self, name: str, language: str) -> Phrases:
        """Return a table of messages in a language: that of the process if it is empty, English if it is unknown."""
        code = (language or current_language()).partition("-")[0]
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


_TASK_LANGUAGE: Final = ContextVar("language", default="")


def set_language(language: str) -> None:
    """Set the language of all messages that do not name one."""
    _Language.code = language


def set_task_language(language: str) -> None:
    """Set the language of messages in the current asyncio task, as of one request; empty for that of the process."""
    _TASK_LANGUAGE.set(language)


def current_language() -> str:
    """Return the language of messages: that of the task if it has one, else that of this process."""
    return _TASK_LANGUAGE.get() or _Language.code


def count_things(noun: str, count: int) -> str:
    """Return a number of things in words, as in `3 files`."""
    return render_message(f"counts.{f'one_{noun}' if count == 1 else f'{noun}s'}", {"count": f"{count:,}"})


def render_message(key: str, values: Mapping[str, object]) -> str:
    """Return a message with its values, or the key itself if there is no such message."""
    table, _, name = key.partition(".")
    try:
        template = MESSAGES.table(table, "")[name]
    except KeyError:
        return key
    words = {
        name: MESSAGES.table(f"{name}s", "").get(str(values[name]), values[name])
        for name in ("noun", "state")
        if name in values
    }
    return template.format(**{**values, **words})


def shorten_names(names: Sequence[str], language: str = "", limit: int = MAX_NAMES_SHOWN) -> str:
    """Join the first names, with the number of the others."""
    shown, hidden = ", ".join(map(to_one_line, names[:limit])), len(names) - limit
    return phrase("hints", "names_and_more", language, names=shown, count=hidden) if hidden > 0 else shown


def to_one_line(text: str) -> str:
    """Put a text on one line. A name with a line break would look like two lines of output."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


errors.render = render_message
translate: Final = errors.translate
