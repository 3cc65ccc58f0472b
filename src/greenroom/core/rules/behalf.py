"""On whose behalf an agent works: nobody gets done by another what it may not do itself.

Whoever brings an agent into a conversation (by a call, a handoff, a part of a stage, a first message) binds it there,
and so do those who bind that one. A message into a conversation that goes on already asks for something, and binds
nobody: else a worker's report would bind its manager.
"""

from __future__ import annotations

from greenroom.core.base.ids import AgentId, Principals, TaskId, ThreadId, thread_id
from greenroom.core.rules.draft import Draft


def given_here(draft: Draft) -> Principals:
    """Who binds somebody to whom the asking step gives work. A person's wish binds nobody."""
    cause = draft.cause
    return () if cause is None else (cause.agent_id, *draft.world.threads[cause.thread_id].on_behalf)


def given_by_message(draft: Draft, agent: AgentId, task: TaskId) -> Principals:
    """Who binds somebody whom a message reaches first: not those who report to it."""
    principals = given_here(draft)
    return () if agent in principals or agent == draft.world.tasks[task].manager else principals


def given_by_manager(draft: Draft, task: TaskId) -> Principals:
    """Who binds those who work on a part of a stage, whoever's step it is after which that begins."""
    manager = draft.world.tasks[task].manager
    thread = draft.world.threads.get(thread_id(manager, task))
    return (manager, *(thread.on_behalf if thread is not None else ()))


def taken_along(draft: Draft, thread: ThreadId, agent: AgentId) -> Principals:
    """An agent that takes work from one of its conversations into another is bound there as well."""
    cause = draft.cause
    if cause is None or cause.agent_id != agent or cause.thread_id == thread:
        return ()
    return draft.world.threads[cause.thread_id].on_behalf
