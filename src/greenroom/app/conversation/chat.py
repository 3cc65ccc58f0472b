"""A chat: a conversation with an agent that stays open, its history, and how to find it again.

A turn ends when none of its steps is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, Literal

from greenroom.abilities.skills.conversation.builtin_calls import ANSWER_CALL, extract_answer
from greenroom.abilities.skills.conversation.reply_interpreter import strip_code_fence
from greenroom.abilities.skills.conversation.transcript import read_calls
from greenroom.actors.payload import restore_result
from greenroom.app.conversation.capability_names import CHAT, CONVERSATIONS, RESEARCH, SINGLE_TASK
from greenroom.app.conversation.chat_input import mark_interrupted
from greenroom.app.conversation.start import (
    FIRST_TASK_ID,
    Participants,
    label_attachments,
    make_chat_task,
    make_turn,
    read_model_name,
    replace_model,
)
from greenroom.app.lookup import LAST, resolve_id
from greenroom.app.messages import translate
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import TaskStatus
from greenroom.app.team_host import TeamHost
from greenroom.core.base.amounts import NOTHING, Amounts, Limits
from greenroom.core.base.errors import Bug, StoreFault, make_refusal
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, StepId, TaskId, TeamId, ThreadId, thread_id
from greenroom.core.base.records import encode, evolve, record
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.ports.model import ModelTextDelta, Retried
from greenroom.core.rules.intents import (
    AnswerApproval,
    ChangeAgent,
    FinishTask,
    Intent,
    Interrupt,
    MoveWindow,
    QueueSteps,
    ResumeTask,
    ResumeTeam,
    SetLimits,
)
from greenroom.core.state.approval import Approval
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StoredMedia, Work
from greenroom.core.state.team_state import TeamState, sort_rows
from greenroom.core.state.thread import Thread
from greenroom.core.sync.bus import CommitNotice

SETTLE_GRACE_S: Final = 0.3  # seconds before looking again: between two commits, agents may seem to have nothing to do


def list_team_models(state: TeamState) -> tuple[str, ...]:
    """Return the models of a team, by the names in its agents' specs. A scripted team has none."""
    if state.team.kit not in CONVERSATIONS:
        return ()
    specs = (agent.spec for agent in state.agents.values() if agent.spec.kind != "system")
    return tuple(dict.fromkeys(map(read_model_name, specs)))


def choose_model(state: TeamState, agent: AgentId, name: str) -> tuple[ChangeAgent, ...]:
    """Change the model of an agent, and of all agents with the same model."""
    current_model = read_model_name(state.agents[agent].spec)
    agents = [
        agent_state for agent_state in sort_rows(state.agents) if read_model_name(agent_state.spec) == current_model
    ]
    return tuple(
        ChangeAgent(agent_id=agent_state.agent_id, spec=replace_model(agent_state.spec, name)) for agent_state in agents
    )


async def fail_idle_tasks(runtime: Runtime, team: TeamId) -> None:
    """Fail the tasks that are idle, with their last error. Chats stay open."""
    state = await runtime.state(team)
    if state.team.kit not in SINGLE_TASK:
        return
    for task_id in tuple(state.tasks):
        if (await runtime.status(team, task_id)).state == "idle":
            why = await find_last_error(runtime, team, task_id)
            await runtime.ask(team, FinishTask(task_id=task_id, state="failed", summary=why))


async def work_until_settled(runtime: Runtime, host: TeamHost, team: TeamId) -> tuple[TaskId, ...]:
    """Wait until every task of a team that runs here, including new ones, has ended or is at rest; return all."""
    tasks = tuple(host.state.tasks)
    while True:
        for task in tasks:
            await runtime.wait(team, task)
        tasks = tuple(dict.fromkeys((*tasks, *host.state.tasks)))
        statuses = [await runtime.status(team, task) for task in tasks]
        is_at_rest = all(status.is_settled and status.state != "idle" for status in statuses)
        before = host.sync.version
        if not is_at_rest:
            await asyncio.sleep(SETTLE_GRACE_S)
        if is_at_rest or (before == host.sync.version and all(status.is_settled for status in statuses)):
            await fail_idle_tasks(runtime, team)
            return tasks


async def find_last_error(runtime: Runtime, team: TeamId, task: TaskId) -> str:
    """Return the last error of a task's steps."""
    error = ""
    async for step in runtime.archive(team, "step"):
        if isinstance(step, Step) and step.task_id == task and step.error:
            error = step.error
    return error or "There was no answer."


