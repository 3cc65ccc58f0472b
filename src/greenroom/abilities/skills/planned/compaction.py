"""The window of a planning agent: when to compact its conversation, and where to cut it.

A stage ends, and its reflections are counted. So only conversations outside of stages are compacted, such as the base
task of an organisation, which never ends. Ongoing work is never cut: everything since the last request, and the calls
of a tool in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.abilities.skills.compact import MAX_MESSAGE_CHARS as LINE
from greenroom.abilities.skills.compact import CompactionPolicy, measure_step
from greenroom.abilities.skills.conversation.transcript import BYTES_PER_TOKEN, is_new_request
from greenroom.abilities.skills.planned.answer import FILLING_SKILL
from greenroom.abilities.skills.planned.prompt import COMPACT_SKILL, DECISION_SKILL, render_step_line
from greenroom.abilities.skills.planned.skill import MESSAGE_SKILLS, SkillContext
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, Work

HISTORY_WINDOW_SHARE: Final = 0.4
"""Share of a model's window that the history may take."""

MAX_CONVERSATION_BYTES: Final = 120_000
"""Bytes above which a conversation is compacted, however large the window is: every step reads and pays for it."""

RETRY_AFTER_STEPS: Final = 10
"""Number of steps after a failed compaction before the next attempt."""

EXCHANGES_KEY: Final = "exchanges"


def compute_max_bytes(window: int) -> int:
    """Return the maximum bytes of a conversation outside of stages, for a window in tokens."""
    return min(MAX_CONVERSATION_BYTES, int(HISTORY_WINDOW_SHARE * window) * BYTES_PER_TOKEN)


def plan_compaction(skill_context: SkillContext, window: int) -> tuple[QueueSteps, ...]:
    """Return the compaction step if it is needed and useful. It runs before everything else."""
    thread = skill_context.state.threads.get(skill_context.step.thread_id)
    if (
        thread is None
        or thread.stage_id is not None
        or thread.size <= compute_max_bytes(window)
        or _is_tool_in_use(skill_context)
    ):
        return ()
    history = [*skill_context.history, skill_context.step]
    place = find_work_start(history)
    failed = any(
        step.work.executor == COMPACT_SKILL and step.state != "finished" for step in history[-RETRY_AFTER_STEPS:]
    )
    if failed or 2 * sum(map(measure_step, history[:place])) < thread.size:
        return ()
    work = Work(type="skill", executor=COMPACT_SKILL, intention="Sum up what was said.")
    return (QueueSteps(agent_id=skill_context.agent.agent_id, works=(work,), place="next"),)


def _is_tool_in_use(skill_context: SkillContext) -> bool:
    """Return whether a tool is in use, or a compaction is queued."""
    own_steps = (
        step
        for step in skill_context.state.steps_of(skill_context.agent.agent_id)
        if step.thread_id == skill_context.step.thread_id
    )
    return any(
        step.work.type == "tool" or step.work.executor in (COMPACT_SKILL, DECISION_SKILL, FILLING_SKILL)
        for step in own_steps
    )


def find_work_start(history: Sequence[Step]) -> int:
    """Return the position where the current work began: the last request. If only messages followed, return the
    position of the newest message."""
    since = max((place for place, step in enumerate(history) if is_new_request(step)), default=0)
    if any(step.work.executor not in (*MESSAGE_SKILLS, COMPACT_SKILL) for step in history[since:]):
        return since
    return max((since, *(place for place, step in enumerate(history) if step.message_id is not None)))


def count_exchanges(history: Sequence[Step], upto: int | None = None) -> int:
    """Count the consecutive answers up to `upto`, including those that a summary has replaced."""
    count = 0
    for step in reversed(history[:upto]):
        if step.work.executor == COMPACT_SKILL:
            continue
        if step.work.executor not in MESSAGE_SKILLS:
            return count
        count += step.work.executor == MESSAGE_SKILLS[1]
    sums = [step for step in history if step.work.executor == COMPACT_SKILL and step.state == "finished"]
    told = (sums[-1].result or {}).get(EXCHANGES_KEY, 0) if sums else 0
    return count + (told if isinstance(told, int) else 0)


PLAN_COMPACTION: Final = CompactionPolicy(
    compute_room=compute_max_bytes,
    limit_cut=lambda history, cut: min(cut, find_work_start(history)),
    render_step=lambda step, _: (render_step_line(step, LINE),),
    collect_extra=lambda history, cut: {EXCHANGES_KEY: count_exchanges(history, cut)},
)
"""How conversations of planning agents are compacted: never beyond the start of their current work."""
