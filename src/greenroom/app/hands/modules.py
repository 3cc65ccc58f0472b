"""Python files of a person's own as modules. What one of them does wrong is said with its name, and hurts no other."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from greenroom.core.base.errors import WorldFault


class Broken(WorldFault):
    """A file that cannot be used, and why."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}. It is left out; mend it or move it away.")
        self.path = path


def load_module(path: Path, source: bytes | None = None) -> ModuleType:
    """The module of a file; `Broken` when it cannot be run. Files of the same name do not meet.

    It is run once, as long as it stays the same. With `source` exactly that is run, whatever the file says by now.
    Compiled code that lies beside it is never run: nobody has read that. It can import its neighbours
    (`from . import …`).
    """
    text = _read(path) if source is None else source
    name = f"{_package(path.parent)}.{path.stem.replace('.', '_')}_{_short(str(path).encode() + text)}"
    if name in sys.modules:
        return sys.modules[name]
    module = importlib.util.module_from_spec(_spec(name, path, text))
    sys.modules[name] = module  # dataclasses look for their module there
    try:
        with _no_compiled_files():
            _run(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise Broken(path, f"cannot be run: {type(error).__name__}{where}: {error}") from error
    return module


class _AsRead(SourceFileLoader):
    """Runs what was read."""

    def __init__(self, name: str, path: Path, source: bytes) -> None:
        super().__init__(name, str(path))
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        """Compiled here and now."""
        return self.source_to_code(self._source, self.path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Broken(path, f"cannot be read: {error.strerror}") from None


def _spec(name: str, path: Path, source: bytes) -> ModuleSpec:
    spec = importlib.util.spec_from_file_location(name, path, loader=_AsRead(name, path, source))
    if spec is None:
        raise Broken(path, "is no Python file")
    return spec


def _run(module: ModuleType) -> None:
    spec = module.__spec__
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module)


def _package(folder: Path) -> str:
    """The package of all files of a folder; no file makes it."""
    name = f"greenroom_files_{_short(str(folder).encode())}"
    if name not in sys.modules:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(folder)]
    return name


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@contextmanager
def _no_compiled_files() -> Iterator[None]:
    """What is imported meanwhile leaves nothing beside it, where it would count as changed."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
