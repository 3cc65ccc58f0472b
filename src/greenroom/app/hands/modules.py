"""Python files of a person's own as modules. What one of them does wrong is said with its name, and hurts no other."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from greenroom.core.base.errors import WorldFault


class Broken(WorldFault):
    """A file that cannot be used, and why."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}. It is left out; mend it or move it away.")
        self.path = path


def load_module(path: Path) -> ModuleType:
    """The module of a file; `Broken` when it cannot be run. Files of the same name do not meet."""
    name = f"greenroom_file_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Broken(path, "is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise Broken(path, f"cannot be run: {type(error).__name__}{where}: {error}") from error
    return module
