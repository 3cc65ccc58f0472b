"""How a run or a turn ended: one line about it, the answer on stdout, and as the last line the command to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from greenroom.app.conversation.chat import Turn
from greenroom.app.conversation.names import ASK, JOB, RUN
from greenroom.app.cost import MILLION, dollars
from greenroom.cli.context import Invocation, command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.approvals import pending_approvals, words_to_type
from greenroom.cli.render.team import seconds
from greenroom.cli.render.words import shorten
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data
from greenroom.testing.demo import ANSWER, ASKING_KIT, KIT, folder

if TYPE_CHECKING:
    from greenroom.cli.interactive.follow import Ending

MORE: Final = {"money": "--max-cost USD", "tokens": "--max-tokens N", "millis": "--max-time TIME"}
"""How to allow more of what a limit is about."""

WORDS: Final = {"money": "money", "tokens": "tokens", "millis": "working time", "steps": "steps", "hops": "messages"}
WHY: Final = 600  # characters
WHY_UNVERIFIED: Final = {
    "in_place": "It worked in your own files (--in-place), where no checks run.",
    "nothing_changed": "No file was changed. If you want an answer only, use --question.",
}
SUMMARY: Final = "Agent's summary, not verified:"
STYLES: Final = {Exit.DONE: ("✓", "bold green"), Exit.FAILED: ("✗", "bold red"), Exit.UNVERIFIED: ("?", "bold yellow")}


def report_ending(
    cli: Invocation,
    team: TeamId,
    ending: Ending,
    *,
    name: str | None = None,
    spoken: str = "",
    more: Data | None = None,
    headed: bool = False,
) -> Exit:
    """Say how it ended; `name` is what the team is called in the next command, `spoken` what was printed already.
    Programs hear `more`. `headed`: the line about it stands there."""
    _say(cli, ending, headed=headed)
    history, text = ending.history, _answer(cli, team, ending)
    if text and text.strip() != spoken.strip():
        if cli.out.live:  # an empty line around the answer, for those who see both on one screen
            cli.progress.note("")
        if history.world.team.kit == JOB and history.total().tokens:
            cli.progress.note(SUMMARY, style="dim")
        cli.out.write(f"{text.rstrip()}\n")
        if cli.out.live:
            cli.progress.note("")
    if leftover := cli.means.unused_recording():
        cli.progress.note(leftover, style="yellow")
    cli.progress.note(_hint(cli, name or team, ending))
    return cli.out.result(
        ending.status,
        ending.code,
        team=team,
        version=history.version,
        answer=text,
        tasks=[{"task": task, "state": standing.word, "why": standing.why} for task, standing in ending.standings],
        steps=history.steps_ended,
        tokens=history.total().tokens,
        cost=history.total().money / MILLION,
        messages=history.messages_sent,
        **_judged(ending),
        **(more or {}),
    )


def _judged(ending: Ending) -> Data:
    """What programs hear of a run in the person's own files: nothing has judged it, so it is an answer at most."""
    if ending.history.world.team.kit != RUN:
        return {}
    why: Data = {}
    if ending.unverified:
        reasons = [{"code": ending.unverified}]
        why = {"unverified": ending.unverified, "verdict": {"code": "unverified", "reasons": reasons}}
    return {"verified": False, "answered": ending.code == Exit.DONE, **why}


def _say(cli: Invocation, ending: Ending, *, headed: bool) -> None:
    """How it ended, and of what did not end well, why."""
    sign, style = STYLES.get(ending.code, ("!", "bold yellow"))
    cli.progress.note("")
    if not headed:
        cli.progress.note(f"{sign} {ending.status}: {summarise(ending)}", style=style)
    if ending.fault:
        cli.progress.note(f"  {ending.fault}")
    if ending.unverified and not headed:
        cli.progress.note(f"  {WHY_UNVERIFIED[ending.unverified]}", style="yellow")
    if ending.why:
        if cli.setup.quiet:
            _complain(cli, ending, f"{ending.status}: {ending.why}")
        return
    bad = [found for found in ending.standings if ending.fault or found[1].word != "finished"]
    for task, standing in bad if ending.code != Exit.DONE else ():
        _complain(cli, ending, f"{task} {standing.word}: {shorten(_because(standing.word, standing.why), WHY)}")


