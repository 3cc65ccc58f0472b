"""Where Greenroom keeps its log, and where a person keeps what is theirs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from platformdirs import user_config_path, user_data_path

from greenroom.core.base.errors import WorldFault

VARIABLE: Final = "GREENROOM_HOME"


def config_folder() -> Path:
    """The person's own folder: agents, tools, callbacks, keys, and what they agreed to.

    $GREENROOM_CONFIG names one file and does not move it: else whatever lies beside that file would be run.
    """
    return user_config_path("greenroom", appauthor=False)


def home_folder(given: Path | None = None) -> Path:
    """The folder of the log, from the root: what is given, else $GREENROOM_HOME, else the user's data folder."""
    if given is None:
        named = os.environ.get(VARIABLE)
        if named is not None and not named.strip():
            raise WorldFault(f"${VARIABLE} is set but empty. Name a folder, or unset it for your data folder.")
        given = Path(named) if named is not None else user_data_path("greenroom", appauthor=False)
    try:
        return given.expanduser().absolute()
    except RuntimeError:
        raise WorldFault(f"{str(given)!r} names a person whose folder is not known here. Write it out.") from None
    except FileNotFoundError:
        raise WorldFault(
            f"The current folder is gone, so nobody knows where {str(given)!r} is. Go elsewhere."
        ) from None
