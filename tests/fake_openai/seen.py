"""Recorded requests of a fake server."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from aiohttp import web
from msgspec import DecodeError
from msgspec.json import decode

SECRET: Final = frozenset({"authorization", "api-key", "x-api-key"})


class Seen:
    """A request as received. `at` is the loop's time. The values of keys are never shown."""

    def __init__(self, request: web.BaseRequest, raw: bytes, at: float) -> None:
        self.method = request.method
        self.path = request.path
        self.raw = raw
        self.at = at
        self._headers = request.headers

    @cached_property
    def headers(self) -> dict[str, str]:
        """The headers, by their name in lower case."""
        shown = {name.lower(): value for name, value in self._headers.items()}
        return {name: "***" if name in SECRET else value for name, value in shown.items()}

    @cached_property
    def body(self) -> dict[str, object]:
        """The parsed request; empty if it is not a JSON object."""
        try:
            return decode(self.raw, type=dict[str, object])
        except DecodeError:
            return {}
