"""Random records of any class, made from its annotations: every field gets a valid value."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

WHOLE = st.integers(min_value=-(2**53), max_value=2**53)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
DATA = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
PLAIN: dict[object, st.SearchStrategy[Any]] = {
    int: WHOLE,
    str: st.text(max_size=12),
    bool: st.booleans(),
    NoneType: st.none(),
}


def made(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Return records of this class."""
    return _of(cast("Hashable", kind))


@cache
def _of(hint: Any) -> st.SearchStrategy[Any]:
    hint = getattr(hint, "__supertype__", hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = get_type_hints(hint)
        return st.builds(hint, **{one.name: _of(hints[one.name]) for one in fields(hint)})
    return _composed(get_origin(hint), get_args(hint))


def _composed(origin: Any, args: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, UnionType):
        return st.one_of([_of(one) for one in args])
    if origin is tuple:
        return st.lists(_of(args[0]), max_size=2).map(tuple)
    if origin is Mapping:
        return DATA
    raise AssertionError(f"no strategy for {origin}[{args}]")
