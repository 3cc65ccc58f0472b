"""Single values as people write them: amounts (`200k`, `15m`, `none`), names, addresses, keys; and what is wrong.

A reader takes what stands in a file, a variable or a flag and gives the value, or `Unfit` with what it should be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

from greenroom.core.base.hosts import host

LONG_ENOUGH: Final = 12
"""Of a shorter key its end would be too much of it."""


class Secret:
    """A provider's key. Its text shows at most its last four characters."""

    __slots__ = ("_value", "provider")

    def __init__(self, provider: str, value: str) -> None:
        self.provider: Final = provider
        self._value: Final = value

    def reveal(self) -> str:
        """The key itself, for the one who sends it."""
        return self._value

    def __str__(self) -> str:
        return f"{self.provider}:****{self._value[-4:] if len(self._value) >= LONG_ENOUGH else ''}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self.provider, self._value) == (other.provider, other._value)

    def __hash__(self) -> int:
        return hash((self.provider, self._value))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("A secret is not written down. Save it with `save_key`.")


NO_CAP: Final = "none"
MOST: Final = 1e12
"""More than anybody has; and its millionths still fit into what a log can hold."""

WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
"""How a variable says that something is on or off."""

_TIME: Final = re.compile(r"(\d+(?:\.\d+)?) ?(s|m|h|d|)", re.ASCII)
_TOKENS: Final = re.compile(r"(\d+(?:\.\d+)?) ?(k|m|)", re.ASCII)
_COST: Final = re.compile(r"\$?(\d+(?:\.\d+)?)()", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_THOUSANDS: Final = {"": 1, "k": 1000, "m": 1_000_000}

Reader = Callable[[object], object]
Value = TypeVar("Value")


class Unfit(ValueError):
    """A value that cannot be used. Its text says what it should be."""


def number(value: object, what: str, least: float = 0) -> float:
    """A finite number from `least` on; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= MOST:
        raise Unfit(what)
    return float(value)


def scaled(value: object, pattern: re.Pattern[str], units: Mapping[str, int], what: str) -> float:
    """A number, or a text of a number and a unit."""
    if isinstance(value, str):
        read = pattern.fullmatch(value.strip().lower())
        if read is None:
            raise Unfit(what)
        value = float(read[1]) * units[read[2]]
    return number(value, what)


def or_none(read: Callable[[object], Value]) -> Callable[[object], Value | None]:
    """The same, with the word "none" for no value."""

    def reader(value: object) -> Value | None:
        return None if isinstance(value, str) and value.strip().lower() == NO_CAP else read(value)

    return reader


def _seconds(what: str, least: float = 0) -> Callable[[object], float]:
    """A time from `least` seconds on."""
    return lambda value: number(scaled(value, _TIME, _SECONDS, what), what, least)


def _cost(value: object) -> float:
    return scaled(value, _COST, {"": 1}, 'a number of dollars from 0 on, or "none" for no cap')


def _tokens(value: object) -> int:
    what = 'a whole number of tokens like 200000, "200k" or "2m", or "none" for no cap'
    read = scaled(value, _TOKENS, _THOUSANDS, what)
    if not read.is_integer():
        raise Unfit(what)
    return int(read)


cost: Final = or_none(_cost)
tokens: Final = or_none(_tokens)
time: Final = or_none(_seconds('a time like 90, "90s", "15m" or "2h", or "none" for no cap'))
patience: Final = or_none(_seconds('a time like "30m", "24h" or "7d", or "none" for never', 0.001))
duration: Final = _seconds('a time like 90, "90s" or "15m"', 0.001)
delay: Final = _seconds('a time from 0 on, like 1.5 or "2s"')


def price(value: object) -> float:
    """Dollars per million tokens."""
    return number(value, "a number of dollars per million tokens from 0 on")


def count(value: object) -> int:
    """How many, at least one."""
    what = "a whole number from 1 on"
    if not isinstance(value, int):
        raise Unfit(what)
    return int(number(value, what, least=1))


def text(value: object) -> str:
    """A text with something in it."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise Unfit("a text of one line that is not empty")
    return value.strip()


def texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise Unfit('a list with at least one name, like ["openai:gpt-5.5"]')
    return tuple(text(one) for one in value)


def several(what: str, read: Callable[[object], Value]) -> Callable[[object], tuple[Value, ...]]:
    """A list of such values."""

    def reader(value: object) -> tuple[Value, ...]:
        if not isinstance(value, list | tuple):
            raise Unfit(what)
        try:
            return tuple(read(entry) for entry in value)
        except (ValueError, RuntimeError):  # no host; a home that is not known
            raise Unfit(what) from None

    return reader


def _folder(value: object) -> str:
    """A folder; seen from here or there a relative one would not be the same."""
    found = Path(text(value)).expanduser()
    if not found.is_absolute():
        raise Unfit("a folder from the root")
    return str(found)


def folders(value: object) -> tuple[str, ...]:
    """Folders; in a variable they are written like in $PATH."""
    named = [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value
    return several('a list of folders, each written from / or from ~, like ["~/callbacks"]', _folder)(named)


def _place(value: object) -> str:
    found = host(text(value))
    if not found.port:
        raise Unfit("a host with its port")
    return str(found)


def _port(value: object) -> int:
    if type(value) is not int or not 0 < value <= 0xFFFF:
        raise Unfit("a port")
    return value


places: Final = several('a list of hosts with their ports, like ["localhost:8000"]', _place)
hosts: Final = several(
    'a list of hosts, like ["pypi.org", "*.pythonhosted.org"]', lambda value: str(host(text(value), pattern=True))
)
ports: Final = several("a list of ports, like [8443]", _port)


def headers(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise Unfit("a table of texts")
    return {text(name): text(one) for name, one in value.items()}


def variable(value: object) -> str:
    """The name of an environment variable. Somebody may have put the key itself here, so it is not shown."""
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise Unfit("the name of an environment variable, like MY_API_KEY")
    return value


def url(value: object) -> str:
    """An address without a password in it."""
    what = "an address like https://host/v1, without a password in it"
    try:
        parts = urlsplit(text(value))
        fit = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
    except ValueError:
        fit = False
    if not fit:
        raise Unfit(what)
    return text(value).rstrip("/")


def one_of(*names: str) -> Reader:
    """One of a few words."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise Unfit(f"one of {', '.join(map(repr, names))}")
        return value

    return read


def switch(value: object) -> bool:
    """On or off; a variable can only say it as text."""
    said = WORDS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise Unfit("true or false")
    return said


def version(value: object) -> int:
    """The version of the schema that a file is written for."""
    if type(value) is not int or value != 1:
        raise Unfit("1, the only one that this Greenroom knows (a newer Greenroom may know more)")
    return value
