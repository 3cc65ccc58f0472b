"""Objects of a repository: read through one `git cat-file` that stays open, and written as git writes them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
import subprocess
import tempfile
import threading
import weakref
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Final, cast

from greenroom.adapters.git.files import disk_faults
from greenroom.adapters.git.process import Git, close_pipes
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import WorkspaceFault

FOUND: Final = re.compile(rb"[0-9a-f]{40,64} (?:blob|tree|commit|tag) \d+\n")


@record
class Commit:
    """A commit: its name, tree, parents and message."""

    name: str
    tree: str
    parents: tuple[str, ...]
    message: str

    @property
    def parent(self) -> str:
        """The first parent; empty if there is none."""
        return self.parents[0] if self.parents else ""


@record
class Delta:
    """One file in two trees, as git keeps it; a mode of zeros is no file."""

    path: str
    old_mode: str
    old: str
    new_mode: str
    new: str


def write_object(folder: Path, hashes: str, kind: str, content: bytes) -> str:
    """Write an object below `objects`; its name, by this hash function."""
    data = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.new(hashes, data, usedforsecurity=False).hexdigest()
    place = folder / name[:2] / name[2:]
    with disk_faults(str(folder)):
        if place.exists():
            return name
        if not place.parent.is_dir():
            place.parent.mkdir(exist_ok=True)
            place.parent.chmod(stat.S_IMODE(folder.stat().st_mode))  # others may share the repository
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix="tmp_obj_", delete=False) as file:
            try:
                file.write(zlib.compress(data))
                file.flush()
                os.fchmod(file.fileno(), 0o444)
                os.fsync(file.fileno())
                Path(file.name).replace(place)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    return name


class ObjectReader:
    """Answers what a name leads to, and what is in it. Git starts with the first question, and ends with the reader."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    async def find(self, name: str) -> str:
        """The hash of an object; empty if there is none. `name` is a hash, a ref, `REF:path`, `HASH^{tree}` …"""
        found = await asyncio.to_thread(self._ask, "info", name)
        return found[0] if found else ""

    async def commit(self, name: str) -> Commit | None:
        """The commit that a name leads to; None if there is none."""
        found = await asyncio.to_thread(self._ask, "contents", f"{name}^{{commit}}")
        if found is None:
            return None
        head, _, message = os.fsdecode(found[1]).partition("\n\n")
        lines = [line.partition(" ")[::2] for line in head.split("\n")]
        parents = tuple(value for key, value in lines if key == "parent")
        return Commit(name=found[0], tree=dict(lines)["tree"], parents=parents, message=message)

    async def history(self, tip: str, *, most: int, until: str = "") -> Sequence[Commit]:
        """The newest commits that lead to `tip` by first parents, without `until` and what came before it."""
        found, name = list[Commit](), tip
        while name and name != until and len(found) < most:
            commit = await self.commit(name)
            if commit is None:
                break
            found.append(commit)
            name = commit.parent
        return found

    async def contents(self, names: Iterable[str]) -> dict[str, bytes]:
        """What is in these objects; a *repository* fault if one is missing."""
        found = dict[str, bytes]()
        for name in dict.fromkeys(names):
            answer = await asyncio.to_thread(self._ask, "contents", name)
            if answer is None:
                raise WorkspaceFault("repository", f"The repository misses {name}. Look at it with 'git fsck'.")
            found[name] = answer[1]
        return found

    def _ask(self, what: str, name: str) -> tuple[str, bytes] | None:
        """Hash and content of an object. A git that ends on a question (a partial clone misses it) has no answer."""
        with self._lock:
            for _ in range(2):
                try:
                    return self._answer(what, name)
                except (OSError, EOFError):
                    self._stop()
        return None

    def _stop(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None

    def _answer(self, what: str, name: str) -> tuple[str, bytes] | None:
        if self._process is None:
            self._process = self._git.start("cat-file", "--batch-command", "-z", stderr=subprocess.DEVNULL)
            weakref.finalize(self, _end, self._process)
        stdin, stdout = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        stdin.write(os.fsencode(f"{what} {name}\0"))
        stdin.flush()
        head = stdout.readline()
        if not FOUND.match(head):  # then it says the name again, which may have lines
            head = b"".join((head, *(stdout.readline() for _ in range(name.count("\n")))))
        if not head.endswith(b"\n"):
            raise EOFError
        words = head.split()
        if not FOUND.match(head):
            return None
        content = b""
        if what == "contents":
            size = int(words[2])
            content = stdout.read(size + 1)
            if len(content) != size + 1:
                raise EOFError
        return words[0].decode(), content[:-1]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it: without anything to read it stops by itself."""
    close_pipes(process)
    process.wait()
