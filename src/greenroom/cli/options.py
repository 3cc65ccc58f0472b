"""Options and arguments that several commands share, and what they stand for; also the text of a request."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeAlias

import typer

from greenroom.app.lookup import LAST, possible
from greenroom.app.settings import home_folder, values
from greenroom.app.settings.values import Reader, Unfit
from greenroom.cli.setup import setup_of
from greenroom.core.base.errors import WorldFault

if TYPE_CHECKING:
    from greenroom.app.context import AppContext


def complete_id(context: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """The ids that may be meant, newest first. A shell never sees an error."""
    try:
        home = home_folder(setup_of(context).home)
    except WorldFault:
        return
    for name in possible(home, incomplete):
        yield name, "the newest team" if name == LAST else "team"


Id: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The beginning of a team's id, `last`, or TEAM/TASK.", autocompletion=complete_id
    ),
]


def by_id(name: Id) -> None:
    """A command of which only the ID is known, for a shell that completes it."""


def _checked(read: Reader) -> Callable[[str | None], str | None]:
    """Says what a value should be before anything begins."""

    def check(value: str | None) -> str | None:
        if value is not None:
            try:
                read(value)
            except Unfit as unfit:
                raise typer.BadParameter(f"must be {unfit}, not {value!r}.") from None
        return value

    return check


AgentName: TypeAlias = Annotated[
    str, typer.Option("--agent", "-a", metavar="NAME", help="Who answers. `greenroom agents list` says who there is.")
]
ModelName: TypeAlias = Annotated[
    str, typer.Option("--model", "-m", metavar="NAME", help="provider:model, a role (strong, fast) or a group.")
]
YES_TO: Final = "Approve the plan and the checks that were found; go on where no test can judge."
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help=YES_TO)]
NonInteractive: TypeAlias = Annotated[
    bool, typer.Option("--non-interactive", help="Ask nobody: what needs a yes is not done, and the agent is told.")
]
AtOnce: TypeAlias = Annotated[bool, typer.Option("--apply", help="If it is verified, bring it to your files at once.")]
OnBranch: TypeAlias = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="If it is verified, put it on this new branch at once.")
]
DoNotAsk: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


Take: TypeAlias = str | None
"""How a verified change is taken over when its job ends: applied (""), on a new branch of this name, or not (None)."""


def take(branch: str | None, *, apply: bool, in_copy: bool = True) -> Take:
    """How it is taken over, if that is wanted; `in_copy` says that there is something to be taken over from."""
    if branch is not None and not branch.strip():
        raise typer.BadParameter("--branch wants a name.")
    if apply and branch:
        raise typer.BadParameter("Either --apply or --branch: it is taken over once.")
    if not in_copy and (apply or branch):
        raise typer.BadParameter("There is no copy to be taken over from. Leave --in-place and --no-tools out.")
    return branch.strip() if branch else "" if apply else None


MaxCost: TypeAlias = Annotated[
    str | None,
    typer.Option("--max-cost", metavar="USD", callback=_checked(values.cost), help="Dollars it may cost, or none."),
]
MaxTokens: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-tokens", metavar="N", callback=_checked(values.tokens), help="Tokens it may use, like 200k, or none."
    ),
]
MaxTime: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-time", metavar="TIME", callback=_checked(values.time), help="Time it may work, like 15m, or none."
    ),
]
Record: TypeAlias = Annotated[
    Path | None, typer.Option("--record", metavar="FILE", help="Write down what the models say.", show_default=False)
]
Replay: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="FILE",
        help="Answer from such a file: no model is asked, no key is needed.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run may spend, as it was typed (None is not said), and where models' replies are recorded or read from.

    A command that has a parameter of this type has all these options.
    """

    cost: MaxCost = None
    tokens: MaxTokens = None
    time: MaxTime = None
    record: Record = None
    replay: Replay = None

    def limit(self, app: AppContext) -> None:
        """Take the limits as they were typed."""
        app.override({"limits.cost": self.cost, "limits.tokens": self.tokens, "limits.time": self.time})

    def apply(self, app: AppContext) -> None:
        """Take limits and recordings as they were typed."""
        self.limit(app)
        app.use_recording(self.record, self.replay)


DEFAULTS: Final = RunOptions()


ToDo: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="TEXT", help="What to do; `-` (or nothing, behind a pipe) reads it from stdin."),
]
STDIN: Final = "-"
MAX_BYTES: Final = 1_000_000  # of stdin
PATIENCE_S: Final = 2.0  # without a byte from stdin, after which it is said that we wait for it


class Request(NamedTuple):
    """What was typed, and what was piped in beside it."""

    text: str
    context: str = ""


def read_request(words: Sequence[str] | None, what: str = "question") -> Request:
    """The request with its context; `BadParameter` when there is none."""
    if is_on_stdin(words):
        return Request(typed([from_stdin(what)], what))
    return Request(typed(words or (), what), piped())


def is_on_stdin(words: Sequence[str] | None) -> bool:
    """Whether the text itself comes on stdin."""
    return list(words or ()) == [STDIN] or (not words and not sys.stdin.isatty())


def typed(words: Sequence[str], what: str = "question") -> str:
    """What was typed, as one text; `BadParameter` when there is none."""
    text = " ".join(words)
    if not text.strip():
        raise typer.BadParameter(f"There is no {what}. Type it behind the command, or pipe it in.")
    try:
        text.encode()
    except UnicodeEncodeError:  # a shell may hand over bytes that are not UTF-8
        raise typer.BadParameter(f"The {what} holds bytes that are no text. Write it in UTF-8.") from None
    return text.strip("\n")


def from_stdin(what: str = "question") -> str:
    if sys.stdin.isatty():
        typer.echo(f"Type your {what}; Ctrl-D on a line of its own ends it.", err=True)
    return _decoded(sys.stdin.buffer.read(MAX_BYTES + 1))


def piped() -> str:
    """What was piped in beside the words; nothing where stdin is a terminal, closed, or no place for data."""
    try:
        number = sys.stdin.fileno()
        mode = os.fstat(number).st_mode
    except (OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    if not select.select([number], (), (), PATIENCE_S)[0] and sys.stderr.isatty():
        typer.echo("Waiting for what is piped in. If nothing comes from there, add `< /dev/null`.", err=True)
    return _decoded(sys.stdin.buffer.read(MAX_BYTES + 1)).strip("\n")


def _decoded(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise typer.BadParameter("More than 1 MB came on stdin. Give a part of it, for instance with `head -c 500000`.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"What came on stdin is not UTF-8: byte {error.start} cannot be read.") from None
    if "\0" in text:
        raise typer.BadParameter("What came on stdin is no text: there is a NUL byte in it.")
    return text
