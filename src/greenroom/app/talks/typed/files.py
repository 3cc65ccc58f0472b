"""Files in a message: `@path` brings the text of a file of the workspace along. Nothing else is ever read."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from greenroom.app.settings.layers import there
from greenroom.app.talks.typed.data import Attached
from greenroom.app.talks.typed.handlers import Handled, Handler
from greenroom.app.talks.typed.secrets import holds_key, is_secret

MOST: Final = 64 * 1024
"""Bytes of one file."""

LOOKED_AT: Final = 2_000
"""Names in a folder among which a near one is looked for."""

AT: Final = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
PUNCTUATION: Final = ".,;:!?)]}'\""
SKIPPED: Final = frozenset({"node_modules", "__pycache__", ".venv"})


class Unreadable(Exception):
    """Why a file is not brought along, in one sentence."""


def file_context(folder: Path, root: Path) -> Handler:
    """The handler for somebody who is in this folder of this workspace."""

    def files(text: str) -> Handled:
        found: dict[str, Attached] = {}
        for mentioned in _mentioned(text):
            try:
                one = _attached(mentioned, folder, root)
            except Unreadable as fault:
                return Handled(content=text, need_return=True, said=f"{fault} Nothing was sent.")
            if one is not None:
                found[one.name] = one
        return Handled(content=text, attached=tuple(found.values()))

    return files


def _mentioned(text: str) -> Iterator[str]:
    for quoted, bare in AT.findall(text):
        yield quoted or bare


def _attached(mentioned: str, folder: Path, root: Path) -> Attached | None:
    """The file that is meant; None for a word that only begins like one, as `@property` does."""
    place = _place(mentioned, folder, root)
    if place is None:
        near = _near(mentioned, folder)
        if not near and "/" not in mentioned and "." not in mentioned.rstrip(PUNCTUATION):
            return None
        told = f"Did you mean @{near}?" if near else "Name it as it is seen from here, or put a space behind the @."
        raise Unreadable(f"There is no file {mentioned!r}. {told}")
    real = place.resolve()
    if not real.is_relative_to(root.resolve()):
        raise Unreadable(f"{mentioned!r} lies outside of the workspace {root}, and is not read.")
    if is_secret(place) or is_secret(real.relative_to(root.resolve())):
        raise Unreadable(f"{mentioned!r} looks like a place for secrets, and is not read.")
    return Attached(text=_text(real, mentioned), name=_name(real, root))


def _place(mentioned: str, folder: Path, root: Path) -> Path | None:
    """Where it is: seen from this folder, else from the workspace's root. A full stop behind it may be a sentence's."""
    for name in dict.fromkeys((mentioned, mentioned.rstrip(PUNCTUATION))):
        for base in dict.fromkeys((folder, root)):
            if name and there(base / name):
                return base / name
    return None


def _name(real: Path, root: Path) -> str:
    return str(real.relative_to(root.resolve()))


def _text(real: Path, mentioned: str) -> str:
    """The text of a file, which is opened once and looked at then: it may have become another one meanwhile."""
    data = _bytes(real, mentioned)
    if len(data) > MOST:
        raise Unreadable(f"{mentioned!r} is larger than {MOST // 1024} KB. Paste the part that matters.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{mentioned!r} is no text (it is not UTF-8).") from None
    if "\0" in text:
        raise Unreadable(f"{mentioned!r} is no text.")
    if holds_key(text):
        raise Unreadable(f"{mentioned!r} holds a private key, and is not read.")
    return text


def _bytes(real: Path, mentioned: str) -> bytes:
    try:
        number = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            mode = os.fstat(number).st_mode
            if stat.S_ISREG(mode):
                return file.read(MOST + 1)
    except OSError as error:
        if error.errno != errno.EISDIR:
            raise Unreadable(f"{mentioned!r} cannot be read: {error.strerror}.") from None
    what = "a folder; name a file in it" if real.is_dir() else "no file with text"
    raise Unreadable(f"{mentioned!r} is {what}.")


def _near(mentioned: str, folder: Path) -> str:
    """The name of a file in the same folder that may be meant."""
    wanted = Path(mentioned.rstrip(PUNCTUATION))
    names = [name for name, _ in _entries(folder / wanted.parent)]
    exact = {name.lower(): name for name in names}
    found = get_close_matches(wanted.name.lower(), exact, n=1, cutoff=0.7)
    begins = [name for name in names if Path(name).stem.lower() == wanted.name.lower()]
    best = begins[0] if begins else exact[found[0]] if found else ""
    return str(wanted.parent / best) if best else ""


def offered(beginning: str, folder: Path, root: Path) -> Iterator[str]:
    """The files and folders that a path may go on with, for completion. Secrets are not among them."""
    start, _, name = beginning.rpartition("/")
    base = folder / start if start else folder
    try:
        inside = base.resolve().is_relative_to(root.resolve())
    except OSError:
        return
    for entry, is_folder in _entries(base) if inside else ():
        path = f"{start}/{entry}" if start else entry
        hidden = entry in SKIPPED or (entry.startswith(".") and not name.startswith("."))
        if entry.startswith(name) and not hidden and not is_secret(Path(path)):
            yield f"{path}/" if is_folder else path


def _entries(folder: Path) -> list[tuple[str, bool]]:
    try:
        with os.scandir(folder) as found:
            some = [(one.name, one.is_dir()) for one, _ in zip(found, range(LOOKED_AT), strict=False)]
    except OSError:
        return []
    return sorted(some)
