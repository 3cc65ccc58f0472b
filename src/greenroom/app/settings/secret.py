"""A key that can be handed about without being shown: only `reveal` gives it away."""

from __future__ import annotations

from typing import Final

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
