"""Records: frozen, keyword-only values, and how to copy one with changes.

A step makes about twenty small records, so their speed is the kernel's speed. They are msgspec structs, which C code
makes, copies and encodes (docs/decisions/0006).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import GetSetDescriptorType, new_class
from typing import Final, Protocol, TypeAlias, TypeVar, cast, dataclass_transform

from msgspec import Struct, structs
from msgspec.json import Encoder

T = TypeVar("T")

Data: TypeAlias = Mapping[str, object]
"""JSON-shaped data from a model, a tool or a person, kept unchanged."""


def as_dict(value: object) -> object:
    """Convert a mapping that is not a `dict` for the encoder. Raise `TypeError` for other types."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be encoded as JSON")


encode: Final = Encoder(enc_hook=as_dict).encode
"""Encode a record or external data as JSON."""


class Record(Struct, frozen=True, omit_defaults=True, gc=False):
    """Base class of all records. Encoding omits fields that have their default."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only record. Nouns, events and intents are records."""
    body = {name: value for name, value in vars(cls).items() if not isinstance(value, GetSetDescriptorType)}
    record_class = new_class(cls.__name__, (Record,), {"kw_only": True}, lambda namespace: namespace.update(body))
    return cast("type[T]", record_class)


def count_bytes(data: Data) -> int:
    """Return the encoded size in bytes."""
    return len(encode(data))


def to_full_dict(record: object) -> dict[str, object]:
    """Return all fields by name, including those that have their default."""
    return structs.asdict(cast("Struct", record))


class _Evolve(Protocol):
    def __call__(self, old: T, /, **changes: object) -> T:
        """Return a copy with some fields changed. Raise `TypeError` for an unknown field."""
        ...


evolve: Final = cast("_Evolve", structs.replace)
"""`evolve(record, field=value)` returns a copy with some fields changed."""
