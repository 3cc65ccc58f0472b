"""`greenroom chat`: start a chat with an agent, or resume one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from greenroom.app.conversation.chat import (
    Chat,
    choose_model,
    find_chat,
    list_chats,
    list_team_models,
    list_typed_texts,
    read_typed_text,
)
from greenroom.app.conversation.chat_input import (
    COMMANDS,
    Handler,
    NoPersonInput,
    PersonInput,
    complete_paths,
    handle_command,
    handle_shell,
    make_file_handler,
)
from greenroom.app.conversation.start import FIRST_TASK_ID
from greenroom.app.messages import translate
from greenroom.app.run_plan import RunPlan
from greenroom.app.words import shorten
from greenroom.cli.commands.run import start_team
from greenroom.cli.context import Invocation, invoke, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.chat import ChatScreen
from greenroom.cli.interactive.lines import TypingAids, open_typist
from greenroom.cli.interactive.plan_review import TeamChoice, choose_team
from greenroom.cli.options import (
    DEFAULT_OPTIONS,
    AgentName,
    ModelName,
    RunOptions,
    TypedRequest,
    complete_id,
    join_words,
    read_piped,
)
from greenroom.cli.render.progress import NestedOutput
from greenroom.cli.render.questions import PROMPT
from greenroom.cli.start import ask_trust, new_limits, plan_run
from greenroom.core.base.errors import StoreFault, WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.state.team_state import TeamState
from greenroom.runs.workspace import DEFAULT_RUN_FLAGS

MAX_LINES_REMEMBERED: Final = 200  # lines in the history of the arrow keys
NO_REQUEST: Final = TypedRequest("")
MAX_ANSWER_CHARS_SHOWN: Final = 400  # characters of the last answer, shown when a chat is resumed


def chat(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="First message; piped input is its context."),
    ] = None,
    *,
    agent: AgentName = "",
    resume: Annotated[
        str,
        typer.Option("--resume", metavar="ID", help="Resume this chat, or the `last` one.", autocompletion=complete_id),
    ] = "",
    model: ModelName = "",
    options: RunOptions = DEFAULT_OPTIONS,
) -> int:
    """Chat with an agent, or resume a chat.

    Type /help in the chat for its commands. Without a terminal, each line of stdin is a turn.

    Examples:
      greenroom chat
      greenroom chat --agent code-reviewer "Review the last commit."
      greenroom chat --resume last

    Exit codes: 0; 1 the last turn failed; 2; 3; 4; 5; 6; 130.
    """
    if resume and agent:
        raise typer.BadParameter(translate("chat.resumed_keeps_agent"))
    first = TypedRequest(join_words(words, "text"), read_piped()) if words else TypedRequest("")

    async def work(cli: Invocation) -> Exit:
        team = await find_chat(cli.runtime, resume.strip()) if resume.strip() else None
        with open_typist(cli.out, _make_aids(cli), first.text) as person:
            if team is not None:
                return await _resume_chat(cli, team, person, options, first, model=model.strip())
            plan = await plan_run(cli, options, agent=agent.strip(), model=model.strip())
            return await _start_chat(cli, plan, person, first, resume=resume.strip())

    return invoke(context, work)


async def reopen(cli: Invocation, team: TeamId, options: RunOptions) -> Exit:
    """Resume a chat. Without a terminal, only finish work that is left."""
    if sys.stdin.isatty():
        with open_typist(cli.out, _make_aids(cli)) as person:
            return await _resume_chat(cli, team, person, options, is_resumed=True)
    agent = (await cli.runtime.state(team)).tasks[FIRST_TASK_ID].manager
    if await Chat(cli.runtime, team=team, agent=agent).is_working():
        return await _resume_chat(cli, team, NoPersonInput(), options, is_resumed=True)
    resume_command = render_command(cli, "chat", "--resume", team)
    cli.out.show(translate("chat.waits", team=team, command=resume_command))
    return cli.out.result("waiting", Exit.WAITING, team=team, hint=resume_command)


async def _start_chat(cli: Invocation, plan: RunPlan, person: PersonInput, first: TypedRequest, *, resume: str) -> Exit:
    new_chat = Chat(cli.runtime, agent=plan.participants.first)
    screen = ChatScreen(cli, new_chat, person, _make_handlers(cli), plan, start_team=_run_team)
    if resume:
        screen.note(translate("chat.none_to_resume"), style="dim")
    screen.note(plan.line + (" · /help" if person.is_attended else ""), style="dim")
    for note in plan.notes:
        screen.note(note, style="dim")
    return await screen.run(first.text, first.context)


async def _resume_chat(
    cli: Invocation,
    team: TeamId,
    person: PersonInput,
    options: RunOptions,
    first: TypedRequest = NO_REQUEST,
    *,
    model: str = "",
    is_resumed: bool = False,
) -> Exit:
    state = await cli.runtime.state(team)
    holder = await cli.runtime.log.holder(team)
    if holder is not None:
        send_command = render_command(cli, "send", team, "TEXT")
        raise WorldFault("chat.already_open", team=team, owner=holder.owner, send_command=send_command)
    if state.team.workspace:
        ask_trust(cli, Path(state.team.workspace))
    cli.app.use_recording(options.record, options.replay)
    limits = new_limits(cli, state, options)
    if model:
        model_name = cli.app.model_session.resolve_alias(model)
        await cli.runtime.ask(team, *choose_model(state, state.tasks[FIRST_TASK_ID].manager, model_name))
        state = await cli.runtime.state(team)
    for name in list_team_models(state):
        cli.app.get_model(name)  # refuse an unusable model before anything starts
    await cli.runtime.ask(team, *limits)
    past_chat = Chat(cli.runtime, team=team, agent=state.tasks[FIRST_TASK_ID].manager)
    screen = ChatScreen(cli, past_chat, person, _make_handlers(cli), None, start_team=_run_team)
    await _show_last_turn(screen, past_chat, await cli.runtime.state(team), says_enter=not is_resumed)
    return await screen.run(first.text, first.context, resume=is_resumed)


async def _show_last_turn(screen: ChatScreen, past_chat: Chat, state: TeamState, *, says_enter: bool) -> None:
    turns_so_far = await past_chat.list_turns()
    turns = translate("chat.one_turn" if len(turns_so_far) == 1 else "chat.several_turns", count=len(turns_so_far))
    screen.note(f"{past_chat.team} · {past_chat.agent} · {list_team_models(state)[0]} · {turns} · /help", style="dim")
    for last in turns_so_far[-1:]:
        screen.note(f"{PROMPT}{shorten(last.prompt, MAX_ANSWER_CHARS_SHOWN)}", style="dim")
        screen.note(
            shorten(last.answer or f"({last.error or translate('chat.not_answered')})", MAX_ANSWER_CHARS_SHOWN),
            style="dim",
        )
    for step in state.steps_of(past_chat.agent):
        if read_typed_text(step):
            screen.note(f"{PROMPT}{shorten(read_typed_text(step), MAX_ANSWER_CHARS_SHOWN)}", style="dim")
    paused = state.team.paused or state.tasks[FIRST_TASK_ID].paused
    if paused and says_enter:
        screen.note(translate("chat.paused", why=paused.rstrip(".")), style="yellow")


async def _run_team(cli: Invocation, request: str) -> tuple[Exit, str]:
    """Plan a request, let the person confirm it, and run its team; return how it ended, for the agent of the chat."""
    choice = await choose_team(cli, request, None)
    if not isinstance(choice, TeamChoice):
        cli.progress.note(translate("chat.team_not_needed"))
        return Exit.DONE, ""
    nested_output = NestedOutput(cli.progress, cli.out.file if cli.out.is_text else None)
    code = await start_team(replace(cli, out=nested_output), choice, DEFAULT_RUN_FLAGS, None)
    fields = nested_output.fields
    report = fields.get("report")
    lines = [str(line) for line in report] if isinstance(report, list) else []
    head = f"Run {fields['team']} of a team: {fields['status']}. Request: {request}" if "team" in fields else ""
    return code, "\n".join((head, *lines, str(fields.get("answer", "")))).strip() if head else ""


def _make_handlers(cli: Invocation) -> tuple[Handler, ...]:
    return (handle_command, handle_shell, make_file_handler(cli.app.folder, cli.app.root))


def _make_aids(cli: Invocation) -> TypingAids:
    def files(beginning: str) -> Iterator[str]:
        return complete_paths(beginning, cli.app.folder, cli.app.root)

    async def before() -> AsyncIterator[str]:
        with suppress(StoreFault):  # an unreadable log must not prevent typing
            async for line in list_typed_texts(cli.runtime, await list_chats(cli.runtime), limit=MAX_LINES_REMEMBERED):
                yield line

    return TypingAids(commands=COMMANDS, words=files, history=before)
