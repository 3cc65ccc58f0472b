"""The report of a run or a turn: a line about how it ended, the answer on stdout, and the command to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from greenroom.app.conversation.capability_names import ASK, JOB, RUN
from greenroom.app.conversation.chat import TurnOutcome
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, format_dollars
from greenroom.app.messages import translate
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.approvals import pending_approvals, words_to_type
from greenroom.cli.render.team import format_duration
from greenroom.cli.render.words import shorten
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data
from greenroom.testing.demo import ANSWER_FILE, ASKING_KIT, DEMO_KIT, demo_folder

if TYPE_CHECKING:
    from greenroom.cli.interactive.follow import Ending

MORE_FLAGS: Final = {"money": "--max-cost USD", "tokens": "--max-tokens N", "millis": "--max-time TIME"}
"""The options that raise a limit, by what it limits."""

LIMIT_WORDS: Final = {
    "money": "money",
    "tokens": "tokens",
    "millis": "working time",
    "steps": "steps",
    "hops": "messages",
}
MAX_REASON_CHARS: Final = 600  # characters of a reason
WHY_UNVERIFIED: Final = {
    "in_place": "It worked in your own files (--in-place), and no checks run there.",
    "nothing_changed": "No file was changed. If you only want an answer, use --question.",
}
SUMMARY_HEAD: Final = "Agent's summary, not verified:"
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
    name: str | None = None,
    printed: str = "",
    extra_fields: Data | None = None,
    has_head: bool = False,
) -> Exit:
    """Report how a run ended.

    `name` is what the next command calls the team, `printed` the answer that stdout has already. `extra_fields` go into
    the JSON result. With `has_head` the line about the ending was printed before.
    """
    _print_ending(cli, ending, has_head=has_head)
    history, text = ending.history, _find_answer(cli, team, ending)
    if text and text.strip() != printed.strip():
        if cli.out.is_live:  # an empty line around the answer, where stdout and stderr share a screen
            cli.progress.note("")
        if history.world.team.kit == JOB and history.total().tokens:
            cli.progress.note(SUMMARY_HEAD, style="dim")
        cli.out.write(f"{text.rstrip()}\n")
        if cli.out.is_live:
            cli.progress.note("")
    if leftover := cli.app.unused_recording():
        cli.progress.note(leftover, style="yellow")
    cli.progress.note(_next_command(cli, name or team, ending))
    return cli.out.result(
        ending.status,
        ending.code,
        team=team,
        version=history.version,
        answer=text,
        tasks=[{"task": task, "state": standing.state, "why": standing.reason} for task, standing in ending.standings],
        steps=history.steps_ended,
        tokens=history.total().tokens,
        cost=history.total().money / MILLIONTHS_PER_DOLLAR,
        messages=history.messages_sent,
        **_verdict_fields(ending),
        **(extra_fields or {}),
    )


def _verdict_fields(ending: Ending) -> Data:
    """Return the verdict fields of a run in the person's own files, which no check verifies."""
    if ending.history.world.team.kit != RUN:
        return {}
    why: Data = {}
    if ending.unverified:
        reasons = [{"code": ending.unverified}]
        why = {"unverified": ending.unverified, "verdict": {"code": "unverified", "reasons": reasons}}
    return {"verified": False, "answered": ending.code == Exit.DONE, **why}


def _print_ending(cli: Invocation, ending: Ending, *, has_head: bool) -> None:
    sign, style = EXIT_STYLES.get(ending.code, ("!", "bold yellow"))
    cli.progress.note("")
    if not has_head:
        cli.progress.note(f"{sign} {ending.status}: {summarise(ending)}", style=style)
    if ending.fault:
        cli.progress.note(f"  {ending.fault}")
    if ending.unverified and not has_head:
        cli.progress.note(f"  {WHY_UNVERIFIED[ending.unverified]}", style="yellow")
    if ending.why:
        if cli.setup.quiet:
            _print_reason(cli, ending, f"{ending.status}: {ending.why}")
        return
    unfinished = [status for status in ending.standings if ending.fault or status[1].state != "finished"]
    for task, standing in unfinished if ending.code != Exit.DONE else ():
        _print_reason(
            cli,
            ending,
            f"{task} {standing.state}: {shorten(_explain_status(standing.state, standing.reason), MAX_REASON_CHARS)}",
        )


def _explain_status(word: str, reason: str) -> str:
    why = reason.removeprefix(f"{word}: ")
    budget, _, limit = why.partition(" ")
    if word != "limit" or limit not in LIMIT_WORDS:
        return why
    return translate("report.limit_before_step", limit_words=LIMIT_WORDS[limit], budget=budget)


