"""Events in words: who did what, in one line. The story is what a person follows; the rest is told with `-v`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from greenroom.core.base.ids import AgentId, agent_of
from greenroom.core.base.records import record
from greenroom.core.state import agent as agents
from greenroom.core.state import approval as approvals
from greenroom.core.state import artifact as artifacts
from greenroom.core.state import budget as budgets
from greenroom.core.state import memory as memories
from greenroom.core.state import message as messages
from greenroom.core.state import note as notes
from greenroom.core.state import stage as stages
from greenroom.core.state import step as steps
from greenroom.core.state import task as tasks
from greenroom.core.state import team as teams
from greenroom.core.state import thread as threads
from greenroom.core.state import timer as timers
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step
from greenroom.core.state.world import World

Mark = Literal["", "✓", "✗", "?", "!", "→", "◆", "✎"]
ABOUT: Final = ("step_id", "thread_id", "timer_id", "waiting_id", "message_id", "approval_id", "budget_id", "stage_id")
ENDS: Final[dict[str, Mark]] = {"finished": "✓", "failed": "✗", "cancelled": "✗", "skipped": "✗", "uncertain": "?"}


@record
class Said:
    """One line about one event. `who` is an agent, or empty for the house; `story` says whether it is worth a line.

    A `plain` one has no sentence of its own: its text only says what the event is about.
    """

    who: str
    text: str
    mark: Mark = ""
    story: bool = True
    plain: bool = False


def shorten(text: str, size: int = 100) -> str:
    """The text on one line, not longer than `size`."""
    flat = " ".join(text.split())
    return flat if len(flat) <= size else f"{flat[: size - 1].rstrip()}…"


SKILLS: Final = {
    "converse": "thinks",
    "planning": "plans",
    "reflection": "looks back",
    "summary": "sums up",
    "instruction_generation": "prepares a call",
    "think": "thinks",
    "quick_think": "thinks quickly",
    "send_message": "writes a message",
    "process_message": "reads a message",
    "task_manager": "manages tasks",
    "agent_manager": "manages agents",
    "ask_info": "asks the house",
    "tool_decision": "decides about a tool",
}
"""What somebody does who uses a skill."""


def step_words(step: Step) -> str:
    """What a step is, in a few words: a tool with its first argument, a skill with its goal."""
    work = step.work
    if work.type == "tool":
        texts = [value for value in (work.instruction_content or {}).values() if isinstance(value, str)]
        return f"{work.executor} {shorten(texts[0], 44)}" if texts else work.executor
    if step.answers is not None:
        return f"answers {step.answers.partition('>')[0]}"
    return SKILLS.get(work.executor, work.executor)


def say(world: World, event: Event) -> Said:
    """What the event says, on the world as it was before it."""
    return _WORDS.get(type(event), _plain)(world, event)


def _plain(_: World, event: Event) -> Said:
    about = next((str(getattr(event, name)) for name in ABOUT if hasattr(event, name)), "")
    return Said(who="", text=about, story=False, plain=True)


# ----------------------------------------------------------------------------------------------- the team


def _created(_: World, event: teams.TeamCreated) -> Said:
    return Said(who="", text=f"team {event.team_id} is made: {event.name}", story=False)


def _forked(_: World, event: teams.TeamForked) -> Said:
    return Said(who="", text=f"forked from {event.origin.team_id} at version {event.origin.version}", mark="◆")


def _owner(_: World, event: teams.OwnerChanged) -> Said:
    node, pid, *_rest = *event.owner.split(":"), ""
    return Said(who="", text=f"process {pid} on {node} takes the team over", mark="◆")


def _paused(_: World, event: teams.TeamPaused | tasks.TaskPaused) -> Said:
    what = f"task {event.task_id}" if isinstance(event, tasks.TaskPaused) else "the team"
    return Said(who="", text=f"{what} is paused: {event.why}", mark="!")


def _resumed(_: World, event: teams.TeamResumed | tasks.TaskResumed) -> Said:
    what = f"task {event.task_id}" if isinstance(event, tasks.TaskResumed) else "the team"
    return Said(who="", text=f"{what} goes on", mark="◆")


def _joined(_: World, event: agents.AgentAdded) -> Said:
    return Said(who=event.agent_id, text=f"joins as {event.spec.role or event.spec.kind}")


def _changed(_: World, event: agents.AgentChanged) -> Said:
    model = str((event.spec.llm_config or {}).get("model", ""))
    return Said(who=event.agent_id, text="is set up anew" + (f", with {model}" if model else ""))


def _left(_: World, event: agents.AgentRemoved) -> Said:
    return Said(who=event.agent_id, text=f"leaves: {event.why}")


# ------------------------------------------------------------------------------------------ tasks, stages


def _task(_: World, event: tasks.TaskCreated) -> Said:
    return Said(who="", text=f"task {event.task_id}: {event.name}", mark="◆")


def _task_ended(_: World, event: tasks.TaskEnded) -> Said:
    return Said(who="", text=f"task {event.task_id} {event.state}", mark=ENDS[event.state])


def _stage_started(world: World, event: stages.StageStarted) -> Said:
    stage = world.stages[event.stage_id]
    parts = ", ".join(one.name for one in stage.subtasks)
    return Said(who="", text=f"stage {stage.stage_id} begins: {stage.intention} ({parts})", mark="◆")


def _stage_ended(_: World, event: stages.StageEnded) -> Said:
    return Said(who="", text=f"stage {event.stage_id} {event.state}", mark=ENDS[event.state])


def _assigned(world: World, event: stages.SubtaskAssigned | stages.SubtaskHandedOver) -> Said:
    subtask = world.stages[event.stage_id].subtask(event.subtask_id)
    text = f"takes {subtask.name!r}: {subtask.duty}" if subtask else f"takes {event.subtask_id}"
    return Said(who=event.agent_id, text=text)


def _subtask_ended(world: World, event: stages.SubtaskEnded) -> Said:
    subtask = world.stages[event.stage_id].subtask(event.subtask_id)
    who, name = (subtask.agent, subtask.name) if subtask else ("", event.subtask_id)
    summary = f": {shorten(event.summary)}" if event.summary else ""
    return Said(who=who, text=f"{event.state} {name!r}{summary}", mark=ENDS[event.state])


# -------------------------------------------------------------------------------------------------- steps


def _queued(_: World, event: steps.StepQueued) -> Said:
    return Said(who=event.agent_id, text=f"queues {event.step_id}: {event.work.executor}", story=False)


def _started(world: World, event: steps.StepStarted) -> Said:
    step = world.steps[event.step_id]
    again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
    return Said(who=step.agent_id, text=f"{step_words(step)}{again}", story=event.attempt > 1)


def _blocked(world: World, event: steps.StepBlocked) -> Said:
    step = world.steps[event.step_id]
    why = "a person's yes" if event.state == "awaiting_approval" else f"room in the budget {event.budget!r}"
    return Said(who=step.agent_id, text=f"{step_words(step)} waits for {why}", mark="?", story=event.approval is None)


def _prepared(world: World, event: steps.EffectPrepared) -> Said:
    step = world.steps[event.step_id]
    keys = ", ".join(f"{one.kind} {one.key}" for one in event.prepared)
    return Said(who=step.agent_id, text=f"is about to change {keys}", story=False)


def _interrupted(world: World, event: steps.StepInterrupted) -> Said:
    step = world.steps[event.step_id]
    return Said(who=step.agent_id, text=f"was cut off ({event.why}): {step_words(step)}; it runs again", mark="!")


def _ended(world: World, event: steps.StepEnded) -> Said:
    step = world.steps[event.step_id]
    if event.state == "finished" and step.work.type == "skill":
        text = str((event.result or {}).get("text", ""))
        return Said(who=step.agent_id, text=f"“{shorten(text)}”" if text else "has thought", story=False)
    result = event.error or str((event.result or {}).get("output", ""))
    told = f": {shorten(result)}" if event.error else f" → {shorten(result)}" if result else ""
    state = "" if event.state == "finished" else f"{event.state}: "
    mark = "" if event.state == "finished" else ENDS[event.state]
    return Said(who=step.agent_id, text=f"{state}{step_words(step)}{told}", mark=mark, story=event.error != "not run")


# --------------------------------------------------------------------------------------------------- talk


def _sent(_: World, event: messages.MessageSent) -> Said:
    message = event.message
    waits = "  (waits for the answer)" if message.waiting else ""
    # A question for a yes has its own line, the end of a task too, and who asks the house itself gets no mail.
    repeated = message.data is not None and ("approval_id" in message.data or message.kind == "instruction")
    told = not repeated and message.receiver != (message.sender_id,)
    text = f"{', '.join(message.receiver)}: {shorten(message.message)}{waits}"
    return Said(who=message.sender_id, text=text, mark="→", story=told)


def _released(world: World, event: messages.WaitReleased) -> Said:
    wait = world.waits[event.waiting_id]
    return Said(who=wait.waiter, text=f"waits no more for {wait.on}: {event.why}", story=event.why != "reply")


def _noted(_: World, event: notes.NotePosted) -> Said:
    return Said(who=event.note.agent_id, text=f"on the board: {shorten(event.note.content)}", mark="✎")


def _valued(_: World, event: notes.ValueSet) -> Said:
    value = event.value
    return Said(who=value.set_by, text=f"on the board: {value.key} = {shorten(value.content)}", mark="✎")


def _written(_: World, event: artifacts.ArtifactWritten) -> Said:
    # The call that wrote it has a line of its own.
    one = event.artifact
    return Said(who=one.by, text=f"on the board: {one.artifact_id}, version {one.version}", mark="✎", story=False)


def _remembered(_: World, event: memories.MemorySaved) -> Said:
    # Who saves it is not always who saved it first.
    return Said(who="", text=f"remembered: {shorten(event.memory.content)}", mark="✎", story=False)


def _cleared(_: World, event: memories.MemoriesCleared) -> Said:
    return Said(who="", text=f"no longer remembered: {', '.join(event.memory_ids)}", story=False)


def _noticed(_: World, event: threads.Noticed) -> Said:
    return Said(who=agent_of(event.step_id), text=shorten(event.text), mark="!")


# ----------------------------------------------------------------------------------- approvals, limits, timers


def _asked(_: World, event: approvals.ApprovalRequested) -> Said:
    return Said(who=event.agent_id, text=f"asks for a yes: {shorten(event.question)}", mark="?")


def _answered(world: World, event: approvals.ApprovalAnswered) -> Said:
    approval = world.approvals[event.approval_id]
    return Said(who=approval.agent_id, text=f"was {event.answer} by {event.by}", mark="◆")


def _limit(_: World, event: budgets.LimitReached) -> Said:
    who = agent_of(event.step_id) if event.step_id else AgentId("")
    return Said(who=who, text=f"limit reached: {event.budget_id} {event.limit}", mark="!")


def _fired(world: World, event: timers.TimerFired) -> Said:
    timer = world.timers.get(event.timer_id)
    return Said(who=timer.agent_id if timer else "", text=f"timer {event.timer_id} is due")


_WORDS: Final[dict[type, Callable[[World, Any], Said]]] = {
    teams.TeamCreated: _created,
    teams.TeamForked: _forked,
    teams.OwnerChanged: _owner,
    teams.TeamPaused: _paused,
    teams.TeamResumed: _resumed,
    tasks.TaskPaused: _paused,
    tasks.TaskResumed: _resumed,
    agents.AgentAdded: _joined,
    agents.AgentChanged: _changed,
    agents.AgentRemoved: _left,
    tasks.TaskCreated: _task,
    tasks.TaskEnded: _task_ended,
    stages.StageStarted: _stage_started,
    stages.StageEnded: _stage_ended,
    stages.SubtaskAssigned: _assigned,
    stages.SubtaskHandedOver: _assigned,
    stages.SubtaskEnded: _subtask_ended,
    steps.StepQueued: _queued,
    steps.StepStarted: _started,
    steps.StepBlocked: _blocked,
    steps.EffectPrepared: _prepared,
    steps.StepInterrupted: _interrupted,
    steps.StepEnded: _ended,
    messages.MessageSent: _sent,
    messages.WaitReleased: _released,
    notes.NotePosted: _noted,
    notes.ValueSet: _valued,
    artifacts.ArtifactWritten: _written,
    memories.MemorySaved: _remembered,
    memories.MemoriesCleared: _cleared,
    threads.Noticed: _noticed,
    approvals.ApprovalRequested: _asked,
    approvals.ApprovalAnswered: _answered,
    budgets.LimitReached: _limit,
    timers.TimerFired: _fired,
}
