"""Events and states in words, in English and Chinese; the phrases are in `events.*.toml` and `organisation.*.toml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from immutables import Map

from greenroom.app.messages import CHINESE, Catalogue
from greenroom.core.base.ids import TEAM_BUDGET, agent_of
from greenroom.core.base.records import record
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
from greenroom.core.state.world import World

CATALOGUE: Final = Catalogue("greenroom.cli.render", "organisation")
word: Final = partial(CATALOGUE.phrase, "room")
team_word: Final = partial(CATALOGUE.phrase, "team")
STOPPED: Final = "stopped by a person"
"""Why an organisation stands still that a person stopped, as the log has it."""

LIMIT: Final = re.compile(r"limit: (\S+) (\w+)")
"""A limit that was reached, as the log has it: whose, and of what."""

USED_UP: Final = ("money", "tokens", "millis", "steps", "hops")
FLAGS: Final = {"money": "--max-cost", "tokens": "--max-tokens", "millis": "--max-time"}


@record
class Way:
    """What lets an organisation go on: the command that starts it; and where its charter, which lies in `path`, holds
    the limit of something, the `keys` that do, by what they limit. `left` is what it has left of each."""

    name: str
    start: str
    path: str = ""
    keys: Mapping[str, str]
    left: Mapping[str, str] = Map()


def stands_word(stands: str, language: str) -> str:
    """How an organisation stands."""
    return CATALOGUE.table("standing", language).get(stands, stands)


def reason(why: str, language: str) -> str:
    """Why something stands still, as far as the reason is one of ours; without a full stop."""
    words, limit = CATALOGUE.table("reasons", language), LIMIT.fullmatch(why)
    if limit is not None and limit[2] in USED_UP:
        return words[limit[2]]
    kind, colon, rest = why.partition(":")
    if colon and kind == "provider":
        return f"{words['provider']}:{rest}".rstrip(".")
    return words["stopped"] if why == STOPPED else why.rstrip(".")


def still(why: str, language: str, way: Way) -> str:
    """That something stands still, and what lets it go on."""
    limit, told = LIMIT.fullmatch(why), reason(why, language)
    if limit is None or limit[2] not in FLAGS:
        return CATALOGUE.phrase("reasons", "still", language, why=told)
    team = limit[1] == TEAM_BUDGET
    key = way.keys.get(limit[2]) if team else None
    if team and limit[2] in way.left:
        told = CATALOGUE.phrase("reasons", "left", language, why=told, left=way.left[limit[2]])
    known = {"name": way.name, "why": told, "command": way.start, "flag": FLAGS[limit[2]], "key": key}
    return CATALOGUE.phrase("reasons", "held" if key else "more", language, path=way.path, **known)


WORDS: Final = Catalogue("greenroom.cli.render", "events")
Mark = Literal["", "✓", "✗", "?", "!", "→", "◆", "✎"]
ABOUT: Final = ("step_id", "thread_id", "timer_id", "waiting_id", "message_id", "approval_id", "budget_id", "stage_id")
ENDS: Final[dict[str, Mark]] = {"finished": "✓", "failed": "✗", "cancelled": "✗", "skipped": "✗", "uncertain": "?"}


@record
class Said:
    """One line about one event. `who` is an agent, or empty for the team; `story` says whether it is worth a line.

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


def end_word(state: str, language: str) -> str:
    """How work ended."""
    return WORDS.table("ends", language).get(state, state)


def step_words(step: Step, language: str = "en") -> str:
    """What a step is, in a few words: a tool with its first argument, a skill with its goal."""
    work = step.work
    if work.type == "tool":
        texts = [value for value in (work.instruction_content or {}).values() if isinstance(value, str)]
        return f"{work.executor} {shorten(texts[0], 44)}" if texts else work.executor
    if step.answers is not None:
        return WORDS.phrase("skills", "answers", language, whom=step.answers.partition(">")[0])
    return WORDS.table("skills", language).get(work.executor, work.executor)


def attempt_words(attempt: int, language: str) -> str:
    """That it is not the first attempt."""
    return WORDS.phrase("doing", "attempt", language, number=attempt) if attempt > 1 else ""


