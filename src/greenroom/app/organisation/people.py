"""`HumanAgent`: a person of an organisation, as data in and data out.

A person acts first; then the action becomes a step. A message, report or decision and its step are one commit. A tool
that a person uses acts outside the log, so its step is recorded afterwards. Intents go to the organisation's owner, in
this process or through the inbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

from greenroom.app.organisation.inbox import (
    ConversationPool,
    InboxMessage,
    approval_of,
    find_unanswered,
    pool_of,
    subtask_of,
)
from greenroom.app.organisation.phrases import BASE_TASK, build_refusal, make_dismissed_error, make_unknown_agent_error
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import classify_pause
from greenroom.core.base.errors import RefusedError
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
from greenroom.core.state.team_state import TeamState, sort_rows

WHOLE_RESULT: Final = "whole"
"""The key of the whole result of a tool. A recorded step keeps only what an agent would read."""

MAX_MESSAGES: Final = 500
"""How many messages agents can send in all tasks before a person acts again.

It stops agents that only write to each other. Real work has never needed as many.
"""


class HumanAgent:
    """A person. `me` is their id and name."""

    def __init__(self, runtime: Runtime, team: TeamId, me: AgentId) -> None:
        self._runtime = runtime
        self.team = team
        self.me = me

    async def state(self) -> TeamState:
        """Return the organisation's state. Raise `RefusedError` if the person has left it."""
        state = await self._runtime.state(self.team)
        if self.me not in state.agents:
            raise make_dismissed_error(
                state.team.name, next((agent.spec.language for agent in state.agents.values()), "")
            )
        return state

    async def _language(self) -> str:
        return (await self.state()).agents[self.me].spec.language

    async def send(
        self, text: str, *receivers: AgentId, need_reply: bool = False, stage: StageId | None = None
    ) -> None:
        """Send a message to each receiver. An agent reads it next."""
        for receiver in receivers:
            await self._send_to(text, receiver, stage, need_reply=need_reply, kind="notification")

    async def ask(self, text: str, *receivers: AgentId) -> None:
        """Send a request to each receiver, who decides what to do."""
        for receiver in receivers:
            await self._send_to(text, receiver, None, need_reply=True, kind="request")

    async def answer(self, inbox_message: InboxMessage, text: str) -> None:
        """Answer an inbox message, with the id that its sender waits for."""
        message = inbox_message.message
        if inbox_message.kind != "question":
            raise build_refusal(
                "no_question", _choose_verb(inbox_message), await self._language(), number=inbox_message.number
            )
        reply = SendMessage(
            task_id=message.task_id,
            receiver=(message.sender_id,),
            message=text,
            stage_relative=message.stage_relative,
            return_waiting_id=inbox_message.waiting,
            answers=message.message_id,
            kind="response",
            sender=self.me,
        )
        await self._record_message(reply)

    async def form_group(self, group: GroupId, *people: AgentId, task: TaskId = BASE_TASK) -> None:
        """Form a group with other people. Only a participant can form an existing group again."""
        state, language = await self.state(), await self._language()
        group_record = state.groups.get(group)
        if group_record is not None and self.me not in group_record.participants:
            who = ", ".join(group_record.participants)
            raise build_refusal("their_group", "other_name", language, name=group, who=who)
        if GROUP_NAME.fullmatch(group) is None or not group.isprintable():
            raise build_refusal("bad_group", "group_name", language, name=group)
        for person in people:
            if person not in state.agents:
                raise make_unknown_agent_error(person, state.agents, language)
            if state.agents[person].spec.kind != "human":
                raise build_refusal("no_person", "name_it", language, name=person)
        if not {*people} - {self.me}:
            raise build_refusal("small_group", "directly", language)
        await self._add_participants(state.tasks[task], people)
        await self._runtime.ask(self.team, FormGroup(group_id=group, task_id=task, participants=(self.me, *people)))

    async def send_to_group(self, group: GroupId, text: str, *mentioned: AgentId) -> None:
        """Send a message to a group. Of the agents, only the mentioned ones receive it."""
        state, language = await self.state(), await self._language()
        group_record = state.groups.get(group)
        if group_record is None:
            group_names = ", ".join(sorted(state.groups))
            raise build_refusal("unknown_group", "there", language, name=group, there=group_names)
        if self.me not in group_record.participants:
            raise build_refusal(
                "not_yours", "other_group", language, name=group, who=", ".join(group_record.participants)
            )
        for agent_id in mentioned:
            if agent_id not in state.agents:
                raise make_unknown_agent_error(agent_id, state.agents, language)
        await self._add_participants(state.tasks[group_record.task_id], mentioned)
        await self._record_message(
            SendMessage(task_id=group_record.task_id, receiver=mentioned, message=text, group=group, sender=self.me)
        )

    async def _send_to(self, text: str, receiver: AgentId, stage: StageId | None, **how: object) -> None:
        task = find_shared_task(await self.state(), self.me, receiver, stage)
        await self._add_participants(task, (self.me, receiver))
        message = SendMessage(task_id=task.task_id, receiver=(receiver,), message=text, sender=self.me)
        await self._record_message(evolve(message, stage_relative=stage or "no_relative", **how))

    async def _add_participants(self, task: Task, agents: Sequence[AgentId]) -> None:
        """Add agents to a task, because only participants can send messages in it."""
        missing = tuple(dict.fromkeys(agent_id for agent_id in agents if agent_id not in task.group))
        if missing:
            await self._runtime.ask(self.team, AddParticipants(task_id=task.task_id, agents=missing))

    async def _record_message(self, message: SendMessage) -> None:
        message_fields = {
            "receiver": list(message.receiver),
            "message": message.message,
            "need_reply": message.need_reply,
            "return_waiting_id": message.return_waiting_id,
            "group": message.group,
        }
        to = ", ".join(message.receiver) or f"the group {message.group}"
        stage = None if message.stage_relative == "no_relative" else StageId(message.stage_relative)
        work = _make_skill_work("send_message", f"Write to {to}.", message.message)
        await self._record_step(work, message.task_id, stage, {"send_message": message_fields}, says=message)

    async def finish(self, inbox_message: InboxMessage, report: str, *, failed: bool = False) -> None:
        """Report how a subtask, or a stage that the person manages, has ended."""
        message = inbox_message.message
        state: Literal["finished", "failed"] = "failed" if failed else "finished"
        if inbox_message.kind not in ("duty", "stage"):
            raise build_refusal(
                "no_duty", _choose_verb(inbox_message), await self._language(), number=inbox_message.number
            )
        stage = inbox_message.stage or StageId("")
        work = _make_skill_work("summary", f"Report: {state}.", message.message)
        result = {"summary": report, "state": state}
        if inbox_message.kind == "duty":
            finished_subtask = FinishSubtask(
                subtask_id=subtask_of(message), stage_id=stage, state=state, summary=report
            )
            await self._record_step(work, message.task_id, stage, result, reports=finished_subtask)
        else:
            finished_stage = FinishStage(stage_id=stage, state=state, summary=report)
            await self._record_step(work, message.task_id, stage, result, ends=finished_stage)

    async def decide(self, inbox_message: InboxMessage, answer: AnswerApproval) -> None:
        """Approve or deny a step, or answer its question with a text."""
        if inbox_message.kind != "approval" or approval_of(inbox_message.message) != answer.approval_id:
            raise build_refusal(
                "no_approval", _choose_verb(inbox_message), await self._language(), number=inbox_message.number
            )
        decision_fields = {"answer": answer.answer, "scope": answer.scope, "reason": answer.reason}
        work = _make_skill_work("approval", "Decide on a step.", inbox_message.message.message)
        await self._record_step(
            work, inbox_message.message.task_id, None, {"approval": decision_fields}, decides=answer
        )

    async def record_tool_call(self, call: Step, *, stage: StageId | None = None) -> None:
        """Record a tool call that the person made."""
        result = {name: value for name, value in (call.result or {}).items() if name != WHOLE_RESULT}
        work = evolve(call.work, intention="By hand.")
        task = TaskId(stage.partition(".")[0]) if stage is not None else BASE_TASK
        error = "" if call.state == "finished" else call.error or call.state
        await self._record_step(work, task, stage, result, state="failed" if error else "finished", error=error)

    async def check_permission(self, tool: str, stage: StageId | None = None) -> None:
        """Raise `RefusedError` if the person cannot use the tool, or not in that stage."""
        state = await self.state()
        spec = state.agents[self.me].spec
        if tool not in spec.tools:
            known_names = ", ".join(spec.tools)
            raise build_refusal("not_permitted", "may_use", spec.language, me=self.me, tool=tool, there=known_names)
        if stage is not None and stage not in state.stages:
            known_names = ", ".join(sorted(state.stages))
            raise build_refusal("unknown_stage", "there", spec.language, stage=stage, there=known_names)

    async def _record_step(
        self, work: Work, task: TaskId, stage: StageId | None, result: Data, **extra_fields: object
    ) -> None:
        """Record a step of the person with its effect: in its task if that is open to them, else in the base task. The
        step is recorded first; resuming other work afterwards cannot undo it."""
        state = await self.state()
        step_task = state.tasks.get(task)
        recorded_task = (
            step_task
            if step_task is not None and self.me in step_task.group and step_task.state != "cancelling"
            else state.tasks[BASE_TASK]
        )
        step = RecordStep(
            agent_id=self.me,
            work=work,
            task_id=recorded_task.task_id,
            stage_id=stage if stage in recorded_task.stages else None,
            state="finished",
            result=result,
        )
        await self._runtime.ask(self.team, *restore_message_limit(state), evolve(step, **extra_fields))
        for intent in resume_after_provider_fault(await self.state()):
            with suppress(RefusedError):
                await self._runtime.ask(self.team, intent)

    async def messages(self) -> Sequence[Message]:
        """Return all messages of the organisation, oldest first."""
        return [
            message async for message in self._runtime.archive(self.team, "message") if isinstance(message, Message)
        ]

    async def inbox(self) -> tuple[InboxMessage, ...]:
        """Return the messages that the person must answer."""
        return find_unanswered(await self.state(), self.me)

    async def find_message(self, number: int) -> InboxMessage:
        """Return an inbox message by its number. Raise `RefusedError` if it does not exist."""
        inbox = await self.inbox()
        inbox_message = next((item for item in inbox if item.number == number), None)
        if inbox_message is None:
            numbers = ", ".join(str(item.number) for item in inbox)
            raise build_refusal(
                "unknown_letter", "there", await self._language(), me=self.me, number=number, there=numbers
            )
        return inbox_message

    async def pool(self) -> ConversationPool:
        """Return all conversations of the person."""
        return pool_of(await self.state(), await self.messages(), self.me, await self._language())


