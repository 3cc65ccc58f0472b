"""`greenroom pause`, `cancel`, `tell`, `fork`, `answer`: what is said to a team, wherever it runs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.conversation.send import tell as deliver
from greenroom.app.conversation.typed import message
from greenroom.app.lookup import Found, find, shortest
from greenroom.app.organisation.words import KIT as ORGANISATION
from greenroom.cli.commands.tasks import ago, ahead
from greenroom.cli.context import Invocation, command, invoke, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import Id, from_stdin, is_on_stdin, typed
from greenroom.cli.render.output import Column, Fitted, harmless, row
from greenroom.cli.render.team import Teller
from greenroom.cli.render.words import shorten
from greenroom.cli.runs.follow import asked_by, is_confirmation, is_plan, kept, to_type, waiting
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.rules.intents import AnswerApproval, CancelTask, PauseTask, PauseTeam
from greenroom.core.state.approval import Approval, Scope
from greenroom.core.state.world import World
from greenroom.testing.demo import ASKING_KIT, KIT

CANCEL_TIMEOUT_S: Final = 20.0
"""How long to wait until cancelled effects are seen dead, before saying that they are not yet."""


async def pause(
    cli: Invocation,
    name: Id,
    *,
    now: Annotated[bool, typer.Option("--now", help="Interrupt what runs; it is run again on resume.")] = False,
) -> Exit:
    """Start nothing new in a team or task. What runs is finished first, unless --now."""
    found = await find(cli.runtime, name)
    _open_tasks(await cli.runtime.world(found.team), found)
    intent = PauseTeam(now=now) if found.task is None else PauseTask(task_id=found.task, now=now)
    await cli.runtime.ask(found.team, intent)
    cli.out.show(f"{found} is paused: nothing new starts.")
    cli.progress.note(f"Go on with: {command(cli, 'resume', str(found))}")
    return cli.out.result("paused", Exit.DONE, team=found.team, task=found.task)


async def cancel(cli: Invocation, name: Id) -> Exit:
    """End a task, or all open tasks of a team; what runs is stopped and seen dead."""
    found = await find(cli.runtime, name)
    head = (await cli.runtime.log.head(found.team)).version
    teller = Teller(world=await cli.runtime.world(found.team, head), version=head)
    tasks = _open_tasks(teller.world, found)
    await cli.runtime.ask(found.team, *(CancelTask(task_id=task) for task in tasks))
    dead = True
    try:
        async with asyncio.timeout(CANCEL_TIMEOUT_S):
            await _until_over(cli, found, teller, tasks)
    except TimeoutError:
        dead = False
    names = ", ".join(tasks)
    cli.out.show(f"Cancelled: {names}." if dead else f"Cancelling: {names}. What runs has not ended yet.")
    return cli.out.result("cancelled" if dead else "cancelling", Exit.DONE, team=found.team, tasks=list(tasks))


async def _until_over(cli: Invocation, found: Found, teller: Teller, tasks: tuple[TaskId, ...]) -> None:
    async for told in cli.runtime.events(found.team, after=teller.version, follow=True):
        teller.tell(told)
        if not any(task in teller.world.tasks for task in tasks):
            return


def _open_tasks(world: World, found: Found) -> tuple[TaskId, ...]:
    tasks = tuple(task for task in world.tasks if found.task in (None, task))
    if not tasks:
        raise refused("nothing_open", f"Nothing is being worked on in {found}.", "`greenroom tasks --all`.")
    return tasks


def tell(
    context: typer.Context,
    name: Id,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to say; `-` (or nothing, behind a pipe) reads it from stdin."),
    ] = None,
) -> int:
    """Say something to whoever manages a team's task. It is read in their next turn, also in another terminal."""
    text = typed([from_stdin("text")] if is_on_stdin(words) else words or [], "text")
    return invoke(context, lambda cli: _tell(cli, name, text))


