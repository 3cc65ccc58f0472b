"""Objects of a repository: read through one long-lived `git cat-file`, written in git's own format."""

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

from greenroom.adapters.git.files import translate_disk_errors
from greenroom.adapters.git.process import Git, close_pipes
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import WorkspaceFault

OBJECT_HEADER: Final = re.compile(rb"[0-9a-f]{40,64} (?:blob|tree|commit|tag) \d+\n")


@record
class GitCommit:
    """A commit: its hash, tree, parents and message."""

    name: str
    tree: str
    parents: tuple[str, ...]
    message: str

    @property
    def parent(self) -> str:
        """The first parent; empty if there is none."""
        return self.parents[0] if self.parents else ""


@record
class FileDelta:
    """One file in two trees, as git stores it. The mode 000000 means that the file is missing."""

    path: str
    old_mode: str
    old: str
    new_mode: str
    new: str


def write_object(folder: Path, hash_name: str, kind: str, content: bytes) -> str:
    """Write an object below `folder` and return its hash."""
    data = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.new(hash_name, data, usedforsecurity=False).hexdigest()
    place = folder / name[:2] / name[2:]
    with translate_disk_errors(str(folder)):
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
    """Resolves names and reads objects. The git process starts with the first call and ends with the reader."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._commits = dict[str, GitCommit]()  # by hash, so they never change

    async def find(self, name: str) -> str:
        """Return the hash of an object; empty if there is none. `name` is a hash, a ref, `REF:path`, `HASH^{tree}` …"""
        answer = await asyncio.to_thread(self._ask, "info", name)
        return answer[0] if answer else ""

    async def read_commit(self, name: str) -> GitCommit | None:
        """Return the commit that a name points to; None if there is none."""
        answer = await asyncio.to_thread(self._ask, "contents", f"{name}^{{commit}}")
        if answer is None:
            return None
        head, _, message = os.fsdecode(answer[1]).partition("\n\n")
        lines = [line.partition(" ")[::2] for line in head.split("\n")]
        parents = tuple(value for key, value in lines if key == "parent")
        return GitCommit(name=answer[0], tree=dict(lines)["tree"], parents=parents, message=message)

    async def list_history(self, tip: str, *, limit: int, until: str = "") -> Sequence[GitCommit]:
        """Return the newest commits from `tip` along first parents, up to but without `until`."""
        commits, name = list[GitCommit](), tip
        while name and name != until and len(commits) < limit:
            commit = self._commits.get(name) or await self.read_commit(name)
            if commit is None:
                break
            self._commits[commit.name] = commit
            commits.append(commit)
            name = commit.parent
        return commits

    async def read_contents(self, names: Iterable[str]) -> dict[str, bytes]:
        """Read these objects. Raise a *repository* fault if one is missing."""
        contents_by_name = dict[str, bytes]()
        for name in dict.fromkeys(names):
            answer = await asyncio.to_thread(self._ask, "contents", name)
            if answer is None:
                raise WorkspaceFault("repository", "git.object_missing", name=name)
            contents_by_name[name] = answer[1]
        return contents_by_name

    async def read_file(self, commit: str, path: str) -> bytes | None:
        """Return the content of a file in a commit; None if there is none, or a folder."""
        return await asyncio.to_thread(self._read_file, commit, path)

    def _read_file(self, commit: str, path: str) -> bytes | None:
        found = self._ask("info", f"{commit}:{path}")
        blob = self._ask("contents", f"{found[0]}^{{blob}}") if found is not None else None
        return blob[1] if blob is not None else None

    def _ask(self, request: str, name: str) -> tuple[str, bytes] | None:
        """Return hash and content of an object; None if git exits, as it does in a partial clone without the object."""
        with self._lock:
            for _ in range(2):
                try:
                    return self._read_answer(request, name)
                except (OSError, EOFError):
                    self._stop()
        return None

    def _stop(self) -> None:
        if self._process is not None:
            _end_process(self._process)
            self._process = None

    def _read_answer(self, request: str, name: str) -> tuple[str, bytes] | None:
        if self._process is None:
            self._process = self._git.start("cat-file", "--batch-command", "-z", stderr=subprocess.DEVNULL)
            weakref.finalize(self, _end_process, self._process)
        stdin, stdout = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        stdin.write(os.fsencode(f"{request} {name}\0"))
        stdin.flush()
        head = stdout.readline()
        if not OBJECT_HEADER.match(head):  # git echoes the name, which may contain line breaks
            head = b"".join((head, *(stdout.readline() for _ in range(name.count("\n")))))
        if not head.endswith(b"\n"):
            raise EOFError
        words = head.split()
        if not OBJECT_HEADER.match(head):
            return None
        content = b""
        if request == "contents":
            size = int(words[2])
            content = stdout.read(size + 1)
            if len(content) != size + 1:
                raise EOFError
        return words[0].decode(), content[:-1]


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes, so that the process exits, and wait for it."""
    close_pipes(process)
    process.wait()