def find_shared_task(state: TeamState, person: AgentId, receiver: AgentId, stage: StageId | None = None) -> Task:
    """Return the task in which two members can talk: the stage's task, a shared task, or the receiver's task. A
    receiver without work is reached in the base task."""
    if receiver not in state.agents:
        raise make_unknown_agent_error(receiver, state.agents, state.agents[person].spec.language)
    tasks = [task for task in sort_oldest_first(state.tasks) if task.state != "cancelling" and receiver in task.group]
    if stage is not None:
        tasks = [task for task in tasks if stage in task.stages]
        if not tasks:
            language = state.agents[person].spec.language
            raise build_refusal("not_their_stage", "no_stage", language, who=receiver, stage=stage)
    shared = [task for task in tasks if person in task.group]
    return next(iter((*shared, *tasks)), state.tasks[BASE_TASK])


def sort_oldest_first(tasks: Mapping[TaskId, Task]) -> list[Task]:
    """Sort tasks by age. A map has no order."""
    return sorted(tasks.values(), key=lambda task: (len(task.task_id), task.task_id))


def _make_skill_work(name: str, intention: str, text: str) -> Work:
    return Work(type="skill", executor=name, intention=intention, text_content=text)


def _choose_verb(inbox_message: InboxMessage) -> str:
    return inbox_message.kind if inbox_message.kind in ("question", "approval") else "duty"


