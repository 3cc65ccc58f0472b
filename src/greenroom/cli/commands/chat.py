"""`greenroom chat`: talk with an agent, in a team that stays open; or go on with such a talk."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from greenroom.app.conversation.chat import Chat, chats, choose_model, find_chat, models_of, typed_before, typed_in
from greenroom.app.conversation.start import FIRST
from greenroom.app.conversation.typed import COMMANDS, Handler, Nobody, Person, builtin, file_context, offered, shell
from greenroom.cli.context import Invocation, command, invoke
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.chat import Conversation
from greenroom.cli.interactive.lines import Aids, typist
from greenroom.cli.options import (
    DEFAULTS,
    AgentName,
    ModelName,
    Request,
    RunOptions,
    complete_id,
    piped,
    typed,
)
from greenroom.cli.render.questions import PROMPT
from greenroom.cli.render.words import shorten
from greenroom.cli.start import RunPlan, ask_trust, new_limits, plan_run
from greenroom.core.base.errors import StoreFault, WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.state.world import World

REMEMBERED: Final = 200  # lines that can be had back with the arrow keys
NOTHING: Final = Request("")
SHOWN: Final = 400  # characters of the last answer when a chat is taken up again


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
            "--resume", metavar="ID", help="Go on with a chat, or with the `last` one.", autocompletion=complete_id
        ),
    ] = "",
    model: ModelName = "",
    options: RunOptions = DEFAULTS,
) -> int:
    """Talk with an agent. Without a terminal, each line of stdin is a turn. /help lists what can be typed."""
    if resume and agent:
        raise typer.BadParameter("A chat keeps its agent. Leave --agent out, or begin a new chat without --resume.")
    first = Request(typed(words, "text"), piped()) if words else Request("")

    async def work(cli: Invocation) -> Exit:
        team = await find_chat(cli.runtime, resume.strip()) if resume.strip() else None
        with typist(cli.out, _aids(cli), first.text) as person:
            if team is not None:
                return await _again(cli, team, person, options, first, model=model.strip())
            plan = await plan_run(cli, options, agent=agent.strip(), model=model.strip())
            return await _new(cli, plan, person, first, resume=resume.strip())

    return invoke(context, work)


async def reopen(cli: Invocation, team: TeamId, options: RunOptions) -> Exit:
    """Go on with a chat that was to be resumed; where no person can type, only with what was plan."""
    if sys.stdin.isatty():
        with typist(cli.out, _aids(cli)) as person:
            return await _again(cli, team, person, options, go_on=True)
    agent = (await cli.runtime.world(team)).tasks[FIRST].manager
    if await Chat(cli.runtime, team=team, agent=agent).goes_on():
        return await _again(cli, team, Nobody(), options, go_on=True)
    told = command(cli, "chat", "--resume", team)
    cli.out.show(f"{team} is a chat, and it is your turn: {told}")
    return cli.out.result("waiting", Exit.WAITING, team=team, hint=told)


async def _new(cli: Invocation, plan: RunPlan, person: Person, first: Request, *, resume: str) -> Exit:
    talk = Conversation(cli, Chat(cli.runtime, agent=plan.cast.first), person, _handlers(cli), plan)
    if resume:
        talk.note("There is no chat to go on with. This is a new one.", style="dim")
    talk.note(plan.line + (" · /help" if person.attended else ""), style="dim")
    for note in plan.notes:
        talk.note(note, style="dim")
    return await talk.hold(first.text, first.context)


async def _again(
    cli: Invocation,
    team: TeamId,
    person: Person,
    options: RunOptions,
    first: Request = NOTHING,
    *,
    model: str = "",
    go_on: bool = False,
) -> Exit:
    world = await cli.runtime.world(team)
    holder = await cli.runtime.log.holder(team)
    if holder is not None:
        told = command(cli, "tell", team, "TEXT")
        raise WorldFault(f"The chat {team!r} is open already, in {holder.owner}. Say something there with `{told}`.")
    if world.team.workspace:
        ask_trust(cli, Path(world.team.workspace))
    cli.means.use_recording(options.record, options.replay)
    limits = new_limits(cli, world, options)
    if model:
        settled = cli.means.provisions.settled(model)
        await cli.runtime.ask(team, *choose_model(world, world.tasks[FIRST].manager, settled))
        world = await cli.runtime.world(team)
    for name in models_of(world):
        cli.means.named(name)  # that a model cannot be asked is said before anything goes on
    await cli.runtime.ask(team, *limits)
    past = Chat(cli.runtime, team=team, agent=world.tasks[FIRST].manager)
    talk = Conversation(cli, past, person, _handlers(cli), None)
    await _remind(talk, past, await cli.runtime.world(team), enter=not go_on)
    return await talk.hold(first.text, first.context, go_on=go_on)


async def _remind(talk: Conversation, past: Chat, world: World, *, enter: bool) -> None:
    said = await past.exchanges()
    turns = f"{len(said)} turn{'s' if len(said) != 1 else ''} so far"
    talk.note(f"{past.team} · {past.agent} · {models_of(world)[0]} · {turns} · /help", style="dim")
    for last in said[-1:]:
        talk.note(f"{PROMPT}{shorten(last.asked, SHOWN)}", style="dim")
        talk.note(shorten(last.answer or f"({last.error or 'not answered'})", SHOWN), style="dim")
    for step in world.steps_of(past.agent):
        if typed_in(step):
            talk.note(f"{PROMPT}{shorten(typed_in(step), SHOWN)}", style="dim")
    paused = world.team.paused or world.tasks[FIRST].paused
    if paused and enter:
        talk.note(f"It stands still: {paused.rstrip('.')}. Enter goes on.", style="yellow")


def _handlers(cli: Invocation) -> tuple[Handler, ...]:
    """What is done with what is typed, in this order."""
    return (builtin, shell, file_context(cli.means.folder, cli.means.root))


def _aids(cli: Invocation) -> Aids:
    def files(beginning: str) -> Iterator[str]:
        return offered(beginning, cli.means.folder, cli.means.root)

    async def before() -> AsyncIterator[str]:
        with suppress(StoreFault):  # a log that cannot be read keeps nobody from typing
            async for line in typed_before(cli.runtime, await chats(cli.runtime), most=REMEMBERED):
                yield line

    return Aids(commands=COMMANDS, words=files, before=before)
