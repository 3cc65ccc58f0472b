"""What follows from every skill's end, whichever it is: what the board says, how the agent stands, who has to know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from greenroom.abilities.skills.planned.history import cut
from greenroom.abilities.skills.planned.repairs import LETTERS, again, asked_by, asked_for, begun_by, repairs_of
from greenroom.abilities.skills.planned.skill import PACK, Answer, Moment, Skill
from greenroom.core.base.headings import is_heading, lowered, underlines
from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.rules.agents import MEMORY
from greenroom.core.rules.intents import (
    Consequence,
    PostNote,
    QueueSteps,
    Remember,
    RemoveStep,
    SendMessage,
    UpdateStageAgentCompletion,
    UpdateStageAgentState,
)
from greenroom.core.rules.people import people_of

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n")


def kept(said: str, known: str) -> str:
    """What is new in what the agent wants to keep, as it may stand in its memory; empty when nothing is."""
    old = {_bare(one) for one in _paragraphs(known)}
    lines = {_bare(line) for line in known.splitlines()}
    fresh: list[str] = []
    for one in _paragraphs(lowered(said)):
        new = "\n".join(line for line in one.splitlines() if _is_empty(line) or _bare(line) not in lines)
        if _bare(new) and _bare(one) not in old and not all(map(_is_empty, new.splitlines())):
            fresh.append(new.strip())
            old.add(_bare(one))
    return _below(known, "\n\n".join(fresh))


def _below(known: str, text: str) -> str:
    """The text without lines that would make a heading of what the agent knows last."""
    while underlines(known, text):
        text = text.partition("\n")[2].lstrip()
    return text


def _paragraphs(text: str) -> list[str]:
    return [one.strip("\n") for one in _PARAGRAPHS.split(text) if one.strip()]


def _bare(text: str) -> str:
    return " ".join(text.split())


def _is_empty(line: str) -> bool:
    """Whether a line says nothing by itself."""
    return is_heading(line) or not line.strip()


SHOWN = 300
"""Characters of what somebody wanted that they are told when it could not be done."""

LEFT = frozenset({"init", "pending"})

Audience: TypeAlias = tuple[TaskId, tuple[AgentId, ...]]
"""Who is told something, and in which task."""


def succeeded(moment: Moment, skill: Skill, answer: Answer) -> Iterator[Consequence]:
    """The agent works, and keeps what it wants to keep."""
    yield from _note(moment, skill, "finished")
    member = moment.member
    if member is not None and member.state == "idle" and moment.stage is not None:
        yield UpdateStageAgentState(stage_id=moment.stage.stage_id, agent_id=member.agent_id, state="working")
    memory = kept(answer.memory, moment.agent.memory)
    if memory and not is_full(moment, answer):
        yield Remember(content=memory)


def is_full(moment: Moment, answer: Answer) -> bool:
    """Whether the agent wants to keep more than it can: then it is told, and not asked for the same again."""
    new = kept(answer.memory, moment.agent.memory)
    return bool(new) and len(moment.agent.memory) + len(new) > MEMORY


def unusable(moment: Moment, why: str) -> str:
    """What is wrong with a reply: as the model is told that is asked again; at last as people are told."""
    if not _is_last(moment):
        return why
    return PACK.render(moment.language, "unusable", {"times": repairs_of(moment.step) + 1, "why": why})


def _is_last(moment: Moment) -> bool:
    return repairs_of(moment.step) >= moment.spec.turn.repairs


def misread(moment: Moment, skill: Skill, why: str) -> Iterator[Consequence]:
    """The same work once more, with what was wrong; at last it has failed."""
    if _is_last(moment):
        yield from failed(moment, skill, why)
        return
    yield QueueSteps(
        agent_id=moment.agent.agent_id,
        works=(again(moment.step, why),),
        place="next",
        stage_id=moment.stage.stage_id if moment.stage is not None else None,
    )


def failed(moment: Moment, skill: Skill, why: str) -> Iterator[Consequence]:
    """The agent has failed in its stage, and what it had planned there is not done. Whoever asked is told."""
    yield from _note(moment, skill, "failed")
    yield from _told(moment, why)
    member = moment.member
    if member is None or moment.stage is None:
        return
    # From the end: a tool step goes before the one that was to fill it in, which would take it along.
    for step in reversed(tuple(moment.world.steps_of(member.agent_id))):
        planned = step.thread_id == moment.step.thread_id and step.message_id is None and step.answers is None
        if planned and step.state in LEFT and step.step_id != moment.step.step_id:
            yield RemoveStep(step_id=step.step_id)
    stage, agent = moment.stage.stage_id, member.agent_id
    yield UpdateStageAgentCompletion(stage_id=stage, agent_id=agent, completion_summary=_words(moment, why))
    yield UpdateStageAgentState(stage_id=stage, agent_id=agent, state="failed")


def _words(moment: Moment, why: str) -> str:
    """How the agent says that it could not do it: what it was asked for in the words of whoever asked."""
    wanted = asked_for(begun_by(moment.step, moment.history)) or moment.step.work.intention
    return PACK.render(moment.language, "failure", {"intention": cut(wanted, SHOWN), "why": why})


def _note(moment: Moment, skill: Skill, state: Literal["finished", "failed"]) -> Iterator[PostNote]:
    if moment.agent.agent_id in moment.group:
        content = PACK.render(moment.language, "note", {"said": skill.said, "state": state})
        stage = moment.stage
        yield PostNote(task_id=moment.step.task_id, content=content, stage_id=stage.stage_id if stage else None)


def _told(moment: Moment, why: str) -> Iterator[SendMessage]:
    """Who waits for an answer gets this one. Outside of a stage, where nobody would see it: who asked, or people."""
    step = moment.step
    wait = moment.world.waits.get(step.answers) if step.answers is not None else None
    if wait is not None:
        heard: Audience | None = (wait.task_id, (wait.waiter,))
    else:
        heard = _asker(moment) or _people(moment) if moment.member is None else None
    if heard is None or moment.agent.agent_id in heard[1]:
        return
    yield SendMessage(
        task_id=heard[0],
        receiver=heard[1],
        message=_words(moment, why),
        return_waiting_id=step.answers if wait is not None else None,
        kind="response" if wait is not None else "notification",
    )


def _asker(moment: Moment) -> Audience | None:
    """Who wrote the message from which this came, if they want to hear. What an agent wrote only to be read is answered
    by nobody: two who cannot read would write to each other for ever."""
    first = begun_by(moment.step, moment.history)
    asker = asked_by(first)
    if asker is None or asker not in moment.group:
        return None
    if first.work.executor == LETTERS[0] and not people_of(moment.world, (asker,)):
        return None
    return moment.step.task_id, (asker,)


def _people(moment: Moment) -> Audience | None:
    """The people of the task, else of one that it is a part of: whoever wanted it is among them."""
    world, here = moment.world, moment.step.task_id
    for task in (world.tasks[one] for one in (here, *world.above(here)) if one in world.tasks):
        people = people_of(world, task.group) if moment.agent.agent_id in task.group else ()
        if people:
            return task.task_id, people
    return None
