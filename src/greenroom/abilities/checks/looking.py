"""Looking at a project's files: the little that finding its checks needs, and readers that take any bytes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as NotIni
from typing import Final, Protocol

from greenroom.core.base.records import Data

LONGEST: Final = 1_000_000
"""Bytes of a file that is read; nobody writes longer ones by hand."""


class Look(Protocol):
    """A folder that is looked at. Nothing is ever raised: what cannot be seen is not there."""

    def read(self, path: str) -> bytes | None:
        """What stands in this file; None where there is none that can be read."""
        ...

    def names(self, folder: str) -> frozenset[str]:
        """What lies in this folder, by name."""
        ...

    def has_program(self, name: str) -> bool:
        """Whether this machine has a program of this name on its PATH."""
        ...


class Place:
    """One folder of a project, as its checks are found in it."""

    def __init__(self, look: Look, folder: str = ".") -> None:
        self._look = look
        self.folder = folder
        self.names = look.names(folder)
        self.has_program = look.has_program

    def text(self, name: str) -> str:
        """A file of it as text; empty when it is not there, or too long to have been written by anybody."""
        if "/" not in name and name not in self.names:
            return ""
        content = self._look.read(self._path(name))
        if content is None or len(content) > LONGEST:
            return ""
        return content.decode("utf-8-sig", "replace")

    def inside(self, folder: str) -> frozenset[str]:
        """What lies in a folder of it."""
        return self._look.names(self._path(folder))

    def first(self, *names: str) -> str:
        """The first of these that is there; empty for none."""
        return next((name for name in names if name in self.names), "")

    def _path(self, name: str) -> str:
        return name if self.folder == "." else f"{self.folder}/{name}"


def toml(text: str) -> Data:
    """A TOML file as far as it is one."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def json_object(text: str) -> Data:
    """A JSON file as far as it is an object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def ini(text: str) -> Mapping[str, Mapping[str, str]]:
    """The sections of an INI file as far as it is one."""
    parser = ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
        return {name: {key: value or "" for key, value in parser[name].items()} for name in parser.sections()}
    except (NotIni, ValueError, AttributeError, RecursionError):
        return {}


def table(data: Data, *path: str) -> Data:
    """A table deep inside; empty where there is none."""
    found: object = data
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
