"""Events and states in English and Chinese. The phrases are in `events.*.toml` and `organisation.*.toml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from immutables import Map

from greenroom.app.messages import CHINESE, MessageCatalogue
from greenroom.core.base.ids import TEAM_BUDGET, StepId, agent_of
from greenroom.core.base.records import record
from greenroom.core.rules.draft import CLIENT
from greenroom.core.state import agent as agents
from greenroom.core.state import approval as approvals
from greenroom.core.state import budget as budgets
from greenroom.core.state import knowledge
from greenroom.core.state import message as messages
from greenroom.core.state import stage as stages
from greenroom.core.state import step as steps
from greenroom.core.state import task as tasks
from greenroom.core.state import team as teams
from greenroom.core.state import thread as threads
from greenroom.core.state import timer as timers
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState

ORGANISATION_WORDS: Final = MessageCatalogue("greenroom.app.messages", "organisation")
inbox_phrase: Final = partial(ORGANISATION_WORDS.phrase, "room")
organisation_phrase: Final = partial(ORGANISATION_WORDS.phrase, "team")
STOPPED_BY_PERSON: Final = "stopped by a person"
"""The reason in the log when a person stopped an organisation."""

LIMIT_REASON: Final = re.compile(r"limit: (\S+) (\w+)")
"""The reason in the log when a limit was reached: its budget, and what it limits."""

KNOWN_REASONS: Final = {
    "paused": re.compile("paused by a person"),
    "idle": re.compile("no agent has anything to do"),
    "silent": re.compile("its agent has no steps left and never said that it was done"),
    "handed_over": re.compile(r"The task was handed over (?P<count>\d+) times, which is the limit .*"),
    "ping_pong": re.compile(
        r"(?P<one>\S+) and (?P<other>\S+) only send the task back and forth: .*? said: (?P<text>.*)", re.DOTALL
    ),
}
"""Reasons that the core writes into the log, by their phrase."""

LIMIT_KINDS: Final = ("money", "tokens", "millis", "steps", "hops")
LIMIT_FLAGS: Final = {"money": "--max-cost", "tokens": "--max-tokens", "millis": "--max-time"}


@record
class ResumeHelp:
    """How to resume an organisation.

    `start` is the command. `keys` are the charter keys that set a limit, by what they limit; the charter is in `path`.
    `left` is what remains of each limit.
    """

    name: str
    start: str
    path: str = ""
    keys: Mapping[str, str]
    left: Mapping[str, str] = Map()


def status_word(status: str, language: str) -> str:
    return ORGANISATION_WORDS.table("standing", language).get(status, status)


def describe_reason(why: str, language: str) -> str:
    """Translate a reason from the log, if it is known; without a full stop."""
    words, limit = ORGANISATION_WORDS.table("reasons", language), LIMIT_REASON.fullmatch(why)
    if limit is not None and limit[2] in LIMIT_KINDS:
        return words[limit[2]]
    kind, colon, rest = why.partition(":")
    if colon and kind in ("provider", "incomplete"):
        return f"{words['provider']}:{rest}".rstrip(".")
    for name, pattern in KNOWN_REASONS.items():
        if (known := pattern.fullmatch(why)) is not None:
            return words[name].format(**known.groupdict())
    return words["stopped"] if why == STOPPED_BY_PERSON else why.removeprefix("escalated: ").rstrip(".")


def describe_pause(why: str, language: str, resume_help: ResumeHelp) -> str:
    """Describe why something is paused, and how to resume it."""
    limit, why_words = LIMIT_REASON.fullmatch(why), describe_reason(why, language)
    if limit is None or limit[2] not in LIMIT_FLAGS:
        return ORGANISATION_WORDS.phrase("reasons", "still", language, why=why_words)
    is_team_limit = limit[1] == TEAM_BUDGET
    key = resume_help.keys.get(limit[2]) if is_team_limit else None
    if is_team_limit and limit[2] in resume_help.left:
        why_words = ORGANISATION_WORDS.phrase(
            "reasons", "left", language, why=why_words, left=resume_help.left[limit[2]]
        )
    known = {
        "name": resume_help.name,
        "why": why_words,
        "command": resume_help.start,
        "flag": LIMIT_FLAGS[limit[2]],
        "key": key,
    }
    return ORGANISATION_WORDS.phrase("reasons", "held" if key else "more", language, path=resume_help.path, **known)


EVENT_WORDS: Final = MessageCatalogue("greenroom.app.messages", "events")
Mark = Literal["", "✓", "✗", "?", "!", "→", "◆", "✎"]
ID_FIELDS: Final = (
    "step_id",
    "thread_id",
    "timer_id",
    "waiting_id",
    "message_id",
    "approval_id",
    "budget_id",
    "stage_id",
)
END_MARKS: Final[dict[str, Mark]] = {"finished": "✓", "failed": "✗", "cancelled": "✗", "skipped": "✗", "uncertain": "?"}


@record
class EventSummary:
    """One line about one event. `who` is an agent, or empty for the team; `story` says whether it is worth a line.

    A `plain` summary has no sentence: its text only names what the event is about.
    """

    who: str
    text: str
    mark: Mark = ""
    story: bool = True
    plain: bool = False


MAX_TEXT_CHARS: Final = 100  # characters of a text in a line
MAX_REASON_CHARS: Final = 2_000  # characters of a reason why a subtask failed


def shorten(text: str, size: int = MAX_TEXT_CHARS) -> str:
    """Return the text on one line, at most `size` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= size else f"{flat[: size - 1].rstrip()}…"


