"""Where a turn comes from: given by somebody, or only the next one of what goes on. A turn that was put off says so."""

from __future__ import annotations

from greenroom.core.base.ids import sender_of
from greenroom.core.base.records import Data
from greenroom.core.state.step import Step
from greenroom.core.state.world import World


def begins(step: Step) -> bool:
    """Whether somebody gives the agent something to do with it: a person, the house, another agent. Word of what it has
    asked for itself is nothing new: else it could go on for ever by asking once more."""
    if step.goes_on:
        return False
    return step.cause is None or step.message_id is not None or _says(step, "begins")


def from_people(world: World, step: Step) -> bool:
    """Whether those say it for whom the agent works: a person, or the house that hands out their tasks."""
    if step.message_id is None:
        told = (step.work.instruction_content or {}).get("people", step.cause is None)
        return bool(told) and not step.goes_on
    known = world.agents.get(sender_of(step.message_id))
    return known is not None and known.spec.kind == "human"


def told_meanwhile(world: World, step: Step) -> bool:
    """Whether somebody for whom the agent works has said something in this conversation that waits to be read."""
    others = (one for one in world.steps_of(step.agent_id) if one.thread_id == step.thread_id)
    return any(
        one.step_id != step.step_id and one.work.executor == "converse" and from_people(world, one) for one in others
    )


def origin(world: World, step: Step) -> Data:
    """What a turn that is put off tells the one that takes its place."""
    return {"begins": begins(step), "people": from_people(world, step)}


def _says(step: Step, name: str) -> bool:
    return bool((step.work.instruction_content or {}).get(name))
