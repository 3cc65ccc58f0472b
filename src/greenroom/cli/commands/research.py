"""`greenroom research`: a question to the research desk, and feedback on its result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from greenroom.app.conversation.chat import list_team_models
from greenroom.app.conversation.start import FIRST_TASK_ID
from greenroom.app.lookup import resolve_id
from greenroom.app.messages import translate
from greenroom.app.research.desk import create_research, send_feedback
from greenroom.app.run_plan import DESK_AGENTS
from greenroom.cli.context import Invocation, invoke, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.follow import follow_attended
from greenroom.cli.interactive.report import report_ending
from greenroom.cli.options import (
    DEFAULT_OPTIONS,
    AgentName,
    ModelName,
    NonInteractive,
    RunOptions,
    TypedRequest,
    complete_id,
    read_request,
)
from greenroom.cli.render.conversation import RunView
from greenroom.cli.start import ask_trust, new_limits, plan_run, warn
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TeamId


def research(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="The question, or your feedback; `-` reads it from stdin."),
    ] = None,
    *,
    follow_up: Annotated[
        str,
        typer.Option(
            "--continue", metavar="ID", help="Give feedback on this run; it goes on.", autocompletion=complete_id
        ),
    ] = "",
    agent: AgentName = "",
    non_interactive: NonInteractive = False,
    model: ModelName = "",
    options: RunOptions = DEFAULT_OPTIONS,
) -> int:
    """Research a question on the web; write a report with sources.

    A lead agent plans, sends search and crawl agents out side by side, and writes artifacts. Its agents may read public
    pages without asking; your permission rules still hold. Page text never counts as an instruction.

    Examples:
      greenroom research "which SQLite settings make writes durable?"
      greenroom research --continue last "add the defaults"

    Exit codes: 0; 1; 2; 3; 4; 5; 6.
    """
    if follow_up and (agent or model):
        raise typer.BadParameter(translate("research.keeps_agents"))
    request = read_request(words)

    async def work(cli: Invocation) -> Exit:
        cli.app.set_attendance(yes=False, non_interactive=non_interactive)
        view = RunView(cli.setup, cli.out)
        view.own_text = request.text
        cli = replace(cli, progress=view)
        if follow_up:
            team = await _continue(cli, follow_up.strip(), request, options)
        else:
            team = await _start(cli, request, options, agent=agent.strip() or DESK_AGENTS[0], model=model.strip())
        ending = await follow_attended(cli, team, new=not follow_up)
        if any(artifact.version for artifact in ending.history.artifacts.values()):
            command = render_command(cli, "artifacts", "list", team)
            feedback = render_command(cli, "research", "--continue", team, "TEXT")
            view.note(translate("research.next", command=command, feedback=feedback))
        return report_ending(cli, team, ending, printed=view.printed_answer)

    return invoke(context, work)


async def _start(cli: Invocation, request: TypedRequest, options: RunOptions, *, agent: str, model: str) -> TeamId:
    plan = await plan_run(cli, options, agent=agent, model=model)
    (text, _), limits = await plan.make_message(cli.app, *request, note=warn(cli)), plan.limits
    team = await create_research(cli.runtime, plan.participants, text, typed=request.text, limits=limits)
    cli.out.begin(team=team, model=plan.participants.models[0], agent=plan.participants.first)
    for note in (translate("run.heading", team=team, who=plan.line), *plan.notes):
        cli.progress.note(note, style="dim")
    return team


async def _continue(cli: Invocation, name: str, request: TypedRequest, options: RunOptions) -> TeamId:
    team = (await resolve_id(cli.runtime, name)).team
    holder = await cli.runtime.log.holder(team)
    if holder is not None:
        raise WorldFault("research.runs_already", team=team, owner=holder.owner)
    state = await cli.runtime.state(team)
    cli.app.use_recording(options.record, options.replay)
    if state.team.workspace:
        ask_trust(cli, Path(state.team.workspace))
    for name in list_team_models(state):
        cli.app.get_model(name)  # refuse an unusable model before anything starts
    limits = new_limits(cli, state, options)
    await send_feedback(cli.runtime, team, "\n\n".join(filter(None, request)))
    await cli.runtime.ask(team, *limits)
    models, lead = list_team_models(state), state.tasks[FIRST_TASK_ID].manager
    cli.out.begin(team=team, model=models[0], agent=lead)
    cli.progress.note(translate("run.heading_resumed", team=team, who=", ".join((lead, *models))), style="dim")
    return team