async def _tell(cli: Invocation, name: str, text: str) -> Exit:
    """Deliver it, and say who will read it and when."""
    found = await find(cli.runtime, name)
    team = (await cli.runtime.world(found.team)).team
    if team.kit == ORGANISATION:
        why = f"{found.team} is an organisation, and you are one of its people."
        raise refused("organisation", why, f'Talk to it: `greenroom talk {team.name} --say "…"`.')
    if team.kit in (KIT, ASKING_KIT):
        why = f"The agents of {found.team} follow a script, and read nothing else."
        raise refused("scripted", why, "Talk with an agent: `greenroom chat`.")
    told = await deliver(cli.runtime, found, message(text))
    when = "when somebody goes on with it: nobody runs the team"
    if told.owner is not None:
        when = f"when it goes on: it is paused ({told.paused})" if told.paused else "in its next turn"
    cli.out.show(f"{told.reader} in {found.team}/{told.task} will read it {when}.")
    if told.owner is None or told.paused:
        cli.progress.note(f"Go on with: {command(cli, 'resume', found.team)}")
    return cli.out.result("told", Exit.DONE, team=found.team, task=told.task, agent=told.reader, owner=told.owner)


async def fork(
    cli: Invocation,
    name: Id,
    *,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", min=1, metavar="N", help="Begin as it was at version N, or at the commit before it. [default: now]"
        ),
    ] = None,
) -> Exit:
    """Begin a new team as another one was at some version; the old one is not touched."""
    found = await find(cli.runtime, name)
    if found.task is not None:
        raise refused("whole_teams", "Only whole teams are forked.", f"Say {found.team}.")
    new = await cli.runtime.fork(found.team, at)
    cli.out.show(new)
    origin = (await cli.runtime.world(new)).team.origin
    begun = origin.version if origin else at
    if at is not None and begun != at:
        cli.progress.note(f"Version {at} is in the middle of a commit; the new team begins at version {begun}.")
    cli.progress.note(f"Look at it: {command(cli, 'show', new)}   Let it work: {command(cli, 'resume', new)}")
    return cli.out.result("forked", Exit.DONE, team=new, origin=found.team, at=begun)


COLUMNS: Final = (
    Column(name="id"),
    Column(name="what is asked", gives=True),
    Column(name="since", needs=50),
)
SHOWN: Final = 300


async def approvals_list(cli: Invocation) -> None:
    """List all that waits for a person, in whichever team: what is asked, since when, and how to answer it."""
    infos = [info for info in await cli.runtime.log.streams() if info.head.version]
    teams = [TeamId(info.stream) for info in infos]
    asking = [TeamId(info.stream) for info in infos if info.questions != 0]  # a team in which nothing waits is not read
    worlds = dict[TeamId, World]()
    for team in asking:
        try:
            worlds[team] = await cli.runtime.world(team)
        except StoreFault as error:  # one log that cannot be read does not hide the others
            cli.progress.note(str(error), style="red")
    found = [(team, one) for team, world in worlds.items() for one in waiting(world)]
    cli.out.listing("approval", (_told(team, one) for team, one in found))
    if not found:
        cli.progress.note("Nothing waits for you.")
        return
    if cli.out.text:
        short = shortest(teams)
        cli.out.show(Fitted(COLUMNS, [_row(short[team], team, one) for team, one in found]))
    team, one = found[0]
    said, other = to_type(worlds[team], one)
    several = sum(other_team == team for other_team, _ in found) > 1
    which = (f" --approval {one.approval_id}" if several else "") + (f"   ({other})" if other else "")
    cli.progress.note(f"\nAnswer one: {command(cli, 'answer', team, said)}{which}")


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
    if said and (is_plan(world, one) or is_confirmation(world, one)):  # there yes and no are words as good as any
        word = AnswerApproval(approval_id=one.approval_id, answer="approved", reason=f"{said} {reason}".strip())
    else:
        word = _word(one, said, reason, scope)
    await cli.runtime.ask(found.team, word)
    cli.progress.note(kept(world, one, word))
    done = "Answered" if one.words and word.answer == "approved" else word.answer.capitalize()
    cli.out.show(f"{done}: {shorten(harmless(one.question), SHOWN)}")
    if await cli.runtime.log.holder(found.team) is None:
        cli.progress.note(f"Nobody runs the team. Go on with: {command(cli, 'resume', found.team)}")
    return cli.out.result(word.answer, Exit.DONE, team=found.team, approval=one.approval_id)


approvals_answer = answer


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
