"""Show the plan of a team, and let a person confirm, edit or cancel it. Nothing that was typed is lost."""

from __future__ import annotations

import asyncio
import io
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Final, TypeAlias

import typer

from greenroom.app import run_plan
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, format_dollars
from greenroom.app.messages import shorten_names, translate
from greenroom.app.run_plan import Parse, make_parser
from greenroom.app.teams.analysis import TeamAnalyst, TeamProposal
from greenroom.app.teams.start import name_members
from greenroom.cli.context import Invocation
from greenroom.cli.options import RunOptions, TypedRequest, read_request
from greenroom.cli.render.output import PIPE_WIDTH, Column, Console, FittedTable, make_row, strip_control_characters
from greenroom.cli.render.questions import PersonLeft, ask_line
from greenroom.cli.start import ask_trust, warn
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.teamwork.plan import Estimate, Phase, Plan, PlanFault, PlannerKind, Range
from greenroom.teamwork.plan_text import render_plan_text

COLUMNS: Final = (
    Column(name="subtask"),
    Column(name="phase"),
    Column(name="agent", min_terminal_width=70),
    Column(name="duty", can_shrink=True, min_terminal_width=100),
    Column(name="after", can_shrink=True),
    Column(name="writes", can_shrink=True, min_terminal_width=80),
    Column(name="time", right=True),
)
EDITORS: Final = ("nano", "vim", "vi")
"""Editors that are tried if neither $VISUAL nor $EDITOR is set."""

PlannerOption: TypeAlias = Annotated[
    PlannerKind | None, typer.Option("--planner", metavar="WHO", help="Who plans: auto, rules, model or manager.")
]
MAX_FILE_BYTES: Final = 1_000_000


async def open_analyst(cli: Invocation, model: str = "") -> TeamAnalyst:
    """Return the analyst of the current workspace. Raise `RefusedError` if teams are off."""
    note = partial(cli.progress.note, style="dim")
    return await run_plan.open_analyst(cli.app, model, note=note, warn=warn(cli))