def say(world: World, event: Event, language: str = "en") -> Said:
    """What the event says, on the world as it was before it."""
    tell = _EVENTS.get(type(event))
    if tell is None:
        about = next((str(getattr(event, name)) for name in ABOUT if hasattr(event, name)), "")
        return Said(who="", text=about, story=False, plain=True)
    told = tell(world, event, language)
    name = told.phrase or type(event).__name__
    phrases = WORDS.table("events", language)
    phrase = phrases[name] if name in phrases else WORDS.table("events", "en")[name]
    text = phrase.format(event=event, **(told.known or {}))
    return Said(who=told.who, text=text, mark=told.mark, story=told.story)


class Told(NamedTuple):
    """How an event is told: by the `phrase` of this name, or of its type, with what is `known` beside the event."""

    who: str = ""
    known: Mapping[str, object] | None = None
    mark: Mark = ""
    story: bool = True
    phrase: str = ""


def _owner(_: World, event: teams.OwnerChanged, __: str) -> Told:
    node, pid, *_rest = *event.owner.split(":"), ""
    return Told(known={"node": node, "pid": pid}, mark="◆")


def _paused(_: World, event: teams.TeamPaused | tasks.TaskPaused, language: str) -> Told:
    return Told(known={"why": reason(event.why, language) if language == CHINESE else event.why}, mark="!")


def _ended_work(_: World, event: tasks.TaskEnded | stages.StageEnded, language: str) -> Told:
    return Told(known={"state": end_word(event.state, language)}, mark=ENDS[event.state])


def _stage_started(world: World, event: stages.StageStarted, language: str) -> Told:
    stage = world.stages[event.stage_id]
    parts = _sign("comma", language).join(subtask.name for subtask in stage.subtasks)
    return Told(known={"stage": stage, "parts": parts}, mark="◆")


def _assigned(world: World, event: stages.SubtaskAssigned | stages.SubtaskHandedOver, _: str) -> Told:
    subtask = world.stages[event.stage_id].subtask(event.subtask_id)
    return Told(event.agent_id, {"subtask": subtask}, phrase="Assigned" if subtask else "AssignedUnknown")


def _subtask_ended(world: World, event: stages.SubtaskEnded, language: str) -> Told:
    subtask = world.stages[event.stage_id].subtask(event.subtask_id)
    who, name = (subtask.agent, subtask.name) if subtask else ("", event.subtask_id)
    summary = f"{_sign('colon', language)}{shorten(event.summary)}" if event.summary else ""
    known = {"state": end_word(event.state, language), "name": name, "summary": summary}
    return Told(who, known, ENDS[event.state])


def _started(world: World, event: steps.StepStarted, language: str) -> Told:
    step = world.steps[event.step_id]
    known = {"step": step_words(step, language), "again": attempt_words(event.attempt, language)}
    return Told(step.agent_id, known, story=event.attempt > 1)


def _blocked(world: World, event: steps.StepBlocked, language: str) -> Told:
    step = world.steps[event.step_id]
    phrase = "" if event.state == "awaiting_approval" else "StepBlockedBudget"
    return Told(step.agent_id, {"step": step_words(step, language)}, "?", event.approval is None, phrase)


def _ended(world: World, event: steps.StepEnded, language: str) -> Told:
    step, done = world.steps[event.step_id], event.state == "finished"
    if done and step.work.type == "skill":
        text = str((event.result or {}).get("text", ""))
        phrase = "Thought" if text else "ThoughtNothing"
        return Told(step.agent_id, {"text": shorten(text)}, story=False, phrase=phrase)
    result = event.error or str((event.result or {}).get("output", ""))
    told = f"{_sign('colon', language)}{shorten(result)}" if event.error else f" → {shorten(result)}" if result else ""
    known = {"state": end_word(event.state, language), "step": step_words(step, language), "told": told}
    mark: Mark = "" if done else ENDS[event.state]
    return Told(step.agent_id, known, mark, event.error != "not run", "" if done else "StepEndedBadly")


