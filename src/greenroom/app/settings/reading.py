"""One layer of settings: read from a file, checked against the schema. What it gives is plain and correct.

Every fault names the source, the key, what is wrong and what to do.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.app.settings.schema import SCHEMA, Free, Named, Shape, Table
from greenroom.app.settings.values import Unfit
from greenroom.core.base.errors import WorldFault

Key: TypeAlias = tuple[str, ...]
Raw: TypeAlias = Mapping[str, object]

LONGEST: Final = 1_000_000
SHY: Final = {"key", "key_env", "headers"}
"""What may hold a secret, if only by mistake, is not repeated in a message."""


def read_toml(path: Path) -> Raw | None:
    """What stands in this file; None if there is none."""
    try:
        if path.is_dir():
            raise WorldFault(f"{path} is a folder, but should be a file of settings. Move it away.")
        if not path.exists():
            return None
        if not path.is_file() or path.stat().st_size > LONGEST:
            raise WorldFault(f"{path} is no file of settings: it is too large or no plain file. Move it away.")
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise WorldFault(f"{path} is not UTF-8: byte {error.start} cannot be read. Save it as UTF-8.") from None
    except ValueError as error:  # also a whole number of thousands of digits
        said = str(error).replace("at end of document", "at the end of its last line")
        raise WorldFault(f"{path} is not TOML: {said}. Correct it there.") from None
    except RecursionError:
        raise WorldFault(f"{path} is nested too deeply. Write it flatter.") from None
    except OSError as error:
        raise WorldFault(f"{path} cannot be read: {error.strerror}. Make it readable, or move it away.") from None


def checked(raw: Raw, source: str, table: Table = SCHEMA, above: Key = ()) -> dict[str, object]:
    """The same with every value as the schema wants it. What is required may still stand in another layer."""
    first = sorted(raw, key=lambda key: key != "version")  # what a newer version brings would only look like mistakes
    return {key: fit(raw[key], source, shape_of(table, key, source, above), (*above, key)) for key in first}


def shape_of(table: Table, key: str, source: str, above: Key) -> Shape:
    """What this key holds."""
    found = table.keys.get(key)
    if found is None:
        raise WorldFault(f"{source}: there is no setting `{dotted((*above, key))}`. {meant(key, table.keys)}")
    return found


def meant(key: str, known: Collection[str]) -> str:
    """The nearest known name, or all of them."""
    near = get_close_matches(key, known, n=1)
    return f"Did you mean `{near[0]}`?" if near else f"There are: {', '.join(f'`{name}`' for name in known)}."


def fit(value: object, source: str, shape: Shape, key: Key) -> object:
    """One value, or one table."""
    if isinstance(shape, Free):
        return shape.read(value, source)
    if not isinstance(shape, Table | Named):
        try:
            return shape(value)
        except Unfit as unfit:
            said = "" if SHY & set(key) else f", not {short(value)}"
            raise WorldFault(f"{source}: `{dotted(key)}` must be {unfit}{said}.") from None
    if not isinstance(value, Mapping):
        raise WorldFault(f"{source}: `{dotted(key)}` is a table. Write [{dotted(key)}] and its keys below.")
    if isinstance(shape, Table):
        return checked(value, source, shape, key)
    return {name: fit(one, source, shape.entry, (*key, name)) for name, one in value.items()}


def dotted(key: Key) -> str:
    """A key as it is written in a file."""
    return ".".join(
        part if part.isascii() and part.replace("-", "").replace("_", "").isalnum() else f'"{part}"' for part in key
    )


def short(value: object) -> str:
    """A value inside a message."""
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:59]}…"


def leaves(raw: Raw, table: Table = SCHEMA, above: Key = ()) -> Iterator[tuple[Key, object]]:
    """All single values with their keys."""
    for name, value in raw.items():
        shape = table.keys[name]
        match shape:
            case Table():
                yield from leaves(as_table(value), shape, (*above, name))
            case Named():
                for entry, one in as_table(value).items():
                    yield from leaves(as_table(one), shape.entry, (*above, name, entry))
            case Free():
                yield from (((*above, name, entry), one) for entry, one in as_table(value).items())
            case _:
                yield (*above, name), value


def as_table(value: object) -> Raw:
    """A table that was checked."""
    assert isinstance(value, Mapping)
    return value