def restore_message_limit(state: TeamState) -> tuple[SetLimits, ...]:
    """Restore the limit of `MAX_MESSAGES` after a person acted, once half of it is used."""
    budget = state.budgets.get(task_budget(BASE_TASK))
    if budget is None or (budget.limits.hops or 0) > budget.spent.hops + MAX_MESSAGES // 2:
        return ()
    return (SetLimits(budget_id=budget.budget_id, limits=evolve(budget.limits, hops=budget.spent.hops + MAX_MESSAGES)),)


def resume_after_provider_fault(state: TeamState) -> tuple[ResumeTask, ...]:
    """Resume tasks that a provider error paused. The provider may work again."""
    paused_tasks = (task.task_id for task in state.tasks.values() if classify_pause(task.paused or "") == "provider")
    return tuple(ResumeTask(task_id=task) for task in sorted(paused_tasks))


def find_person(state: TeamState, wanted: str) -> AgentId:
    """Find a person by name, or the only person."""
    people = [agent.agent_id for agent in sort_rows(state.agents) if agent.spec.kind == "human"]
    if wanted and wanted in people:
        return AgentId(wanted)
    names, language = ", ".join(people), state.agents[people[0]].spec.language if people else ""
    if wanted:
        raise build_refusal("unknown_person", "there", language, name=wanted, there=names)
    if len(people) != 1:
        raise build_refusal("which_person", "who", language, count=len(people), there=names)
    return people[0]
