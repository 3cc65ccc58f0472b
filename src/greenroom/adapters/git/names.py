"""The names under which we keep things in a person's repository: all of them below `refs/greenroom/`."""

from __future__ import annotations

import os
import re
from typing import Final

from greenroom.core.ports.workspace import WorkspaceFault

OURS: Final = "refs/greenroom"
PLAIN: Final = re.compile(r"[A-Za-z0-9_-]")
LONGEST: Final = 100
QUOTED: Final = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
LETTERS: Final = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def part(name: str) -> str:
    """A name as a part of a ref, and of a folder's name: letters and digits stay, `@` in its middle too."""
    if not name:
        raise WorkspaceFault("name", "A run and a thread need a name.")
    made = "".join(
        one if PLAIN.match(one) or (one == "@" and place) else _escaped(one) for place, one in enumerate(name)
    )
    if len(made) > LONGEST:
        raise WorkspaceFault("name", f"The name {name[:60]!r}… is too long.")
    return made


def base_ref(run: str) -> str:
    """Of what a person's tree was when a run began. No thread is called like it: theirs begin with no `@`."""
    return f"{OURS}/{part(run)}/@base"


def thread_ref(run: str, thread: str) -> str:
    """Of a thread's newest commit."""
    return f"{OURS}/{part(run)}/{part(thread)}"


def applied_refs(run: str) -> str:
    """Above all that was applied of a run."""
    return f"{OURS}/{part(run)}/@applied/"


def applied_id(run: str, number: int) -> str:
    """What the n-th that was applied of a run is called."""
    return f"{run}/{number}"


def applied_ref(applied: str) -> str:
    """Of what was applied under this id."""
    run, found, number = applied.rpartition("/")
    if not found or not number.isdecimal():
        raise WorkspaceFault("name", f"Nothing was applied under the name {applied!r}.")
    return f"{applied_refs(run)}{number}"


def unquoted(name: str) -> str:
    """A file's name as git writes it where it has no other way: in quotes, if it has a tab, a quote … in it."""
    if not (len(name) > 1 and name[0] == name[-1] == '"'):
        return name
    return os.fsdecode(QUOTED.sub(_letter, os.fsencode(name[1:-1])))


def quoted(name: str) -> str:
    """The other way round, for what has to be written down as text, on one line."""
    if name.isprintable() and name == name.strip() and not name.startswith('"'):
        return name
    return '"' + "".join(one if one.isprintable() and one not in '"\\' else _octal(one) for one in name) + '"'


def _octal(one: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(one))


def _letter(found: re.Match[bytes]) -> bytes:
    code: bytes = found[1]
    return bytes([int(code, 8)]) if len(code) == 3 else LETTERS.get(code, code)


def _escaped(one: str) -> str:
    return "".join(f"%{byte:02x}" for byte in one.encode(errors="surrogateescape"))
