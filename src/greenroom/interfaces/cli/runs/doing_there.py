"""What a person does in an organisation at this door: each thing that they can type, done and said."""

from __future__ import annotations

from typing import assert_never

from greenroom.app.hands.by_hand import called_by_hand, found_by_hand
from greenroom.app.organisation.letters import Letter, approval_of
from greenroom.app.organisation.names import BASE
from greenroom.app.organisation.people import HumanAgent, meeting_place
from greenroom.app.organisation.rest import at_rest
from greenroom.app.organisation.typed import (
    Address,
    ByHand,
    Decision,
    InGroup,
    Leaves,
    Looks,
    NewGroup,
    Plain,
    Reply,
    Report,
    Resumes,
    Typed,
    Unclear,
)
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import AgentId, GroupId, StageId
from greenroom.core.rules.messages import VERBS
from greenroom.core.state.approval import Approval
from greenroom.core.state.world import World
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.reasons import end_word
from greenroom.interfaces.cli.display.room import how, word
from greenroom.interfaces.cli.display.room_json import call_fields
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.deciding import answered, kept
from greenroom.interfaces.cli.runs.listening import Ear
from greenroom.interfaces.cli.runs.looking_there import Looking, noted
from greenroom.interfaces.cli.runs.organising import held_up, root_of
from greenroom.interfaces.cli.runs.session import Door


