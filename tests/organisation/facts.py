"""What must be true when the story is over, from the state and the archive: the same however often it was killed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from greenroom.app.organisation.states import states
from greenroom.core.base.amounts import NOTHING
from greenroom.core.state.message import Message
from greenroom.core.state.note import Note
from greenroom.core.state.portrait import working_memory
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from tests.organisation.firm import Firm

ORDER: Mapping[str, str] = {
    "manager": (
        "planning ask_info process_message agent_manager agent_manager task_manager reflection "
        "planning task_manager task_manager reflection "
        "planning task_manager reflection process_message "
        "planning task_manager task_manager !reflection"
    ),
    "wu": (
        "planning instruction_generation taste tool_decision instruction_generation taste tool_decision "
        "send_message process_message reflection think reflection summary "
        "planning send_message process_message send_message process_message send_message send_message process_message "
        "reflection summary"
    ),
    "xi": (
        "planning send_message send_message process_message send_message process_message reflection summary "
        "planning think send_message reflection summary"
    ),
    "ann": "send_message send_message send_message send_message send_message",
}
"""The steps of everybody, in their order. The last one of the manager was not run: its task is over."""


async def order(firm: Firm) -> dict[str, str]:
    """What everybody did; what did not end well is marked."""
    found: dict[str, list[str]] = defaultdict(list)
    async for one in firm.runtime.archive(firm.team, "step"):
        if isinstance(one, Step):
            found[one.agent_id].append(f"{'' if one.state == 'finished' else '!'}{one.work.executor}")
    return {name: " ".join(done) for name, done in found.items()}


async def facts(firm: Firm) -> dict[str, object]:
    """All that counts. Times and versions are not among it, nor in which order two agents did something at once."""
    world = await firm.world()
    tasks = await states(firm.runtime, firm.team, "task")
    stages = [one async for one in firm.runtime.archive(firm.team, "stage") if isinstance(one, Stage)]
    return {
        "order": await order(firm),
        "tasks": {name: (one["execution_state"], one["task_summary"]) for name, one in tasks.items()},
        "stages": {
            one.stage_id: (one.state, [(it.agent_id, it.state, it.completion) for it in one.members]) for one in stages
        },
        "notes": await _notes(firm),
        "messages": sorted(await _messages(firm)),
        "memory": {name: one.memory for name, one in world.agents.items()},
        "results": await _results(firm),
        "pool": sorted((await firm.ann.pool()).global_messages),
    }


async def left(firm: Firm) -> dict[str, object]:
    """What must be left of all that: nothing."""
    world = await firm.world()
    return {
        "steps": list(world.steps),
        "waits": list(world.waits),
        "letters": list(world.mail),
        "timers": list(world.timers),
        "locks": [name for name, one in world.agents.items() if one.step_lock or one.running],
        "stages": list(world.stages),
        "work": {
            name: found for name in world.agents if (found := working_memory(world, name)) and found != {"t1": {}}
        },
        "threads": sorted(one.task_id for one in world.threads.values() if one.task_id != "t1"),
        "reserved": [name for name, one in world.budgets.items() if one.reserved != NOTHING],
    }


NOTHING_LEFT: dict[str, object] = {
    **{name: [] for name in ("steps", "waits", "letters", "timers", "locks", "stages", "threads", "reserved")},
    "work": {},
}


async def _notes(firm: Firm) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    async for one in firm.runtime.archive(firm.team, "note"):
        if isinstance(one, Note):
            found[one.agent_id].append(f"{one.stage_id}: {one.content}")
    return dict(found)


async def _messages(firm: Firm) -> list[tuple[str, ...]]:
    return [
        (one.message_id, *one.receiver, one.message, *(one.waiting or ()), one.return_waiting_id or "")
        async for one in firm.runtime.archive(firm.team, "message")
        if isinstance(one, Message)
    ]


async def _results(firm: Firm) -> dict[str, object]:
    """What each skill came to, by its own key."""
    found: dict[str, object] = {}
    async for one in firm.runtime.archive(firm.team, "step"):
        if isinstance(one, Step):
            kept = {key: value for key, value in (one.result or {}).items() if key not in ("usage", "by", "text")}
            found[one.step_id] = (one.work.executor, one.state, kept)
    return found
