"""Interrupting: a person stops a turn to say something else. The conversation stays, valid for every provider."""

from __future__ import annotations

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import ThreadId
from greenroom.core.rules.closing import cancel_steps
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, unknown
from greenroom.core.rules.intents import Interrupt
from greenroom.core.rules.waits import release
from greenroom.core.state.world import ordered


def interrupt(draft: Draft, intent: Interrupt, by: str) -> Verdict:
    """End the steps of a conversation. Each native call among them gets its one result: that it was not run."""
    thread = draft.world.threads.get(intent.thread_id)
    if thread is None:
        return unknown("thread", intent.thread_id, tuple(draft.world.threads))
    if not is_trusted(draft.world, by):
        return Rejected(code="not_yours", why=f"{by!r} may not interrupt {thread.agent_id!r}.")
    _stop(draft, thread.thread_id)
    return None


def _stop(draft: Draft, name: ThreadId) -> None:
    """What was asked of others from here is not waited for, and they need not go on with it."""
    thread = draft.world.threads[name]
    cancel_steps(draft, [one for one in draft.world.steps_of(thread.agent_id) if one.thread_id == name], "cancelled")
    for wait in [one for one in ordered(draft.world.waits) if one.thread_id == name]:
        release(draft, wait.waiting_id, "interrupted")
        for other in [one for one in ordered(draft.world.threads) if one.call == wait.message_id]:
            _stop(draft, other.thread_id)
