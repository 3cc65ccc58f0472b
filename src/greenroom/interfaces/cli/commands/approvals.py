"""`greenroom answer`, `approvals list`: what agents want to know before they do something, in whichever team."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.lookup import Found, find, shortest
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import TeamId
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval, Scope
from greenroom.core.state.world import World
from greenroom.interfaces.cli.commands.tasks import ago, ahead
from greenroom.interfaces.cli.context import Invocation, command, refused
from greenroom.interfaces.cli.display.output import Column, Fitted, harmless, row
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.exit_codes import Exit
from greenroom.interfaces.cli.options import Id
from greenroom.interfaces.cli.runs.follow import asked_by, is_plan, kept, to_type, waiting

COLUMNS: Final = (
    Column(name="id"),
    Column(name="what is asked", gives=True),
    Column(name="since", needs=50),
)
SHOWN: Final = 300


async def approvals_list(cli: Invocation) -> Exit:
    """List all that waits for a person, in whichever team: what is asked, since when, and how to answer it."""
    infos = [info for info in await cli.runtime.log.streams() if info.head.version]
    teams = [TeamId(info.stream) for info in infos]
    asking = [TeamId(info.stream) for info in infos if info.questions != 0]  # a team in which nothing waits is not read
    worlds = {team: world for team in asking if (world := await _read(cli, team)) is not None}
    found = [(team, one) for team, world in worlds.items() for one in waiting(world)]
    cli.out.begin(command="approvals list", home=str(cli.home))
    cli.out.listing("approval", (_told(team, one) for team, one in found))
    if not found:
        cli.progress.note("Nothing waits for you.")
        return cli.out.result("ok", Exit.DONE)
    if cli.out.text:
        short = shortest(teams)
        cli.out.show(Fitted(COLUMNS, [_row(short[team], team, one) for team, one in found]))
    team, one = found[0]
    said, other = to_type(worlds[team], one)
    which = _which(found, team, one) + (f"   ({other})" if other else "")
    cli.progress.note(f"\nAnswer one: {command(cli, 'answer', team, said)}{which}")
    return cli.out.result("ok", Exit.DONE)


async def answer(
    cli: Invocation,
    name: Id,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="yes|no|TEXT",
            help="May the step run? Or the answer to a question.",
            autocompletion=lambda: ["yes", "no"],
        ),
    ],
    *,
    approval: Annotated[
        str | None,
        typer.Option("--approval", help="Which question, when several wait: an agent's name or more of the id."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; the agent reads it.")] = "",
    scope: Annotated[
        Scope, typer.Option("--for", metavar="once|run|always", help="How far a yes goes: the rule that was shown.")
    ] = "once",
) -> Exit:
    """Say yes or no to a step that waits for a person, or answer an agent's question in words."""
    found = await find(cli.runtime, name)
    world = await cli.runtime.world(found.team)
    one = _pending(world, found, approval)
    said = " ".join(words).strip()
    if is_plan(world, one) and said:  # to a plan, yes and no are words as good as any
        word = AnswerApproval(approval_id=one.approval_id, answer="approved", reason=f"{said} {reason}".strip())
    else:
        word = _word(one, said, reason, scope)
    await cli.runtime.ask(found.team, word)
    cli.progress.note(kept(world, one, word))
    cli.out.show(f"{word.answer.capitalize()}: {shorten(harmless(one.question), SHOWN)}")
    if await cli.runtime.log.holder(found.team) is None:
        cli.progress.note(f"Nobody runs the team. Go on with: {command(cli, 'resume', found.team)}")
    return cli.out.result(word.answer, Exit.DONE, team=found.team, approval=one.approval_id)


approvals_answer = answer


async def _read(cli: Invocation, team: TeamId) -> World | None:
    try:
        return await cli.runtime.world(team)
    except StoreFault as error:
        # One log that cannot be read does not hide the others.
        cli.progress.note(str(error), style="red")
        return None


def _row(head: str, team: TeamId, one: Approval) -> list[Text]:
    label = Text(head, style="bold cyan").append(team[len(head) :], style="not bold dim")
    asked = Text(harmless(asked_by(one)))
    if one.grant:
        asked.append(harmless(f"\nalways: {one.grant}"), style="dim")
    if one.release:
        asked.append(harmless(f"\nfor this run: {one.release}"), style="dim")
    if one.expires_at is not None:
        left = ahead(one.expires_at)
        told = f"expires {left}" if left != "now" else "has expired: it is denied when the team goes on"
        asked.append(f"\n{told}", style="yellow")
    return row(label, asked, ago(one.asked_at))


def _told(team: TeamId, one: Approval) -> dict[str, object]:
    return {
        "team": team,
        "approval": one.approval_id,
        "agent": one.agent_id,
        "task": one.task_id,
        "question": one.question,
        "wants": "words" if one.words else "yes or no",
        "always": one.grant,
        "release": one.release,
        "asked_at": one.asked_at,
        "expires_at": one.expires_at,
    }


def _which(found: list[tuple[TeamId, Approval]], team: TeamId, one: Approval) -> str:
    """How to say which is meant, when several wait in one team."""
    alone = sum(other == team for other, _ in found) == 1
    return "" if alone else f" --approval {one.approval_id}"


def _word(one: Approval, said: str, reason: str, scope: Scope) -> AnswerApproval:
    """What was said; `Refused` when it answers nothing."""
    name = one.approval_id
    if said.lower() == "no":
        return AnswerApproval(approval_id=name, answer="denied", reason=reason)
    if one.words:
        words = reason or ("" if said.lower() == "yes" else said)
        if not words:
            why = f"{one.agent_id} wants an answer in words: {shorten(harmless(one.question), SHOWN)}"
            raise refused("no_words", why, 'Say it: greenroom answer ID "what you say".')
        return AnswerApproval(approval_id=name, answer="approved", reason=words)
    if said.lower() != "yes":
        why = f"{said!r} is neither yes nor no."
        raise refused("bad_answer", why, "A reason goes behind --reason.")
    return AnswerApproval(approval_id=name, answer="approved", reason=reason, scope=scope)


def _pending(world: World, found: Found, wanted: str | None) -> Approval:
    asked = [one for one in waiting(world) if found.task in (None, one.task_id)]
    fits = [one for one in asked if wanted is None or one.approval_id.startswith(wanted)]
    if len(fits) == 1:
        return fits[0]
    listed = "; ".join(f"{one.approval_id}: {shorten(harmless(one.question), 80)}" for one in fits or asked)
    if not asked:
        raise refused("nothing_asked", f"Nothing in {found} waits for an answer.")
    why = f"{len(fits)} questions wait." if fits else f"No question begins with {wanted!r}."
    raise refused("which_approval", why, f"Say which with --approval. {listed}")
