"""Single values as people write them: amounts (`200k`, `15m`, `none`), names, addresses, keys; and what is wrong.

A reader takes what stands in a file, a variable or a flag and gives the value, or `Unfit` with what it should be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
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
_COST: Final = re.compile(r"\$?(\d+(?:\.\d+)?)", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_THOUSANDS: Final = {"": 1, "k": 1000, "m": 1_000_000}

Reader = Callable[[object], object]


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


def cost(value: object) -> float | None:
    """Dollars; None is no cap."""
    what = 'a number of dollars from 0 on, or "none" for no cap'
    if isinstance(value, str):
        if value.strip().lower() == NO_CAP:
            return None
        read = _COST.fullmatch(value.strip())
        value = float(read[1]) if read else value
    return number(value, what)


def tokens(value: object) -> int | None:
    """Tokens; None is no cap."""
    what = 'a whole number of tokens like 200000, "200k" or "2m", or "none" for no cap'
    if isinstance(value, str) and value.strip().lower() == NO_CAP:
        return None
    read = scaled(value, _TOKENS, _THOUSANDS, what)
    if not read.is_integer():
        raise Unfit(what)
    return int(read)


def time(value: object) -> float | None:
    """Seconds; None is no cap."""
    if isinstance(value, str) and value.strip().lower() == NO_CAP:
        return None
    return scaled(value, _TIME, _SECONDS, 'a time like 90, "90s", "15m" or "2h", or "none" for no cap')


def duration(value: object) -> float:
    """Seconds, more than none."""
    what = 'a time like 90, "90s" or "15m"'
    return number(scaled(value, _TIME, _SECONDS, what), what, least=0.001)


def patience(value: object) -> float | None:
    """Seconds, more than none; None is for ever."""
    what = 'a time like "30m", "24h" or "7d", or "none" for never'
    if isinstance(value, str) and value.strip().lower() == NO_CAP:
        return None
    return number(scaled(value, _TIME, _SECONDS, what), what, least=0.001)


def delay(value: object) -> float:
    """Seconds, or none."""
    return scaled(value, _TIME, _SECONDS, 'a time from 0 on, like 1.5 or "2s"')


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


def folders(value: object) -> tuple[str, ...]:
    """Folders; in a variable they are written like in $PATH. Seen from here or there they would not be the same."""
    what = 'a list of folders, each written from / or from ~, like ["~/callbacks"]'
    named = value.split(os.pathsep) if isinstance(value, str) else value
    if not isinstance(named, list | tuple):
        raise Unfit(what)
    try:
        found = [Path(text(one)).expanduser() for one in named if one != ""]
    except (Unfit, RuntimeError):
        raise Unfit(what) from None
    if not all(one.is_absolute() for one in found):
        raise Unfit(what)
    return tuple(map(str, found))


def places(value: object) -> tuple[str, ...]:
    """Hosts, each with its port."""
    what = 'a list of hosts with their ports, like ["localhost:8000"]'
    if not isinstance(value, list | tuple):
        raise Unfit(what)
    try:
        read = [host(text(one)) for one in value]
    except ValueError:
        raise Unfit(what) from None
    if not all(one.port for one in read):
        raise Unfit(what)
    return tuple(map(str, read))


def hosts(value: object) -> tuple[str, ...]:
    """Hosts, each by its name, or all below a domain."""
    what = 'a list of hosts, like ["pypi.org", "*.pythonhosted.org"]'
    if not isinstance(value, list | tuple):
        raise Unfit(what)
    try:
        return tuple(str(host(text(one), pattern=True)) for one in value)
    except ValueError:
        raise Unfit(what) from None


def ports(value: object) -> tuple[int, ...]:
    """Ports of hosts."""
    what = "a list of ports, like [8443]"
    if not isinstance(value, list | tuple) or not all(type(one) is int and 0 < one <= 0xFFFF for one in value):
        raise Unfit(what)
    return tuple(value)


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
