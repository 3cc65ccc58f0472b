"""The error tree, ordered by blame.

Rejection           a rule refused the request: a value, never raised in the core
GreenroomError
├── RefusedError    a `Rejection`, raised to the caller
├── ModelFault      the model's reply cannot be used: report it to the model, which tries again
│   └── OutputError     an answer or a tool's arguments do not match their type
├── WorldFault      tool, network, disk: retry or report
│   ├── ProviderFault   the model's provider does not answer: a person must act, or retry later
│   │   └── IncompleteAnswer    the answer broke off, or a filter withheld its rest
│   ├── StoreFault      the store cannot be used: damaged, foreign, too new, read-only
│   ├── StoreFull       the disk is full: nothing is lost while the process runs
│   ├── CommitUnknown   a commit may or may not have happened: compare the stream head
│   ├── StaleOwner      another owner has taken over this team
│   └── RunsElsewhere   another live process runs this team
└── Bug             a mistake in Greenroom: crash
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.records import record

Renderer: TypeAlias = Callable[[str, Mapping[str, object]], str]
"""Turns a message code and its values into a sentence."""


def render_code(code: str, values: Mapping[str, object]) -> str:
    """Return the code and its values, for a process without a message catalogue."""
    return f"{code} {', '.join(f'{name}={value}' for name, value in values.items())}".strip()


render: Renderer = render_code
"""Set by the message catalogue when it is imported."""


def translate(code: str, /, **values: object) -> str:
    """Return the message with this code and these values in the language of the process."""
    return render(code, values)


@record
class Rejection:
    """A rule refused a request. `code` is for programs, `why` names the problem, `hint` says what to do next.

    Models read `why` and `hint`. People read `rejections.MESSAGE` and `rejection_hints.MESSAGE` of the catalogue.
    """

    code: str
    why: str
    hint: str = ""
    message: str = ""
    values: Mapping[str, object] = {}

    def __str__(self) -> str:
        return f"{self.why} {self.hint}".strip()


def reject(message: str, why: str, hint: str = "", /, *, code: str = "", **values: object) -> Rejection:
    """Make a rejection whose sentences are templates for `values`. Its code is `message` unless it is given."""
    texts = (why.format(**values), hint.format(**values))
    return Rejection(code=code or message, why=texts[0], hint=texts[1], message=message, values=values)


class GreenroomError(Exception):
    """Base class of every error that Greenroom raises on purpose.

    Its argument is a sentence, or with `values` the code of a message in the catalogue. `spent` is the cost of the
    failed work; None means unknown, not zero. `run_id` is the run or conversation that it ended.
    """

    run_id: str = ""

    def __init__(self, *args: object, spent: Amounts | None = None, **values: object) -> None:
        super().__init__(*args)
        self.spent = spent
        self.values = values

    @property
    def code(self) -> str:
        """The code of the message, like `git.locked`; empty if the error was made from a sentence."""
        first = str(self.args[0]) if self.args else ""
        return first if "." in first and first.replace(".", "_").isidentifier() else ""

    def __str__(self) -> str:
        return render(self.code, self.values) if self.code else super().__str__()


class RefusedError(GreenroomError):
    """A `Rejection`, raised to a caller of the library or the command line."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(str(rejection))
        self.rejection = rejection

    @property
    def why(self) -> str:
        """What the problem is, for a person."""
        return self._find_text("rejections", self.rejection.why)

    @property
    def hint(self) -> str:
        """What to do next, for a person."""
        return self._find_text("rejection_hints", self.rejection.hint)

    def __str__(self) -> str:
        why = self.why
        return f"{why}{'' if why.endswith('。') else ' '}{self.hint}".strip()

    def _find_text(self, table: str, fallback: str) -> str:
        key = f"{table}.{self.rejection.message}"
        text = render(key, self.rejection.values)
        return fallback if text.startswith(key) else text


def make_refusal(code: str, why: str, hint: str = "") -> RefusedError:
    """Make a refusal: a code for programs, a sentence, and what to type instead."""
    return RefusedError(Rejection(code=code, why=why, hint=hint))


class ModelFault(GreenroomError):
    """The model's reply cannot be used. A tool raises it to make the model try again; the model reads the text."""


class OutputError(ModelFault):
    """Data that does not match the expected type. The text says what is wrong and where."""


class WorldFault(GreenroomError):
    """Something outside failed: a tool, the network, the disk."""


class ProviderFault(WorldFault):
    """A model's provider does not answer. `again` means that a retry may help, at extra cost."""

    def __init__(self, *args: object, again: bool = False, spent: Amounts | None = None, **values: object) -> None:
        super().__init__(*args, spent=spent, **values)
        self.again = again


class IncompleteAnswer(ProviderFault):
    """An answer has no end: the connection was cut, or a filter withheld the rest. `text` is what came of it."""

    def __init__(self, why: str, text: str = "", *, again: bool = False, spent: Amounts | None = None) -> None:
        super().__init__(why, again=again, spent=spent)
        self.text = text

    @property
    def code(self) -> str:
        """Always `incomplete`."""
        return "incomplete"

    def __str__(self) -> str:
        return str(self.args[0])


class StoreFault(WorldFault):
    """The store cannot be used in its current state. Its data is left untouched."""


class StoreFull(WorldFault):
    """The disk has no space left to write."""


class CommitUnknown(WorldFault):
    """A commit was cut off: it may or may not be in the log."""


class StaleOwner(WorldFault):
    """Another owner holds this team's lease. Nothing more may be written here."""


class RunsElsewhere(WorldFault):
    """Another live process owns the team."""


class Bug(GreenroomError):
    """A mistake in Greenroom itself."""
