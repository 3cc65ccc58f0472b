"""How to type what one begins with: `demo`, `ask`, `run`, `chat`, `doctor`, `--version`."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, cast

import typer

from greenroom.core.base.records import evolve
from greenroom.interfaces.cli.asked.orders import Ask, Caps, Chat, Demo, DemoTeam, Run, Tape
from greenroom.interfaces.cli.asked.pace import PACE, WATCHABLE
from greenroom.interfaces.cli.asked.setup import Setup, setup_of
from greenroom.interfaces.cli.entry.asking import piped, question, said
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.entry.ids import complete
from greenroom.interfaces.cli.entry.options import (
    AgentName,
    AllowUnverified,
    AtOnce,
    InPlace,
    MaxCost,
    MaxTime,
    MaxTokens,
    ModelName,
    NonInteractive,
    OnBranch,
    Question,
    Record,
    Replay,
    TestsMayChange,
    ToDo,
    Yes,
)
from greenroom.interfaces.cli.entry.taking import take
from greenroom.interfaces.cli.loading import load


def demo(
    context: typer.Context,
    *,
    folder: Annotated[
        str | None,
        typer.Option("--in", metavar="FOLDER", help="Where to play; a repository that is there is taken as it stands."),
    ] = None,
    pace: Annotated[
        float,
        typer.Option(
            "--pace",
            metavar="SECONDS",
            min=0.0,
            max=60.0,
            envvar=PACE,
            show_envvar=False,
            help="How long a scripted reply takes; 0 is at once.",
        ),
    ] = WATCHABLE,
    team: Annotated[bool, typer.Option("--team", help="Watch three agents who talk and write a page instead.")] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Let that team ask you before it publishes.")] = False,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Watch a job from the request to the undo, in a small repository made for it: real commands, git, tests, a kill
    and a resume. Only the model is scripted. The folder stays. Exit code 1 when a line of the story does not hold."""
    os.environ[PACE] = str(pace)
    if team and folder:
        raise typer.BadParameter("The team of --team works in its home. Leave --in out.")
    if team:
        return do(context, DemoTeam(ask=ask, tape=Tape(record=record, replay=replay)))
    if ask or record or replay:
        raise typer.BadParameter("--ask, --record and --replay are for the team of the demo. Add --team.")
    return do(context, Demo(folder=Path(folder) if folder else None))


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
    words: ToDo = None,
    *,
    agent: AgentName = "",
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Let it answer from what it is told only.")] = False,
    in_place: InPlace = False,
    yes: Yes = False,
    apply: AtOnce = False,
    branch: OnBranch = None,
    wants_answer: Question = False,
    tests_may_change: TestsMayChange = False,
    allow_unverified: AllowUnverified = False,
    non_interactive: NonInteractive = False,
    model: ModelName = "",
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Give an agent something to do; without --agent a coder does it. Agents that can edit files work in a copy. You
    decide whether to apply the result. The answer comes on stdout; what is piped in is read as context.
    Exit codes: 0 verified, or a question answered; 1 a check newly fails, or the run failed; 2 wrong usage; 3 settings
    or store; 4 provider; 5 limit; 6 waits for a person; 7 finished, but not verified."""
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
        take=take(branch, apply=apply, in_copy=not (in_place or no_tools)),
        caps=Caps(cost=max_cost, tokens=max_tokens, time=max_time),
        tape=Tape(record=record, replay=replay),
    )
    return do(context, _meant(order, answer=wants_answer, tests=tests_may_change, unverified=allow_unverified))


def _meant(order: Run, *, answer: bool, tests: bool, unverified: bool) -> Run:
    """With how it may end, if all that was said goes together."""
    if answer and order.take is not None:
        raise typer.BadParameter("--question wants an answer, so there is nothing to take over. Leave one of them out.")
    if tests and (order.in_place or not order.tools):
        raise typer.BadParameter("--tests-may-change is for work in a copy, which checks judge. Leave it out.")
    return evolve(order, wants_answer=answer, tests_may_change=tests, allow_unverified=unverified)


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
