"""The chat screen: turns between a person and an agent, and its /commands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Final, TypeAlias

import typer

from greenroom.app.approvals import keep_rule, parse_answer, render_question
from greenroom.app.conversation.chat import Chat, TurnOutcome, list_team_models
from greenroom.app.conversation.chat_input import (
    COMMANDS,
    Attachment,
    EndOfInput,
    Handler,
    InterruptInput,
    PersonInput,
    TextInput,
    WakeInput,
    build_message,
    join_lines,
    run_handlers,
)
from greenroom.app.conversation.start import read_model_name, refuse_unpriced
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, format_dollars
from greenroom.app.messages import translate
from greenroom.app.run_plan import RunPlan, describe_limits
from greenroom.app.settings import values
from greenroom.app.settings.schema import LimitSettings
from greenroom.app.task_status import format_duration
from greenroom.app.team_host import watch_steps
from greenroom.app.words import shorten
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.errors import explain
from greenroom.cli.exit_codes import Exit, exit_for_statuses
from greenroom.cli.interactive.follow import show_events, show_events_meanwhile
from greenroom.cli.interactive.report import describe_turn_cost, explain_turn, turn_fields
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.progress import DeferredDisplay
from greenroom.cli.render.questions import DOUBLE_INTERRUPT_S, PROMPT, disable_echo
from greenroom.cli.render.team import TeamHistory, read_history
from greenroom.cli.start import warn
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import RefusedError, StaleOwner, StoreFault, WorldFault
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.base.records import evolve
from greenroom.core.state.approval import Approval
from greenroom.core.state.step import Step

LIMIT_PARSERS: Final = {
    "cost": (values.parse_cost, "money"),
    "tokens": (values.parse_tokens, "tokens"),
    "time": (values.parse_time, "millis"),
}
"""The parser of a value after `/limit NAME`, and the budget field that it sets."""

KEYS: Final = (("Alt-Enter, \\", "line"), ('"""', "lines"), ("@path", "file"), ("Ctrl-C", "stop"), ("Ctrl-D", "leave"))
"""What can be typed, and the message that explains it."""

MAX_ANSWER_CHARS_SHOWN: Final = 2_000  # characters of an answer in the history
TURN_CODES: Final = {"answered": Exit.DONE, "interrupted": Exit.INTERRUPTED}


TEAM_SUMMARY: Final = "team-run.txt"
"""The name under which the agent reads the summary of a team run."""


def _to_limit_settings(limits: Limits) -> LimitSettings:
    return LimitSettings(
        cost=None if limits.money is None else limits.money / MILLIONTHS_PER_DOLLAR,
        tokens=limits.tokens,
        time=None if limits.millis is None else limits.millis / 1000,
    )


TeamStarter: TypeAlias = Callable[[Invocation, str], Awaitable[tuple[Exit, str]]]
"""Plans a request, runs its team to the end, and returns the exit code and a summary for the agent."""


