"""The inbox screen of a person in an organisation: shows messages and runs typed lines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import assert_never

from rich.text import Text

from greenroom.app.approvals import keep_rule, parse_answer
from greenroom.app.conversation.chat_input import (
    EndOfInput,
    InterruptInput,
    PersonInput,
    TextInput,
    WakeInput,
    join_lines,
)
from greenroom.app.organisation import input as entry
from greenroom.app.organisation.inbox import InboxMessage, approval_of, summarise_status
from greenroom.app.organisation.people import HumanAgent, find_shared_task
from greenroom.app.organisation.phrases import BASE_TASK, make_dismissed_error, make_unknown_agent_error
from greenroom.app.task_status import TaskStatus
from greenroom.app.toolset.manual_call import create_manual_call, run_manual_call
from greenroom.app.words import describe_pause, end_word, inbox_phrase
from greenroom.cli.context import Invocation
from greenroom.cli.errors import Json, StdoutFault, error_fields, explain
from greenroom.cli.exit_codes import Exit, exit_for_error
from greenroom.cli.interactive.organisation import OrganisationListener, build_resume_help, build_resume_intents
from greenroom.cli.render import inbox as display
from greenroom.cli.render.output import strip_control_characters
from greenroom.cli.render.questions import DOUBLE_INTERRUPT_S, PROMPT
from greenroom.cli.render.team import render_open_tasks, render_waits
from greenroom.core.base.errors import RefusedError, StaleOwner, StoreFault, WorldFault, make_refusal
from greenroom.core.base.ids import AgentId, GroupId, StageId
from greenroom.core.rules.messages import VERB_KEYS
from greenroom.core.state.team_state import TeamState


class InboxScreen:
    """The inbox of a person who reads and types. Without a terminal, each line of stdin is handled in turn.

    `messages_heard` counts messages from agents, `has_asked` says that the manager got a request, `has_acted` that a
    line did more than display something, `was_view` that the last one did not. `errors` lists what failed.
    """

    def __init__(self, cli: Invocation, human: HumanAgent, listener: OrganisationListener, person: PersonInput) -> None:
        self._cli = cli
        self._listener = listener
        self._person = person
        self._interrupted_at = -DOUBLE_INTERRUPT_S
        self._last_code = self._worst = Exit.DONE
        self._is_over = False
        self._told_reasons: set[str] = set()
        self._human = human
        self.errors: list[str] = []
        self.messages_heard = 0
        self.has_asked = self.has_acted = self.was_view = False

    async def run(self) -> Exit:
        """Run until the person leaves; return the exit code of the first line that failed."""
        with self._cli.stop.redirect_interrupts(self._person.interrupt) if self._person.is_attended else nullcontext():
            while not self._is_over:
                self.show_news()
                if not self._is_dismissed():
                    await self._next()
        return self._worst

    async def _next(self) -> None:
        match await self._person.read_text(PROMPT, self._listener.woken):
            case TextInput(text=text):
                await self.do(join_lines(text))
            case WakeInput():
                pass  # new messages are shown before the next line
            case InterruptInput():
                now = time.monotonic()
                self._is_over, self._interrupted_at = now - self._interrupted_at < DOUBLE_INTERRUPT_S, now
                if not self._is_over:
                    self.note("leave")
            case EndOfInput():
                self._is_over = True

    def _is_dismissed(self) -> bool:
        """Whether the person was dismissed, which ends the session."""
        if self._listener.is_dismissed:
            self._is_over = True
            self._report_failure(make_dismissed_error(self._listener.state.team.name, self._listener.language))
        return self._listener.is_dismissed

    async def do(self, line: str | entry.TypedCommand) -> Exit:
        """Handle a line, typed or parsed. Errors are printed, and the inbox stays open."""
        if (isinstance(line, str) and not line.strip()) or self._is_dismissed():
            return self._last_code
        try:
            typed = entry.parse_line(line, self._listener.language) if isinstance(line, str) else line
            if isinstance(typed, entry.ExitCommand):
                self._is_over = True
                return self._last_code
            if BASE_TASK not in self._listener.state.tasks:
                known = {"name": self._listener.state.team.name, "team": self._listener.team}
                raise make_refusal("team_over", inbox_phrase("over", self._listener.language, **known))
            self._record_code(await self._act(typed))
            await self._after(typed)
        except (StaleOwner, StoreFault, StdoutFault):
            raise
        except (RefusedError, WorldFault, TimeoutError) as error:
            self._report_failure(error)
        return self._last_code

    async def _after(self, typed: entry.TypedCommand) -> None:
        """Forget which reasons were shown, so that a new pause is shown again.

        Warn that text sent to a stopped organisation has to wait.
        """
        rest_phrase = inbox_phrase("rests", self._listener.language)
        self.has_asked |= isinstance(typed, entry.ManagerText)
        self.was_view = isinstance(typed, entry.ViewCommand)
        self.has_acted |= not self.was_view
        if not self.was_view:
            self._told_reasons.intersection_update(() if isinstance(typed, entry.ResumeCommand) else (rest_phrase,))
        await self._listener.catch_up()
        if self._listener.state.team.paused is not None and self._person.is_attended and not self.was_view:
            self.show_reasons((rest_phrase,))

    def _record_code(self, code: Exit) -> None:
        self._last_code, self._worst = code, self._worst or code

    def _report_failure(self, error: Exception) -> None:
        self._record_code(exit_for_error(error))
        self.errors.append(explain(error))
        self.say(explain(error), "yellow")
        self._cli.out.item("refused", error_fields(error), many="refused")

    def show_news(self) -> None:
        """Show all messages that arrived since the last call."""
        state, language = self._listener.state, self._listener.language
        for message, inbox_message in self._listener.take_news():
            self.messages_heard += not is_person(state, message.sender_id)
            if inbox_message is not None:
                self.show(display.render_inbox_message(state, inbox_message, language))
            else:
                self.show(display.render_message(state, message, language, self._listener.me))
            self._cli.out.item(
                "message", display.message_fields(message, inbox_message.number if inbox_message else None)
            )
        self.show_reasons(
            describe_pause(why, language, build_resume_help(self._cli, state)) for why in self._listener.take_pauses()
        )

    def show_reasons(self, reasons: Iterable[str]) -> None:
        """Show why the organisation is paused, each reason once."""
        for why in reasons:
            if why not in self._told_reasons:
                self.say(display.hang_indent(why), "yellow")
            self._told_reasons.add(why)

    async def wait_until_settled(self) -> TaskStatus:
        """Show messages until the organisation is at rest; return its status."""
        resting = asyncio.create_task(self._listener.wait_until_settled())
        while not resting.done():
            woken = asyncio.create_task(self._listener.woken.wait())
            await asyncio.wait((resting, woken), return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
            self.show_news()
        return resting.result()

    # ------------------------------------------------------------------------------------------------------ output

    @property
    def _state(self) -> TeamState:
        return self._listener.state

    def note(self, name: str, /, **known: object) -> None:
        """Print a phrase of the catalogue on stderr."""
        self.say(inbox_phrase(name, self._listener.language, **known), "dim")

    def say(self, text: str, style: str) -> None:
        """Print text on stderr, without secrets. Lines with a command to copy are not wrapped."""
        safe_text = strip_control_characters(self._cli.out.redact(text))
        if self._cli.out.is_live and "greenroom " not in safe_text:
            lines = Text(safe_text).wrap(self._cli.out.console, self._cli.out.console.width)
            safe_text = "\n".join(line.plain.rstrip() for line in lines)
        self._cli.progress.note(safe_text, style=style)

    def show(self, text: Text) -> None:
        """Print text on stdout, wrapped between words on a terminal."""
        safe = self._cli.out.redact_text(text)
        self._cli.out.show(display.HangingText(safe) if self._cli.out.is_live else safe)

    async def _act(self, typed: entry.TypedCommand) -> Exit:
        """Carry out a typed line; return its exit code. Raise `RefusedError` if it cannot be done."""
        match typed:
            case entry.ManagerText(text=text):
                question, manager = self._find_manager_question(), self._state.tasks[BASE_TASK].manager
                if question is not None:  # the manager has asked exactly one question
                    await self._reply(question, text)
                else:
                    await self._human.ask(text, manager)
                    self._report_done("sent", to=manager)
            case entry.ReplyCommand(number=number, text=text):
                await self._reply(await self._human.find_message(number), text)
            case entry.ReportCommand(number=number, text=text, failed=failed):
                await self._human.finish(await self._human.find_message(number), text, failed=failed)
                self._report_done("reported", number=number)
            case entry.DecisionCommand():
                await self._decide(typed)
            case entry.MessageCommand() | entry.GroupMessageCommand() | entry.NewGroupCommand():
                await self._write(typed)
            case entry.ToolCommand():
                return await self._use_tool(typed)
            case entry.ViewCommand():
                await self._show_view(typed)
            case entry.ResumeCommand():
                intents, limited = build_resume_intents(self._state), summarise_status(self._state).state == "limit"
                await self._cli.runtime.ask(self._human.team, *intents)
                if intents:
                    self._report_done("resumed_within" if limited else "resumed")
                else:
                    self.note("nothing_held")
            case entry.ExitCommand():
                pass
            case _:
                assert_never(typed)
        return Exit.DONE

    def _report_done(self, name: str, /, **known: object) -> None:
        self.note(name, **known)
        self._cli.out.item("done", {"what": name, **known}, many="done")

    def _make_refusal(self, code: str, name: str, /, *, hint: str = "", **known: object) -> RefusedError:
        return make_refusal(code, inbox_phrase(name, self._listener.language, **known), hint)

    # ---------------------------------------------------------------------------------------------------- answering

    def _find_manager_question(self) -> InboxMessage | None:
        manager = self._state.tasks[BASE_TASK].manager
        questions = (
            inbox_message
            for inbox_message in self._listener.list_unanswered()
            if (inbox_message.message.sender_id, inbox_message.kind) == (manager, "question")
        )
        open_questions = [
            inbox_message for inbox_message in questions if VERB_KEYS.isdisjoint(inbox_message.message.data or ())
        ]
        return open_questions[0] if len(open_questions) == 1 else None

    async def _reply(self, inbox_message: InboxMessage, text: str) -> None:
        if inbox_message.kind == "approval":
            await self._decide(entry.DecisionCommand(number=inbox_message.number, words=text))
        elif inbox_message.kind == "question":
            await self._human.answer(inbox_message, text)
            self._report_done("answered", to=inbox_message.message.sender_id, number=inbox_message.number)
        else:
            await self._human.finish(inbox_message, text)
            self._report_done("reported", number=inbox_message.number)

    async def _decide(self, typed: entry.DecisionCommand) -> None:
        """Answer an approval request; without one, answer the question of the manager."""
        waiting = [
            inbox_message for inbox_message in self._listener.list_unanswered() if inbox_message.kind == "approval"
        ]
        question = self._find_manager_question()
        if typed.number is None and question is not None and not waiting:
            await self._reply(question, typed.words)
            return
        if typed.number is None and len(waiting) != 1:
            numbers = ", ".join(str(inbox_message.number) for inbox_message in waiting)
            raise self._make_refusal("which_letter", "one_question" if waiting else "no_question", numbers=numbers)
        inbox_message = waiting[0] if typed.number is None else await self._human.find_message(typed.number)
        how_to_answer = display.how_to_answer(self._state, inbox_message, self._listener.language)
        approval = (
            self._state.approvals.get(approval_of(inbox_message.message)) if inbox_message.kind == "approval" else None
        )
        if approval is None:
            raise self._make_refusal("no_approval", "no_question", hint=how_to_answer)
        answer = parse_answer(approval, typed.words)
        if answer is None:
            raise self._make_refusal("no_answer", "no_answer", how=how_to_answer)
        note = keep_rule(self._state, approval, answer)
        await self._human.decide(inbox_message, answer)
        if note:
            self.say(note, "dim")
        self._report_done("reported", number=inbox_message.number)

    # ----------------------------------------------------------------------------------------------------- messages

    async def _write(self, typed: entry.MessageCommand | entry.GroupMessageCommand | entry.NewGroupCommand) -> None:
        """Send a message. If it answers a question of its receiver, report that."""
        unanswered = {inbox_message.number for inbox_message in self._listener.list_unanswered()}
        match typed:
            case entry.MessageCommand():
                await self._send_to(typed)
            case entry.GroupMessageCommand(group=group, text=text):
                named = [
                    name for name in entry.find_mentions(text, self._state.agents) if not is_person(self._state, name)
                ]
                await self._human.send_to_group(GroupId(group), text, *map(AgentId, named))
                self._report_done("sent", to=f"#{group}")
            case entry.NewGroupCommand(group=group, people=people):
                await self._human.form_group(GroupId(group), *map(AgentId, people))
                self._report_done("formed", group=group)
        await self._listener.catch_up()
        for number in sorted(unanswered - {inbox_message.number for inbox_message in self._listener.list_unanswered()}):
            self._report_done("reported", number=number)

    async def _send_to(self, typed: entry.MessageCommand) -> None:
        """Send to all named agents, or to none if one is unknown."""
        names = [AgentId(name) for name in typed.names]
        for name in names:
            find_shared_task(self._state, self._human.me, name)
        if self._human.me in names:
            raise self._make_refusal("yourself", "yourself", me=self._human.me)
        if typed.mode == "ask":
            await self._human.ask(typed.text, *names)
        else:
            await self._human.send(typed.text, *names, need_reply=typed.mode == "to")
        self._report_done("sent", to=", ".join(names))

    async def _use_tool(self, typed: entry.ToolCommand) -> Exit:
        """Call a tool under the permission rules of all agents, and record the call."""
        stage = StageId(typed.stage) if typed.stage else None
        await self._human.check_permission(typed.tool, stage)
        root = Path(self._state.team.workspace)
        self._cli.app.toolbox(root).get(typed.tool)
        team = await create_manual_call(self._cli.runtime, root, typed.tool, typed.arguments)
        call = await run_manual_call(self._cli.runtime, team)
        call_fields = display.call_fields(call, stage)
        output = str(call_fields["output"])
        if output:
            self._cli.out.write(strip_control_characters(output if output.endswith("\n") else f"{output}\n"))
        if call.state != "finished":
            self.errors.append(f"{end_word(call.state, self._listener.language)}: {call.error}")
            self.say(self.errors[-1], "red")
        self._cli.out.item("tool_call", call_fields)
        await self._human.record_tool_call(call, stage=stage)
        self.note("recorded")
        return Exit.DONE if call.state == "finished" else Exit.FAILED

    # -------------------------------------------------------------------------------------------------------- views

    async def _show_view(self, typed: entry.ViewCommand) -> None:
        state, me, language = self._state, self._human.me, self._listener.language
        match typed.what:
            case "inbox":
                self.show_inbox()
            case "notices":
                notices = (await self._human.pool()).global_messages
                lines = [Text(display.hang_indent(notice)) for notice in notices]
                self._show_list("notice", lines, ({"text": notice} for notice in notices))
                if not notices:
                    self.note("no_notices")
            case "tasks":
                fields = (display.task_fields(state, task) for task in state.tasks.values())
                self._show_list(
                    "task", (*render_open_tasks(state, language=language), *render_waits(state, language)), fields
                )
            case "who":
                self._show_list(
                    "agent", display.agent_lines(state, me, language), display.agents_fields(state, me, language)
                )
            case "history":
                await self._show_history(typed.about)
            case "help":
                self._cli.out.show(*display.help_parts(language, state.tasks[BASE_TASK].manager))
                self._show_list("command", (), display.command_fields(language))
            case _:
                assert_never(typed.what)

    def _show_list(self, kind: str, lines: Iterable[Text], items: Iterable[Json], many: str = "") -> None:
        for line in lines:
            self.show(line)
        self._cli.out.listing(kind, items, many=many)

    def show_inbox(self) -> None:
        """Show the messages that wait for an answer, oldest first."""
        unanswered, language = self._listener.list_unanswered(), self._listener.language
        if unanswered:
            self._cli.out.show(Text(inbox_phrase("some", language, count=len(unanswered)), style="bold"))
        else:
            self.note("nothing")
        lines = (display.render_inbox_message(self._state, inbox_message, language) for inbox_message in unanswered)
        self._show_list("letter", lines, map(display.inbox_message_fields, unanswered))

    async def _show_history(self, other: str) -> None:
        state, language = self._state, self._listener.language
        messages = (await self._human.pool()).conversation_privates.get(other, ())
        if not messages and other not in (*state.agents, *state.retired):
            raise make_unknown_agent_error(other, state.agents, language)
        lines = (
            Text(display.hang_indent(f"{message.timestamp}  {message.sender_id}: {message.content}"))
            for message in messages
        )
        self._show_list(
            "said",
            lines,
            (
                {"with": other, "from": message.sender_id, "message": message.content, "at": message.timestamp}
                for message in messages
            ),
            many="history",
        )
        if not messages:
            self.note("no_history", who=other)


def is_person(state: TeamState, name: str) -> bool:
    """Whether this member is a person."""
    agent = state.agents.get(AgentId(name))
    return agent is not None and agent.spec.kind == "human"