TEXT_SKILLS: Final = ("converse", "summarize")
"""The skills whose text counts as the agent's answer."""


@record
class Turn:
    """One turn of a conversation: the `prompt` and the `answer`. Without an answer, `error` says why."""

    prompt: str
    answer: str = ""
    error: str = ""


async def list_turns(runtime: Runtime, team: TeamId, thread: Thread) -> list[Turn]:
    """Return the turns in a thread's window."""
    turns: list[Turn] = []
    spec = (await runtime.state(team)).agents[thread.agent_id].spec
    async for step in runtime.archive(team, "step"):
        if not isinstance(step, Step) or step.thread_id != thread.thread_id or step.ended_in < thread.window_from:
            continue
        if step.work.executor not in TEXT_SKILLS or "deferred" in (step.result or {}):
            continue
        typed_text, text = read_typed_text(step), read_answer(await restore_result(step, runtime.log), spec)
        if typed_text or not turns:
            turns.append(Turn(prompt=typed_text))
        updated = evolve(
            turns[-1], answer="\n\n".join(part for part in (turns[-1].answer, text) if part), error=step.error
        )
        turns[-1] = updated
    return turns


def read_answer(step: Step, spec: AgentSpec) -> str:
    """Return the answer of a step: its text, or the typed answer as JSON."""
    result = step.result or {}
    text = str(result.get("text", ""))
    if spec.answer is None or result.get("over") != ANSWER_CALL:
        return text
    if "accepted" in result:
        return str(result["accepted"])
    call = next((tool_call for tool_call in read_calls(result) if tool_call.name == ANSWER_CALL), None)
    return strip_code_fence(text) if call is None else encode(extract_answer(spec.answer, call.arguments)).decode()


def read_typed_text(step: Step) -> str:
    """Return what a person typed to start this step, or "" if it continues another step."""
    if step.cause is not None or step.message_id is not None:
        return ""
    return step.work.intention or step.work.text_content


async def list_typed_texts(runtime: Runtime, teams: list[TeamId], *, limit: int) -> AsyncIterator[str]:
    """Yield the texts typed in these chats, newest first."""
    remaining = limit
    for team in teams:
        lines = [
            text
            async for step in runtime.archive(team, "step")
            if isinstance(step, Step) and (text := read_typed_text(step))
        ]
        for line in list(reversed(lines))[:remaining]:
            yield line
        remaining -= len(lines)
        if remaining <= 0:
            return


async def read_research_status(
    runtime: Runtime, state: TeamState, steps: Iterable[Step], status: TaskStatus
) -> TaskStatus:
    """Return the status of a research run whose agents have nothing to do: it is finished with the lead's answer."""
    if status.state != "idle" or state.team.kit != RESEARCH:
        return status
    lead = state.tasks[FIRST_TASK_ID].manager
    own = (step for step in steps if step.agent_id == lead and step.work.executor in TEXT_SKILLS)
    last = max(own, key=lambda step: step.ordinal, default=None)
    if last is None or last.state != "finished":
        return evolve(status, state="failed", reason=last.error if last is not None else status.reason)
    answer = read_answer(await restore_result(last, runtime.log), state.agents[lead].spec)
    return evolve(status, state="finished" if answer else "failed", reason=answer or status.reason)


TurnState = Literal[
    "answered", "interrupted", "failed", "provider", "limit", "paused", "waiting", "finished", "cancelled"
]


@record
class TurnOutcome:
    """The outcome of a turn. `why` explains a missing answer; after the `last` turn the chat is over."""

    state: TurnState
    answer: str = ""
    why: str = ""
    spent: Amounts = NOTHING
    last: bool = False


