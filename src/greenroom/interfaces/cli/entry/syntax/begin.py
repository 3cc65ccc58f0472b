"""How to type what one begins with: `demo`, `ask`, `run`, `chat`, `doctor`, `--version`."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import metadata
from typing import Annotated, cast

import typer

from greenroom.interfaces.cli.asked.orders import Ask, Caps, Chat, Demo, Run, Tape
from greenroom.interfaces.cli.asked.pace import PACE, WATCHABLE
from greenroom.interfaces.cli.asked.setup import Setup, setup_of
from greenroom.interfaces.cli.entry.asking import piped, question, said
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.entry.ids import complete
from greenroom.interfaces.cli.entry.options import (
    AgentName,
    MaxCost,
    MaxTime,
    MaxTokens,
    ModelName,
    NonInteractive,
    Record,
    Replay,
)
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
    model: ModelName = "",
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Ask a model. The answer comes on stdout; what is piped in is read as context. All is kept, also in a crash."""
    asked, caps = question(words or []), Caps(cost=max_cost, tokens=max_tokens, time=max_time)
    tape = Tape(record=record, replay=replay)
    return do(context, Ask(question=asked.text, context=asked.context, model=model.strip(), caps=caps, tape=tape))


def run(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to do; `-` (or nothing, behind a pipe) reads it from stdin."),
    ] = None,
    *,
    agent: AgentName = "",
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Let it answer from what it is told only.")] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Work in your files themselves, not in a copy of them.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Its plan needs no yes.")] = False,
    non_interactive: NonInteractive = False,
    model: ModelName = "",
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Give an agent something to do; without --agent a coder does it, in a copy of your files. Its answer comes on
    stdout; what is piped in is read as context."""
    asked = question(words or [], "task")
    order = Run(
        question=asked.text,
        context=asked.context,
        agent=agent.strip(),
        model=model.strip(),
        tools=not no_tools,
        alone=non_interactive,
        yes=yes,
        in_place=in_place,
        caps=Caps(cost=max_cost, tokens=max_tokens, time=max_time),
        tape=Tape(record=record, replay=replay),
    )
    return do(context, order)


def chat(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to begin with; what is piped in is then read as its context."),
    ] = None,
    *,
    agent: AgentName = "",
    resume: Annotated[
        str,
        typer.Option(
            "--resume", metavar="ID", help="Go on with a chat, or with the `last` one.", autocompletion=complete
        ),
    ] = "",
    model: ModelName = "",
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Talk with an agent. Without a terminal, each line of stdin is a turn. /help lists what can be typed."""
    if resume and agent:
        raise typer.BadParameter("A chat keeps its agent. Leave --agent out, or begin a new chat without --resume.")
    first = said(words, "text") if words else ""
    order = Chat(
        first=first,
        context=piped() if words else "",
        agent=agent.strip(),
        model=model.strip(),
        resume=resume.strip(),
        caps=Caps(cost=max_cost, tokens=max_tokens, time=max_time),
        tape=Tape(record=record, replay=replay),
    )
    return do(context, order)


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
