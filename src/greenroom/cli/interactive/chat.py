"""A chat: what is typed and answered, turn by turn, until the person leaves; and what its /commands do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Final

import typer

from greenroom.app.conversation.chat import Chat, Turn, models_of
from greenroom.app.conversation.start import model_of
from greenroom.app.conversation.typed import (
    COMMANDS,
    Attached,
    Gone,
    Handler,
    Person,
    Stopped,
    Woken,
    Written,
    handle,
    joined,
    message,
)
from greenroom.app.cost import MILLION, dollars
from greenroom.app.host import watch_steps
from greenroom.app.settings import values
from greenroom.app.settings.schema import Caps
from greenroom.cli.context import Invocation, command
from greenroom.cli.errors import explain
from greenroom.cli.exit_codes import Exit, of_standings
from greenroom.cli.interactive.approvals import NO_ANSWER, keep_rule, parse_answer, render_question
from greenroom.cli.interactive.follow import tell, telling
from greenroom.cli.interactive.report import turn_cost, turn_fields, turn_trouble
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.progress import Held
from greenroom.cli.render.questions import PROMPT, QUICK, unechoed
from greenroom.cli.render.team import TeamHistory, read_history, seconds
from greenroom.cli.render.words import shorten
from greenroom.cli.start import RunPlan, describe_caps, refuse_unpriced
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import Refused, StaleOwner, StoreFault, WorldFault
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.base.records import evolve
from greenroom.core.state.approval import Approval
from greenroom.core.state.step import Step

LIMITS: Final = {
    "cost": (values.cost, "money"),
    "tokens": (values.tokens, "tokens"),
    "time": (values.time, "millis"),
}
"""How what is typed behind `/limit NAME` is read, and which field of a budget it is."""

KEYS: Final = (
    ("Alt-Enter, or \\ at the end", "another line"),
    ('""" on a line of its own', "begins and ends several lines"),
    ("@path", "brings a file of this workspace along"),
    ("Ctrl-C", "stops the answer; twice leaves"),
    ("Ctrl-D", "leaves; it can be resumed"),
)
SHOWN: Final = 2_000  # characters of an answer in the history
FATES: Final = {"answered": Exit.DONE, "interrupted": Exit.INTERRUPTED}


def _caps(limits: Limits) -> Caps:
    return Caps(
        cost=None if limits.money is None else limits.money / MILLION,
        tokens=limits.tokens,
        time=None if limits.millis is None else limits.millis / 1000,
    )


