"""How a record is made (frozen, keyword-only) and how the next version of one is made from it.

A step makes some twenty small records, so their price is the kernel's price. A record is a plain frozen dataclass in
every respect but two: `__init__` and `__eq__` work on the instance's dictionary at once instead of field by field, and
it has no slots, because a slotted record can only be copied field by field (docs/decisions/0004).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

Data: TypeAlias = Mapping[str, object]
"""Plain JSON-shaped data: what a model, a tool or a person gave us, kept as it came."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass: every noun, event and intent is one."""
    made = dataclass(frozen=True, kw_only=True)(cls)
    known = fields(cast("type[DataclassInstance]", made))
    names = frozenset(field.name for field in known)
    defaults = {field.name: field.default for field in known if field.default is not MISSING}

    def init(self: T, **given: object) -> None:
        state = self.__dict__
        state.update(defaults)
        state.update(given)
        if len(state) != len(names) or not names.issuperset(given):
            odd = sorted(given.keys() - names) or sorted(names - state.keys())
            raise TypeError(f"{cls.__name__}: unknown or missing field {', '.join(odd)}")

    def equal(self: T, other: object) -> bool:
        return self is other or (type(self) is type(other) and self.__dict__ == other.__dict__)

    type.__setattr__(made, "__init__", init)
    type.__setattr__(made, "__eq__", equal)
    return made


def evolve(old: T, **changes: object) -> T:
    """The same record with some fields changed: `dataclasses.replace` at a quarter of its price."""
    new = object.__new__(type(old))
    state = new.__dict__
    state.update(old.__dict__)
    state.update(changes)
    if len(state) != len(old.__dict__):
        raise TypeError(f"{type(old).__name__} has no field {', '.join(sorted(changes.keys() - old.__dict__.keys()))}")
    return new
