"""How to type what one begins with: `demo`, `ask`, `doctor`, `--version`."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import metadata
from typing import Annotated, cast

import typer

from greenroom.interfaces.cli.asked.orders import Ask, Caps, Demo, Tape
from greenroom.interfaces.cli.asked.pace import PACE, WATCHABLE
from greenroom.interfaces.cli.asked.setup import Setup, setup_of
from greenroom.interfaces.cli.entry.asking import question
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.entry.options import MaxCost, MaxTime, MaxTokens, Record, Replay
from greenroom.interfaces.cli.loading import load


def demo(
    context: typer.Context,
    *,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill the process half-way and let another one go on.")
    ] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Let the team ask you before it publishes.")] = False,
    pace: Annotated[
        float,
        typer.Option(
            "--pace",
            metavar="SECONDS",
            min=0.0,
            max=60.0,
            envvar=PACE,
            show_envvar=False,
            help="How long a reply or a tool takes; 0 is at once.",
        ),
    ] = WATCHABLE,
    record: Record = None,
    replay: Replay = None,
    team: Annotated[str | None, typer.Option("--team", hidden=True)] = None,
    fatal: Annotated[str | None, typer.Option("--fatal", hidden=True)] = None,
) -> int:
    """Watch three scripted agents talk and work; with --crash, see them die and carry on."""
    if crash and (record or replay):
        raise typer.BadParameter("A demo that is killed cannot be recorded or replayed. Leave one of them out.")
    os.environ[PACE] = str(pace)
    return do(context, Demo(crash=crash, ask=ask, team=team, tape=Tape(record=record, replay=replay)), fatal=fatal)


def ask(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="What to ask; `-` (or nothing, behind a pipe) reads it from stdin."),
    ] = None,
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="provider:model, a role (strong, fast) or a group.")
    ] = "",
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Ask a model. The answer comes on stdout; what was asked and answered is kept, and goes on after a crash."""
    caps = Caps(cost=max_cost, tokens=max_tokens, time=max_time)
    tape = Tape(record=record, replay=replay)
    return do(context, Ask(question=question(words or []), model=model.strip(), caps=caps, tape=tape))


def doctor(
    context: typer.Context,
    *,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Go on with a log that has lost commits (a file was cut or restored).")
    ] = False,
) -> int:
    """Check this machine and the log; exit code 3 when something is broken."""
    examine = cast("Callable[[Setup, bool], int]", load("commands.doctor", "doctor"))
    return examine(setup_of(context), accept_loss)


def version() -> int:
    """Say which version this is."""
    typer.echo(f"greenroom {metadata.version('greenroom')}")
    return 0
