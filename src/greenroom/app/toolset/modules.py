"""Python files of a person or a project as modules. A file that fails is named, and harms no other."""

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

PREFIX: Final = "greenroom_files_"


class Broken(WorldFault):
    """A file that cannot be used, and why."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}. It is left out; mend it or move it away.")
        self.path = path


def load_module(path: Path, beside: Mapping[str, bytes]) -> ModuleType:
    """The module of a file; `Broken` when it cannot be run.

    `beside` is what was read in its folder, by file name, its own text too. Exactly that is run, whatever the files
    say by now, and it is all that can be imported from beside it (`from . import …`). Other bytes make other modules,
    so a file runs once as long as its folder stays the same.
    """
    whole = hashlib.sha256(str(path.parent).encode(errors="surrogateescape"))
    for name, text in sorted(beside.items()):
        whole.update(f"\0{name}\0{len(text)}\0".encode(errors="surrogateescape") + text)
    package = f"{PREFIX}{whole.hexdigest()[:32]}"
    if package not in sys.modules:
        made = sys.modules[package] = ModuleType(package)
        made.__path__ = []  # nothing of it is looked for on the disk
        sys.meta_path.insert(0, _FilesRead(package, path.parent, dict(beside)))
    name = f"{package}.{_module_name(path.name)}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise Broken(path, "is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise Broken(path, f"cannot be run: {type(error).__name__}{where}: {error}") from error


def _module_name(file: str) -> str:
    return file.removesuffix(".py").replace(".", "_")


class _FilesRead(MetaPathFinder):
    """Finds the files of one folder as they were read, as the modules of a package."""

    def __init__(self, package: str, folder: Path, files: Mapping[str, bytes]) -> None:
        self._package = package
        self._files = {_module_name(name): (folder / name, files[name]) for name in files}

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """The module of this name, if it is one of them."""
        package, _, name = fullname.partition(".")
        if package != self._package or name not in self._files:
            return None
        file, source = self._files[name]
        return importlib.util.spec_from_file_location(fullname, file, loader=_Source(fullname, file, source))


class _Source(SourceFileLoader):
    """Runs what was read. Compiled code that lies beside a file is never run: no person has read that."""

    def __init__(self, name: str, path: Path, source: bytes) -> None:
        super().__init__(name, str(path))
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source, self.path)

    def get_data(self, path: str) -> bytes:
        """What was read, for a traceback that shows the text of a module."""
        return self._source if path == self.path else super().get_data(path)
