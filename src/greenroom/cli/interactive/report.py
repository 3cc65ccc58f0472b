"""The report of a run or a turn: a line about how it ended, the answer on stdout, and the command to type next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from greenroom.app.approvals import pending_approvals, words_to_type
from greenroom.app.conversation.capability_names import ASK, CHANGING_RUNS, RESEARCH, RUN, TEAM_RUN
from greenroom.app.conversation.chat import TurnOutcome
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, format_dollars
from greenroom.app.memories import list_kept, list_unsaved
from greenroom.app.messages import count_things, translate
from greenroom.app.messages.findings import render_for_people
from greenroom.app.task_status import find_partial, format_duration
from greenroom.app.words import shorten
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.team import TeamHistory
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TEAM_BUDGET, TeamId
from greenroom.core.base.records import Data
from greenroom.core.state.knowledge import Memory
from greenroom.core.state.team_state import TeamState
from greenroom.testing.demo import ANSWER_FILE, ASKING_KIT, DEMO_KIT, demo_folder

if TYPE_CHECKING:
    from greenroom.cli.interactive.follow import Ending

MORE_FLAGS: Final = {"money": "--max-cost USD", "tokens": "--max-tokens N", "millis": "--max-time TIME"}
"""The options that raise a limit, by what it limits."""

LIMITS: Final = ("money", "tokens", "millis", "steps", "hops")
MAX_REASON_CHARS: Final = 600  # characters of a reason
EXIT_STYLES: Final = {
    Exit.DONE: ("✓", "bold green"),
    Exit.FAILED: ("✗", "bold red"),
    Exit.UNVERIFIED: ("?", "bold yellow"),
}


def report_ending(
    cli: Invocation,
    team: TeamId,
    ending: Ending,
    *,
    printed: str = "",
    extra_fields: Data | None = None,
    has_head: bool = False,
) -> Exit:
    """Report how a run ended.

    `printed` is the answer that stdout has already. `extra_fields` go into the JSON result. With `has_head` the line
    about the ending was printed before.
    """
    _print_ending(cli, ending, has_head=has_head)
    history, text = ending.history, _find_answer(cli, team, ending)
    is_in_table = history.state.team.kit == TEAM_RUN and cli.out.is_live  # the table has said it already
    if text and text.strip() != printed.strip() and not is_in_table:
        if cli.out.is_live:  # an empty line around the answer, where stdout and stderr share a screen
            cli.progress.note("")
        if history.state.team.kit in CHANGING_RUNS and history.total().tokens:
            cli.progress.note(translate("report.summary"), style="dim")
        cli.out.write(f"{text.rstrip()}\n")
        if cli.out.is_live:
            cli.progress.note("")
    if leftover := cli.app.unused_recording():
        cli.progress.note(leftover, style="yellow")
    if history.state.team.kit in CHANGING_RUNS and (kept := _list_unsaved(cli, history.state)):
        command = render_command(cli, "apply", team)
        cli.progress.note(translate("memory.kept", memories=count_things("memory", len(kept)), command=command))
    cli.progress.note(_next_command(cli, team, ending))
    return cli.out.result(
        ending.status,
        ending.code,
        team=team,
        version=history.version,
        answer=text,
        tasks=[
            {"task": task, "state": standing.state, "why": standing.reason, "code": standing.code}
            for task, standing in ending.standings
        ],
        **_partial_fields(ending),
        steps=history.steps_ended,
        tokens=history.total().tokens,
        cost=history.total().money / MILLIONTHS_PER_DOLLAR,
        estimated_calls=history.total().estimated,
        messages=history.messages_sent,
        **_verdict_fields(ending),
        **(extra_fields or {}),
    )


def _list_unsaved(cli: Invocation, state: TeamState) -> list[Memory]:
    """Return the memories that a run keeps; all of them if the project's cannot be read, which `apply` says."""
    try:
        return list_unsaved(cli.app.memories(Path(state.team.workspace)), state)
    except WorldFault:
        return list_kept(state)