def _print_reason(cli: Invocation, ending: Ending, text: str) -> None:
    """Print why there is no answer; with --quiet too, because it is not progress."""
    if cli.setup.quiet and cli.out.is_text and ending.code != Exit.WAITING:
        typer.echo(text, err=True)
    else:
        cli.progress.note(f"  {text}")


def summarise(ending: Ending) -> str:
    """Summarise the run in a few figures."""
    history, total, kit = ending.history, ending.history.total(), ending.history.world.team.kit
    money = f", {format_dollars(total.money)}" if total.money else ""
    work = translate(
        "report.tokens_and_time",
        detail="at most " if history.is_at_most else "",
        tokens=total.tokens,
        money=money,
        duration=format_duration(total.millis),
    )
    if kit == ASK:
        return work
    steps, messages = history.steps_ended, history.messages_sent
    if kit in (RUN, JOB) and not messages:
        return f"{steps} step{'s' if steps != 1 else ''}, {work}"
    return f"{steps} steps, {messages} messages, {work}"


def _find_answer(cli: Invocation, team: TeamId, ending: Ending) -> str:
    kit, guide = ending.history.world.team.kit, demo_folder(cli.home, team) / ANSWER_FILE
    if ending.fault and kit != JOB:
        return ""
    if ending.code == Exit.DONE and kit in (DEMO_KIT, ASKING_KIT) and guide.exists():
        return guide.read_text("utf-8")
    shown_states = ("finished", "failed") if ending.why else ("finished",)
    return "\n".join(standing.reason for _, standing in ending.standings if standing.state in shown_states)


def _next_command(cli: Invocation, team: str, ending: Ending) -> str:
    match ending.code:
        case Exit.DONE:
            return f"Try next: {render_command(cli, 'show', team)}"
        case Exit.WAITING if ending.status == "waiting":
            world = ending.history.world
            pending = pending_approvals(world)
            answer, other = words_to_type(world, pending[0]) if pending else ("yes", "or no")
            return f"Your turn: {render_command(cli, 'answer', team, answer)}" + (f"   ({other})" if other else "")
        case Exit.LIMIT:
            flags = (
                "--max-cost none"
                if "no price" in status.reason
                else MORE_FLAGS.get(status.reason.rpartition(" ")[2], "")
                for _, status in ending.standings
            )
            more_flags = dict.fromkeys(filter(None, flags))
            return (
                f"{'Allow more' if more_flags else 'Continue with'}: {render_command(cli, 'resume', team, *more_flags)}"
            )
        case Exit.PROVIDER:
            return translate("report.fix_then_continue", command=render_command(cli, "resume", team))
        case Exit.WAITING:
            return f"Continue with: {render_command(cli, 'resume', team)}"
        case _:
            return f"See why: {render_command(cli, 'show', team)}"


# ------------------------------------------------------------------------------------------------------ turns of a chat

TURN_HINTS: Final = {
    "provider": "Press Enter to try again, or type /model NAME for another model.",
    "limit": "Raise it with /limit, for instance /limit cost 10; then press Enter to continue.",
    "paused": "Press Enter to continue.",
    "failed": "Type /retry to ask again.",
}


def explain_turn(turn: TurnOutcome, *, attended: bool, answer: str) -> str:
    """Explain why a turn has no answer and what to do. `answer` is the command that answers an approval request."""
    why = f"{turn.state}: {_explain_status(turn.state, turn.why)}"
    if turn.last:
        return why
    hint = TURN_HINTS.get(turn.state, "") if attended else answer if turn.state == "waiting" else ""
    return f"{why} {hint}".strip()


def describe_turn_cost(turn: TurnOutcome) -> str:
    """Describe the cost of a turn. The cost of an interrupted call is its reservation."""
    prefix = "at most " if turn.state == "interrupted" else ""
    money = f" · {format_dollars(turn.spent.money)}" if turn.spent.money else ""
    return f"{prefix}{turn.spent.tokens:,} tokens{money} · {format_duration(turn.spent.millis)}"


def turn_fields(turn: TurnOutcome, answer: str) -> dict[str, object]:
    """Return a turn as JSON fields."""
    why = {"why": turn.why} if turn.why and turn.why != answer else {}
    spent = {"tokens": turn.spent.tokens, "cost": turn.spent.money / MILLIONTHS_PER_DOLLAR}
    return {"status": turn.state, "answer": answer, **why, **spent}
