"""Python files in a folder, read once: what was looked at is what is run."""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterator, Mapping
from importlib.machinery import all_suffixes
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from greenroom.app.hands.modules import Broken
from greenroom.app.settings.layers import FOLDER, for_everybody
from greenroom.app.trust.brought import Brought
from greenroom.core.base.records import record

Kind = Literal["tool", "callback"]

FOLDERS: Final[Mapping[Kind, str]] = {"tool": "tools", "callback": "callbacks"}
MOST: Final = 500
"""Files of one folder, with all below it."""

LONGEST: Final = 1_000_000
"""Bytes of one file."""

COMPILED: Final = "is compiled code, which nobody can read and nothing here runs"
NAMED: Final = 12
"""Names of a file that are told."""


@record
class Script:
    """A file, and what stood in it and in all that it can import from `beside` it, by where that lies in the folder.

    `digest` is empty for a person's own.
    """

    path: Path
    beside: Mapping[str, bytes]
    digest: str = ""

    @property
    def source(self) -> bytes:
        """What stood in it."""
        return self.beside[self.path.name]


@record
class Scripts:
    """The files of a folder by name. `troubles` says what of it cannot be used."""

    found: tuple[Script, ...] = ()
    troubles: tuple[str, ...] = ()


def own_scripts(folder: Path) -> Scripts:
    """Those of a folder of the person's own: its `.py` files, but for names that begin with `_`."""
    beside: dict[str, bytes] = {}
    troubles: list[str] = []
    tops = _tops(folder)
    try:
        for path in (*tops, *_packages(folder)):
            _read_into(beside, troubles, path, folder)
    except Broken as broken:
        return Scripts(troubles=(str(broken),))
    found = tuple(Script(path=one, beside=beside) for one in tops if one.name in beside)
    return Scripts(found=found, troubles=tuple(troubles))


def _read_into(beside: dict[str, bytes], troubles: list[str], path: Path, folder: Path) -> None:
    try:
        beside[path.relative_to(folder).as_posix()] = _bytes(path)
    except Broken as broken:
        troubles.append(str(broken))


def project_scripts(root: Path, kind: Kind) -> Scripts:
    """Those that a workspace brings. All lie in it, wherever links lead; a place like /tmp brings none.

    A digest is of the file and of everything in the folder that an import could find. Of that, only what a person can
    read is ever run.
    """
    folder = root / FOLDER / FOLDERS[kind]
    if for_everybody(root) or not folder.is_dir():
        return Scripts()
    try:
        every = {path.relative_to(folder).as_posix(): _bytes(path) for path in _importable(folder, root)}
    except Broken as broken:
        return Scripts(troubles=(str(broken),))
    whole = hashlib.sha256()
    for place, text in every.items():
        whole.update(f"{place}\0{len(text)}\0".encode("utf-8", "surrogateescape") + text)
    beside = {place: text for place, text in every.items() if place.endswith(".py")}
    found = (
        Script(path=path, beside=beside, digest=_digest(kind, path.name, whole.hexdigest()))
        for path in _tops(folder)
        if path.name in beside
    )
    compiled = (str(Broken(folder / place, COMPILED)) for place in every if place not in beside)
    return Scripts(found=tuple(found), troubles=tuple(compiled))


def brought(script: Script, kind: Kind, root: Path) -> Brought:
    """A file as a person sees it. It is read and not run."""
    shown = f"{script.path.relative_to(root)} · {_defined(script.source)}"
    return Brought(kind=kind, name=script.path.name, shown=shown, digest=script.digest)


# ---------------------------------------------------------------------------------------------------------- folders


def _tops(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.glob("*.py") if not one.name.startswith(("_", ".")))
    except OSError:
        return []


def _importable(folder: Path, root: Path) -> list[Path]:
    """All that an import can find below the folder, compiled files too, in a fixed order."""
    top = root.resolve()
    if not folder.resolve().is_relative_to(top):
        raise Broken(folder, "leads out of the workspace")
    found = list(islice(_walked(folder), MOST + 1))
    if len(found) > MOST:
        raise Broken(folder, f"holds more than {MOST} files")
    for path in found:
        if not path.resolve().is_relative_to(top):
            raise Broken(path, "is a link that leads out of the workspace")
    return sorted(found)


def _packages(folder: Path) -> Iterator[Path]:
    """What lies beside the files of a person's own folder: its other files, and packages with all below them."""
    seen: set[Path] = set()
    count = 0
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(one for one in folders if _is_package(Path(place, one), seen))
        for one in files:
            if one.endswith(".py") and (place != str(folder) or one.startswith("_")):
                count += 1
                yield Path(place, one)
        if count > MOST:
            raise Broken(folder, f"holds more than {MOST} files")


def _is_package(folder: Path, seen: set[Path]) -> bool:
    """Whether anything in it can be imported; a link that leads to where we have been is none."""
    real = folder.resolve()
    if not folder.name.isidentifier() or real in seen:
        return False
    seen.add(real)
    return any(folder.glob("*.py")) or any(folder.glob("*/__init__.py"))


def _walked(folder: Path) -> Iterator[Path]:
    suffixes = tuple(all_suffixes())
    for place, folders, files in os.walk(folder, onerror=_refuse):
        for one in folders:
            if Path(place, one).is_symlink():  # an import would follow it, and nobody would have looked there
                raise Broken(Path(place, one), "is a link to a folder. Make it one")
        yield from (Path(place, one) for one in files if one.endswith(suffixes))


def _refuse(error: OSError) -> None:
    raise Broken(Path(str(error.filename)), f"cannot be read: {error.strerror}")


def _bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise Broken(path, "is no plain file")
        with path.open("rb") as file:
            source = file.read(LONGEST + 1)
    except OSError as error:
        raise Broken(path, f"cannot be read: {error.strerror}") from None
    if len(source) > LONGEST:
        raise Broken(path, f"is longer than {LONGEST // 1_000_000} MB")
    return source


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


# ------------------------------------------------------------------------------------------------------------ names


def _defined(source: bytes) -> str:
    """The names that stand at the top of a file."""
    try:
        names = list(dict.fromkeys(name for node in ast.parse(source).body for name in _names(node)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "is no Python that can be read"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"defines {', '.join(names[:NAMED])}{more}" if names else "defines nothing"


def _names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign():
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            return
