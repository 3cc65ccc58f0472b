"""Options and arguments that several commands share, and reading the text of a request."""

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

from greenroom.app.lookup import LAST, complete_ids
from greenroom.app.messages import translate
from greenroom.app.settings import home_folder, values
from greenroom.app.settings.values import BadValue, Reader
from greenroom.cli.setup import read_setup
from greenroom.core.base.errors import WorldFault

if TYPE_CHECKING:
    from greenroom.app.context import AppContext


def complete_id(context: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the ids that start with `incomplete`, newest first. Errors yield nothing: a shell must not show them."""
    try:
        home = home_folder(read_setup(context).home)
    except WorldFault:
        return
    for name in complete_ids(home, incomplete):
        yield name, "the newest run" if name == LAST else "run"


Id: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Start of a run's id, `last` for the newest, or RUN/TASK.", autocompletion=complete_id
    ),
]


def by_id(name: Id) -> None:
    """Stand-in for a command whose ID a shell completes without loading the command."""


def _make_check(read: Reader) -> Callable[[str | None], str | None]:
    def check(value: str | None) -> str | None:
        if value is not None:
            try:
                read(value)
            except BadValue as unfit:
                raise typer.BadParameter(translate("options.must_be", unfit=unfit, value=value)) from None
        return value

    return check


AgentName: TypeAlias = Annotated[
    str, typer.Option("--agent", "-a", metavar="NAME", help="Agent to use; see `greenroom agents list`.")
]
ModelName: TypeAlias = Annotated[
    str, typer.Option("--model", "-m", metavar="NAME", help="provider:model, a role (strong, fast) or a group.")
]
YES_HELP: Final = "Approve the plan, the checks and unverified work."
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help=YES_HELP)]
NonInteractive: TypeAlias = Annotated[
    bool, typer.Option("--non-interactive", help="Never ask; deny what needs approval.")
]
AllowUnverified: TypeAlias = Annotated[
    bool, typer.Option("--allow-unverified", help="Continue if no check can verify the change.")
]
ApplyOption: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="Apply the change to your files if it is verified.")
]
BranchOption: TypeAlias = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="Put the change on this new branch if it is verified.")
]
TestsMayChange: TypeAlias = Annotated[
    bool, typer.Option("--tests-may-change", help="Allow existing tests to fail; they are listed.")
]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


ApplyMode: TypeAlias = str | None
"""What happens to a verified change at the end of its run: apply (""), put it on this new branch, or nothing (None)."""


def read_apply_mode(branch: str | None, *, apply: bool, in_worktree: bool = True) -> ApplyMode:
    """Combine --apply and --branch. Without a worktree (`in_worktree`) neither is allowed."""
    if branch is not None and not branch.strip():
        raise typer.BadParameter(translate("options.branch_name"))
    if apply and branch:
        raise typer.BadParameter(translate("options.apply_or_branch"))
    if not in_worktree and (apply or branch):
        raise typer.BadParameter(translate("options.apply_needs_worktree"))
    return branch.strip() if branch else "" if apply else None


MaxCost: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-cost", metavar="USD", callback=_make_check(values.parse_cost), help="Cost limit in dollars, or none."
    ),
]
MaxTokens: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-tokens",
        metavar="N",
        callback=_make_check(values.parse_tokens),
        help="Token limit, like 200k, or none.",
    ),
]
MaxTime: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-time",
        metavar="TIME",
        callback=_make_check(values.parse_time),
        help="Working-time limit, like 15m, or none.",
    ),
]
Record: TypeAlias = Annotated[
    Path | None, typer.Option("--record", metavar="FILE", help="Record model replies to this file.", show_default=False)
]
Replay: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="FILE",
        help="Replay recorded replies; needs no model and no key.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Limits of a run as typed (None: not typed), and the files to record replies to or replay them from.

    A command with a parameter of this type has all these options.
    """

    cost: MaxCost = None
    tokens: MaxTokens = None
    time: MaxTime = None
    record: Record = None
    replay: Replay = None

    def apply_limits(self, app: AppContext) -> None:
        """Set the typed limits."""
        app.override({"limits.cost": self.cost, "limits.tokens": self.tokens, "limits.time": self.time})

    def apply(self, app: AppContext) -> None:
        """Set the typed limits and recordings."""
        self.apply_limits(app)
        app.use_recording(self.record, self.replay)


DEFAULT_OPTIONS: Final = RunOptions()


ToDo: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="TEXT", help="What to do; `-` (or nothing, after a pipe) reads it from stdin."),
]
STDIN: Final = "-"
MAX_STDIN_BYTES: Final = 1_000_000  # read from stdin
STDIN_NOTICE_S: Final = 2.0  # wait for stdin, after which a notice is printed


class TypedRequest(NamedTuple):
    """The typed request, and the text piped in as its context."""

    text: str
    context: str = ""


def read_request(words: Sequence[str] | None, what: str = "question") -> TypedRequest:
    """Read the request and its context; raise `BadParameter` if it is empty."""
    if is_on_stdin(words):
        return TypedRequest(join_words([read_stdin(what)], what))
    return TypedRequest(join_words(words or (), what), read_piped())


def is_on_stdin(words: Sequence[str] | None) -> bool:
    """Whether the request itself is read from stdin."""
    return list(words or ()) == [STDIN] or (not words and not sys.stdin.isatty())


def join_words(words: Sequence[str], what: str = "question") -> str:
    """Join the typed words; raise `BadParameter` if there are none."""
    text = " ".join(words)
    if not text.strip():
        raise typer.BadParameter(translate(f"options.no_{what}"))
    try:
        text.encode()
    except UnicodeEncodeError:  # a shell may pass bytes that are not UTF-8
        raise typer.BadParameter(translate("options.not_utf8")) from None
    return text.strip("\n")


def read_stdin(what: str = "question") -> str:
    if sys.stdin.isatty():
        typer.echo(translate(f"options.type_{what}"), err=True)
    return _decode_input(sys.stdin.buffer.read(MAX_STDIN_BYTES + 1))


def read_piped() -> str:
    """Read the text piped in as context; empty if stdin is a terminal, closed, or not a pipe, file or socket."""
    try:
        number = sys.stdin.fileno()
        mode = os.fstat(number).st_mode
    except (OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    if not select.select([number], (), (), STDIN_NOTICE_S)[0] and sys.stderr.isatty():
        typer.echo(translate("options.waiting_for_pipe"), err=True)
    return _decode_input(sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)).strip("\n")


def _decode_input(data: bytes) -> str:
    if len(data) > MAX_STDIN_BYTES:
        raise typer.BadParameter(translate("options.stdin_too_long"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(translate("options.stdin_not_utf8", byte=error.start)) from None
    if "\0" in text:
        raise typer.BadParameter(translate("options.stdin_nul"))
    return text
