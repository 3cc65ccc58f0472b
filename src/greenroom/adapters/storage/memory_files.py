"""Long-term memories: one JSON file per memory in the folder of its scope, found through the text index.

A memory of the project carries a seal, a keyed hash of its content. Only a memory that was saved on this machine has a
valid one: all others came with the repository, and are untrusted until a person trusts them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from greenroom.adapters.storage.sqlite.faults import translate_errors
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import MemoryId, memory_id
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.text_index import Document, TextIndex
from greenroom.core.state.knowledge import Memory, MemoryType
from greenroom.core.state.origin import make_label, merge_labels

PROJECT: Final[MemoryType] = "project_long_term"
REPLACED_FOLDER: Final = ".replaced"
"""The subfolder to which removed memories move, so that a removal can be undone."""

KEY_FILE: Final = "seal.key"
GITIGNORE: Final = "# Memories stay on this machine. To share them with the repository, delete this file.\n*\n"
MAX_FILE_BYTES: Final = 200_000
FOREIGN: Final = make_label("memory", PROJECT)
"""The origin of a memory that was not saved on this machine."""

_FILE_NAME: Final = re.compile(r"[\w-]+\.json", re.ASCII)


class MemoryEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A memory as its file holds it. Times are in ISO 8601."""

    id: str
    type: MemoryType
    content: str
    created_at: datetime
    tags: tuple[str, ...] = ()
    updated_at: datetime | None = None
    merged_from: tuple[str, ...] = ()
    author: str = ""
    origins: tuple[str, ...] = ()
    seal: str = ""


def to_entry(memory: Memory) -> MemoryEntry:
    """Return a memory in the form of its file."""
    return MemoryEntry(
        id=memory.memory_id,
        type=memory.type,
        content=memory.content,
        created_at=datetime.fromtimestamp(memory.created_at / 1000, UTC),
        tags=memory.tags,
        updated_at=datetime.fromtimestamp(memory.updated_at / 1000, UTC) if memory.updated_at is not None else None,
        merged_from=memory.merged_from,
        author=memory.by,
        origins=memory.origins,
    )


def from_entry(entry: MemoryEntry) -> Memory:
    """Return the memory in a file."""
    return Memory(
        memory_id=MemoryId(entry.id),
        type=entry.type,
        content=entry.content,
        created_at=int(entry.created_at.timestamp() * 1000),
        tags=entry.tags,
        updated_at=int(entry.updated_at.timestamp() * 1000) if entry.updated_at is not None else None,
        merged_from=tuple(map(MemoryId, entry.merged_from)),
        by=entry.author,
        origins=entry.origins,
    )


