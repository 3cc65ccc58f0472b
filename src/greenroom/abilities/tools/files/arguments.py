"""What a model gave a tool, read one by one; what cannot be used is said so that it can be mended."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call. `where` is said before each complaint."""

    given: Data
    where: str

    def only(self, known: Collection[str]) -> None:
        """That there is nothing else: a misspelt argument would be left out without a word."""
        odd = sorted(set(self.given) - set(known))
        if odd:
            raise ModelFault(f"{self.where}: there is no {odd[0]!r}. There are: {', '.join(sorted(known))}.")

    def text(self, name: str, default: str | None = None, *, blank: bool = False) -> str:
        """A text; one without a default has to be there."""
        found = self.given.get(name, default)
        if found is None and default is not None:
            return default
        if not isinstance(found, str):
            raise ModelFault(f"{self.where}: {name!r} is missing." if found is None else self._is_no(name, "text"))
        if not blank and not found.strip() and default is None:
            raise ModelFault(f"{self.where}: {name!r} is blank.")
        return found

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number, also one that was written as text; above `most` it is `most`."""
        found = self.given.get(name)
        if found is None:
            return default
        if isinstance(found, str) and found.strip().lstrip("-").isdecimal() and len(found) < 15:
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int):
            raise ModelFault(self._is_no(name, "whole number"))
        if found < least:
            raise ModelFault(f"{self.where}: {name!r} is at least {least}, not {found}.")
        return min(found, most)

    def truth(self, name: str) -> bool:
        """Yes or no; no, if it is not there."""
        found = self.given.get(name)
        if found is None or found in (True, False):
            return bool(found)
        raise ModelFault(self._is_no(name, "true or false"))

    def several(self, name: str) -> list[Arguments]:
        """A list of objects, at least one."""
        found = self.given.get(name)
        if not isinstance(found, list | tuple) or not found or not all(isinstance(one, dict) for one in found):
            raise ModelFault(f"{self.where}: {name!r} is a list of objects, and not empty.")
        return [Arguments(one, f"{self.where}, {name}[{number}]") for number, one in enumerate(found)]

    def _is_no(self, name: str, wanted: str) -> str:
        return f"{self.where}: {name!r} is no {wanted}: {self.given.get(name)!r:.100}"
