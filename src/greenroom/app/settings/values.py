"""Readers of single values as people write them: amounts (`200k`, `15m`, `none`), names, addresses and keys.

A reader takes a value of a file, a variable or a flag. It returns the parsed value or raises `BadValue` with the
expected form.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar, cast
from urllib.parse import urlsplit

from msgspec import Meta

from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.hosts import parse_host

MIN_KEY_CHARS_TO_SHOW: Final = 12


class Secret:
    """A provider's key. Its text form shows at most the last four characters."""

    __slots__ = ("_value", "provider")

    def __init__(self, provider: str, value: str) -> None:
        self.provider: Final = provider
        self._value: Final = value

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def __str__(self) -> str:
        return f"{self.provider}:****{self._value[-4:] if len(self._value) >= MIN_KEY_CHARS_TO_SHOW else ''}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self.provider, self._value) == (other.provider, other._value)

    def __hash__(self) -> int:
        return hash((self.provider, self._value))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("A secret cannot be serialised. Save it with `save_key`.")


MAX_NUMBER: Final = 1e12
"""The largest number accepted. Its millionths still fit into the log."""

SWITCH_WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?) ?(s|m|h|d|)", re.ASCII)
_TOKENS: Final = re.compile(r"(\d+(?:\.\d+)?) ?(k|m|)", re.ASCII)
_COST: Final = re.compile(r"\$?(\d+(?:\.\d+)?)()", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_THOUSANDS: Final = {"": 1, "k": 1000, "m": 1_000_000}

Reader = Callable[[object], object]
Value = TypeVar("Value")


class BadValue(GreenroomError, ValueError):
    """A value that cannot be used. Its message is the expected form."""


def parse_number(value: object, expected: str, minimum: float = 0) -> float:
    """Parse a finite number of at least `minimum`. A boolean is not accepted."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= MAX_NUMBER:
        raise BadValue(expected)
    return float(value)


def parse_with_unit(value: object, pattern: re.Pattern[str], units: Mapping[str, int], expected: str) -> float:
    """Parse a number, or a text with a number and a unit."""
    if isinstance(value, str):
        match = pattern.fullmatch(value.strip().lower())
        if match is None:
            raise BadValue(expected)
        value = float(match[1]) * units[match[2]]
    return parse_number(value, expected)


def or_none(read: Callable[[object], Value]) -> Callable[[object], Value | None]:
    """Return a reader that also accepts the word "none"."""

    def reader(value: object) -> Value | None:
        return None if isinstance(value, str) and value.strip().lower() == "none" else read(value)

    return reader


def _make_time_parser(expected: str, minimum: float = 0) -> Callable[[object], float]:
    """Return a reader of times of at least `minimum` seconds."""
    return lambda value: parse_number(parse_with_unit(value, _TIME, _SECONDS, expected), expected, minimum)


def _parse_cost(value: object) -> float:
    return parse_with_unit(value, _COST, {"": 1}, "values.cost")


def _parse_tokens(value: object) -> int:
    expected = "values.tokens"
    token_count = parse_with_unit(value, _TOKENS, _THOUSANDS, expected)
    if not token_count.is_integer():
        raise BadValue(expected)
    return int(token_count)


parse_cost: Final = or_none(_parse_cost)
parse_tokens: Final = or_none(_parse_tokens)
parse_time: Final = or_none(_make_time_parser("values.time"))
parse_expiry: Final = or_none(_make_time_parser("values.expiry", 0.001))
parse_duration: Final = _make_time_parser("values.duration", 0.001)
parse_delay: Final = _make_time_parser("values.delay")


def parse_price(value: object) -> float:
    """Parse dollars per million tokens."""
    return parse_number(value, "values.price")


def parse_count(value: object) -> int:
    """Parse a whole number from 1."""
    expected = "values.count"
    if not isinstance(value, int):
        raise BadValue(expected)
    return int(parse_number(value, expected, minimum=1))


def make_range_parser(kind: type[float], limits: Meta) -> Reader:
    """Return a reader of numbers, whole ones for `int`, between the limits of a field."""
    is_whole, minimum, maximum = issubclass(kind, int), limits.ge or 0, limits.le or MAX_NUMBER

    def read(value: object) -> float:
        is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
        if not is_number or not minimum <= cast("float", value) <= maximum:
            code = "values.number_between" if is_whole else "values.share"
            raise BadValue(code, minimum=minimum, maximum=maximum)
        return cast("float", value)

    return read


def parse_text(value: object) -> str:
    """Parse a non-empty text."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise BadValue("values.text")
    return value.strip()


def parse_texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise BadValue("values.texts")
    return tuple(parse_text(item) for item in value)


def list_of(expected: str, read_item: Callable[[object], Value]) -> Callable[[object], tuple[Value, ...]]:
    """Return a reader of lists of such values."""

    def reader(value: object) -> tuple[Value, ...]:
        if not isinstance(value, list | tuple):
            raise BadValue(expected)
        try:
            return tuple(read_item(entry) for entry in value)
        except (ValueError, RuntimeError):  # no host, or an unknown home
            raise BadValue(expected) from None

    return reader


def _parse_folder(value: object) -> str:
    """Parse an absolute folder. A relative folder would depend on the current folder."""
    folder = Path(parse_text(value)).expanduser()
    if not folder.is_absolute():
        raise BadValue("values.folder")
    return str(folder)


def parse_folders(value: object) -> tuple[str, ...]:
    """Parse folders. A variable separates them like $PATH."""
    paths = [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value
    return list_of("values.folders", _parse_folder)(paths)


def _parse_host_and_port(value: object) -> str:
    address = parse_host(parse_text(value))
    if not address.port:
        raise BadValue("values.host_and_port")
    return str(address)


def _parse_port(value: object) -> int:
    if type(value) is not int or not 0 < value <= 0xFFFF:
        raise BadValue("values.port")
    return value


parse_hosts_and_ports: Final = list_of("values.hosts_and_ports", _parse_host_and_port)
parse_hosts: Final = list_of(
    "values.hosts",
    lambda value: str(parse_host(parse_text(value), pattern=True)),
)
parse_ports: Final = list_of("values.ports", _parse_port)


def parse_headers(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise BadValue("values.headers")
    return {parse_text(name): parse_text(header) for name, header in value.items()}


def parse_variable(value: object) -> str:
    """Parse the name of an environment variable. The value is not shown, because it may be the key itself."""
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise BadValue("values.variable")
    return value


def parse_url(value: object) -> str:
    """Parse an address without a password."""
    expected = "values.url"
    try:
        parts = urlsplit(parse_text(value))
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
    except ValueError:
        is_valid = False
    if not is_valid:
        raise BadValue(expected)
    return parse_text(value).rstrip("/")


def parse_repositories(value: object) -> tuple[str, ...]:
    """Parse addresses of git repositories: https, ssh, `user@host:path`, or a folder."""
    addresses = parse_texts(value)
    for address in addresses:
        parts = urlsplit(address)
        is_web = parts.scheme == "https" and bool(parts.hostname) and parts.username is None
        is_ssh = (parts.scheme == "ssh" and bool(parts.hostname)) or re.fullmatch(r"[\w.-]+@[\w.-]+:[^:]+", address)
        if not (is_web or is_ssh or address.startswith("/")):
            raise BadValue("values.repositories")
    return addresses


def one_of(*names: str) -> Reader:
    """Return a reader of one of a few words."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise BadValue("values.one_of", names=", ".join(map(repr, names)))
        return value

    return read


def parse_switch(value: object) -> bool:
    """Parse a boolean, or its word from a variable."""
    state = SWITCH_WORDS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(state, bool):
        raise BadValue("values.switch")
    return state


def parse_version(value: object) -> int:
    """Parse the version of the file format."""
    if type(value) is not int or value != 1:
        raise BadValue("values.version")
    return value