def read_named_file(path: Path) -> str:
    """Return the text of a file that the person named. Raise `RefusedError` if it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) <= MAX_FILE_BYTES:
            return content.decode("utf-8-sig")
        why = translate("plan.file_too_long")
    except OSError as error:
        why = str(error.strerror)
    except UnicodeDecodeError as error:
        why = translate("plan.not_utf8", byte=error.start)
    raise make_refusal("unreadable", translate("plan.unreadable", path=path, why=why))


# --------------------------------------------------------------------------------------------------------- the display


def render_proposal(proposal: TeamProposal, width: int = PIPE_WIDTH) -> Iterator[str]:
    """Yield the lines of a proposal: the analysis, the decision, the estimate, the subtasks and the critical path."""
    analysis, plan = proposal.analysis, proposal.plan
    if analysis.source != "file":
        yield describe_types(proposal)
    for note in proposal.notes:
        yield f"! {note}"
    if analysis.source in ("rules", "guess"):
        width_of_agent = max((len(advice.agent) for advice in analysis.recommended), default=0)
        for advice in analysis.recommended:
            need, agent = translate(f"plan.{advice.priority}"), advice.agent.ljust(width_of_agent)
            yield f"  {translate('plan.advice', agent=agent, need=need, reason=advice.reason)}"
    if plan.subtasks:
        yield render_estimate(analysis.estimate, proposal.model)
        yield ""
        yield from _render_subtasks(proposal, width)
        path = " → ".join(proposal.critical_path)
        yield translate("plan.critical_path", path=path, time=_format_seconds(analysis.estimate.critical_seconds))
    if (past := proposal.past).planned or past.merges:
        each = _format_seconds(past.seconds / past.merges) if past.merges else "–"
        names = shorten_names(past.often) or "–"
        yield translate("plan.past", merges=past.merges, each=each, held=past.held, planned=past.planned, names=names)
    if proposal.decision.is_team or analysis.source != "file":  # a file's plan runs as a team, as the person wants
        yield proposal.decision.reason


def describe_types(proposal: TeamProposal) -> str:
    """Return the line about the task types and who found them."""
    types = ", ".join(proposal.analysis.task_types) or translate("plan.no_types")
    return translate("plan.types", types=types, by=translate(f"plan.by_{proposal.analysis.source}"))


def _render_subtasks(proposal: TeamProposal, width: int) -> Iterator[str]:
    plan, members = proposal.plan, name_members(proposal.plan.subtasks)
    phases = {name: phase for phase in proposal.phases for name in phase.subtasks}
    critical = set(proposal.critical_path)
    rows = [
        make_row(
            f"{'*' if subtask.id in critical else ' '} {subtask.id}",
            _format_phase(phases[subtask.id]),
            members[subtask.id],
            subtask.name,
            ", ".join(subtask.dependencies),
            ", ".join(subtask.writes),
            _format_seconds(subtask.seconds),
        )
        for subtask in sorted(plan.subtasks, key=lambda subtask: phases[subtask.id].number)
    ]
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(FittedTable(COLUMNS, rows))
    yield from (line.rstrip() for line in out.getvalue().splitlines())


def _format_phase(phase: Phase) -> str:
    key = "parallel_phase" if phase.can_parallelize else "single_phase"
    return translate(f"plan.{key}", number=phase.number)


def render_estimate(estimate: Estimate, model: str) -> str:
    """Return the line about time, tokens and cost, and what they are based on."""
    cost = estimate.cost
    money = _format_range(cost, lambda value: format_dollars(round(value * MILLIONTHS_PER_DOLLAR))) if cost else ""
    key = "plan.cost" if money else "plan.cost_unknown" if model else "plan.cost_no_model"
    return translate(
        "plan.estimate",
        minutes=_format_range(estimate.seconds, lambda value: f"{max(1, round(value / 60))}"),
        tokens=_format_range(estimate.tokens, lambda value: f"{max(1, round(value / 1000))}k"),
        cost=translate(key, money=money, model=model),
        ratio=f"{estimate.parallelizable_ratio * 100:.0f}",
        serial=_format_seconds(estimate.serial_seconds),
        gain=f"{estimate.gain:.1f}",
        basis=translate(f"plan.basis_{estimate.basis}"),
    )


def _format_range(values: Range, render: Callable[[float], str]) -> str:
    return "–".join(dict.fromkeys(map(render, (values.low, values.high))))


def _format_seconds(seconds: float) -> str:
    return translate("plan.minutes", count=f"{round(seconds / 60, 1):g}") if seconds >= 60 else f"{seconds:.0f} s"


# -------------------------------------------------------------------------------------------------- confirm and modify


@dataclass(frozen=True, slots=True)
class TeamChoice:
    """What the person chose: the plan of a team, None if they cancelled."""

    analyst: TeamAnalyst
    plan: Plan | None


async def choose_team(
    cli: Invocation, request: str, file: Path | None, *, model: str = "", planner: PlannerKind | None = None
) -> TeamChoice | Amounts:
    """Plan a request, or read the plan of a file, and let the person confirm it.

    If one agent is enough, return what the planning took: it counts under the limits of that agent.
    """
    ask_trust(cli, cli.app.root)
    analyst = await open_analyst(cli, model)
    proposal = (
        await analyst.propose(request, planner)
        if file is None
        else analyst.assess(make_parser(analyst)(read_named_file(file)))
    )
    if file is None and not proposal.decision.is_team:
        for line in (describe_types(proposal), proposal.decision.reason):
            cli.progress.note(line)
        return analyst.spent
    _show_proposal(cli, proposal)
    analyst.require_model()
    return TeamChoice(analyst, await confirm_plan(cli, analyst, proposal))


def _show_proposal(cli: Invocation, proposal: TeamProposal) -> None:
    for line in render_proposal(proposal, shutil.get_terminal_size().columns):
        cli.progress.note(strip_control_characters(line))


async def confirm_plan(cli: Invocation, analyst: TeamAnalyst, proposal: TeamProposal) -> Plan | None:
    """Return the plan that the person confirms; None if they cancel. --yes and --non-interactive confirm it.

    Raise `RefusedError` if there is no terminal to ask at.
    """
    while not cli.app.is_auto_approved and cli.app.is_attended:
        if not cli.is_attended:
            raise make_refusal("no_terminal", translate("plan.no_terminal"), translate("plan.add_yes"))
        try:
            choice = ask_line(translate("plan.choose")).strip().lower()
        except PersonLeft:
            return None
        if choice in ("c", "confirm"):
            break
        if choice in ("x", "cancel"):
            return None
        if choice in ("m", "modify"):
            edited = await edit_plan(cli, render_plan_text(proposal.plan), make_parser(analyst))
            if edited is None:
                return None
            proposal = analyst.assess(edited)
            _show_proposal(cli, proposal)
    return proposal.plan


async def edit_plan(cli: Invocation, text: str, parse: Parse) -> Plan | None:
    """Let the person edit a plan until it has no fault; None if they cancel. A text that is not used is kept."""
    path = keep_draft(text)
    while True:
        await open_editor(cli, path)
        edited = path.read_text("utf-8", errors="replace")
        try:
            plan = parse(edited) if edited.strip() else None
        except PlanFault as fault:
            cli.progress.note(strip_control_characters(str(fault)), style="yellow")
        else:
            path.unlink(missing_ok=True)
            return plan
        try:
            choice = ask_line(translate("plan.edit_again")).strip().lower()
        except PersonLeft:
            choice = "x"
        if choice in ("x", "cancel"):
            cli.progress.note(translate("plan.kept", path=path), style="bold")
            return None


def keep_draft(text: str) -> Path:
    """Write a plan to a new file that a person can edit."""
    with NamedTemporaryFile("w", encoding="utf-8", prefix="greenroom-plan-", suffix=".toml", delete=False) as file:
        file.write(text)
    return Path(file.name)


async def open_editor(cli: Invocation, path: Path) -> None:
    """Open the person's editor and wait until it is closed. Raise `WorldFault` if there is none or it fails."""
    line = os.environ.get("VISUAL") or os.environ.get("EDITOR") or next(filter(shutil.which, EDITORS), "")
    words = shlex.split(line)
    if not words or shutil.which(words[0]) is None:
        raise WorldFault("teams.no_editor", editor=line, path=path)
    with cli.stop.redirect_interrupts(lambda: None):  # Ctrl-C belongs to the editor
        process = await asyncio.create_subprocess_exec(*words, str(path))
        code = await process.wait()
    if code:
        raise WorldFault("teams.editor_failed", editor=line, code=code, path=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamOptions:
    """Whether a team does the work, and by which plan."""

    team: Annotated[bool, typer.Option("--team", help="Plan it for a team of specialists; you confirm.")] = False
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="FILE", help="Run a plan saved by `greenroom plan`.", show_default=False),
    ] = None
    planner: PlannerOption = None
    team_file: Annotated[
        str | None,
        typer.Option("--team-file", metavar="FILE", help="Agents of this team file pass the task on."),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether a team is wanted."""
        return self.team or self.plan is not None

    def read_request(self, words: list[str] | None, agent: str, *, is_alone: bool) -> TypedRequest:
        """Read the request; a plan has its own. Raise `BadParameter` if other options want one agent."""
        if self.team_file is not None and not self.team_file.strip():
            raise typer.BadParameter(translate("run.team_file_empty"))
        if self.is_given and (is_alone or agent or self.team_file):
            raise typer.BadParameter(translate("run.team_options"))
        if self.team_file and agent:
            raise typer.BadParameter(translate("run.team_file_or_agent"))
        if self.plan is not None and words:
            raise typer.BadParameter(translate("run.plan_has_request"))
        if self.planner is not None and (self.plan is not None or not self.team):
            raise typer.BadParameter(translate("run.planner_needs_team"))
        return read_request(words, "task") if self.plan is None else TypedRequest("")

    async def choose(
        self, cli: Invocation, options: RunOptions, request: TypedRequest, model: str
    ) -> TeamChoice | Amounts:
        """Let the person confirm the plan of a team. If one agent does the work, return what the planning took."""
        if not self.is_given:
            return NOTHING
        options.apply(cli.app)
        return await choose_team(cli, "\n\n".join(filter(None, request)), self.plan, model=model, planner=self.planner)


NO_TEAM: Final = TeamOptions()