def end_word(state: str, language: str) -> str:
    return EVENT_WORDS.table("ends", language).get(state, state)


def step_words(step: Step, language: str = "en") -> str:
    """Describe a step in a few words: a tool with its first argument, or a skill."""
    work = step.work
    if work.type == "tool":
        texts = [value for value in (work.instruction_content or {}).values() if isinstance(value, str)]
        return f"{work.executor} {shorten(texts[0], 44)}" if texts else work.executor
    if step.answers is not None:
        return EVENT_WORDS.phrase("skills", "answers", language, whom=step.answers.partition(">")[0])
    return EVENT_WORDS.table("skills", language).get(work.executor, work.executor)


def attempt_words(attempt: int, language: str) -> str:
    """Return the number of the attempt in words, unless it is the first."""
    return EVENT_WORDS.phrase("doing", "attempt", language, number=attempt) if attempt > 1 else ""


def describe_event(state: TeamState, event: Event, language: str = "en") -> EventSummary:
    """Describe an event; `state` is the team state before it."""
    make_phrase = _EVENT_PHRASES.get(type(event))
    if make_phrase is None:
        about = next((str(getattr(event, name)) for name in ID_FIELDS if hasattr(event, name)), "")
        return EventSummary(who="", text=about, story=False, plain=True)
    event_phrase = make_phrase(state, event, language)
    name = event_phrase.phrase or type(event).__name__
    phrases = EVENT_WORDS.table("events", language)
    phrase = phrases[name] if name in phrases else EVENT_WORDS.table("events", "en")[name]
    text = phrase.format(event=event, **(event_phrase.known or {}))
    return EventSummary(who=event_phrase.who, text=text, mark=event_phrase.mark, story=event_phrase.story)


class EventPhrase(NamedTuple):
    """How to describe an event: the name of its `phrase` (default: its type) and other `known` values."""

    who: str = ""
    known: Mapping[str, object] | None = None
    mark: Mark = ""
    story: bool = True
    phrase: str = ""


def _phrase_owner(_: TeamState, event: teams.OwnerChanged, __: str) -> EventPhrase:
    node, pid, *_rest = *event.owner.split(":"), ""
    return EventPhrase(known={"node": node, "pid": pid}, mark="◆")


def _phrase_pause(_: TeamState, event: teams.TeamPaused | tasks.TaskPaused, language: str) -> EventPhrase:
    return EventPhrase(
        known={"why": describe_reason(event.why, language) if language == CHINESE else event.why}, mark="!"
    )


def _name_who(sender: str, language: str) -> str:
    return EVENT_WORDS.table("doing", language)["person"] if sender.partition(":")[0] == CLIENT else sender


def _phrase_work_end(_: TeamState, event: tasks.TaskEnded | stages.StageEnded, language: str) -> EventPhrase:
    return EventPhrase(known={"state": end_word(event.state, language)}, mark=END_MARKS[event.state])


def _phrase_stage_start(
    state: TeamState, event: stages.StageStarted | stages.StageReplanned, language: str
) -> EventPhrase:
    stage = state.stages[event.stage_id]
    subtasks = event.subtasks if isinstance(event, stages.StageReplanned) else stage.subtasks
    parts = _punctuation("comma", language).join(subtask.name for subtask in subtasks)
    return EventPhrase(known={"stage": stage, "parts": parts}, mark="◆")