class Chat:
    """A chat that runs in this process while it is open. The first message creates its team."""

    def __init__(self, runtime: Runtime, *, team: TeamId | None = None, agent: AgentId) -> None:
        self._runtime = runtime
        self.team = team
        self.agent = agent
        self._last_step: Step | None = None
        self._texts: dict[StepId, list[str]] = {}
        self._is_stopping = False
        self._was_interrupted = False
        self._spent_before = NOTHING
        self._unsubscribes: list[Callable[[], None]] = []

    @property
    def thread(self) -> ThreadId:
        return thread_id(self.agent, FIRST_TASK_ID)

    @property
    def existing_team(self) -> TeamId:
        """The team. Raises `Bug` before the first message."""
        if self.team is None:
            raise Bug("This chat has no messages yet.")
        return self.team

    async def state(self) -> TeamState:
        return await self._runtime.state(self.existing_team)

    async def create_team(
        self,
        participants: Participants,
        text: str,
        *,
        typed: str = "",
        media: tuple[StoredMedia, ...] = (),
        limits: Limits,
        capabilities_name: str = CHAT,
    ) -> TeamId:
        """Create the team with the first message. It does not start yet."""
        work, origins = make_turn(text, typed, media=media), label_attachments(text, typed, media)
        self.team = await self._runtime.create(
            capabilities_name,
            participants.with_copies,
            capabilities_name=capabilities_name,
            workspace=participants.workspace,
            limits=limits,
            first_intents=(
                make_chat_task(typed or text, participants),
                evolve(self._make_queue_intent(work), origins=origins),
            ),
        )
        return self.team

    async def open(self) -> TeamHost:
        """Start the team's agents."""
        host = await self._runtime.start(self.existing_team)
        self._spent_before = host.state.budgets[TEAM_BUDGET].spent
        self._unsubscribes = [host.listen(self._follow), host.watch(self._watch)]
        return host

    def close(self) -> None:
        """Unsubscribe. The team keeps running in the runtime."""
        for stop in self._unsubscribes:
            stop()
        self._unsubscribes = []

    async def send(self, text: str, *, typed: str = "", media: tuple[StoredMedia, ...] = ()) -> None:
        """Send a message. Paused work is interrupted, and its message is read together with this one."""
        state = await self.state()
        language = state.agents[self.agent].spec.language
        message = mark_interrupted(text, language=language) if self._was_interrupted else text
        resume_intents = make_resume_intents(state)
        interrupt_intents: list[Intent] = (
            [Interrupt(thread_id=self.thread)] if resume_intents and self._has_work(state) else []
        )
        queued = evolve(
            self._make_queue_intent(make_turn(message, typed or text, media=media)),
            origins=label_attachments(text, typed, media),
        )
        await self._ask(*interrupt_intents, *resume_intents, queued)

    async def resume(self) -> None:
        """Continue with the queued work, or let the agent decide what is next."""
        state = await self.state()
        queue_intents = [] if self._has_work(state) else [self._make_queue_intent(make_turn(""))]
        await self._ask(*make_resume_intents(state), *queue_intents)

    async def interrupt(self) -> None:
        """Interrupt the current turn. The conversation stays open."""
        self._is_stopping = True
        await self._runtime.ask(self.existing_team, Interrupt(thread_id=self.thread))

    async def wait(self) -> TurnOutcome:
        """Wait until the turn ends, and return its outcome."""
        status = await self._runtime.wait(self.existing_team, FIRST_TASK_ID)
        spent = (await self.state()).budgets[TEAM_BUDGET].spent
        cost, self._spent_before = spent.minus(self._spent_before), spent
        outcome = self._make_outcome(status, await self._read_last_answer())
        self._texts.clear()
        self._last_step, self._was_interrupted, self._is_stopping = None, self._is_stopping, False
        return evolve(outcome, spent=cost, last=FIRST_TASK_ID not in (await self.state()).tasks)

    async def _read_last_answer(self) -> str:
        spec, last = (await self.state()).agents[self.agent].spec, self._last_step
        if last is None:
            return ""
        if spec.answer is None:
            return "".join(self._texts.get(last.step_id, ()))
        return read_answer(await restore_result(last, self._runtime.log), spec)

    def _make_outcome(self, status: TaskStatus, answer: str) -> TurnOutcome:
        """Make the outcome. An idle agent has answered, unless it was interrupted or failed."""
        if status.state != "idle" and status.state != "working":
            return TurnOutcome(state=status.state, why=status.reason)
        last = self._last_step
        if self._is_stopping:
            return TurnOutcome(state="interrupted", answer=answer)
        if last is not None and last.state == "failed":
            return TurnOutcome(state="failed", why=last.error)
        return TurnOutcome(state="answered", answer=answer)

    async def clear(self) -> None:
        """Start over with an empty history. The agent stays the same, and the log keeps everything."""
        thread = (await self.state()).threads.get(self.thread)
        if thread is not None:
            begin = max(thread.last + 1, thread.window_from)
            await self._runtime.ask(self.existing_team, MoveWindow(thread_id=self.thread, window_from=begin, size=0))

    async def set_model(self, model: str) -> None:
        """Use another model from now on."""
        await self._runtime.ask(self.existing_team, *choose_model(await self.state(), self.agent, model))

    async def set_limits(self, limits: Limits) -> None:
        await self._runtime.ask(self.existing_team, SetLimits(budget_id=TEAM_BUDGET, limits=limits))

    async def complete(self, summary: str = "") -> None:
        final_summary = summary or "The person said that it is done."
        await self._runtime.ask(self.existing_team, FinishTask(task_id=FIRST_TASK_ID, summary=final_summary))

    async def list_approvals(self) -> list[Approval]:
        return [approval for approval in (await self.state()).approvals.values() if approval.state == "pending"]

    async def answer_approval(self, answer: AnswerApproval) -> None:
        await self._runtime.ask(self.existing_team, answer)

    async def list_turns(self) -> list[Turn]:
        """Return the turns since the chat was last cleared, oldest first."""
        thread = (await self.state()).threads.get(self.thread)
        return await list_turns(self._runtime, self.existing_team, thread) if thread is not None else []

    async def is_working(self) -> bool:
        """Whether the chat has open steps."""
        return self._has_work(await self.state())

    def _follow(self, commit: CommitNotice) -> None:
        for row in commit.archived:
            step = row.record
            if isinstance(step, Step) and step.thread_id == self.thread and step.work.executor in TEXT_SKILLS:
                self._last_step = step

    def _watch(self, step: Step, event: LiveEvent) -> None:
        if step.thread_id != self.thread or step.work.executor not in TEXT_SKILLS:
            return
        if isinstance(event, ModelTextDelta):
            self._texts.setdefault(step.step_id, []).append(event.text)
        elif isinstance(event, Retried):
            self._texts.pop(step.step_id, None)

    def _has_work(self, state: TeamState) -> bool:
        thread = state.threads.get(self.thread)
        return thread is not None and thread.open_steps > 0

    def _make_queue_intent(self, work: Work) -> QueueSteps:
        return QueueSteps(agent_id=self.agent, works=(work,), task_id=FIRST_TASK_ID)

    async def _ask(self, *intents: Intent) -> None:
        self._was_interrupted = self._is_stopping = False
        await self._runtime.ask(self.existing_team, *intents)