def _sent(_: World, event: messages.MessageSent, language: str) -> Told:
    message = event.message
    # A question for a yes has its own line, the end of a task too, and a question to the team itself is no mail.
    repeated = message.data is not None and ("approval_id" in message.data or message.kind == "instruction")
    story = not repeated and message.receiver != (message.sender_id,)
    known = {"receivers": _sign("comma", language).join(message.receiver), "text": shorten(message.message)}
    return Told(message.sender_id, known, "→", story, "MessageSentWaiting" if message.waiting else "")


def _released(world: World, event: messages.WaitReleased, language: str) -> Told:
    wait = world.waits[event.waiting_id]
    why = WORDS.table("released", language).get(event.why, event.why)
    return Told(wait.waiter, {"on": wait.on, "why": why}, story=event.why != "reply")


def _model(event: agents.AgentChanged) -> str:
    return str((event.spec.llm_config or {}).get("model", ""))


def _sign(name: str, language: str) -> str:
    return WORDS.table("signs", language)[name]


_EVENTS: Final[Mapping[type, Callable[[World, Any, str], Told]]] = {
    teams.TeamCreated: lambda _, __, ___: Told(story=False),
    teams.TeamForked: lambda _, __, ___: Told(mark="◆"),
    teams.OwnerChanged: _owner,
    teams.TeamPaused: _paused,
    teams.TeamResumed: lambda _, __, ___: Told(mark="◆"),
    tasks.TaskPaused: _paused,
    tasks.TaskResumed: lambda _, __, ___: Told(mark="◆"),
    agents.AgentAdded: lambda _, event, __: Told(event.agent_id, {"role": event.spec.role or event.spec.kind}),
    agents.AgentChanged: lambda _, event, __: Told(
        event.agent_id, {"model": _model(event)}, phrase="AgentChangedModel" if _model(event) else ""
    ),
    agents.AgentRemoved: lambda _, event, __: Told(event.agent_id),
    tasks.TaskCreated: lambda _, __, ___: Told(mark="◆"),
    tasks.TaskEnded: _ended_work,
    stages.StageStarted: _stage_started,
    stages.StageEnded: _ended_work,
    stages.SubtaskAssigned: _assigned,
    stages.SubtaskHandedOver: _assigned,
    stages.SubtaskEnded: _subtask_ended,
    steps.StepQueued: lambda _, event, __: Told(event.agent_id, story=False),
    steps.StepStarted: _started,
    steps.StepBlocked: _blocked,
    steps.EffectPrepared: lambda _, event, __: Told(
        agent_of(event.step_id),
        {"keys": ", ".join(f"{effect.kind} {effect.key}" for effect in event.prepared)},
        story=False,
    ),
    steps.StepInterrupted: lambda world, event, language: Told(
        agent_of(event.step_id), {"step": step_words(world.steps[event.step_id], language)}, "!"
    ),
    steps.StepEnded: _ended,
    messages.MessageSent: _sent,
    messages.WaitReleased: _released,
    knowledge.NotePosted: lambda _, event, __: Told(event.note.agent_id, {"text": shorten(event.note.content)}, "✎"),
    knowledge.ValueSet: lambda _, event, __: Told(event.value.set_by, {"text": shorten(event.value.content)}, "✎"),
    # The call that wrote it has a line of its own.
    knowledge.ArtifactWritten: lambda _, event, __: Told(event.artifact.by, mark="✎", story=False),
    # The agent that saves it is not always the one that saved it first.
    knowledge.MemorySaved: lambda _, event, __: Told("", {"text": shorten(event.memory.content)}, "✎", story=False),
    knowledge.MemoriesCleared: lambda _, event, __: Told("", {"ids": ", ".join(event.memory_ids)}, story=False),
    threads.Noticed: lambda _, event, __: Told(agent_of(event.step_id), {"text": shorten(event.text)}, "!"),
    approvals.ApprovalRequested: lambda _, event, __: Told(event.agent_id, {"text": shorten(event.question)}, "?"),
    approvals.ApprovalAnswered: lambda world, event, language: Told(
        world.approvals[event.approval_id].agent_id, {"answer": end_word(event.answer, language)}, "◆"
    ),
    budgets.LimitReached: lambda _, event, __: Told(agent_of(event.step_id) if event.step_id else "", mark="!"),
    timers.TimerFired: lambda world, event, _: Told(
        world.timers[event.timer_id].agent_id if event.timer_id in world.timers else ""
    ),
}