def _partial_fields(ending: Ending) -> Data:
    """Return the code and the text of an answer that has no end."""
    partial = find_partial(ending.history.state)
    return {"code": "incomplete", "partial": partial} if partial else {}


def _verdict_fields(ending: Ending) -> Data:
    """Return the verdict fields of a run in the person's own files, which no check verifies."""
    if ending.history.state.team.kit != RUN:
        return {}
    why: Data = {}
    if ending.unverified:
        reasons = [{"code": ending.unverified}]
        why = {"unverified": ending.unverified, "verdict": {"code": "unverified", "reasons": reasons}}
    return {"verified": False, "answered": ending.code == Exit.DONE, **why}


def _print_ending(cli: Invocation, ending: Ending, *, has_head: bool) -> None:
    over_limit = explain_over_limit(ending.history)
    sign, style = EXIT_STYLES.get(Exit.LIMIT if over_limit else ending.code, ("!", "bold yellow"))
    cli.progress.note("")
    if not has_head:
        state, figures = translate(f"states.{ending.status}"), summarise(ending.history)
        cli.progress.note(translate("report.ended", sign=sign, state=state, figures=figures), style=style)
    if over_limit:
        cli.progress.note(f"  {over_limit}", style="yellow")
    if ending.fault:
        cli.progress.note(f"  {ending.fault}")
    if ending.unverified and not has_head:
        cli.progress.note(f"  {translate(f'report.{ending.unverified}')}", style="yellow")
    if ending.why:
        if cli.setup.quiet:
            state = translate(f"states.{ending.status}")
            _print_reason(cli, ending, translate("report.reason", state=state, reason=ending.why))
        return
    unfinished = [status for status in ending.standings if ending.fault or status[1].state != "finished"]
    for task, standing in unfinished if ending.code != Exit.DONE else ():
        reason = shorten(_explain_status(standing.state, standing.reason), MAX_REASON_CHARS)
        state = translate(f"states.{standing.state}")
        _print_reason(cli, ending, translate("report.task_reason", task=task, state=state, reason=reason))


def _explain_status(word: str, reason: str) -> str:
    why = reason.removeprefix(f"{word}: ").removeprefix("incomplete: ").removeprefix("escalated: ")
    budget, _, limit = why.partition(" ")
    if word != "limit" or limit not in LIMITS:
        return why
    return translate("report.limit_before_step", limit_words=translate(f"report.limit_{limit}"), budget=budget)


def _print_reason(cli: Invocation, ending: Ending, text: str) -> None:
    """Print why there is no answer; with --quiet too, because it is not progress."""
    if cli.setup.quiet and cli.out.is_text and ending.code != Exit.WAITING:
        typer.echo(text, err=True)
    else:
        cli.progress.note(f"  {text}")


def summarise(history: TeamHistory) -> str:
    """Summarise the run in a few figures."""
    total, kit = history.total(), history.state.team.kit
    key = "report.at_most" if history.is_at_most else "report.tokens_and_time"
    comma, duration = translate("counts.comma"), format_duration(total.millis)
    money = f"{comma}{format_dollars(total.money)}" if total.money else ""  # 0 if the price is unknown
    figures = [translate(key, tokens=total.tokens, money=money, duration=duration)]
    if kit != ASK:
        has_messages = history.messages_sent or kit not in (RUN, *CHANGING_RUNS)
        figures = [*([count_things("message", history.messages_sent)] if has_messages else []), *figures]
        figures.insert(0, count_things("step", history.steps_ended))
    return comma.join(figures)


def explain_over_limit(history: TeamHistory) -> str:
    """Explain that the provider charged more than was reserved, and so more than a limit; "" if it did not."""
    budget, total = history.state.budgets[TEAM_BUDGET], history.total()
    limit = budget.limits.exceeded_by(Amounts(money=total.money, tokens=total.tokens))
    return translate("report.over_limit", limit_words=translate(f"report.limit_{limit}")) if limit else ""