def _because(word: str, reason: str) -> str:
    """Why it stands so, without the word that says how."""
    why = reason.removeprefix(f"{word}: ")
    budget, _, limit = why.partition(" ")
    if word != "limit" or limit not in WORDS:
        return why
    return f"the next step may need more {WORDS[limit]} than the limit of {budget!r} leaves. Nothing was sent for it."


def _complain(cli: Invocation, ending: Ending, text: str) -> None:
    """Why there is no answer. That is no progress, so it is said even to those who want to hear nothing else."""
    if cli.setup.quiet and cli.out.text and ending.code != Exit.WAITING:
        typer.echo(text, err=True)
    else:
        cli.progress.note(f"  {text}")


def summarise(ending: Ending) -> str:
    """The whole run in a few figures."""
    history, total, kit = ending.history, ending.history.total(), ending.history.world.team.kit
    money = f", {dollars(total.money)}" if total.money else ""
    work = f"{'at most ' if history.at_most else ''}{total.tokens:,} tokens{money}, {seconds(total.millis)} of work"
    if kit == ASK:
        return work
    steps, messages = history.steps_ended, history.messages_sent
    if kit in (RUN, JOB) and not messages:
        return f"{steps} step{'s' if steps != 1 else ''}, {work}"
    return f"{steps} steps, {messages} messages, {work}"


def _answer(cli: Invocation, team: TeamId, ending: Ending) -> str:
    """What was asked for: the demo's guide, else what the tasks say of themselves."""
    kit, guide = ending.history.world.team.kit, folder(cli.home, team) / ANSWER
    if ending.fault and kit != JOB:
        return ""
    if ending.code == Exit.DONE and kit in (KIT, ASKING_KIT) and guide.exists():
        return guide.read_text("utf-8")
    told = ("finished", "failed") if ending.why else ("finished",)
    return "\n".join(standing.why for _, standing in ending.standings if standing.word in told)


def _hint(cli: Invocation, team: str, ending: Ending) -> str:
    """What to type next."""
    match ending.code:
        case Exit.DONE:
            return f"Try next: {command(cli, 'show', team)}"
        case Exit.WAITING if ending.status == "waiting":
            world = ending.history.world
            asked = pending_approvals(world)
            said, other = words_to_type(world, asked[0]) if asked else ("yes", "or no")
            return f"Your turn: {command(cli, 'answer', team, said)}" + (f"   ({other})" if other else "")
        case Exit.LIMIT:
            flags = (
                "--max-cost none" if "no price" in found.why else MORE.get(found.why.rpartition(" ")[2], "")
                for _, found in ending.standings
            )
            more = dict.fromkeys(filter(None, flags))
            return f"{'Allow more' if more else 'Go on with'}: {command(cli, 'resume', team, *more)}"
        case Exit.PROVIDER:
            return f"When that is mended, go on with: {command(cli, 'resume', team)}"
        case Exit.WAITING:
            return f"Go on with: {command(cli, 'resume', team)}"
        case _:
            return f"See why: {command(cli, 'show', team)}"


# ------------------------------------------------------------------------------------------------------ turns of a chat

HINTS: Final = {
    "provider": "Enter tries again; /model NAME asks another model.",
    "limit": "Allow more with /limit, for instance /limit cost 10; then Enter goes on.",
    "paused": "Enter goes on.",
    "failed": "/retry asks again.",
}


def turn_trouble(turn: Turn, *, attended: bool, answer: str) -> str:
    """Why there is no answer, and what to do now; `answer` is the command for what a person is asked."""
    why = f"{turn.word}: {_because(turn.word, turn.why)}"
    if turn.last:
        return why
    hint = HINTS.get(turn.word, "") if attended else answer if turn.word == "waiting" else ""
    return f"{why} {hint}".strip()


def turn_cost(turn: Turn) -> str:
    """What it cost; of a call that was cut off only what was reserved for it is known."""
    most = "at most " if turn.word == "interrupted" else ""
    money = f" · {dollars(turn.spent.money)}" if turn.spent.money else ""
    return f"{most}{turn.spent.tokens:,} tokens{money} · {seconds(turn.spent.millis)}"


def turn_fields(turn: Turn, answer: str) -> dict[str, object]:
    """A turn for programs."""
    why = {"why": turn.why} if turn.why and turn.why != answer else {}
    spent = {"tokens": turn.spent.tokens, "cost": turn.spent.money / MILLION}
    return {"status": turn.word, "answer": answer, **why, **spent}
