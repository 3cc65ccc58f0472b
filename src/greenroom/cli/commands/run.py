"""`greenroom ask` and `run`: a question to a model, or something to do for an agent, logged like every other work."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import typer

from greenroom.app.conversation.names import ASK, RUN
from greenroom.app.conversation.start import found_alone
from greenroom.cli.context import Invocation, invoke, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import (
    DEFAULTS,
    AgentName,
    AtOnce,
    ModelName,
    NonInteractive,
    OnBranch,
    Request,
    RunOptions,
    Take,
    ToDo,
    Yes,
    read_request,
    take,
)
from greenroom.cli.render.talk import Talk
from greenroom.cli.runs.follow import attended
from greenroom.cli.runs.result import close
from greenroom.cli.runs.start import Begun, begin, with_context
from greenroom.runs.workspace import NOTHING_SAID, Wanted

NO_TOOLS: Final = (
    "It has no tools, so it answers from what it is told. Add tools in its file, or pass --no-tools to hide this note."
)


def ask(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="What to ask; `-` (or nothing, behind a pipe) reads it from stdin."),
    ] = None,
    *,
    model: ModelName = "",
    options: RunOptions = DEFAULTS,
) -> int:
    """Ask a model. The answer comes on stdout; what is piped in is read as context. Everything is logged; a crash loses
    nothing."""
    request = read_request(words)

    async def work(cli: Invocation) -> Exit:
        begun = await begin(cli, options, model=model.strip(), tools=False)
        return await _answer(cli, begun, ASK, request)

    return invoke(context, work)


async def _answer(
    cli: Invocation, begun: Begun, kit: str, request: Request, *notes: str, wanted: Wanted = NOTHING_SAID
) -> Exit:
    """A team whose answer ends its task: create it, follow it, and print what came of it."""
    talk, cast = Talk(cli.setup, cli.out), begun.cast
    whole = with_context(request.text, request.context, begun.language)
    team = await found_alone(cli.runtime, kit, cast, whole, typed=request.text, limits=begun.caps.limits, wanted=wanted)
    cli.out.begin(team=team, model=cast.models[0], agent=cast.first)
    for note in (begun.line, *notes):
        talk.note(note, style="dim")
    inside = replace(cli, progress=talk)
    return close(inside, team, await attended(inside, team, new=True), name="last", spoken=talk.spoken)


def run(
    context: typer.Context,
    words: ToDo = None,
    *,
    agent: AgentName = "",
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Let it answer from what it is told only.")] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Work in your files themselves, not in a copy of them.")
    ] = False,
    yes: Yes = False,
    apply: AtOnce = False,
    branch: OnBranch = None,
    question: Annotated[
        bool, typer.Option("--question", help="An answer is all that is wanted: it counts though nothing is changed.")
    ] = False,
    tests_may_change: Annotated[
        bool,
        typer.Option("--tests-may-change", help="Old tests may fail: they are named, and the run can be verified."),
    ] = False,
    allow_unverified: Annotated[
        bool, typer.Option("--allow-unverified", help="Go on when no check can verify the change, without asking.")
    ] = False,
    non_interactive: NonInteractive = False,
    model: ModelName = "",
    options: RunOptions = DEFAULTS,
) -> int:
    """Give an agent something to do; without --agent a coder does it. Agents that can edit files work in a copy. You
    decide whether to apply the result. The answer comes on stdout; what is piped in is read as context.
    Exit codes: 0 verified, or a question answered; 1 a check newly fails, or the run failed; 2 wrong usage; 3 settings
    or store; 4 provider; 5 limit; 6 waits for a person; 7 finished, but not verified."""
    request, in_copy = read_request(words, "task"), not (in_place or no_tools)
    taken = take(branch, apply=apply, in_copy=in_copy)
    if question and taken is not None:
        raise typer.BadParameter("--question wants an answer, so there is nothing to take over. Leave one of them out.")
    if tests_may_change and not in_copy:
        raise typer.BadParameter("--tests-may-change is for work in a copy, which checks judge. Leave it out.")
    wanted = Wanted(question=question, tests_may_change=tests_may_change, allow_unverified=allow_unverified)

    async def work(cli: Invocation) -> Exit:
        cli.means.set_attendance(yes=yes, non_interactive=non_interactive)
        begun = await begin(cli, options, agent=agent.strip(), model=model.strip(), tools=not no_tools, job=in_copy)
        if in_copy and begun.writers:
            from greenroom.cli.commands.job import start_job

            return await start_job(cli, request, begun, wanted, taken)
        return await _run_in_place(cli, request, begun, taken, tools=not no_tools, question=question)

    return invoke(context, work)


async def _run_in_place(
    cli: Invocation, request: Request, begun: Begun, taken: Take, *, tools: bool, question: bool
) -> Exit:
    """An agent that reads and talks, or that works in the person's own files, leaves nothing to be taken over."""
    if taken is not None:
        why = f"{begun.cast.first!r} has no tools that change files, so there will be nothing to take over."
        raise refused("nothing_to_take", why, "Leave --apply and --branch out.")
    notes = [*begun.notes, *((NO_TOOLS,) if tools and not begun.cast.workspace else ())]
    return await _answer(cli, begun, RUN, request, *notes, wanted=Wanted(question=question))
