"""All platforms by name: every provider of the catalog, the user's own files, and installed packages."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from platformdirs import user_config_path

from greenroom.adapters.models.catalog.catalog import providers, split
from greenroom.adapters.models.platforms.base import BasePlatform
from greenroom.adapters.models.platforms.loading import Problem, candidates, judged, load_file, named, platform_files
from greenroom.core.base.errors import GreenroomError, WorldFault
from greenroom.core.ports.model import Model

ENTRY_POINTS: Final = "greenroom.platforms"
MakeModel = Callable[[str, str], Model]
"""The model of a provider, by the names of both."""


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