def _phrase_assignment(
    state: TeamState, event: stages.SubtaskAssigned | stages.SubtaskHandedOver, _: str
) -> EventPhrase:
    subtask = state.stages[event.stage_id].find_subtask(event.subtask_id)
    known = {"subtask": subtask, "title": subtask.title or subtask.duty} if subtask else {}
    return EventPhrase(event.agent_id, known, phrase="Assigned" if subtask else "AssignedUnknown")


def _phrase_subtask_end(state: TeamState, event: stages.SubtaskEnded, language: str) -> EventPhrase:
    subtask = state.stages[event.stage_id].find_subtask(event.subtask_id)
    who, name = (subtask.agent, subtask.name) if subtask else ("", event.subtask_id)
    size = MAX_REASON_CHARS if event.state == "failed" else MAX_TEXT_CHARS
    summary = f"{_punctuation('colon', language)}{shorten(event.summary, size)}" if event.summary else ""
    known = {"state": end_word(event.state, language), "name": name, "summary": summary}
    return EventPhrase(who, known, END_MARKS[event.state])


def _phrase_subtask_retry(state: TeamState, event: stages.SubtaskRetried, language: str) -> EventPhrase:
    subtask = state.stages[event.stage_id].find_subtask(event.subtask_id)
    who, name = (subtask.agent, subtask.name) if subtask else ("", event.subtask_id)
    summary = f"{_punctuation('colon', language)}{shorten(event.why, MAX_REASON_CHARS)}" if event.why else ""
    return EventPhrase(who, {"name": name, "summary": summary}, "!")


def _phrase_step_start(state: TeamState, event: steps.StepStarted, language: str) -> EventPhrase:
    step = state.steps[event.step_id]
    known = {"step": step_words(step, language), "again": attempt_words(event.attempt, language)}
    return EventPhrase(step.agent_id, known, story=event.attempt > 1)


def _phrase_step_block(state: TeamState, event: steps.StepBlocked, language: str) -> EventPhrase:
    step = state.steps[event.step_id]
    phrase = "" if event.state == "awaiting_approval" else "StepBlockedBudget"
    return EventPhrase(step.agent_id, {"step": step_words(step, language)}, "?", event.approval is None, phrase)


def _phrase_step_end(state: TeamState, event: steps.StepEnded, language: str) -> EventPhrase:
    step, is_finished = state.steps[event.step_id], event.state == "finished"
    if is_finished and step.work.type == "skill":
        text = str((event.result or {}).get("text", ""))
        phrase = "Thought" if text else "ThoughtNothing"
        return EventPhrase(step.agent_id, {"text": shorten(text)}, story=False, phrase=phrase)
    result = event.error or str((event.result or {}).get("output", ""))
    result_words = (
        f"{_punctuation('colon', language)}{shorten(result)}"
        if event.error
        else f" → {shorten(result)}"
        if result
        else ""
    )
    known = {"state": end_word(event.state, language), "step": step_words(step, language), "told": result_words}
    mark: Mark = "" if is_finished else END_MARKS[event.state]
    return EventPhrase(step.agent_id, known, mark, event.error != "not run", "" if is_finished else "StepEndedBadly")


def _phrase_message(_: TeamState, event: messages.MessageSent, language: str) -> EventPhrase:
    message = event.message
    # Approval requests and the ends of tasks have their own lines; a message to its sender is not shown.
    is_repeated = message.data is not None and ("approval_id" in message.data or message.kind == "instruction")
    story = not is_repeated and message.receiver != (message.sender_id,)
    known = {"receivers": _punctuation("comma", language).join(message.receiver), "text": shorten(message.message)}
    return EventPhrase(message.sender_id, known, "→", story, "MessageSentWaiting" if message.waiting else "")


def _phrase_release(state: TeamState, event: messages.WaitReleased, language: str) -> EventPhrase:
    wait = state.waits[event.waiting_id]
    why = EVENT_WORDS.table("released", language).get(event.why, event.why)
    return EventPhrase(wait.waiter, {"on": wait.on, "why": why}, story=event.why != "reply")


def _read_model(event: agents.AgentChanged) -> str:
    return str((event.spec.llm_config or {}).get("model", ""))


def _punctuation(name: str, language: str) -> str:
    return EVENT_WORDS.table("signs", language)[name]


