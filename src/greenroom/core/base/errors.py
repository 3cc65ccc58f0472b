"""What can go wrong, by who is to blame.

Rejected            a rule said no: a value, never raised inside the house
GreenroomError
├── Refused         the same "no", raised at a door
├── ModelFault      the model's reply cannot be used: tell it, let it try again
├── WorldFault      tool, network, disk: retry or report
│   ├── ProviderFault   no model answers: somebody has to do something, or it is asked again later
│   ├── StoreFault      the store cannot be used: damaged, foreign, too new, read-only
│   ├── StoreFull       the disk is full: nothing is lost while the process lives
│   ├── CommitUnknown   the commit may or may not have happened: compare the head
│   ├── StaleOwner      somebody else owns this team now
│   └── RunsElsewhere   somebody else runs the team that was to run here
└── Bug             ours: crash
"""

from __future__ import annotations

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.records import record


@record
class Rejected:
    """A rule said no. `code` is for programs, `why` says what and which, `hint` what to do now."""

    code: str
    why: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.why} {self.hint}".strip()


class GreenroomError(Exception):
    """Everything Greenroom raises on purpose. `spent` is what it cost; None when nobody knows, which is not nothing.

    `run` is the id of the run or the conversation that it ended, if it ended one.
    """

    run: str = ""

    def __init__(self, *args: object, spent: Amounts | None = None) -> None:
        super().__init__(*args)
        self.spent = spent


class Refused(GreenroomError):
    """A refusal that reached a door."""

    def __init__(self, rejected: Rejected) -> None:
        super().__init__(str(rejected))
        self.rejected = rejected


class ModelFault(GreenroomError):
    """The model's reply cannot be used. A tool raises it to have the model try again: it reads the text."""


class WorldFault(GreenroomError):
    """Something outside failed: a tool, the network, the disk."""


class ProviderFault(WorldFault):
    """A model's provider does not answer. `again` says that asking once more may help, and costs anew."""

    def __init__(self, *args: object, again: bool = False, spent: Amounts | None = None) -> None:
        super().__init__(*args, spent=spent)
        self.again = again


class StoreFault(WorldFault):
    """The store cannot be used as it is; its data is left untouched."""


class StoreFull(WorldFault):
    """There is no room to write."""


class CommitUnknown(WorldFault):
    """A commit was cut off: it may or may not be in the log."""


class StaleOwner(WorldFault):
    """Another owner holds this team's lease: nothing more may be written here."""


class RunsElsewhere(WorldFault):
    """Another process, alive, owns the team that was to be owned here."""


class Bug(GreenroomError):
    """A mistake of ours."""


def how_to_install(extra: str, beside: str = "") -> str:
    """The command that installs an optional part of Greenroom, and a package `beside` it."""
    tool, pip = (f" --with {beside}", f" {beside}") if beside else ("", "")
    return f"`./go uv tool install '.[{extra}]'{tool}` in a clone of Greenroom, or `pip install '.[{extra}]'{pip}`"
