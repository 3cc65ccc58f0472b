"""Platforms: models of one's own, as Python files in the settings folder `models/`. Subclass `BasePlatform`.

An unusable class only causes a warning in the log.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Final

from platformdirs import user_config_path

from greenroom.core.base.errors import GreenroomError, WorldFault
from greenroom.core.ports.model import Model

log: Final = logging.getLogger(__name__)


class BasePlatform:
    """Models under a name. A subclass sets `platform`, the part of a model's name before the colon, or is named after
    its file. It overrides `model_named`. The rest is as for every model: retries, limits, the log."""

    platform: ClassVar[str] = ""

    def model_named(self, name: str) -> Model:
        """Return the model with this name, the part after the colon."""
        raise NotImplementedError


class PlatformRegistry:
    """The platforms of one's own by name."""

    def __init__(self) -> None:
        self._classes: dict[str, type[BasePlatform]] = {}

    def names(self) -> Sequence[str]:
        return tuple(self._classes)

    def register_platform(self, name: str, cls: type, where: str = "") -> bool:
        """Register a class, replacing an older one. Log a warning and return False if it is unsuitable."""
        why = ""
        if not issubclass(cls, BasePlatform):
            why = "is not a subclass of BasePlatform. Make it one."
        elif cls.model_named is BasePlatform.model_named or not callable(cls.model_named):
            why = "lacks model_named. Add it."
        elif not name or ":" in name:
            why = f"has the name {name!r}. The name must not be empty or contain a colon."
        if why:
            log.warning("%s: %s %s", where or cls.__module__, cls.__name__, why)
            return False
        self._classes[name] = cls
        return True

    def scan(self, folder: Path | None = None) -> Sequence[str]:
        """Register the platforms in the user's folder and return their names."""
        return self.load_platform_from_dir(folder or user_config_path("greenroom", appauthor=False) / "models")

    def load_platform_from_dir(self, folder: Path) -> Sequence[str]:
        """Register the platforms in a folder of Python files and return their names. The default name is the file's."""
        added: list[str] = []
        for path in sorted(folder.glob("[!_]*.py")):
            module = ModuleType(f"greenroom_platforms_{path.stem}")
            module.__file__ = str(path)
            sys.modules[module.__name__] = module  # its classes may look up their module
            try:
                SourceFileLoader(module.__name__, str(path)).exec_module(module)
            except (Exception, SystemExit) as error:
                log.debug("%s cannot be loaded", path, exc_info=True)
                del sys.modules[module.__name__]
                log.warning("%s cannot be loaded: %s: %s. Fix the file.", path, type(error).__name__, error)
                continue
            for name, cls in vars(module).items():
                if not inspect.isclass(cls) or cls.__module__ != module.__name__ or name.startswith("_"):
                    continue
                if issubclass(cls, BasePlatform):
                    cls.platform = cls.platform or path.stem
                if name.endswith("Platform") or issubclass(cls, BasePlatform):
                    platform_name = getattr(cls, "platform", path.stem)
                    added += [platform_name] if self.register_platform(platform_name, cls, str(path)) else []
        return tuple(added)

    def make_model(self, platform: str, name: str) -> Model:
        """Return a model of a platform. Raise `WorldFault` if the platform cannot make it."""
        try:
            return self._classes[platform]().model_named(name)
        except GreenroomError:
            raise
        except Exception as error:  # third-party code
            log.debug("The platform %r failed", platform, exc_info=True)
            why = f"{type(error).__name__}: {error}"
            raise WorldFault("models.platform_failed", platform=platform, name=name, why=why) from error
