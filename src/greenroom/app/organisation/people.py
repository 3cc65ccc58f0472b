"""A HumanAgent: a person of an organisation, as data in and data out. They act first; then it is a step of theirs.

What they say, report and decide, and that they did, is one commit. A tool that they use by hand acts outside: it is
written down when it is over.

Where the organisation runs does not matter: what is asked for goes to its owner, in this process or through the inbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

from greenroom.app.organisation.inbox import Letter, Pool, approval_of, owed, pool_of, subtask_of
from greenroom.app.organisation.words import BASE, nobody, refused, sent_away
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import pause_word
from greenroom.core.base.errors import Refused
from greenroom.core.base.ids import AgentId, GroupId, StageId, TaskId, TeamId, task_budget
from greenroom.core.base.records import Data, evolve
from greenroom.core.rules.intents import (
    AddParticipants,
    AnswerApproval,
    FinishStage,
    FinishSubtask,
    FormGroup,
    RecordStep,
    ResumeTask,
    SendMessage,
    SetLimits,
)
from greenroom.core.rules.messages import GROUP_NAME
from greenroom.core.state.message import Message
from greenroom.core.state.step import Step, Work
from greenroom.core.state.task import Task
from greenroom.core.state.world import World, ordered

WHOLE: Final = "whole"
"""Where the result of a tool has all of it; a step that is written down keeps what an agent would read."""

HOPS: Final = 500
"""Messages, in all tasks together. Agents that only write to each other would never end; it is more than work has ever
needed, and a person can let them go on."""


class HumanAgent:
    """One of the people. `me` is their id, which is their name."""

    def __init__(self, runtime: Runtime, team: TeamId, me: AgentId) -> None:
        self._runtime = runtime
        self.team = team
        self.me = me

    async def world(self) -> World:
        """What is true in the organisation; `Refused` when they do not belong to it any more."""
        world = await self._runtime.world(self.team)
        if self.me not in world.agents:
            raise sent_away(world.team.name, next((one.spec.language for one in world.agents.values()), ""))
        return world

    async def _language(self) -> str:
        return (await self.world()).agents[self.me].spec.language

    async def say(self, text: str, *receivers: AgentId, need_reply: bool = False, stage: StageId | None = None) -> None:
        """Write to each of them; a model takes it in next."""
        for receiver in receivers:
            await self._send(text, receiver, stage, need_reply=need_reply, kind="notification")

    async def ask(self, text: str, *receivers: AgentId) -> None:
        """Want something of each of them, who then decide what to do about it."""
        for receiver in receivers:
            await self._send(text, receiver, None, need_reply=True, kind="request")

    async def answer(self, letter: Letter, text: str) -> None:
        """Answer a letter, with the id that its sender waits for."""
        message = letter.message
        if letter.kind != "question":
            raise refused("no_question", _verb(letter), await self._language(), number=letter.number)
        reply = SendMessage(
            task_id=message.task_id,
            receiver=(message.sender_id,),
            message=text,
            stage_relative=message.stage_relative,
            return_waiting_id=letter.waiting,
            answers=message.message_id,
            kind="response",
            sender=self.me,
        )
        await self._said(reply)

    async def form(self, group: GroupId, *people: AgentId, task: TaskId = BASE) -> None:
        """Talk with other people in a group. Who takes part in one may form it again, with others; nobody else."""
        world, language = await self.world(), await self._language()
        known = world.groups.get(group)
        if known is not None and self.me not in known.participants:
            who = ", ".join(known.participants)
            raise refused("their_group", "other_name", language, name=group, who=who)
        if GROUP_NAME.fullmatch(group) is None or not group.isprintable():
            raise refused("bad_group", "group_name", language, name=group)
        for person in people:
            if person not in world.agents:
                raise nobody(person, world.agents, language)
            if world.agents[person].spec.kind != "human":
                raise refused("no_person", "name_it", language, name=person)
        if not {*people} - {self.me}:
            raise refused("small_group", "directly", language)
        await self._take_in(world.tasks[task], people)
        await self._runtime.ask(self.team, FormGroup(group_id=group, task_id=task, participants=(self.me, *people)))

    async def say_in(self, group: GroupId, text: str, *named: AgentId) -> None:
        """Say something in a group; of those who are models, only the named ones hear it."""
        world, language = await self.world(), await self._language()
        known = world.groups.get(group)
        if known is None:
            there = ", ".join(sorted(world.groups))
            raise refused("unknown_group", "there", language, name=group, there=there)
        if self.me not in known.participants:
            raise refused("not_yours", "other_group", language, name=group, who=", ".join(known.participants))
        for one in named:
            if one not in world.agents:
                raise nobody(one, world.agents, language)
        await self._take_in(world.tasks[known.task_id], named)
        await self._said(SendMessage(task_id=known.task_id, receiver=named, message=text, group=group, sender=self.me))

    async def _send(self, text: str, receiver: AgentId, stage: StageId | None, **how: object) -> None:
        task = meeting_place(await self.world(), self.me, receiver, stage)
        await self._take_in(task, (self.me, receiver))
        message = SendMessage(task_id=task.task_id, receiver=(receiver,), message=text, sender=self.me)
        await self._said(evolve(message, stage_relative=stage or "no_relative", **how))

    async def _take_in(self, task: Task, agents: Sequence[AgentId]) -> None:
        """Only those talk in a task who take part in it."""
        missing = tuple(dict.fromkeys(one for one in agents if one not in task.group))
        if missing:
            await self._runtime.ask(self.team, AddParticipants(task_id=task.task_id, agents=missing))

    async def _said(self, message: SendMessage) -> None:
        told = {
            "receiver": list(message.receiver),
            "message": message.message,
            "need_reply": message.need_reply,
            "return_waiting_id": message.return_waiting_id,
            "group": message.group,
        }
        to = ", ".join(message.receiver) or f"the group {message.group}"
        stage = None if message.stage_relative == "no_relative" else StageId(message.stage_relative)
        work = _skill("send_message", f"Write to {to}.", message.message)
        await self._do(work, message.task_id, stage, {"send_message": told}, says=message)

    async def finish(self, letter: Letter, report: str, *, failed: bool = False) -> None:
        """Do the duty that a letter is: say how a subtask, or a stage that they manage, has ended."""
        message = letter.message
        state: Literal["finished", "failed"] = "failed" if failed else "finished"
        if letter.kind not in ("duty", "stage"):
            raise refused("no_duty", _verb(letter), await self._language(), number=letter.number)
        stage = letter.stage or StageId("")
        work, result = _skill("summary", f"Report: {state}.", message.message), {"summary": report, "state": state}
        if letter.kind == "duty":
            done = FinishSubtask(subtask_id=subtask_of(message), stage_id=stage, state=state, summary=report)
            await self._do(work, message.task_id, stage, result, reports=done)
        else:
            ended = FinishStage(stage_id=stage, state=state, summary=report)
            await self._do(work, message.task_id, stage, result, ends=ended)

    async def decide(self, letter: Letter, answer: AnswerApproval) -> None:
        """Say yes or no to a step, or answer what it asks in words."""
        if letter.kind != "approval" or approval_of(letter.message) != answer.approval_id:
            raise refused("no_approval", _verb(letter), await self._language(), number=letter.number)
        told = {"answer": answer.answer, "scope": answer.scope, "reason": answer.reason}
        work = _skill("approval", "Decide on a step.", letter.message.message)
        await self._do(work, letter.message.task_id, None, {"approval": told}, decides=answer)

    async def used(self, call: Step, *, stage: StageId | None = None) -> None:
        """Write down a tool that they have used by hand."""
        result = {name: value for name, value in (call.result or {}).items() if name != WHOLE}
        work = evolve(call.work, intention="By hand.")
        task = TaskId(stage.partition(".")[0]) if stage is not None else BASE
        error = "" if call.state == "finished" else call.error or call.state
        await self._do(work, task, stage, result, state="failed" if error else "finished", error=error)

    async def permitted(self, tool: str, stage: StageId | None = None) -> None:
        """Refuse what they may not use, or may not use there, before anything is done."""
        world = await self.world()
        spec = world.agents[self.me].spec
        if tool not in spec.tools:
            there = ", ".join(spec.tools)
            raise refused("not_permitted", "may_use", spec.language, me=self.me, tool=tool, there=there)
        if stage is not None and stage not in world.stages:
            there = ", ".join(sorted(world.stages))
            raise refused("unknown_stage", "there", spec.language, stage=stage, there=there)

    async def _do(self, work: Work, task: TaskId, stage: StageId | None, result: Data, **also: object) -> None:
        """Write down a step of theirs with what it does: in its task as far as that is open to them, else in the base
        task. It comes first; that others have let work go on meanwhile takes nothing back."""
        world = await self.world()
        its = world.tasks.get(task)
        home = its if its is not None and self.me in its.group and its.state != "cancelling" else world.tasks[BASE]
        step = RecordStep(
            agent_id=self.me,
            work=work,
            task_id=home.task_id,
            stage_id=stage if stage in home.stages else None,
            state="finished",
            result=result,
        )
        await self._runtime.ask(self.team, *more_messages(world), evolve(step, **also))
        for intent in tried_again(await self.world()):
            with suppress(Refused):
                await self._runtime.ask(self.team, intent)

    async def messages(self) -> Sequence[Message]:
        """Everything that was ever said in the organisation, oldest first."""
        return [one async for one in self._runtime.archive(self.team, "message") if isinstance(one, Message)]

    async def inbox(self) -> tuple[Letter, ...]:
        """What they owe an answer to."""
        return owed(await self.world(), self.me)

    async def letter(self, number: int) -> Letter:
        """One of them by its number."""
        inbox = await self.inbox()
        found = next((one for one in inbox if one.number == number), None)
        if found is None:
            there = ", ".join(str(one.number) for one in inbox)
            raise refused("unknown_letter", "there", await self._language(), me=self.me, number=number, there=there)
        return found

    async def pool(self) -> Pool:
        """All that was said to them and by them."""
        return pool_of(await self.world(), await self.messages(), self.me, await self._language())


def meeting_place(world: World, person: AgentId, receiver: AgentId, stage: StageId | None = None) -> Task:
    """The task in which these two can talk: that of the stage, else where both are, else where the other one is.

    Somebody who has nothing to do is met in the base task.
    """
    if receiver not in world.agents:
        raise nobody(receiver, world.agents, world.agents[person].spec.language)
    tasks = [one for one in oldest_first(world.tasks) if one.state != "cancelling" and receiver in one.group]
    if stage is not None:
        tasks = [one for one in tasks if stage in one.stages]
        if not tasks:
            language = world.agents[person].spec.language
            raise refused("not_their_stage", "no_stage", language, who=receiver, stage=stage)
    shared = [one for one in tasks if person in one.group]
    return next(iter((*shared, *tasks)), world.tasks[BASE])


def oldest_first(tasks: Mapping[TaskId, Task]) -> list[Task]:
    """Tasks in the order in which they were made; a map has none of its own."""
    return sorted(tasks.values(), key=lambda one: (len(one.task_id), one.task_id))


def _skill(name: str, intention: str, text: str) -> Work:
    return Work(type="skill", executor=name, intention=intention, text_content=text)


def _verb(letter: Letter) -> str:
    """How it is answered."""
    return letter.kind if letter.kind in ("question", "approval") else "duty"


def more_messages(world: World) -> tuple[SetLimits, ...]:
    """Give it all `HOPS` again, because a person did something; nothing while it has more than half of them left."""
    budget = world.budgets.get(task_budget(BASE))
    if budget is None or (budget.limits.hops or 0) > budget.spent.hops + HOPS // 2:
        return ()
    return (SetLimits(budget_id=budget.budget_id, limits=evolve(budget.limits, hops=budget.spent.hops + HOPS)),)


def tried_again(world: World) -> tuple[ResumeTask, ...]:
    """Let go on what stands still because of a provider: what was in its way then may be gone by now."""
    held = (task.task_id for task in world.tasks.values() if pause_word(task.paused or "") == "provider")
    return tuple(ResumeTask(task_id=task) for task in sorted(held))


def person_of(world: World, wanted: str) -> AgentId:
    """The person who is meant: by name, or the only one that there is."""
    people = [one.agent_id for one in ordered(world.agents) if one.spec.kind == "human"]
    if wanted and wanted in people:
        return AgentId(wanted)
    there, language = ", ".join(people), world.agents[people[0]].spec.language if people else ""
    if wanted:
        raise refused("unknown_person", "there", language, name=wanted, there=there)
    if len(people) != 1:
        raise refused("which_person", "who", language, count=len(people), there=there)
    return people[0]
