"""The holes that are known: what gets out at which tier, and why. A hole that is closed is a line too many here.

`docs/sandbox.md` tells of each. As root, where control groups can be made, the default tier has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.sandbox.attempt import Kind

GROUPS: Final = "only a control group counts it for all processes together, and here none can be made"
COUNTED: Final = "the system counts the processes of a person, not of a command"

HOLES: Final[Mapping[str, Mapping[Kind, Mapping[str, str]]]] = {
    "landlocked": {
        "writes": {"an attribute": "Landlock does not know of attributes"},
        "processes": {
            "all of them listed": "without a namespace for processes /proc shows all",
            "System V shared memory": "without a namespace for it whoever knows the key has it",
        },
        "greenroom": {
            "a link to a folder where there was none": "what was not there is looked for by name, and the link stays"
        },
    },
}

NOT_AS_ROOT: Final[Mapping[str, Mapping[Kind, Mapping[str, str]]]] = {
    "walled": {
        "resources": {
            "memory of one process": GROUPS,
            "memory of several processes": GROUPS,
            "a processor, by one process after the other": GROUPS,
        },
    },
    "landlocked": {
        "writes": {
            "mode": "Landlock does not know of modes, and the file is the person's own",
            "time": "nor of times",
        },
        "processes": {
            "given less time": "the process is the person's own, and Landlock knows only of signals",
            "given fewer files": "the same",
        },
        "resources": {
            "processes": COUNTED,
            "threads": COUNTED,
            "memory of one process": GROUPS,
            "memory of several processes": GROUPS,
            "a processor, by one process after the other": GROUPS,
        },
    },
}
"""On top of those, where the house is an ordinary user without control groups: then commands are that user too."""
