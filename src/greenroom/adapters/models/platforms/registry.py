"""All platforms by name: every provider of the catalog, the user's own files, and installed packages.

A file is a stranger's code: it runs only if only its owner could have written it, and what it does wrong is
a `Problem`, never an exception.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Final

from platformdirs import user_config_path

from greenroom.adapters.models.catalog.catalog import providers, split
from greenroom.adapters.models.platforms.base import BasePlatform
from greenroom.core.base.errors import GreenroomError, WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.model import Model

ENTRY_POINTS: Final = "greenroom.platforms"
MakeModel = Callable[[str, str], Model]
"""The model of a provider, by the names of both."""


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


class PlatformRegistry:
    """Platforms, and which of them is the normal one. What cannot be used stands in `problems`; nothing raises.

    `normal` and the members of `groups` are `provider:model`.
    """

    def __init__(self, make: MakeModel, *, normal: str = "", groups: Mapping[str, Sequence[str]] | None = None) -> None:
        self._make: Final = make
        self._normal: Final = normal
        self._groups: Final = groups or {}
        self._classes: Final[dict[str, type[BasePlatform]]] = {name: built_in(name) for name in providers()}
        self.problems: Final[list[Problem]] = []

    # ------------------------------------------------------------------------------------------------- who is there

    def names(self) -> Sequence[str]:
        """All platforms."""
        return tuple(self._classes)

    def register_platform(self, name: str, cls: type, where: str = "") -> bool:
        """Add a class under this name, in the place of an older one; False if it cannot be a platform."""
        found = judged(cls, where or cls.__module__)
        if not isinstance(found, Problem) and (not name or ":" in name):
            why = f"{cls.__name__} is called {name!r}. A platform's name is not empty and has no colon."
            found = Problem(where=where or cls.__module__, cls=cls.__name__, why=why)
        if isinstance(found, Problem):
            self._trouble(found)
            return False
        self._classes[name] = found
        return True

    def scan(self, folder: Path | None = None) -> Sequence[str]:
        """Add the platforms of the user's folder and of installed packages; their names."""
        own = folder or user_config_path("greenroom", appauthor=False) / "models"
        return (*self.load_platform_from_dir(own), *self.load_installed())

    def load_platform_from_dir(self, folder: Path) -> Sequence[str]:
        """Add the platforms of a folder of Python files; their names."""
        files = platform_files(folder)
        if isinstance(files, Problem):
            self._trouble(files)
            return ()
        added: list[str] = []
        for path in files:
            module = load_file(path)
            if isinstance(module, Problem):
                self._trouble(module)
            else:
                added += self._add(candidates(module), str(path), path.stem)
        return tuple(added)

    def load_installed(self) -> Sequence[str]:
        """Add the platforms that installed packages offer (entry points of the group `greenroom.platforms`)."""
        added: list[str] = []
        for point in entry_points(group=ENTRY_POINTS):
            where = f"the installed {point.name!r} ({point.value})"
            try:
                loaded: object = point.load()
            except (Exception, SystemExit) as error:
                logging.getLogger(__name__).debug("%s cannot be loaded", where, exc_info=True)
                self._trouble(Problem(where=where, why=f"cannot be loaded: {type(error).__name__}: {error}."))
                continue
            if isinstance(loaded, type):
                added += self._add([loaded], where, point.name)
            else:
                self._trouble(Problem(where=where, why="is no class. It must name a subclass of BasePlatform."))
        return tuple(added)

    def _add(self, classes: Iterable[type], where: str, otherwise: str) -> Sequence[str]:
        added: list[str] = []
        for cls in classes:
            found = judged(cls, where)
            name = otherwise if isinstance(found, Problem) else named(found, otherwise)
            if self.register_platform(name, cls, where):
                added.append(name)
        return added

    def _trouble(self, problem: Problem) -> None:
        self.problems.append(problem)
        logging.getLogger(__name__).warning("A platform is not there. %s", problem)

    # ------------------------------------------------------------------------------------------------- one to talk to

    def create_platform(self, name: str, model: str = "") -> BasePlatform | None:
        """A new conversation with this platform and model (left out: what is proposed); None and a warning if not."""
        cls = self._classes.get(name)
        if cls is None:
            near = get_close_matches(name, self._classes, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(self._classes)}."
            logging.getLogger(__name__).warning("There is no platform %r. %s", name, hint)
            return None
        try:
            platform = cls(partial(self._make, name), groups=self._groups)
            chosen = model or proposed(name)
            if chosen:
                platform.set_model_name(chosen)
        except GreenroomError as error:
            logging.getLogger(__name__).warning("The platform %r cannot be had. %s", name, error)
            return None
        except Exception:
            # Somebody else's class: whatever it does, the others are still there.
            logging.getLogger(__name__).exception("The platform %r cannot be had", name)
            return None
        return platform

    def get_normal_platform(self, group: str | None = None) -> BasePlatform | None:
        """A new conversation with the normal model, or with a group's."""
        try:
            name, model = self._names(group)
        except WorldFault as fault:
            logging.getLogger(__name__).warning("There is no normal platform. %s", fault)
            return None
        return self.create_platform(name, model)

    def get_normal_platform_name(self, group: str | None = None) -> str:
        """The platform of the normal model, or of a group's main one."""
        return self._names(group)[0]

    def get_normal_model_name(self, group: str | None = None) -> str:
        """The normal model without its provider, or a group's main one."""
        return self._names(group)[1]

    def _names(self, group: str | None) -> tuple[str, str]:
        name = self._normal
        if group is not None:
            members = self._groups.get(group)
            if not members:
                there = ", ".join(self._groups) or "none"
                raise WorldFault(f"There is no model group {group!r}. There are: {there}.")
            name = members[0]
        if not name:
            raise WorldFault("No model is set. `greenroom init` sets one up.")
        return split(name, also=self._classes)


def built_in(name: str) -> type[BasePlatform]:
    """The platform of a provider of the catalog."""
    return type(f"{name.title().replace('-', '')}Platform", (BasePlatform,), {"platform": name})


def proposed(name: str) -> str:
    """The model that the catalog proposes for a provider."""
    known = providers().get(name)
    return known.strong if known else ""


# ------------------------------------------------------------------------------------------------ one for the process


class _Shared:
    """The registry of this process, made by whoever starts it."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._registry: PlatformRegistry | None = None

    def put(self, registry: PlatformRegistry | None) -> None:
        with self._lock:
            self._registry = registry

    def get(self) -> PlatformRegistry:
        with self._lock:
            if self._registry is None:
                self._registry = PlatformRegistry(nobody)
            return self._registry


def nobody(provider: str, model: str) -> Model:
    """What makes models before anybody has said how."""
    raise WorldFault(f"Nobody has said how {provider}:{model} is asked. Start Greenroom first.")


_SHARED: Final = _Shared()


def set_global_platform_registry(registry: PlatformRegistry | None) -> None:
    """From now on this is the registry of the process; None forgets it."""
    _SHARED.put(registry)


def get_global_platform_registry() -> PlatformRegistry:
    """The registry of the process: always the same one."""
    return _SHARED.get()
