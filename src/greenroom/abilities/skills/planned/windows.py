"""The window of an agent that plans: when its conversation has become too long, and where it can begin anew.

A stage ends, and what an agent adds to it is counted: so only what stands outside of stages is summed up, as the base
task of an organisation, which never ends. Never cut off is what goes on: everything since somebody last wanted
something, and the calls of a tool that is in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.abilities.skills.compact import LONG as LINE
from greenroom.abilities.skills.compact import Manner, size
from greenroom.abilities.skills.planned.answer import FILLS
from greenroom.abilities.skills.planned.prompt import DECISION, SUMS, line
from greenroom.abilities.skills.planned.skill import LETTERS, Moment
from greenroom.abilities.skills.talk.transcript import BYTES_PER_TOKEN, begins
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, Work

SHARE: Final = 0.4
"""How much of a model's window what was done so far may take."""

LONG: Final = 120_000
"""Bytes of a conversation above which it is summed up, however large the window is: every step reads and pays it."""

PATIENCE: Final = 10
"""Steps after a sum that failed before another one is tried."""

EXCHANGES: Final = "exchanges"


def longest(window: int) -> int:
    """The bytes that a conversation outside of stages may have, for a model that reads so many tokens."""
    return min(LONG, int(SHARE * window) * BYTES_PER_TOKEN)


def summing_up(moment: Moment, window: int) -> tuple[QueueSteps, ...]:
    """The step that sums up what was said, before anything else is done; none where that is not needed or no use."""
    thread = moment.world.threads.get(moment.step.thread_id)
    if thread is None or thread.stage_id is not None or thread.size <= longest(window) or _in_use(moment):
        return ()
    history = [*moment.history, moment.step]
    place = begun(history)
    failed = any(one.work.executor == SUMS and one.state != "finished" for one in history[-PATIENCE:])
    if failed or 2 * sum(map(size, history[:place])) < thread.size:
        return ()
    work = Work(type="skill", executor=SUMS, intention="Sum up what was said.")
    return (QueueSteps(agent_id=moment.agent.agent_id, works=(work,), place="next"),)


def _in_use(moment: Moment) -> bool:
    """Whether a tool is in use here, or a sum is on its way."""
    mine = (one for one in moment.world.steps_of(moment.agent.agent_id) if one.thread_id == moment.step.thread_id)
    return any(one.work.type == "tool" or one.work.executor in (SUMS, DECISION, FILLS) for one in mine)


def begun(history: Sequence[Step]) -> int:
    """The place since which the newest work goes on: where somebody last wanted something.

    Where there is nothing but letters since, nothing is torn apart before the newest one.
    """
    since = max((place for place, one in enumerate(history) if begins(one)), default=0)
    if any(one.work.executor not in (*LETTERS, SUMS) for one in history[since:]):
        return since
    return max((since, *(place for place, one in enumerate(history) if one.message_id is not None)))


def exchanges(history: Sequence[Step], upto: int | None = None) -> int:
    """How many answers were written in a row until then, also those that a sum tells of."""
    count = 0
    for one in reversed(history[:upto]):
        if one.work.executor == SUMS:
            continue
        if one.work.executor not in LETTERS:
            return count
        count += one.work.executor == LETTERS[1]
    sums = [one for one in history if one.work.executor == SUMS and one.state == "finished"]
    told = (sums[-1].result or {}).get(EXCHANGES, 0) if sums else 0
    return count + (told if isinstance(told, int) else 0)


PLANS: Final = Manner(
    room=longest,
    cut=lambda history, cut: min(cut, begun(history)),
    shown=lambda step, _: (line(step, LINE),),
    more=lambda history, cut: {EXCHANGES: exchanges(history, cut)},
)
"""How those are summed up who plan: never beyond where their newest work begins."""