class Doing:
    """Does what was typed. What cannot be done, or is unclear, is `Refused`; `wrong` is what was tried in vain."""

    def __init__(self, door: Door, human: HumanAgent, ear: Ear) -> None:
        self._door = door
        self._human = human
        self._ear = ear
        self._looking = Looking(door, human, ear)
        self._language = ear.language
        self.wrong: list[str] = []

    @property
    def manager(self) -> AgentId:
        """Who gets what is addressed to nobody."""
        return self._ear.world.tasks[BASE].manager

    async def do(self, typed: Typed) -> Exit:
        """One thing; returns what a script wants to know."""
        if BASE not in self._ear.world.tasks:
            why = word("over", self._language, name=self._ear.world.team.name, team=self._ear.team)
            raise Refused(Rejected(code="team_over", why=why))
        match typed:
            case Plain() | Reply() | Report() | Decision():
                return await self._answers(typed)
            case Address() | InGroup() | NewGroup():
                return await self._writes(typed)
            case ByHand():
                return await self._by_hand(typed)
            case Looks():
                await self._looking.look(typed)
            case Resumes():
                await self._resume()
            case Unclear(why=why):
                raise Refused(Rejected(code="unclear", why=why))
            case Leaves():
                pass
            case _:
                assert_never(typed)
        return Exit.DONE

    def _say(self, name: str, **known: object) -> None:
        noted(self._door, word(name, self._language, **known), "dim")

    def _did(self, name: str, **known: object) -> Exit:
        """Say what was done, also to a program."""
        self._say(name, **known)
        self._door.out.item("done", {"what": name, **known}, many="done")
        return Exit.DONE

    # ---------------------------------------------------------------------------------------------------- answering

    async def _answers(self, typed: Plain | Reply | Report | Decision) -> Exit:
        match typed:
            case Plain(text=text):
                return await self._plain(text)
            case Reply(number=number, text=text):
                return await self._reply(await self._human.letter(number), text)
            case Report(number=number, text=text, failed=failed):
                await self._human.finish(await self._human.letter(number), text, failed=failed)
                return self._did("reported", number=number)
            case Decision():
                return await self._decide(typed)

    async def _plain(self, text: str) -> Exit:
        """The manager's; if that one has asked something, and only one thing, it is the answer."""
        asked = self._asked_by_manager()
        if asked is not None:
            return await self._reply(asked, text)
        await self._human.ask(text, self.manager)
        return self._did("sent", to=self.manager)

    def _asked_by_manager(self) -> Letter | None:
        """What the manager wants to know, if it is one thing."""
        asked = [one for one in self._ear.owed() if one.message.sender_id == self.manager and _a_question(one)]
        return asked[0] if len(asked) == 1 else None

    async def _reply(self, letter: Letter, text: str) -> Exit:
        if letter.kind == "approval":
            return await self._decide(Decision(number=letter.number, words=text))
        if letter.kind != "question":
            await self._human.finish(letter, text)
            return self._did("reported", number=letter.number)
        await self._human.answer(letter, text)
        return self._did("answered", to=letter.message.sender_id, number=letter.number)

    async def _decide(self, typed: Decision) -> Exit:
        """A yes to a step; where no step waits for one, it is what the manager has asked."""
        question = self._asked_by_manager()
        if typed.number is None and question is not None and not self._to_decide():
            return await self._reply(question, typed.words)
        letter = await self._asked(typed.number)
        approval = self._approval(letter)
        answer = answered(approval, typed.words)
        if answer is None:
            why = word("no_answer", self._language, how=how(self._ear.world, letter, self._language))
            raise Refused(Rejected(code="no_answer", why=why))
        note = kept(self._ear.world, approval, answer)
        await self._human.decide(letter, answer)
        if note:
            noted(self._door, note, "dim")
        return self._did("reported", number=letter.number)

    async def _asked(self, number: int | None) -> Letter:
        if number is not None:
            return await self._human.letter(number)
        waiting = self._to_decide()
        if len(waiting) == 1:
            return waiting[0]
        numbers = ", ".join(str(one.number) for one in waiting)
        why = word("one_question", self._language, numbers=numbers) if waiting else word("no_question", self._language)
        raise Refused(Rejected(code="which_letter", why=why))

    def _to_decide(self) -> list[Letter]:
        return [one for one in self._ear.owed() if one.kind == "approval"]

    def _approval(self, letter: Letter) -> Approval:
        found = self._ear.world.approvals.get(approval_of(letter.message)) if letter.kind == "approval" else None
        if found is None:
            why = word("no_question", self._language)
            raise Refused(Rejected(code="no_approval", why=why, hint=how(self._ear.world, letter, self._language)))
        return found

    # ------------------------------------------------------------------------------------------------------ writing

    async def _writes(self, typed: Address | InGroup | NewGroup) -> Exit:
        """What is written to somebody who waits for an answer is that answer, and it is said."""
        owed = {one.number for one in self._ear.owed()}
        code = await self._written(typed)
        await self._ear.caught_up()
        for number in sorted(owed - {one.number for one in self._ear.owed()}):
            self._did("reported", number=number)
        return code

    async def _written(self, typed: Address | InGroup | NewGroup) -> Exit:
        match typed:
            case Address():
                return await self._address(typed)
            case InGroup(group=group, text=text, named=named):
                models = [AgentId(one) for one in named if not is_person(self._ear.world, one)]
                await self._human.say_in(GroupId(group), text, *models)
                return self._did("sent", to=f"#{group}")
            case NewGroup(group=group, people=people):
                await self._human.form(GroupId(group), *map(AgentId, people))
                return self._did("formed", group=group)

    async def _address(self, typed: Address) -> Exit:
        """To all of them or, where somebody is not there, to nobody."""
        for name in typed.names:
            meeting_place(self._ear.world, self._human.me, AgentId(name))
        if self._human.me in typed.names:
            raise Refused(Rejected(code="yourself", why=word("yourself", self._language, me=self._human.me)))
        for name in map(AgentId, typed.names):
            if typed.how == "ask":
                await self._human.ask(typed.text, name)
            else:
                await self._human.say(typed.text, name, need_reply=typed.how == "to")
        return self._did("sent", to=", ".join(typed.names))

    async def _by_hand(self, typed: ByHand) -> Exit:
        """Use the tool, under the rules that hold for everybody, then write it down."""
        stage = StageId(typed.stage) if typed.stage else None
        await self._human.permitted(typed.tool, stage)
        root = root_of(self._ear.world)
        self._door.means.toolbox(root).named(typed.tool)
        team = await found_by_hand(self._door.runtime, root, typed.tool, typed.given)
        call = await called_by_hand(self._door.runtime, team)
        told = call_fields(call, stage)
        output = str(told["output"])
        if output:
            self._door.out.write(harmless(output if output.endswith("\n") else f"{output}\n"))
        if call.state != "finished":
            self.wrong.append(f"{end_word(call.state, self._language)}: {call.error}")
            noted(self._door, self.wrong[-1], "red")
        self._door.out.item("tool_call", told)
        await self._human.used(call, stage=stage)
        self._say("recorded")
        return Exit.DONE if call.state == "finished" else Exit.FAILED

    # ------------------------------------------------------------------------------------------------- going on again

    async def _resume(self) -> None:
        wanted, limited = held_up(self._ear.world), at_rest(self._ear.world).word == "limit"
        await self._door.runtime.ask(self._human.team, *wanted)
        if wanted:
            self._did("resumed_within" if limited else "resumed")
        else:
            self._say("nothing_held")


def _a_question(one: Letter) -> bool:
    return one.kind == "question" and VERBS.isdisjoint(one.message.data or ())


def is_person(world: World, name: str) -> bool:
    """Whether that is one of the people there."""
    agent = world.agents.get(AgentId(name))
    return agent is not None and agent.spec.kind == "human"
