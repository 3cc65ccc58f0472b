"""`greenroom plan` and `replan`: what a team would do, and another plan for a team that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greenroom.app.messages import translate
from greenroom.app.settings.home import create_file
from greenroom.app.teams.analysis import TeamProposal, refuse_disabled
from greenroom.cli.context import Invocation, invoke, make_refusal
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.plan_review import open_analyst, render_proposal
from greenroom.cli.options import DEFAULT_OPTIONS, ModelName, RunOptions, ToDo, read_request
from greenroom.cli.render.output import strip_control_characters
from greenroom.core.base.records import Data, to_full_dict
from greenroom.core.ports.codec import to_json_dict
from greenroom.teamwork.plan import PlannerKind
from greenroom.teamwork.plan_text import render_plan_text


def plan(
    context: typer.Context,
    words: ToDo = None,
    *,
    planner: Annotated[
        PlannerKind | None,
        typer.Option("--planner", metavar="WHO", help="Who plans: auto, rules, model or manager."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write the plan to this new file.", show_default=False)
    ] = None,
    model: ModelName = "",
    options: RunOptions = DEFAULT_OPTIONS,
) -> int:
    """Analyse a task and plan its team; start nothing.

    Shows the specialists, the subtasks, the estimated time and cost, and whether a team is worth it. A model is asked
    only if the rules are not sure, or with --planner model or manager.

    Examples:
      greenroom plan "add OAuth login, with tests and docs"
      greenroom plan --planner model --save login.toml "add OAuth login"
      greenroom plan --output-format json "fix the crash in the parser"

    Exit codes: 0; 2; 3; 4.
    """
    request = read_request(words, "task").text

    async def work(cli: Invocation) -> Exit:
        refuse_disabled(cli.app.settings.team)
        options.apply(cli.app)
        if save is not None and save.exists():
            raise make_refusal("file_exists", translate("plan.file_exists", path=save))
        analyst = await open_analyst(cli, model.strip())
        proposal = await analyst.propose(request, planner)
        for line in render_proposal(proposal, cli.out.console.width):
            cli.out.show(strip_control_characters(line))
        if save is not None:
            create_file(save, render_plan_text(proposal.plan))
            cli.out.show(translate("plan.saved", path=save))
        return cli.out.result("ok", Exit.DONE, **describe_proposal(proposal))

    return invoke(context, work)


def describe_proposal(proposal: TeamProposal) -> Data:
    """Return a proposal as fields for programs."""
    analysis = proposal.analysis
    return {
        "request": proposal.request,
        "task_types": list(analysis.task_types),
        "source": analysis.source,
        "is_sure": analysis.is_sure,
        "recommended": [to_json_dict(advice) for advice in analysis.recommended],
        "can_parallelize": analysis.can_parallelize,
        "estimate": {
            **to_full_dict(analysis.estimate),
            **{key: to_json_dict(getattr(analysis.estimate, key)) for key in ("seconds", "tokens")},
            "cost": to_json_dict(analysis.estimate.cost) if analysis.estimate.cost is not None else None,
        },
        "team": to_full_dict(proposal.decision),
        "subtasks": [to_full_dict(subtask) for subtask in proposal.plan.subtasks],
        "phases": [to_full_dict(phase) for phase in proposal.phases],
        "critical_path": list(proposal.critical_path),
        "model": proposal.model,
        "notes": list(proposal.notes),
        "runs": list(proposal.runs),
    }