class ChatScreen:
    """A chat between a person and an agent. `plan` is that of a new chat, which has no team yet.

    `start_team` runs the team of `/team`; the agent reads the summary with the person's next message.
    """

    def __init__(
        self,
        cli: Invocation,
        chat: Chat,
        person: PersonInput,
        handlers: Sequence[Handler],
        plan: RunPlan | None,
        *,
        start_team: TeamStarter,
    ) -> None:
        self._start_team = start_team
        self._team_summaries: list[Attachment] = []
        self._view = RunView(cli.setup, cli.out)
        self._deferred = DeferredDisplay()
        self._cli = replace(cli, progress=self._view)
        self._chat = chat
        self._person = person
        self._handlers = handlers
        self._plan = plan
        self._history = TeamHistory()
        self._woken = asyncio.Event()
        self._left = asyncio.Event()
        self._interrupting: asyncio.Task[None] | None = None
        self._busy = False
        self._stopping = False
        self._is_paused = False
        self._interrupted_at = -DOUBLE_INTERRUPT_S
        self._leaves_on_interrupt = False
        self._code: Exit | None = None
        self._turn_code: Exit | None = None
        self._status = ""
        self._answer = ""

    def note(self, text: str, *, style: str = "") -> None:
        self._view.note(text, style=style)

    async def run(self, first: str = "", context: str = "", *, resume: bool = False) -> Exit:
        """Run the chat until the person leaves; return the exit code. With `resume`, continue paused work.

        If a person types, Ctrl-C interrupts a turn; otherwise it ends the process.
        """
        with self._cli.stop.redirect_interrupts(self._handle_interrupt) if self._person.is_attended else nullcontext():
            try:
                await self._begin(first, context, resume=resume)
                while self._code is None:
                    await self._next()
                if self._chat.team is not None:
                    await show_events(self._cli, self._chat.team, self._history, follow=False)
                return self._leave()
            except asyncio.CancelledError:
                self._view.end()
                self._say_how_to_resume("conversation.stopped")
                raise
            finally:
                self._view.end()
                self._chat.close()

    async def _begin(self, first: str, context: str, *, resume: bool) -> None:
        if self._chat.team is not None:
            self._history = await read_history(self._cli.runtime, self._chat.team)
            await self._open()
            state = await self._chat.state()
            self._is_paused = bool(state.team.paused or any(task.paused for task in state.tasks.values()))
        if first:
            await self._handle_line(first, (Attachment(text=context),) if context else ())
        elif self._is_paused and resume:
            await self._handle_line("")
        elif self._chat.team is not None and await self._chat.is_working() and not self._is_paused:
            await self._take_turn()

    async def _next(self) -> None:
        match await self._person.read_text(PROMPT, self._woken, print_on_empty=self._is_paused):
            case TextInput(text=text):
                self._leaves_on_interrupt = False
                await self._handle_line(join_lines(text))
            case WakeInput():
                self._view.own_text = ""
                await self._take_turn()
            case InterruptInput() if (
                self._leaves_on_interrupt or time.monotonic() - self._interrupted_at < DOUBLE_INTERRUPT_S
            ):
                self._code = Exit.INTERRUPTED
            case InterruptInput():
                self._leaves_on_interrupt = True
                self.note(translate("chat.press_again"), style="dim")
            case EndOfInput():
                self._code = Exit.DONE

    # --------------------------------------------------------------------------------------------------- messages

    async def _handle_line(self, text: str, attached: Sequence[Attachment] = ()) -> None:
        """Handle a typed line. Errors are printed, and the chat stays open."""
        try:
            await self._interpret_line(text, attached)
        except (StaleOwner, StoreFault):
            raise
        except (RefusedError, WorldFault) as error:
            self._print_trouble(explain(error))
            self._turn_code = Exit.USAGE if isinstance(error, RefusedError) else Exit.CONFIG
        finally:
            self._busy = False

    async def _interpret_line(self, text: str, attached: Sequence[Attachment]) -> None:
        if not text.strip():
            if self._is_paused:
                await self._continue("")
            return
        handled = run_handlers(text, self._handlers)
        if handled.reply:
            self._print_trouble(handled.reply)
            self._turn_code = Exit.USAGE
        elif handled.command is not None:
            await self._do_command(handled.command.name, handled.command.argument)
        else:
            await self._send(handled.content.strip(), (*attached, *handled.attached))

    async def _send(self, text: str, attached: Sequence[Attachment]) -> None:
        plan = self._plan
        attached = (*self._team_summaries, *attached)
        full_message = build_message(text, attached, language=plan.language if plan is not None else "")
        if not self._person.is_attended:
            self.note(f"{PROMPT}{shorten(text)}", style="dim")
        self._view.own_text, self._busy = text, True
        if self._chat.team is not None:
            await self._chat.send(full_message, typed=text)
        elif plan is not None:
            message, media = await plan.add_files(self._cli.app, full_message, note=warn(self._cli))
            await self._chat.create_team(plan.participants, message, typed=text, media=media, limits=plan.caps.limits)
            await self._open()
        self._team_summaries.clear()
        await self._take_turn()

    async def _open(self) -> None:
        host = await self._chat.open()
        host.listen_trouble(self._view.trouble)
        host.watch(self._deferred.defer(self._view.piece))
        watch_steps(host, self._deferred.defer(self._view.begin_step), self._deferred.defer(self._view.end_step))
        watch_steps(host, self._notice_step, lambda _: None)
        host.listen(lambda commit: None if commit.state.tasks else self._woken.set())
        self._cli.out.begin(team=self._chat.team, model=list_team_models(host.state)[0], agent=self._chat.agent)

    def _notice_step(self, step: Step) -> None:
        """Wake the prompt when a step starts that was not caused here."""
        if not self._busy and step.thread_id == self._chat.thread:
            self._woken.set()

    # --------------------------------------------------------------------------------------------------- commands

    async def _do_command(self, name: str, words: str) -> None:
        """Run a /command. Before the first message there is no team, and few commands do anything."""
        if name == "exit" or (name == "done" and self._chat.team is None):
            self._code = Exit.DONE
            return
        self._turn_code = Exit.DONE
        handlers: dict[str, Callable[[str], Awaitable[None]]] = {
            "clear": self._clear,
            "retry": self._retry,
            "continue": self._continue,
            "model": self._choose_model,
            "cost": self._show_cost,
            "limit": self._set_limit,
            "history": self._show_history,
            "done": self._end_chat,
        }
        if name == "help":
            split = {name: about.rpartition("  ") for name, about in COMMANDS.items()}
            rows = [(f"/{name} {takes}".strip(), about) for name, (takes, _, about) in split.items()]
            rows += [(key, translate(f"chat.key_{name}")) for key, name in KEYS]
            wide = max(len(left) for left, _ in rows)
            self.note("\n".join(f"  {left.ljust(wide)}  {right}" for left, right in rows))
        elif name == "team":
            await self._run_team(words)
        elif self._chat.team is None:
            self.note(translate("chat.no_messages"))
        else:
            await handlers[name](words)

    async def _run_team(self, request: str) -> None:
        """Run a team to its end, and keep its summary for the agent. Ctrl-C stops the team, not the chat."""
        if not request:
            self.note(translate("chat.team_needs_text"))
            return
        self._view.end()
        run = asyncio.ensure_future(self._start_team(self._cli, request))
        with self._cli.stop.redirect_interrupts(run.cancel):
            try:
                await asyncio.wait((run,))
            finally:
                run.cancel()
                await asyncio.wait((run,))
        if run.cancelled():  # the command that continues it was printed
            self._turn_code = Exit.INTERRUPTED
            return
        self._turn_code, summary = run.result()
        if summary:
            self._team_summaries.append(Attachment(text=summary, name=TEAM_SUMMARY))
            self.note(translate("chat.team_summary"), style="dim")

    async def _end_chat(self, summary: str) -> None:
        await self._chat.complete(summary)
        self.note(translate("chat.ended", command=render_command(self._cli, "show", self._chat.existing_team)))
        self._code = Exit.DONE

    async def _clear(self, _: str) -> None:
        await self._chat.clear()
        self.note(translate("chat.cleared"))

    async def _retry(self, _: str) -> None:
        turns = await self._chat.list_turns()
        if turns and turns[-1].answer:
            await self._interpret_line(turns[-1].prompt, ())
        else:
            await self._continue("")

    async def _continue(self, _: str) -> None:
        await self._chat.resume()
        await self._take_turn()

    async def _show_history(self, _: str) -> None:
        for turn in await self._chat.list_turns():
            self.note(f"› {shorten(turn.prompt, MAX_ANSWER_CHARS_SHOWN)}", style="bold")
            answer = turn.answer or f"({turn.error or translate('chat.not_answered')})"
            self.note(answer if len(answer) <= MAX_ANSWER_CHARS_SHOWN else f"{answer[:MAX_ANSWER_CHARS_SHOWN]}…")

    async def _show_cost(self, _: str) -> None:
        budget = (await self._chat.state()).budgets[TEAM_BUDGET]
        spent, caps = budget.spent, describe_limits(_to_limit_settings(budget.limits))
        money, duration = format_dollars(spent.money), format_duration(spent.millis)
        self.note(translate("chat.cost", tokens=spent.tokens, money=money, duration=duration, limits=caps))

    async def _choose_model(self, name: str) -> None:
        state = await self._chat.state()
        if not name:
            self.note(translate("chat.model_now", model=read_model_name(state.agents[self._chat.agent].spec)))
            return
        settled = self._cli.app.model_session.resolve_alias(name)
        refuse_unpriced(self._cli.app.get_model(settled), state.budgets[TEAM_BUDGET].limits)
        await self._chat.set_model(settled)
        self.note(translate("chat.model", model=settled))

    async def _set_limit(self, words: str) -> None:
        old = (await self._chat.state()).budgets[TEAM_BUDGET].limits
        name, _, value = words.partition(" ")
        if name not in LIMIT_PARSERS or not value.strip():
            if not words:
                self.note(translate("chat.limits", limits=describe_limits(_to_limit_settings(old))))
            self.note(translate("chat.set_limit"))
            return
        read, amount = LIMIT_PARSERS[name]
        try:
            new = evolve(_to_limit_settings(old), **{name: read(value.strip())})
        except values.BadValue as unfit:
            self.note(translate("chat.bad_limit", unfit=unfit, value=value.strip()))
            return
        await self._chat.set_limits(evolve(old, **{amount: getattr(new.limits, amount)}))
        self.note(translate("chat.limits", limits=describe_limits(new)))

    # ------------------------------------------------------------------------------------------------------ turns

    async def _take_turn(self) -> None:
        """Wait for the turn and show it; repeat if there are more messages, which may come from elsewhere."""
        while True:
            turn = await self._wait()
            if turn is None:
                return
            self._show_turn(turn)
            was_answered = turn.state == "waiting" and self._person.is_attended and await self._ask_approvals()
            has_more = turn.state == "answered" and await self._chat.is_working()
            if not was_answered and not has_more:
                return

    async def _wait(self) -> TurnOutcome | None:
        self._busy = True
        self._view.begin(self._history)
        self._deferred.release()
        over, left = asyncio.create_task(self._chat.wait()), asyncio.create_task(self._left.wait())
        try:
            async with show_events_meanwhile(self._cli, self._chat.existing_team, self._history):
                with disable_echo():
                    await asyncio.wait((over, left), return_when=asyncio.FIRST_COMPLETED)
            return over.result() if over.done() else None
        finally:
            over.cancel()
            left.cancel()
            self._busy = self._stopping = False
            self._woken.clear()
            self._deferred.hold()
            self._view.end()

    async def _ask_approvals(self) -> bool:
        """Ask the person all pending approval requests; False if one stays open, or there is none."""
        approvals = await self._chat.list_approvals()
        for approval in approvals:
            if not await self._ask_approval(approval):
                self.note(translate("chat.ask_again"), style="bold")
                return False
        return bool(approvals)

    async def _ask_approval(self, approval: Approval) -> bool:
        """Ask until the answer is valid; False if the person declines to answer now.

        Another answer may settle this request too.
        """
        while approval.approval_id in {open_.approval_id for open_ in await self._chat.list_approvals()}:
            if approval.words or self._person.can_choose:
                reply = await self._person.read_line(render_question(approval))
            else:
                reply = "yes" if await self._person.confirm(approval.question, default=False) else "no"
            if reply is None:
                return False
            answer = parse_answer(approval, reply)
            if answer is None:
                self.note(translate("approvals.unknown_answer"), style="yellow")
                continue
            note = keep_rule(await self._chat.state(), approval, answer)
            await self._chat.answer_approval(answer)
            self.note(note, style="dim")
        return True

    def _handle_interrupt(self) -> None:
        """Handle Ctrl-C: the first one interrupts the turn, the second one leaves."""
        if not self._busy:
            self._person.interrupt()
        elif self._stopping or self._chat.team is None:
            self._code = Exit.INTERRUPTED
            self._left.set()
        else:
            self._stopping, self._interrupted_at = True, time.monotonic()
            self._interrupting = asyncio.create_task(self._interrupt())

    async def _interrupt(self) -> None:
        with suppress(RefusedError):  # the turn is over already
            await self._chat.interrupt()

    # ----------------------------------------------------------------------------------------------------- output

    def _show_turn(self, finished_turn: TurnOutcome) -> None:
        """Show a finished turn: the answer if it is not printed yet, why there is none, and the cost."""
        self._is_paused = finished_turn.state in ("interrupted", "provider", "limit", "paused", "waiting")
        self._turn_code = TURN_CODES.get(finished_turn.state, exit_for_statuses([finished_turn.state]))
        self._status = finished_turn.state
        self._answer = finished_turn.answer or (finished_turn.why if finished_turn.state == "finished" else "")
        if (
            self._answer.strip()
            and self._answer.strip() != self._view.printed_answer.strip()
            and finished_turn.state != "interrupted"
        ):
            self._cli.out.write(f"{self._answer.rstrip()}\n")
        if finished_turn.state == "interrupted":
            self.note(translate("chat.interrupted"), style="bold")
        elif finished_turn.state not in ("answered", "finished") and not (
            finished_turn.state == "waiting" and self._person.is_attended
        ):
            answer = render_command(self._cli, "answer", self._chat.existing_team, "yes")
            self._print_trouble(explain_turn(finished_turn, attended=self._person.is_attended, answer=answer))
        self.note(f"  {describe_turn_cost(finished_turn)}\n" if finished_turn.spent.tokens else "", style="dim")
        self._cli.out.item("turn", {"asked": self._view.own_text, **turn_fields(finished_turn, self._answer)})
        if finished_turn.last:
            self.note(translate("chat.ended_as", state=translate(f"states.{finished_turn.state}")))
            self._code = self._turn_code

    def _print_trouble(self, text: str) -> None:
        """Print a problem; with --quiet too, because it is not progress."""
        if self._cli.setup.quiet:
            typer.echo(text, err=True)
        else:
            self.note(text, style="yellow")

    def _leave(self) -> Exit:
        if self._turn_code is None and not self._person.is_attended:
            self._print_trouble(translate("chat.stdin_empty"))
            self._turn_code, self._status = Exit.USAGE, "error"
        code = (self._code if self._person.is_attended else self._turn_code) or Exit.DONE
        if leftover := self._cli.app.unused_recording():
            self.note(leftover, style="yellow")
        self._say_how_to_resume()
        status, total = "left" if self._person.is_attended else self._status or "ok", self._history.total()
        spent = {"version": self._history.version, "tokens": total.tokens, "cost": total.money / MILLIONTHS_PER_DOLLAR}
        spent["estimated_calls"] = total.estimated
        return self._cli.out.result(status, code, answer=self._answer, **spent)

    def _say_how_to_resume(self, key: str = "report.continue") -> None:
        if self._chat.team is not None and self._history.state.tasks:
            again = render_command(self._cli, "chat", "--resume", self._chat.team)
            self.note(translate(key, command=again), style="bold")