def make_resume_intents(state: TeamState) -> list[Intent]:
    """Return the intents that resume a paused team and its task."""
    intents: list[Intent] = [ResumeTeam()] if state.team.paused is not None else []
    task = state.tasks.get(FIRST_TASK_ID)
    return [*intents, ResumeTask(task_id=FIRST_TASK_ID)] if task is not None and task.paused is not None else intents


MAX_CHATS_OFFERED = 5
"""How many chats provide the input history."""


async def list_chats(runtime: Runtime, *, limit: int = MAX_CHATS_OFFERED) -> list[TeamId]:
    """Return the newest chats, open or over."""
    teams: list[TeamId] = []
    for info in reversed(await runtime.log.streams()):
        team = TeamId(info.stream)
        if info.head.version and await _read_capabilities_name(runtime, team) == CHAT:
            teams.append(team)
        if len(teams) >= limit:
            break
    return teams


async def find_chat(runtime: Runtime, name: str) -> TeamId | None:
    """Find a chat that can continue. Return None if `name` is `last` and no chat is open."""
    if name.strip() == LAST:
        for team in await list_chats(runtime):
            if FIRST_TASK_ID in (await runtime.state(team)).tasks:
                return team
        return None
    team = (await resolve_id(runtime, name)).team
    state = await runtime.state(team)
    if state.team.kit != CHAT:
        raise make_refusal(
            "no_chat", translate("chat.not_a_chat", team=team), translate("chat.resume_instead", team=team)
        )
    if FIRST_TASK_ID not in state.tasks:
        hint = translate("chat.start_new", team=team)
        raise make_refusal("chat_over", translate("chat.is_over", team=team), hint)
    return team


async def _read_capabilities_name(runtime: Runtime, team: TeamId) -> str:
    try:
        return (await runtime.state(team)).team.kit
    except StoreFault:
        return ""  # skip a log that cannot be read
