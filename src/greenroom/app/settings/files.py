"""The files that settings and keys are read from, whether they are there or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from greenroom.app.settings.keys import keys_file
from greenroom.app.settings.layers import FOLDER, project_folder, there, user_file
from greenroom.core.base.records import record


@record
class File:
    """One of them."""

    what: Literal["user", "project", "local", "keys"]
    path: Path

    @property
    def there(self) -> bool:
        """Whether it can be seen."""
        return there(self.path)


def looked_at(environ: Mapping[str, str], cwd: Path) -> Sequence[File]:
    """All of them, the weakest first, the keys last. A project without settings would have them in this folder."""
    project = (project_folder(cwd, environ.get("HOME")) or cwd) / FOLDER
    return (
        File(what="user", path=user_file(environ)),
        File(what="project", path=project / "config.toml"),
        File(what="local", path=project / "config.local.toml"),
        File(what="keys", path=keys_file()),
    )
