"""Python files of a person's own as modules. What one of them does wrong is said with its name, and hurts no other."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from greenroom.core.base.errors import WorldFault

ODD: Final = "surrogateescape"
"""How names of files that are no text become bytes."""


class Broken(WorldFault):
    """A file that cannot be used, and why."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}. It is left out; mend it or move it away.")
        self.path = path


def load_module(path: Path, beside: Mapping[str, bytes]) -> ModuleType:
    """The module of a file; `Broken` when it cannot be run. Files of the same name do not meet.

    `beside` is what was read in its folder, its own text too, by where it lies there. Exactly that is run, whatever
    the files say by now, and it is all that can be imported from beside it (`from . import …`), now or later.
    It is run once, as long as all of it stays the same.
    """
    text = beside[path.name]
    short = hashlib.sha256(path.name.encode(errors=ODD)).hexdigest()[:16]
    name = f"{_package(path.parent, beside)}.{path.stem.replace('.', '_')}_{short}"
    if name in sys.modules:
        return sys.modules[name]
    spec, loader = _spec(name, path, text)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for their module there
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise Broken(path, f"cannot be run: {type(error).__name__}{where}: {error}") from error
    return module


def _package(folder: Path, beside: Mapping[str, bytes]) -> str:
    """The package of all that was read in a folder. No file makes it, and other bytes make another one."""
    whole = hashlib.sha256(f"{folder}\0".encode(errors=ODD))
    for place, text in sorted(beside.items()):
        whole.update(f"{place}\0{len(text)}\0".encode(errors=ODD) + text)
    name = f"greenroom_files_{whole.hexdigest()[:32]}"
    if name not in sys.modules:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = []  # nothing of it is looked for on the disk
        _NEIGHBOURS.packages[name] = (folder, dict(beside))
        if _NEIGHBOURS not in sys.meta_path:
            sys.meta_path.insert(0, _NEIGHBOURS)
    return name


class _AsRead(SourceFileLoader):
    """Runs what was read."""

    def __init__(self, name: str, path: Path, source: bytes) -> None:
        super().__init__(name, str(path))
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        """Compiled here and now. Compiled code that lies beside it is never run: nobody has read that."""
        return self.source_to_code(self._source, self.path)

    def get_data(self, path: str) -> bytes:
        """What was read, for who asks for the text of a module."""
        return self._source if path == self.path else super().get_data(path)


class _Neighbours(MetaPathFinder):
    """Finds what files import from beside them: only what was read, in the folders that were read."""

    def __init__(self) -> None:
        self.packages: dict[str, tuple[Path, dict[str, bytes]]] = {}

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """The module of this name."""
        package, _, name = fullname.partition(".")
        folder, files = self.packages.get(package, (Path(), {}))
        file = f"{name}.py"
        return _spec(fullname, folder / file, files[file])[0] if file in files else None


_NEIGHBOURS: Final = _Neighbours()


def _spec(name: str, path: Path, source: bytes) -> tuple[ModuleSpec, _AsRead]:
    loader = _AsRead(name, path, source)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise Broken(path, "is no Python file")
    return spec, loader