_EVENT_PHRASES: Final[Mapping[type, Callable[[TeamState, Any, str], EventPhrase]]] = {
    teams.TeamCreated: lambda _, __, ___: EventPhrase(story=False),
    teams.TeamForked: lambda _, __, ___: EventPhrase(mark="◆"),
    teams.OwnerChanged: _phrase_owner,
    teams.TeamPaused: _phrase_pause,
    teams.TeamResumed: lambda _, __, ___: EventPhrase(mark="◆"),
    tasks.TaskPaused: _phrase_pause,
    tasks.TaskResumed: lambda _, __, ___: EventPhrase(mark="◆"),
    agents.AgentAdded: lambda _, event, __: EventPhrase(event.agent_id, {"role": event.spec.role or event.spec.kind}),
    agents.AgentChanged: lambda _, event, __: EventPhrase(
        event.agent_id, {"model": _read_model(event)}, phrase="AgentChangedModel" if _read_model(event) else ""
    ),
    agents.AgentRemoved: lambda _, event, __: EventPhrase(event.agent_id),
    tasks.TaskCreated: lambda _, __, ___: EventPhrase(mark="◆"),
    # The message has its own line.
    tasks.TaskHandedOver: lambda _, event, __: EventPhrase(event.sender_id, mark="→", story=False),
    tasks.TaskEnded: _phrase_work_end,
    stages.StageStarted: _phrase_stage_start,
    stages.StageEnded: _phrase_work_end,
    stages.SubtaskAssigned: _phrase_assignment,
    stages.SubtaskHandedOver: _phrase_assignment,
    stages.SubtaskEnded: _phrase_subtask_end,
    stages.SubtaskRetried: _phrase_subtask_retry,
    stages.StageReplanned: _phrase_stage_start,
    steps.StepQueued: lambda _, event, __: EventPhrase(event.agent_id, story=False),
    steps.StepStarted: _phrase_step_start,
    steps.StepBlocked: _phrase_step_block,
    steps.EffectPrepared: lambda _, event, __: EventPhrase(
        agent_of(event.step_id),
        {"keys": ", ".join(f"{effect.kind} {effect.key}" for effect in event.prepared)},
        story=False,
    ),
    steps.StepInterrupted: lambda state, event, language: EventPhrase(
        agent_of(event.step_id), {"step": step_words(state.steps[event.step_id], language)}, "!"
    ),
    steps.StepEnded: _phrase_step_end,
    messages.MessageSent: _phrase_message,
    messages.WaitReleased: _phrase_release,
    knowledge.NotePosted: lambda _, event, __: EventPhrase(
        event.note.agent_id, {"text": shorten(event.note.content)}, "✎"
    ),
    knowledge.ValueSet: lambda _, event, __: EventPhrase(
        event.value.set_by, {"text": shorten(event.value.content)}, "✎"
    ),
    # The call that wrote it has its own line.
    knowledge.ArtifactWritten: lambda _, event, __: EventPhrase(event.artifact.by, mark="✎", story=False),
    # The agent that saves a memory may not be the one that saved it first.
    knowledge.MemorySaved: lambda _, event, __: EventPhrase(
        "", {"text": shorten(event.memory.content)}, "✎", story=False
    ),
    knowledge.MemoriesCleared: lambda _, event, __: EventPhrase("", {"ids": ", ".join(event.memory_ids)}, story=False),
    threads.Noticed: lambda _, event, __: EventPhrase(agent_of(event.step_id), {"text": shorten(event.text)}, "!"),
    approvals.ApprovalRequested: lambda _, event, __: EventPhrase(
        event.agent_id, {"text": shorten(event.question)}, "?"
    ),
    approvals.ApprovalAnswered: lambda state, event, language: EventPhrase(
        state.approvals[event.approval_id].agent_id,
        {"answer": end_word(event.answer, language), "by": _name_who(event.by, language)},
        "◆",
    ),
    budgets.LimitReached: lambda _, event, __: EventPhrase(agent_of(event.step_id) if event.step_id else "", mark="!"),
    timers.TimerFired: lambda state, event, _: EventPhrase(
        state.timers[event.timer_id].agent_id if event.timer_id in state.timers else ""
    ),
}


def find_subtask_name(state: TeamState, event: Event) -> str:
    """Return the name of the subtask that an event is about; empty if it is about none. `state` is that before it."""
    step = state.steps.get(getattr(event, "step_id", StepId("")))
    name = getattr(event, "subtask_id", None) or (step.subtask_id if step is not None else None)
    stages = state.stages.values() if name else ()
    found = (subtask for stage in stages if name and (subtask := stage.find_subtask(name)) is not None)
    return next((subtask.name for subtask in found), "")