class MemoryFiles:
    """The memories of an agent, of the project and of the person. Without a `project` folder it has none of those.

    `is_trusted` decides about memories that came with the repository, by the digest of each. Methods raise
    `StoreFault`, or `WorldFault` for a folder that leads out of the project. They block for a few milliseconds.
    """

    def __init__(
        self,
        home: Path,
        project: Path | None,
        get_index: Callable[[], TextIndex],
        is_trusted: Callable[[Mapping[str, str]], bool] = lambda _: False,
    ) -> None:
        self._home = home
        self._project = project
        self._get_index = get_index
        self._is_trusted = is_trusted
        self._read_at: dict[Path, int] = {}
        self.types: tuple[MemoryType, ...] = ("agent", *((PROJECT,) if project else ()), "global_long_term")

    # ------------------------------------------------------------------------------------------------------- folders

    def find_folder(self, type_: MemoryType, agent: str = "") -> Path:
        """Return the folder of a scope. It may not exist."""
        if type_ != PROJECT:
            name = quote(agent, safe="").replace(".", "%2E")
            return self._home / type_ / name if type_ == "agent" else self._home / type_
        if self._project is None or self._leads_out(self._project):
            raise WorldFault("memory.leads_out", path=str(self._project))
        return self._project

    @staticmethod
    def _leads_out(project: Path) -> bool:
        return not project.resolve().is_relative_to(project.parent.parent.resolve())

    def count(self, type_: MemoryType) -> int:
        """Return how many memories of a type there are, also those that are not trusted."""
        folder = self._project if type_ == PROJECT else self._home / type_
        return sum(1 for _ in folder.glob("*.json")) if folder is not None else 0

    def _make_folder(self, type_: MemoryType, agent: str) -> Path:
        folder = self.find_folder(type_, agent)
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if type_ == PROJECT:
                (folder / ".gitignore").write_text(GITIGNORE, "utf-8")
        return folder

    @cached_property
    def _key(self) -> bytes:
        path = self._home / KEY_FILE
        with translate_errors(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not path.exists():
                draft = path.with_name(f".{KEY_FILE}.{secrets.token_hex(4)}")
                _write_new(draft, secrets.token_hex(32).encode())
                with suppress(OSError):  # another process was first, or this disk has no links
                    os.link(draft, path)
                if not path.exists():
                    draft.replace(path)
                draft.unlink(missing_ok=True)
            return path.read_bytes()

    def _seal(self, entry: MemoryEntry) -> str:
        bare = msgspec.structs.replace(entry, seal="")
        return hmac.new(self._key, encode(bare), hashlib.sha256).hexdigest()

    # -------------------------------------------------------------------------------------------------------- writing

    def save(self, memory: Memory, agent: str = "") -> Memory:
        """Save a memory, then remove those in its `merged_from`. Return it with its id.

        With `updated_at` it replaces the memory with its id. Otherwise the same content is not saved again, and other
        content gets a later id. A file is complete or absent, also after a crash.
        """
        folder = self._make_folder(memory.type, agent)
        with translate_errors(folder):
            is_known = self._read_at.get(folder) == folder.stat().st_mtime_ns
            while not self._write(folder, memory):
                memory = evolve(memory, memory_id=memory_id(0, memory.memory_id))
            saved = self._describe(_find_path(folder, memory.memory_id))
            self._get_index().replace(str(folder), [saved] if saved is not None else [])
            if is_known:
                self._read_at[folder] = folder.stat().st_mtime_ns
        self.remove(memory.type, memory.merged_from, agent)
        return memory

    def _write(self, folder: Path, memory: Memory) -> bool:
        """Write the file of a memory. Return False if its id is taken."""
        path, entry, changes = _find_path(folder, memory.memory_id), to_entry(memory), memory.updated_at is not None
        draft = path.with_name(f".{path.name}.new")
        if changes:
            draft.unlink(missing_ok=True)
        elif path.exists():
            known = self._read(path)
            return known is not None and (known.content, known.merged_from) == (memory.content, memory.merged_from)
        entry.seal = self._seal(entry) if memory.type == PROJECT else ""
        try:
            _write_new(draft, msgspec.json.format(msgspec.json.encode(entry)) + b"\n")
        except FileExistsError:  # another process is writing it
            return False
        if not changes and path.exists():  # another process was first
            draft.unlink()
            return False
        draft.replace(path)
        return True

    def remove(self, type_: MemoryType, ids: Iterable[str], agent: str = "") -> tuple[MemoryId, ...]:
        """Remove memories; `restore` brings them back. Return the ids of those that existed."""
        folder = self.find_folder(type_, agent)
        gone = [name for name in ids if _find_path(folder, name).is_file()]
        if gone:
            self._move(gone, folder, folder / REPLACED_FOLDER)
            self._get_index().remove(str(folder), gone)
        return tuple(map(MemoryId, gone))

    def restore(self, type_: MemoryType, ids: Iterable[str], agent: str = "") -> None:
        """Bring back removed memories. Those that were never removed are ignored."""
        folder = self.find_folder(type_, agent)
        back = [name for name in ids if _find_path(folder / REPLACED_FOLDER, name).is_file()]
        self._move(back, folder / REPLACED_FOLDER, folder)

    def _move(self, names: Sequence[str], source: Path, target: Path) -> None:
        with translate_errors(source):
            for name in names:
                target.mkdir(mode=0o700, exist_ok=True)
                _find_path(source, name).replace(_find_path(target, name))

    # -------------------------------------------------------------------------------------------------------- reading

    def _read(self, path: Path) -> Memory | None:
        try:
            return self.read_file(path)
        except WorldFault:
            return None

    def read_file(self, path: Path) -> Memory:
        """Return the memory in a file. Raise `WorldFault` with the reason if it is none."""
        try:
            if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
                raise WorldFault("files.not_plain")
            entry = msgspec.json.decode(path.read_bytes(), type=MemoryEntry)
            memory = evolve(from_entry(entry), memory_id=MemoryId(path.stem))
        except (OSError, msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
            raise WorldFault("memory.unreadable", path=str(path), why=str(error)) from None
        if not self._is_foreign(path, entry):
            return memory
        return evolve(memory, type=PROJECT, origins=merge_labels((FOREIGN,), memory.origins))

    def _is_foreign(self, path: Path, entry: MemoryEntry) -> bool:
        """Return whether a memory of the project was not saved on this machine in this form."""
        is_own = self._project is None or not path.is_relative_to(self._project)
        return not is_own and not hmac.compare_digest(entry.seal.encode(), self._seal(entry).encode())

    def _describe(self, path: Path) -> Document | None:
        """Return the document of a file. Its stamp ends with the digest of a foreign memory."""
        status, memory, digest = path.stat(), self._read(path), ""
        if memory is None:
            return None
        if FOREIGN in memory.origins:
            content = path.read_bytes()
            is_foreign = self._is_foreign(path, msgspec.json.decode(content, type=MemoryEntry))
            digest = hashlib.sha256(content).hexdigest() if is_foreign else ""
        stamp = f"{status.st_mtime_ns}:{status.st_size}:{digest}"
        return Document(key=path.stem, text=memory.content, tags=memory.tags, stamp=stamp)

    def _refresh(self, folder: Path) -> str:
        """Bring the index up to date with the files of a folder. Return the collection."""
        collection = str(folder)
        with translate_errors(folder):
            changed_at = folder.stat().st_mtime_ns if folder.is_dir() else 0
            if self._read_at.get(folder) == changed_at:
                return collection
            known, documents = dict(self._get_index().get_stamps(collection)), list[Document | None]()
            for path in self._list_paths(folder):
                status, old = path.stat(), known.pop(path.stem, "")
                if not old.startswith(f"{status.st_mtime_ns}:{status.st_size}:"):
                    documents.append(self._describe(path))
                    known[path.stem] = old
            new = [document for document in documents if document is not None]
            self._get_index().remove(collection, known)
            self._get_index().replace(collection, new)
            self._read_at[folder] = changed_at
        return collection

    def _list_paths(self, folder: Path) -> list[Path]:
        items = os.scandir(folder) if folder.is_dir() else ()
        named = (item for item in items if _FILE_NAME.fullmatch(item.name))
        return [Path(item.path) for item in named if item.is_file(follow_symlinks=False)]

    def list_foreign(self) -> Mapping[str, str]:
        """Return the digest of each memory that came with the repository."""
        if self._project is None or not self._project.is_dir() or self._leads_out(self._project):
            return {}
        stamps = self._get_index().get_stamps(self._refresh(self.find_folder(PROJECT)))
        return {name: digest for name, stamp in sorted(stamps.items()) if (digest := stamp.rpartition(":")[2])}

    def list_faults(self, type_: MemoryType, agent: str = "") -> list[str]:
        """Return why files in the folder of a scope cannot be read as memories."""
        folder, faults = self.find_folder(type_, agent), list[str]()
        known = self._get_index().get_stamps(self._refresh(folder))
        for path in self._list_paths(folder):
            try:
                _ = path.stem in known or self.read_file(path)
            except WorldFault as fault:
                faults.append(str(fault))
        return faults

    def find(
        self,
        types: Iterable[MemoryType],
        agent: str = "",
        *,
        words: str = "",
        tags: Sequence[str] = (),
        limit: int = 1_000_000,
    ) -> list[Memory]:
        """Return memories with any of the tags, best match for the words first; without words, newest first."""
        folders = {self._refresh(folder): folder for folder in (self.find_folder(type_, agent) for type_ in types)}
        matches = self._get_index().search(words, limit=limit, collections=list(folders), tags=tags)
        paths = (_find_path(folders[match.collection], match.key) for match in matches)
        found = [memory for memory in map(self._read, paths) if memory is not None]
        foreign = self.list_foreign() if any(FOREIGN in memory.origins for memory in found) else {}
        if not foreign or not self._is_trusted(foreign):
            return found
        # What was merged from others was not reviewed: it stays labelled.
        return [_without_label(memory) if memory.memory_id in foreign else memory for memory in found]

    def get(self, type_: MemoryType, ids: Iterable[str], agent: str = "") -> list[Memory]:
        """Return the memories with these ids that exist."""
        folder = self.find_folder(type_, agent)
        return [memory for name in ids if (memory := self._read(_find_path(folder, name))) is not None]

    def count_tags(self, types: Iterable[MemoryType], agent: str = "") -> Mapping[str, int]:
        """Return how many memories have each tag, most frequent first."""
        return self._get_index().count_tags([self._refresh(self.find_folder(type_, agent)) for type_ in types])

    def count_shared_tags(self) -> Mapping[str, int]:
        """Return how many memories of the project and of the person have each tag; not those of untrusted ones."""
        try:
            foreign = self.list_foreign()
            has_project = self._project is not None and (not foreign or self._is_trusted(foreign))
            return self.count_tags(["global_long_term", *([PROJECT] if has_project else [])])
        except WorldFault:  # each call says so
            return {}


def is_id(name: str) -> bool:
    """Return whether a memory with this id can be found again."""
    return _FILE_NAME.fullmatch(f"{name}.json") is not None


def _without_label(memory: Memory) -> Memory:
    return evolve(memory, origins=tuple(label for label in memory.origins if label != FOREIGN))


def _find_path(folder: Path, name: str) -> Path:
    return folder / f"{quote(name, safe='')}.json"


def _write_new(path: Path, content: bytes) -> None:
    """Create a file that only its owner can read, durably. Raise `FileExistsError` if it exists."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
