"""A person's room in an organisation: what comes for them is told, what they type is done, until they leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import assert_never

from rich.text import Text

from greenroom.app.conversation.typed import Gone, Person, Stopped, Woken, Written, joined
from greenroom.app.organisation import input as entry
from greenroom.app.organisation.inbox import Letter, approval_of, at_rest
from greenroom.app.organisation.people import HumanAgent, meeting_place
from greenroom.app.organisation.words import BASE, nobody, sent_away
from greenroom.app.task_status import Standing
from greenroom.app.toolset.by_hand import called_by_hand, found_by_hand
from greenroom.cli.context import Invocation, refused
from greenroom.cli.errors import Json, Unheard, explain, fields
from greenroom.cli.exit_codes import Exit, of_error
from greenroom.cli.interactive.approvals import keep_rule, parse_answer
from greenroom.cli.interactive.organisation import Listener, resume_intents, way_on
from greenroom.cli.render import inbox as display
from greenroom.cli.render.output import harmless
from greenroom.cli.render.questions import PROMPT, QUICK
from greenroom.cli.render.team import open_tasks, waits_lines
from greenroom.cli.render.words import end_word, still, word
from greenroom.core.base.errors import Refused, StaleOwner, StoreFault, WorldFault
from greenroom.core.base.ids import AgentId, GroupId, StageId
from greenroom.core.rules.messages import VERBS
from greenroom.core.state.world import World


class Inbox:
    """A person who reads and types. Without a terminal, each line is done, and what comes is told.

    `heard` is how much came from others than people, `asked` that the manager was asked for something, `looked` that
    the last line only looked, `wrong` what was tried in vain.
    """

    def __init__(self, cli: Invocation, human: HumanAgent, listener: Listener, person: Person) -> None:
        self._cli = cli
        self._listener = listener
        self._person = person
        self._pressed = -QUICK
        self._fate = self._worst = Exit.DONE
        self._over = False
        self._told: set[str] = set()
        self._human = human
        self.wrong: list[str] = []
        self.heard = 0
        self.asked = self.looked = False

    async def hold(self) -> Exit:
        """Stay until the person leaves; returns how the first line ended that went wrong, for scripts."""
        with self._cli.stop.lent(self._person.stop) if self._person.attended else nullcontext():
            while not self._over:
                self.tell_news()
                if not self._sent_away():
                    await self._next()
        return self._worst

    async def _next(self) -> None:
        match await self._person.write(PROMPT, self._listener.woken):
            case Written(text=text):
                await self.do(joined(text))
            case Woken():
                pass  # the news are told before the next line
            case Stopped():
                now = time.monotonic()
                self._over, self._pressed = now - self._pressed < QUICK, now
                if not self._over:
                    self.note("leave")
            case Gone():
                self._over = True

    def _sent_away(self) -> bool:
        """Whether they were dismissed: nothing can be done here then."""
        if self._listener.gone:
            self._over = True
            self._failed(sent_away(self._listener.world.team.name, self._listener.language))
        return self._listener.gone

    async def do(self, line: str | entry.Typed) -> Exit:
        """A line, or what it means. What cannot be done is said in a sentence, and the room stays open."""
        if (isinstance(line, str) and not line.strip()) or self._sent_away():
            return self._fate
        try:
            typed = entry.parse_line(line, self._listener.language) if isinstance(line, str) else line
            if isinstance(typed, entry.Leaves):
                self._over = True
                return self._fate
            if BASE not in self._listener.world.tasks:
                known = {"name": self._listener.world.team.name, "team": self._listener.team}
                raise refused("team_over", word("over", self._listener.language, **known))
            self._ends(await self._act(typed))
            await self._after(typed)
        except (StaleOwner, StoreFault, Unheard):
            raise
        except (Refused, WorldFault, TimeoutError) as error:
            self._failed(error)
        return self._fate

    async def _after(self, typed: entry.Typed) -> None:
        """Forget which reasons were told: a new one is said again, but that it is stopped once. Text that is sent to an
        organisation that is stopped would wait in vain."""
        rests = word("rests", self._listener.language)
        self.asked |= isinstance(typed, entry.Plain)
        self.looked = isinstance(typed, entry.Looks)
        if not self.looked:
            self._told.intersection_update(() if isinstance(typed, entry.Resumes) else (rests,))
        await self._listener.catch_up()
        if self._listener.world.team.paused is not None and self._person.attended and not self.looked:
            self.tell_reasons((rests,))

    def _ends(self, code: Exit) -> None:
        """So a line has ended; of several, the first one counts that went wrong."""
        self._fate, self._worst = code, self._worst or code

    def _failed(self, error: Exception) -> None:
        """Say what could not be done; a program is told at once, and once more at the end."""
        self._ends(of_error(error))
        self.wrong.append(explain(error))
        self.say(explain(error), "yellow")
        self._cli.out.item("refused", fields(error), many="refused")

    def tell_news(self) -> None:
        """Everything that came since."""
        world, language = self._listener.world, self._listener.language
        for message, letter in self._listener.take_news():
            self.heard += not is_person(world, message.sender_id)
            if letter is not None:
                self.show(display.letter_text(world, letter, language))
            else:
                self.show(display.message_text(world, message, language, self._listener.me))
            self._cli.out.item("message", display.message_fields(message, letter.number if letter else None))
        self.tell_reasons(still(why, language, way_on(self._cli, world)) for why in self._listener.take_pauses())

    def tell_reasons(self, reasons: Iterable[str]) -> None:
        """Why it does not go on, each once."""
        for why in reasons:
            if why not in self._told:
                self.say(display.hang(why), "yellow")
            self._told.add(why)

    async def settled(self) -> Standing:
        """Tell what comes until nothing more happens by itself; returns how it stands then."""
        resting = asyncio.create_task(self._listener.wait_for_rest())
        while not resting.done():
            woken = asyncio.create_task(self._listener.woken.wait())
            await asyncio.wait((resting, woken), return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
            self.tell_news()
        return resting.result()

    # ------------------------------------------------------------------------------------------------------ doing

    @property
    def _world(self) -> World:
        return self._listener.world

    def note(self, name: str, /, **known: object) -> None:
        """Say a phrase beside what is shown."""
        self.say(word(name, self._listener.language, **known), "dim")

    def say(self, text: str, style: str) -> None:
        """The same for other words. What is secret is hidden; a command to be copied is not broken."""
        told = harmless(self._cli.out.safe(text))
        if self._cli.out.live and "greenroom " not in told:
            lines = Text(told).wrap(self._cli.out.console, self._cli.out.console.width)
            told = "\n".join(line.plain.rstrip() for line in lines)
        self._cli.progress.note(told, style=style)

    def show(self, text: Text) -> None:
        """Show it: as it is where a program reads it, else broken between words."""
        safe = self._cli.out.safe_text(text)
        self._cli.out.show(display.Hanging(safe) if self._cli.out.live else safe)

    async def _act(self, typed: entry.Typed) -> Exit:
        """Do one thing; returns what a script wants to know. `Refused` says what cannot be done."""
        match typed:
            case entry.Plain(text=text):
                await self._plain(text)
            case entry.Reply(number=number, text=text):
                await self._reply(await self._human.letter(number), text)
            case entry.Report(number=number, text=text, failed=failed):
                await self._human.finish(await self._human.letter(number), text, failed=failed)
                self._done("reported", number=number)
            case entry.Decision():
                await self._decide(typed)
            case entry.Address() | entry.InGroup() | entry.NewGroup():
                await self._write(typed)
            case entry.ByHand():
                return await self._use_tool(typed)
            case entry.Looks():
                await self._look(typed)
            case entry.Resumes():
                await self._resume()
            case entry.Leaves():
                pass
            case _:
                assert_never(typed)
        return Exit.DONE

    def _done(self, name: str, /, **known: object) -> None:
        """Say what was done, also to a program."""
        self.note(name, **known)
        self._cli.out.item("done", {"what": name, **known}, many="done")

    def _refusal(self, code: str, name: str, /, *, hint: str = "", **known: object) -> Refused:
        return refused(code, word(name, self._listener.language, **known), hint)

    # ---------------------------------------------------------------------------------------------------- answering

    async def _plain(self, text: str) -> None:
        """Text is for the manager; if that one has asked something, and only one thing, it is the answer."""
        asked, manager = self._asked_by_manager(), self._world.tasks[BASE].manager
        if asked is not None:
            await self._reply(asked, text)
        else:
            await self._human.ask(text, manager)
            self._done("sent", to=manager)

    def _asked_by_manager(self) -> Letter | None:
        """What the manager wants to know, if it is one thing."""
        manager = self._world.tasks[BASE].manager
        mine = (
            letter
            for letter in self._listener.owed()
            if (letter.message.sender_id, letter.kind) == (manager, "question")
        )
        asked = [letter for letter in mine if VERBS.isdisjoint(letter.message.data or ())]
        return asked[0] if len(asked) == 1 else None

    async def _reply(self, letter: Letter, text: str) -> None:
        if letter.kind == "approval":
            await self._decide(entry.Decision(number=letter.number, words=text))
        elif letter.kind == "question":
            await self._human.answer(letter, text)
            self._done("answered", to=letter.message.sender_id, number=letter.number)
        else:
            await self._human.finish(letter, text)
            self._done("reported", number=letter.number)

    async def _decide(self, typed: entry.Decision) -> None:
        """A yes to a step; where no step waits for one, it is what the manager has asked."""
        waiting = [letter for letter in self._listener.owed() if letter.kind == "approval"]
        question = self._asked_by_manager()
        if typed.number is None and question is not None and not waiting:
            await self._reply(question, typed.words)
            return
        if typed.number is None and len(waiting) != 1:
            numbers = ", ".join(str(letter.number) for letter in waiting)
            raise self._refusal("which_letter", "one_question" if waiting else "no_question", numbers=numbers)
        letter = waiting[0] if typed.number is None else await self._human.letter(typed.number)
        how = display.how_to_answer(self._world, letter, self._listener.language)
        approval = self._world.approvals.get(approval_of(letter.message)) if letter.kind == "approval" else None
        if approval is None:
            raise self._refusal("no_approval", "no_question", hint=how)
        answer = parse_answer(approval, typed.words)
        if answer is None:
            raise self._refusal("no_answer", "no_answer", how=how)
        note = keep_rule(self._world, approval, answer)
        await self._human.decide(letter, answer)
        if note:
            self.say(note, "dim")
        self._done("reported", number=letter.number)

    # ------------------------------------------------------------------------------------------------------- acting

    async def _write(self, typed: entry.Address | entry.InGroup | entry.NewGroup) -> None:
        """What is written to an agent that waits for an answer is that answer, and it is said."""
        owed = {letter.number for letter in self._listener.owed()}
        match typed:
            case entry.Address():
                await self._address(typed)
            case entry.InGroup(group=group, text=text):
                named = [name for name in entry.names_in(text, self._world.agents) if not is_person(self._world, name)]
                await self._human.say_in(GroupId(group), text, *map(AgentId, named))
                self._done("sent", to=f"#{group}")
            case entry.NewGroup(group=group, people=people):
                await self._human.form(GroupId(group), *map(AgentId, people))
                self._done("formed", group=group)
        await self._listener.catch_up()
        for number in sorted(owed - {letter.number for letter in self._listener.owed()}):
            self._done("reported", number=number)

    async def _address(self, typed: entry.Address) -> None:
        """To all of them or, where an agent is not there, to none."""
        names = [AgentId(name) for name in typed.names]
        for name in names:
            meeting_place(self._world, self._human.me, name)
        if self._human.me in names:
            raise self._refusal("yourself", "yourself", me=self._human.me)
        if typed.how == "ask":
            await self._human.ask(typed.text, *names)
        else:
            await self._human.say(typed.text, *names, need_reply=typed.how == "to")
        self._done("sent", to=", ".join(names))

    async def _use_tool(self, typed: entry.ByHand) -> Exit:
        """Use the tool, under the rules that hold for all agents, then write it down."""
        stage = StageId(typed.stage) if typed.stage else None
        await self._human.permitted(typed.tool, stage)
        root = Path(self._world.team.workspace)
        self._cli.means.toolbox(root).named(typed.tool)
        team = await found_by_hand(self._cli.runtime, root, typed.tool, typed.given)
        call = await called_by_hand(self._cli.runtime, team)
        told = display.call_fields(call, stage)
        output = str(told["output"])
        if output:
            self._cli.out.write(harmless(output if output.endswith("\n") else f"{output}\n"))
        if call.state != "finished":
            self.wrong.append(f"{end_word(call.state, self._listener.language)}: {call.error}")
            self.say(self.wrong[-1], "red")
        self._cli.out.item("tool_call", told)
        await self._human.used(call, stage=stage)
        self.note("recorded")
        return Exit.DONE if call.state == "finished" else Exit.FAILED

    async def _resume(self) -> None:
        wanted, limited = resume_intents(self._world), at_rest(self._world).word == "limit"
        await self._cli.runtime.ask(self._human.team, *wanted)
        if wanted:
            self._done("resumed_within" if limited else "resumed")
        else:
            self.note("nothing_held")

    # ------------------------------------------------------------------------------------------------------ looking

    async def _look(self, typed: entry.Looks) -> None:
        world, me, language = self._world, self._human.me, self._listener.language
        match typed.what:
            case "inbox":
                self.show_inbox()
            case "notices":
                notices = (await self._human.pool()).global_messages
                lines = [Text(display.hang(notice)) for notice in notices]
                self._view("notice", lines, ({"text": notice} for notice in notices))
                if not notices:
                    self.note("no_notices")
            case "tasks":
                fields = (display.task_fields(world, task) for task in world.tasks.values())
                self._view("task", (*open_tasks(world, language=language), *waits_lines(world, language)), fields)
            case "who":
                self._view(
                    "agent", display.agent_lines(world, me, language), display.agents_fields(world, me, language)
                )
            case "history":
                await self._history(typed.about)
            case "help":
                self._cli.out.show(*display.help_parts(language, world.tasks[BASE].manager))
                self._view("command", (), display.command_fields(language))
            case _:
                assert_never(typed.what)

    def _view(self, kind: str, lines: Iterable[Text], told: Iterable[Json], many: str = "") -> None:
        for line in lines:
            self.show(line)
        self._cli.out.listing(kind, told, many=many)

    def show_inbox(self) -> None:
        """What waits for them, the oldest first."""
        owed, language = self._listener.owed(), self._listener.language
        if owed:
            self._cli.out.show(Text(word("some", language, count=len(owed)), style="bold"))
        else:
            self.note("nothing")
        lines = (display.letter_text(self._world, letter, language) for letter in owed)
        self._view("letter", lines, map(display.letter_fields, owed))

    async def _history(self, other: str) -> None:
        world, language = self._world, self._listener.language
        said = (await self._human.pool()).conversation_privates.get(other, ())
        if not said and other not in (*world.agents, *world.retired):
            raise nobody(other, world.agents, language)
        lines = (Text(display.hang(f"{line.timestamp}  {line.sender_id}: {line.content}")) for line in said)
        self._view(
            "said",
            lines,
            ({"with": other, "from": line.sender_id, "message": line.content, "at": line.timestamp} for line in said),
            many="history",
        )
        if not said:
            self.note("no_history", who=other)


def is_person(world: World, name: str) -> bool:
    """Whether that is one of the people there."""
    agent = world.agents.get(AgentId(name))
    return agent is not None and agent.spec.kind == "human"