def _find_answer(cli: Invocation, team: TeamId, ending: Ending) -> str:
    kit, guide = ending.history.state.team.kit, demo_folder(cli.home, team) / ANSWER_FILE
    if ending.fault and kit not in CHANGING_RUNS:
        return ""
    if ending.code == Exit.DONE and kit in (DEMO_KIT, ASKING_KIT) and guide.exists():
        return guide.read_text("utf-8")
    shown_states = ("finished", "failed") if ending.why else ("finished",)
    reasons = (standing.reason for _, standing in ending.standings if standing.state in shown_states)
    return render_for_people("\n".join(reasons))


def _next_command(cli: Invocation, team: str, ending: Ending) -> str:
    match ending.code:
        case Exit.DONE:
            return translate("report.try_next", command=render_command(cli, "show", team))
        case Exit.WAITING if ending.status == "waiting":
            state = ending.history.state
            pending = pending_approvals(state)
            answer, other = words_to_type(state, pending[0]) if pending else ("yes", translate("approvals.or_no"))
            command = render_command(cli, "answer", team, answer) + (f"   ({other})" if other else "")
            return translate("report.your_turn", command=command)
        case Exit.LIMIT:
            flags = (
                "--max-cost none"
                if "no price" in status.reason
                else MORE_FLAGS.get(status.reason.rpartition(" ")[2], "")
                for _, status in ending.standings
            )
            more_flags = dict.fromkeys(filter(None, flags))
            key = "report.allow_more" if more_flags else "report.continue"
            return translate(key, command=render_command(cli, "resume", team, *more_flags))
        case Exit.PROVIDER:
            return translate("report.fix_then_continue", command=render_command(cli, "resume", team))
        case Exit.WAITING:
            return name_way_on(cli, team, ending.history)
        case _:
            return translate("report.see_why", command=render_command(cli, "show", team))


def name_way_on(cli: Invocation, team: str, history: TeamHistory) -> str:
    """Return the command that continues a paused run, or the commands to decide about a failure."""
    commands = {verb: render_command(cli, verb, team) for verb in ("replan", "resume", "cancel")}
    if any(history.status(task).code == "escalated" for task in history.state.tasks):
        return translate("report.escalated", **commands)
    if history.state.team.kit == RESEARCH and all(history.status(task).state == "idle" for task in history.state.tasks):
        return translate("report.feedback", command=render_command(cli, "research", "--continue", team, "TEXT"))
    return translate("report.continue", command=commands["resume"])


TURN_HINTS: Final = ("provider", "limit", "paused", "failed")


def explain_turn(turn: TurnOutcome, *, attended: bool, answer: str) -> str:
    """Explain why a turn has no answer and what to do. `answer` is the command that answers an approval request."""
    state, reason = translate(f"states.{turn.state}"), _explain_status(turn.state, turn.why)
    why = translate("report.reason", state=state, reason=reason)
    if turn.last:
        return why
    hint = answer if turn.state == "waiting" and not attended else ""
    if attended and turn.state in TURN_HINTS:
        hint = translate(f"report.turn_{turn.state}")
    return f"{why} {hint}".strip()


def describe_turn_cost(turn: TurnOutcome) -> str:
    """Describe the cost of a turn. The cost of an interrupted call is estimated."""
    key = "report.turn_cost_at_most" if turn.spent.estimated else "report.turn_cost"
    money = f"{format_dollars(turn.spent.money)} · " if turn.spent.money else ""
    return translate(key, tokens=turn.spent.tokens, money=money, duration=format_duration(turn.spent.millis))


def turn_fields(turn: TurnOutcome, answer: str) -> dict[str, object]:
    why = {"why": turn.why} if turn.why and turn.why != answer else {}
    spent = {"tokens": turn.spent.tokens, "cost": turn.spent.money / MILLIONTHS_PER_DOLLAR}
    return {"status": turn.state, "answer": answer, **why, **spent, "estimated_calls": turn.spent.estimated}
