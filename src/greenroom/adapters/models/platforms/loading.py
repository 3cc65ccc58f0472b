"""Finding platforms in a folder of Python files, and judging them. A file is a stranger's code: it runs only if nobody
but its owner could have written it, and whatever it does wrong is a `Problem`, never an exception.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Final

from greenroom.adapters.models.platforms.base import BasePlatform
from greenroom.core.base.records import record

REQUIRED: Final = (
    "chat_until_success",
    "set_system_prompt",
    "upload_files",
    "reset",
    "set_model_name",
    "set_model_group",
    "name",
    "platform_name",
)
ASYNC: Final = ("chat_until_success", "upload_files")
ANYBODY: Final = 0o002


@record
class Problem:
    """A platform that is not there, and why. `missing` are the methods that a class lacks."""

    where: str
    why: str
    cls: str = ""
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


def platform_files(folder: Path) -> Sequence[Path] | Problem:
    """The files to load; none where there is no folder."""
    try:
        if not folder.exists():
            return ()
        if not folder.is_dir():
            return Problem(where=str(folder), why="is no folder. Put platforms into a folder of that name.")
        return unsafe(folder) or sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    except OSError as error:
        return Problem(where=str(folder), why=f"cannot be read: {error.strerror}. Make it readable.")


def unsafe(path: Path) -> Problem | None:
    """Somebody else could have put code here."""
    facts = path.stat()
    if facts.st_uid not in {os.geteuid(), 0}:
        return Problem(where=str(path), why="belongs to somebody else, so nothing is loaded from it. Make it yours.")
    if facts.st_mode & ANYBODY:
        why = f"can be written by everybody, so nothing is loaded from it. Type: chmod o-w {path}"
        return Problem(where=str(path), why=why)
    return None


def load_file(path: Path) -> ModuleType | Problem:
    """Run a file as a module."""
    module = ModuleType(f"greenroom_platforms_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # its own classes look themselves up there
    try:
        refused = unsafe(path)
        if refused is None:
            SourceFileLoader(module.__name__, str(path)).exec_module(module)
            return module
    except (Exception, SystemExit) as error:
        logging.getLogger(__name__).debug("%s cannot be loaded", path, exc_info=True)
        refused = Problem(where=str(path), why=f"cannot be loaded: {type(error).__name__}: {error}. Correct it.")
    del sys.modules[module.__name__]
    return refused


def candidates(module: ModuleType) -> Iterator[type]:
    """The classes of a module that are platforms, or are called so."""
    for name, value in vars(module).items():
        here = inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
        if here and (issubclass(value, BasePlatform) or name.endswith("Platform")):
            yield value


def judged(cls: type, where: str) -> type[BasePlatform] | Problem:
    """The class itself if it has all that a platform needs."""
    missing = tuple(name for name in REQUIRED if not callable(getattr(cls, name, None)))
    missing += tuple(sorted(getattr(cls, "__abstractmethods__", frozenset()) - set(missing)))
    named = cls.__name__
    if missing:
        return Problem(where=where, cls=named, missing=missing, why=f"{named} lacks {', '.join(missing)}. Add them.")
    if not issubclass(cls, BasePlatform):
        return Problem(where=where, cls=named, why=f"{named} is no BasePlatform. Make it a subclass.")
    waiting = [name for name in ASYNC if not inspect.iscoroutinefunction(getattr(cls, name))]
    if waiting:
        return Problem(where=where, cls=named, why=f"{named}.{waiting[0]} must be `async def`.")
    return cls


def named(cls: type[BasePlatform], otherwise: str) -> str:
    """What a class calls itself; if it has no name, it gets this one."""
    try:
        said = str(cls.platform_name())
    except Exception:
        logging.getLogger(__name__).debug("%s does not say its name", cls, exc_info=True)
        said = ""
    if not said:
        cls.platform = otherwise
    return said or otherwise
