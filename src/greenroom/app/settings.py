"""Where Greenroom keeps its things."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path


def home_folder(given: Path | None = None) -> Path:
    """The folder of the log: what is given, else $GREENROOM_HOME, else the user's data folder."""
    if given is not None:
        return given.expanduser()
    named = os.environ.get("GREENROOM_HOME")
    return Path(named).expanduser() if named else user_data_path("greenroom", appauthor=False)
