"""A value of a server's settings that may be a secret: as it was written, shown to nobody."""

from __future__ import annotations

import re
from typing import Final

VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""`${NAME}`, or `${NAME:-what to take instead}`."""


class Hidden:
    """What stands in `env` or `headers`. Only `reveal` gives it away, to the one who starts the server."""

    __slots__ = ("_written",)

    def __init__(self, written: str) -> None:
        self._written: Final = written

    def reveal(self) -> str:
        """As it is written in the settings, `${…}` and all."""
        return self._written

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the person's variables that it is filled in with."""
        return tuple(found[1] for found in VARIABLE.finditer(self._written))

    def __repr__(self) -> str:
        return "****"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hidden) and self._written == other._written

    def __hash__(self) -> int:
        return hash(self._written)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("What may be a secret is not written down.")