class Conversation:
    """A person and an agent, and how their talk went so far. `plan` is that of a new one, which has no team yet."""

    def __init__(
        self, cli: Invocation, chat: Chat, person: Person, handlers: Sequence[Handler], plan: RunPlan | None
    ) -> None:
        self._view = RunView(cli.setup, cli.out)
        self._held = Held()
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
        self._held_up = False
        self._pressed = -QUICK
        self._armed = False
        self._code: Exit | None = None
        self._fate: Exit | None = None
        self._status = ""
        self._answer = ""

    def note(self, text: str, *, style: str = "") -> None:
        self._view.note(text, style=style)

    async def hold(self, first: str = "", context: str = "", *, go_on: bool = False) -> Exit:
        """Talk until the person leaves; returns what a script wants to know. With `go_on`, also what stood still does.

        Ctrl-C of a person is a part of the talk; where no person is, it ends the process as it always does.
        """
        with self._cli.stop.lent(self._interrupted) if self._person.attended else nullcontext():
            try:
                await self._begin(first, context, go_on=go_on)
                while self._code is None:
                    await self._next()
                if self._chat.team is not None:
                    await tell(self._cli, self._chat.team, self._history, follow=False)
                return self._leave()
            except asyncio.CancelledError:
                self._view.end()
                self._say_how_to_resume("Stopped. ")
                raise
            finally:
                self._view.end()
                self._chat.close()

    async def _begin(self, first: str, context: str, *, go_on: bool) -> None:
        if self._chat.team is not None:
            self._history = await read_history(self._cli.runtime, self._chat.team)
            await self._open()
            world = await self._chat.world()
            self._held_up = bool(world.team.paused or any(task.paused for task in world.tasks.values()))
        if first:
            await self._do_line(first, (Attached(text=context),) if context else ())
        elif self._held_up and go_on:
            await self._do_line("")
        elif self._chat.team is not None and await self._chat.goes_on() and not self._held_up:
            await self._take_turn()

    async def _next(self) -> None:
        match await self._person.write(PROMPT, self._woken, print_on_empty=self._held_up):
            case Written(text=text):
                self._armed = False
                await self._do_line(joined(text))
            case Woken():
                self._view.own = ""
                await self._take_turn()
            case Stopped() if self._armed or time.monotonic() - self._pressed < QUICK:
                self._code = Exit.INTERRUPTED
            case Stopped():
                self._armed = True
                self.note("Ctrl-C once more, or Ctrl-D, leaves.", style="dim")
            case Gone():
                self._code = Exit.DONE

    # ---------------------------------------------------------------------------------------------------- talking

    async def _do_line(self, text: str, attached: Sequence[Attached] = ()) -> None:
        """Do what was typed. What cannot be done is said in a sentence, and the chat stays open."""
        try:
            await self._understand(text, attached)
        except (StaleOwner, StoreFault):
            raise
        except (Refused, WorldFault) as error:
            self._complain(explain(error))
            self._fate = Exit.USAGE if isinstance(error, Refused) else Exit.CONFIG
        finally:
            self._busy = False

    async def _understand(self, text: str, attached: Sequence[Attached]) -> None:
        if not text.strip():
            if self._held_up:
                await self._continue("")
            return
        done = handle(text, self._handlers)
        if done.said:
            self._complain(done.said)
            self._fate = Exit.USAGE
        elif done.command is not None:
            await self._do_command(done.command.name, done.command.argument)
        else:
            await self._say(done.content.strip(), (*attached, *done.attached))

    async def _say(self, text: str, attached: Sequence[Attached]) -> None:
        plan = self._plan
        whole = message(text, attached, language=plan.language if plan is not None else "")
        if not self._person.attended:
            self.note(f"{PROMPT}{shorten(text)}", style="dim")
        self._view.own, self._busy = text, True
        if self._chat.team is not None:
            await self._chat.say(whole, typed=text)
        elif plan is not None:
            await self._chat.found(plan.cast, whole, typed=text, limits=plan.caps.limits)
            await self._open()
        await self._take_turn()

    async def _open(self) -> None:
        """Let the agents work, and show it."""
        host = await self._chat.open()
        host.listen_trouble(self._view.trouble)
        host.watch(self._held.later(self._view.piece))
        watch_steps(host, self._held.later(self._view.began), self._held.later(self._view.ended))
        watch_steps(host, self._began, lambda _: None)
        host.listen(lambda commit: None if commit.world.tasks else self._woken.set())
        self._cli.out.begin(team=self._chat.team, model=models_of(host.world)[0], agent=self._chat.agent)

    def _began(self, step: Step) -> None:
        """Something happens while nothing was said here."""
        if not self._busy and step.thread_id == self._chat.thread:
            self._woken.set()

    # --------------------------------------------------------------------------------------------------- commands

    async def _do_command(self, name: str, words: str) -> None:
        """Do a /command. Before something was said there is no team, and only a few do anything."""
        if name == "exit" or (name == "done" and self._chat.team is None):
            self._code = Exit.DONE
            return
        self._fate = Exit.DONE
        known: dict[str, Callable[[str], Awaitable[None]]] = {
            "clear": self._clear,
            "retry": self._retry,
            "continue": self._continue,
            "model": self._model,
            "cost": self._cost,
            "limit": self._limit,
            "history": self._show_history,
            "done": self._done,
        }
        if name == "help":
            split = {name: about.rpartition("  ") for name, about in COMMANDS.items()}
            rows = [*((f"/{name} {takes}".strip(), about) for name, (takes, _, about) in split.items()), *KEYS]
            wide = max(len(left) for left, _ in rows)
            self.note("\n".join(f"  {left.ljust(wide)}  {right}" for left, right in rows))
        elif self._chat.team is None:
            self.note("Nothing was said yet.")
        else:
            await known[name](words)

    async def _done(self, summary: str) -> None:
        await self._chat.complete(summary)
        self.note(f"The chat is over. It can be read: {command(self._cli, 'show', self._chat.its_team)}")
        self._code = Exit.DONE

    async def _clear(self, _: str) -> None:
        await self._chat.clear()
        self.note("What was said is behind us: the next thing you say begins anew.")

    async def _retry(self, _: str) -> None:
        said = await self._chat.exchanges()
        if said and said[-1].answer:
            await self._understand(said[-1].asked, ())
        else:
            await self._continue("")

    async def _continue(self, _: str) -> None:
        await self._chat.go_on()
        await self._take_turn()

    async def _show_history(self, _: str) -> None:
        for turn in await self._chat.exchanges():
            self.note(f"› {shorten(turn.asked, SHOWN)}", style="bold")
            answer = turn.answer or f"({turn.error or 'not answered'})"
            self.note(answer if len(answer) <= SHOWN else f"{answer[:SHOWN]}…")

    async def _cost(self, _: str) -> None:
        budget = (await self._chat.world()).budgets[TEAM_BUDGET]
        spent, caps = budget.spent, describe_caps(_caps(budget.limits))
        self.note(f"{spent.tokens:,} tokens · {dollars(spent.money)} · {seconds(spent.millis)} of work · {caps}")

    async def _model(self, name: str) -> None:
        world = await self._chat.world()
        if not name:
            present = model_of(world.agents[self._chat.agent].spec)
            self.note(f"{present}. Another one: /model NAME; `greenroom models list` has them.")
            return
        settled = self._cli.means.provisions.settled(name)
        refuse_unpriced(self._cli.means.named(settled), _caps(world.budgets[TEAM_BUDGET].limits))
        await self._chat.choose(settled)
        self.note(f"{settled} from now on.")

    async def _limit(self, words: str) -> None:
        old = (await self._chat.world()).budgets[TEAM_BUDGET].limits
        name, _, value = words.partition(" ")
        if name not in LIMITS or not value.strip():
            caps = f"{describe_caps(_caps(old))}. " if not words else ""
            self.note(f"{caps}For instance: /limit cost 10, /limit tokens 200k, /limit time none.")
            return
        read, amount = LIMITS[name]
        try:
            new = evolve(_caps(old), **{name: read(value.strip())})
        except values.Unfit as unfit:
            self.note(f"It must be {unfit}, not {value.strip()!r}.")
            return
        await self._chat.allow(evolve(old, **{amount: getattr(new.limits, amount)}))
        self.note(f"{describe_caps(new)} from now on.")

    # ------------------------------------------------------------------------------------------------------ turns

    async def _take_turn(self) -> None:
        """Wait for what comes of what was said, and tell it. More may have been said from elsewhere meanwhile."""
        while True:
            turn = await self._wait()
            if turn is None:
                return
            self._tell(turn)
            asked = turn.word == "waiting" and self._person.attended and await self._decide()
            more = turn.word == "answered" and await self._chat.goes_on()
            if not asked and not more:
                return

    async def _wait(self) -> Turn | None:
        """The turn, or None when the person left before it was over."""
        self._busy = True
        self._view.begin(self._history)
        self._held.release()
        over, left = asyncio.create_task(self._chat.over()), asyncio.create_task(self._left.wait())
        try:
            async with telling(self._cli, self._chat.its_team, self._history):
                with unechoed():
                    await asyncio.wait((over, left), return_when=asyncio.FIRST_COMPLETED)
            return over.result() if over.done() else None
        finally:
            over.cancel()
            left.cancel()
            self._busy = self._stopping = False
            self._woken.clear()
            self._held.hold()
            self._view.end()

    async def _decide(self) -> bool:
        """Ask the person what an agent wants to know before it does something; False when there is nothing to say."""
        asked = await self._chat.questions()
        for approval in asked:
            if not await self._ask(approval):
                self.note("Nothing is decided. Enter asks again; what you write comes first.", style="bold")
                return False
        return bool(asked)

    async def _ask(self, approval: Approval) -> bool:
        """Ask until an answer means something; False when the person does not want to be asked now. What was agreed to
        for another question may answer this one too."""
        while approval.approval_id in {open_.approval_id for open_ in await self._chat.questions()}:
            if approval.words or self._person.chooses:
                reply = await self._person.replies(render_question(approval))
            else:
                reply = "yes" if await self._person.agrees(approval.question, default=False) else "no"
            if reply is None:
                return False
            answer = parse_answer(approval, reply)
            if answer is None:
                self.note(NO_ANSWER, style="yellow")
                continue
            note = keep_rule(await self._chat.world(), approval, answer)
            await self._chat.answer(answer)
            self.note(note, style="dim")
        return True

    def _interrupted(self) -> None:
        """Ctrl-C: the first one stops the turn, the second one leaves."""
        if not self._busy:
            self._person.stop()
        elif self._stopping or self._chat.team is None:
            self._code = Exit.INTERRUPTED
            self._left.set()
        else:
            self._stopping, self._pressed = True, time.monotonic()
            self._interrupting = asyncio.create_task(self._interrupt())

    async def _interrupt(self) -> None:
        with suppress(Refused):  # it is over already
            await self._chat.interrupt()

    # ----------------------------------------------------------------------------------------------------- telling

    def _tell(self, turn: Turn) -> None:
        """What came of it: the answer if it is not there yet, why there is none, and what it cost."""
        self._held_up = turn.word in ("interrupted", "provider", "limit", "paused", "waiting")
        self._fate, self._status = FATES.get(turn.word, of_standings([turn.word])), turn.word
        self._answer = turn.answer or (turn.why if turn.word == "finished" else "")
        if self._answer.strip() and self._answer.strip() != self._view.spoken.strip() and turn.word != "interrupted":
            self._cli.out.write(f"{self._answer.rstrip()}\n")
        if turn.word == "interrupted":
            self.note("Interrupted. What now? Enter goes on with it.", style="bold")
        elif turn.word not in ("answered", "finished") and not (turn.word == "waiting" and self._person.attended):
            answer = command(self._cli, "answer", self._chat.its_team, "yes")
            self._complain(turn_trouble(turn, attended=self._person.attended, answer=answer))
        self.note(f"  {turn_cost(turn)}\n" if turn.spent.tokens else "", style="dim")
        self._cli.out.item("turn", {"asked": self._view.own, **turn_fields(turn, self._answer)})
        if turn.last:
            self.note(f"The chat is over: it is {turn.word}.")
            self._code = self._fate

    def _complain(self, text: str) -> None:
        """That is no progress, so it is said even to those who want to hear nothing else."""
        if self._cli.setup.quiet:
            typer.echo(text, err=True)
        else:
            self.note(text, style="yellow")

    def _leave(self) -> Exit:
        if self._fate is None and not self._person.attended:
            self._complain("Nothing was said: there is nothing on stdin.")
            self._fate, self._status = Exit.USAGE, "error"
        code = (self._code if self._person.attended else self._fate) or Exit.DONE
        if leftover := self._cli.means.unused_recording():
            self.note(leftover, style="yellow")
        self._say_how_to_resume()
        status, total = "left" if self._person.attended else self._status or "ok", self._history.total()
        spent = {"version": self._history.version, "tokens": total.tokens, "cost": total.money / MILLION}
        return self._cli.out.result(status, code, answer=self._answer, **spent)

    def _say_how_to_resume(self, before: str = "") -> None:
        if self._chat.team is not None and self._history.world.tasks:
            again = command(self._cli, "chat", "--resume", self._chat.team)
            self.note(f"{before}Go on with: {again}", style="bold")
