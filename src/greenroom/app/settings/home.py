"""Where Greenroom keeps its log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from platformdirs import user_data_path

from greenroom.core.base.errors import WorldFault

VARIABLE: Final = "GREENROOM_HOME"


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
