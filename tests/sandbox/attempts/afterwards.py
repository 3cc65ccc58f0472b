"""Attempts through what Greenroom does later with the files of a workspace.

A careless program opens any path there. Greenroom opens files with `LocalFiles`, as all its tools do.
"""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from pathlib import Path
from typing import Final

from greenroom.adapters.files.local_files import LocalFiles
from greenroom.core.base.text import CONTROL_CHARACTERS
from greenroom.core.ports.files import FileFault, compute_digest
from tests.sandbox.attempt import Attempt, Seen, Tried
from tests.sandbox.limits import MIB
from tests.sandbox.seeing import changed
from tests.sandbox.stage import BEFORE, Stage

LIMIT: Final = 8 * MIB
MOST: Final = 5000
RACING: Final = 2.0
"""Seconds of a race."""

later = partial(Attempt, kind="afterwards")


def _content(root: Path, name: str, *, careful: bool) -> bytes:
    """Return what Greenroom reads. A careless read follows the name and only then opens it."""
    if careful:
        try:
            return asyncio.run(LocalFiles(root).read(name, LIMIT))
        except FileFault:
            return b""
    with (root / name).open("rb") as file:
        return file.read(64 * MIB)


def _written(root: Path, name: str, *, careful: bool) -> None:
    if not careful:
        (root / name).write_text("by the house", encoding="ascii")
        return
    files = LocalFiles(root)
    for expected in (None, compute_digest(BEFORE.encode())):
        try:
            asyncio.run(files.write(name, b"by the house", expected=expected))
        except FileFault:
            continue


def _read(name: str) -> Seen:
    """Greenroom reads this and gets the secret."""

    def seen(stage: Stage, _tried: Tried) -> str:
        there = (stage.work / name).exists()
        found = _content(stage.work, name, careful=stage.careful) if there else b""
        return "the house has read the secret" if stage.secret.encode() in found else ""

    return seen


def _wrote(name: str) -> Seen:
    """Greenroom writes this and changes something outside."""

    def seen(stage: Stage, tried: Tried) -> str:
        _written(stage.work, name, careful=stage.careful)
        return changed("@outside@/victim.txt")(stage, tried)

    return seen


def _hung(stage: Stage, _tried: Tried) -> str:
    """Greenroom reads this and never returns."""
    reader = threading.Thread(target=_content, args=(stage.work, "note.txt"), kwargs={"careful": stage.careful})
    reader.start()
    reader.join(1.0)
    hangs = reader.is_alive()
    if hangs:
        (stage.work / "note.txt").write_bytes(b"woken")
    reader.join(10)
    return "the house waits for ever" if hangs else ""


def _swallowed(stage: Stage, _tried: Tried) -> str:
    found = _content(stage.work, "note.txt", careful=stage.careful)
    return f"the house has {len(found) // MIB} MiB of it in memory" if len(found) > LIMIT else ""


def _listed(stage: Stage, _tried: Tried) -> str:
    found = (
        len(asyncio.run(LocalFiles(stage.work).walk(limit=MOST)).entries)
        if stage.careful
        else sum(1 for one in stage.work.rglob("*") if one.is_file())
    )
    return f"the house has a list of {found} files" if found > MOST else ""


def _shown(stage: Stage, _tried: Tried) -> str:
    """A name with terminal control sequences is accepted as a file name."""
    for path in stage.work.iterdir():
        if CONTROL_CHARACTERS.search(path.name) and _content(stage.work, path.name, careful=stage.careful):
            return "a name with an escape sequence in it was taken for a name"
    return ""


def _raced(stage: Stage, _pids: tuple[int, ...]) -> str:
    """Read a file repeatedly, with a check before each read, while it is swapped for a link."""
    files, deadline = LocalFiles(stage.work), time.monotonic() + RACING
    while time.monotonic() < deadline:
        found = b""
        try:
            if stage.careful:
                found = asyncio.run(files.read("swap/secret.txt", LIMIT))
            elif (stage.work / "swap" / "secret.txt").resolve().is_relative_to(stage.work):
                found = (stage.work / "swap" / "secret.txt").read_bytes()
        except (FileFault, OSError):
            continue
        if stage.secret.encode() in found:
            return "the house has read the secret"
    return ""


SWAPPING: Final = """
os.mkdir('swap'); write('@work@/swap/secret.txt', 'nothing'); os.symlink('@outside@', 'away')
if os.fork() == 0:
    while not os.path.exists('go'):
        libc.renameat2(-100, b'swap', -100, b'away', 2)
    os._exit(0)
hold()
os.wait()
"""

AFTERWARDS: Final = (
    later(
        name="a link where the house reads a file",
        script="os.symlink('@outside@/secret.txt', 'note.txt')",
        seen=_read("note.txt"),
    ),
    later(
        name="a link to a folder where the house reads a file",
        script="os.symlink('@outside@', 'notes')",
        seen=_read("notes/secret.txt"),
    ),
    later(
        name="a link where the house writes a file",
        script="os.symlink('@outside@/victim.txt', 'note.txt')",
        seen=_wrote("note.txt"),
    ),
    later(
        name="a link to a folder where the house writes a file",
        script="os.symlink('@outside@', 'notes')",
        seen=_wrote("notes/victim.txt"),
    ),
    later(name="a pipe where the house reads a file", script="os.mkfifo('note.txt')", seen=_hung),
    later(
        name="a file without an end where the house reads one",
        script="open('note.txt', 'wb').truncate(48 * 2**20)",
        seen=_swallowed,
    ),
    later(
        name="a folder without an end",
        script="os.mkdir('d'); [open(f'd/{turn}', 'w').close() for turn in range(6000)]",
        seen=_listed,
    ),
    later(
        name="a name that a terminal obeys",
        script="open('\\x1b]52;c;ZXZpbA==\\x07.txt', 'w').write('x')",
        seen=_shown,
    ),
    later(
        name="a folder that is swapped for a link while the house reads",
        script=SWAPPING,
        midway=_raced,
    ),
)
