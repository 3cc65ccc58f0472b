"""How a record is made (frozen, keyword-only) and how the next version of one is made from it.

A step makes some twenty small records, so their price is the kernel's price: they are msgspec structs, made, copied and
written by C code (docs/decisions/0006).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import GetSetDescriptorType, new_class
from typing import Final, Protocol, TypeAlias, TypeVar, cast, dataclass_transform

from msgspec import Struct, structs
from msgspec.json import Encoder

T = TypeVar("T")

Data: TypeAlias = Mapping[str, object]
"""Plain JSON-shaped data: what a model, a tool or a person gave us, kept as it came."""


def as_dict(value: object) -> object:
    """Strangers' results hold other mappings than dictionaries too."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is nothing that can be written down")


encode: Final = Encoder(enc_hook=as_dict).encode
"""A record, or what strangers gave us, as JSON."""


class Record(Struct, frozen=True, omit_defaults=True, gc=False):
    """What all records are. Fields that have their default take no room when they are written."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only record: every noun, event and intent is one."""
    body = {name: value for name, value in vars(cls).items() if not isinstance(value, GetSetDescriptorType)}
    made = new_class(cls.__name__, (Record,), {"kw_only": True}, lambda namespace: namespace.update(body))
    return cast("type[T]", made)


def written(data: Data) -> int:
    """How many bytes it takes when it is written."""
    return len(encode(data))


def whole(record: object) -> dict[str, object]:
    """All fields by name, also those that have their default."""
    return structs.asdict(cast("Struct", record))


class _Evolve(Protocol):
    def __call__(self, old: T, /, **changes: object) -> T:
        """The same record with some fields changed; TypeError for a field that is not there."""
        ...


evolve: Final = cast("_Evolve", structs.replace)
"""`evolve(record, field=value)`: the same record with some fields changed."""
