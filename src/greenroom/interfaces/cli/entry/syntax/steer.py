"""How to type what steers a team: `pause`, `resume`, `tell`, `cancel`, `answer`, `approvals`, `fork`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from greenroom.interfaces.cli.asked.orders import (
    Answer,
    ApprovalsList,
    Cancel,
    Caps,
    Fork,
    Pause,
    Resume,
    Scope,
    Tape,
    Tell,
)
from greenroom.interfaces.cli.entry.asking import STDIN, from_stdin, said
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.entry.ids import Id
from greenroom.interfaces.cli.entry.options import (
    AtOnce,
    MaxCost,
    MaxTime,
    MaxTokens,
    NonInteractive,
    OnBranch,
    Record,
    Replay,
    Yes,
)
from greenroom.interfaces.cli.entry.taking import take


def pause(
    context: typer.Context,
    name: Id,
    *,
    now: Annotated[bool, typer.Option("--now", help="Interrupt what runs; it is run again on resume.")] = False,
) -> int:
    """Start nothing new in a team or task. What runs is finished first, unless --now."""
    return do(context, Pause(name=name, now=now))


def resume(
    context: typer.Context,
    name: Id,
    *,
    yes: Yes = False,
    apply: AtOnce = False,
    branch: OnBranch = None,
    non_interactive: NonInteractive = False,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Let a team go on; if nobody runs it, run it here to its end. A new limit replaces the team's old one; what a job
    was told with --yes, --non-interactive, --apply or --branch is said again."""
    caps = Caps(cost=max_cost, tokens=max_tokens, time=max_time)
    tape = Tape(record=record, replay=replay)
    wanted = take(branch, apply=apply)
    return do(context, Resume(name=name, alone=non_interactive, yes=yes, take=wanted, caps=caps, tape=tape))


def tell(
    context: typer.Context,
    name: Id,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to say; `-` (or nothing, behind a pipe) reads it from stdin."),
    ] = None,
) -> int:
    """Say something to whoever manages a team's task. It is read in their next turn, also in another terminal."""
    stdin = list(words or []) == [STDIN] or (not words and not sys.stdin.isatty())
    text = said([from_stdin("text")] if stdin else words or [], "text")
    return do(context, Tell(name=name, text=text))


def cancel(context: typer.Context, name: Id) -> int:
    """End a task, or all open tasks of a team; what runs is stopped and seen dead."""
    return do(context, Cancel(name=name))


def answer(
    context: typer.Context,
    name: Id,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="yes|no|TEXT",
            help="May the step run? Or the answer to a question.",
            autocompletion=lambda: ["yes", "no"],
        ),
    ],
    *,
    approval: Annotated[
        str | None,
        typer.Option("--approval", help="Which question, when several wait: an agent's name or more of the id."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; the agent reads it.")] = "",
    scope: Annotated[
        Scope, typer.Option("--for", metavar="once|run|always", help="How far a yes goes: the rule that was shown.")
    ] = "once",
) -> int:
    """Say yes or no to a step that waits for a person, or answer an agent's question in words."""
    return do(context, Answer(name=name, said=" ".join(words), approval=approval, reason=reason, scope=scope))


approvals_answer = answer


def approvals_list(context: typer.Context) -> int:
    """List all that waits for a person, in whichever team: what is asked, since when, and how to answer it."""
    return do(context, ApprovalsList())


def fork(
    context: typer.Context,
    name: Id,
    *,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", min=1, metavar="N", help="Begin as it was at version N, or at the commit before it. [default: now]"
        ),
    ] = None,
) -> int:
    """Begin a new team as another one was at some version; the old one is not touched."""
    return do(context, Fork(name=name, at=at))
