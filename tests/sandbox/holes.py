"""The holes that are known: what gets out at which tier, and why. A hole that is closed is a line too many here.

`docs/howto-sandbox.md` tells of each. The default tier has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.sandbox.attempt import Kind

HOLES: Final[Mapping[str, Mapping[Kind, Mapping[str, str]]]] = {
    "landlocked": {
        "git": {
            "another folder for what is common, while it runs": "it can be written, and is put aside "
            "within a quarter of a second"
        },
        "processes": {"all of them listed": "without a namespace for processes /proc shows all"},
    },
}

NOT_AS_ROOT: Final[Mapping[str, Mapping[Kind, Mapping[str, str]]]] = {
    "landlocked": {
        "writes": {
            "mode": "Landlock does not know of modes, and the file is the person's own",
            "time": "nor of times",
        },
    },
}
"""On top of those, where the house is an ordinary user without control groups: then commands are that user too."""
