"""What of a project's `.greenroom/` goes to git: settings, agents, teams, tools, callbacks; never what agents said."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SHARED: Final = """\
# Only settings, agents, teams, tools, callbacks and rules are shared.
*
!.gitignore
!config.toml
!agents/
!agents/*.md
!teams/
!teams/*.toml
!tools/
!tools/*.py
!callbacks/
!callbacks/*.py
!permissions
"""


def tell_git(folder: Path) -> None:
    """Say so in the folder, unless somebody has said something there."""
    told = folder / ".gitignore"
    if not told.exists() and not told.is_symlink():
        told.write_text(SHARED, encoding="utf-8")
