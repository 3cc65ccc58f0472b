"""How waiting for an organisation ended: what a script wants to know, and why, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from greenroom.app.organisation.names import BASE
from greenroom.app.organisation.people import oldest_first
from greenroom.app.standing import Standing, standing
from greenroom.core.base.records import record
from greenroom.core.state.task import Task
from greenroom.core.state.world import World
from greenroom.interfaces.cli.display.reasons import Way, end_word, reason, still
from greenroom.interfaces.cli.display.room import word
from greenroom.interfaces.cli.exits import Exit, of_standings
from greenroom.interfaces.cli.runs.failing import GaveUp, Lost


@record
class Fate:
    """A status in a word, its exit code, and a sentence for everything that is not as it should be."""

    status: str
    code: Exit
    reasons: tuple[str, ...] = ()


def fate_of(world: World, stands: Standing, failures: tuple[GaveUp | Lost, ...], language: str, way: Way) -> Fate:
    """The worst of how it stands and what went wrong. `way` is what lets it go on."""
    stuck = tuple(_stuck(world)) if stands.word == "idle" else ()
    lost = (*(_failed(one, language) for one in failures), *(_left(one, language) for one in stuck))
    if lost:
        return Fate(status="failed", code=Exit.FAILED, reasons=lost)
    if stands.word == "idle":
        return Fate(status="idle", code=Exit.DONE)
    code = of_standings([stands.word])
    return Fate(status=stands.word, code=code, reasons=(_stands(world, stands, language, way),))


def unanswered(world: World, language: str) -> Fate:
    """Somebody asked the manager, it has nothing more to do, and nothing came."""
    manager = world.tasks[BASE].manager
    return Fate(status="failed", code=Exit.FAILED, reasons=(word("unanswered", language, manager=manager),))


def _stuck(world: World) -> Iterator[Task]:
    """Tasks that are not over although nothing happens in them any more."""
    for task in oldest_first(world.tasks):
        stands = standing(world, task.task_id)
        if task.task_id != BASE and stands is not None and stands.word == "idle":
            yield task


def _failed(one: GaveUp | Lost, language: str) -> str:
    match one:
        case GaveUp(who=who, why=why):
            return word("gave_up", language, who=who, why=why)
        case Lost(task=task, name=name, state=state):
            return word("lost", language, task=task, name=name, state=end_word(state, language))


def _left(task: Task, language: str) -> str:
    return word("stuck", language, task=task.task_id, name=task.name, manager=task.manager)


def _stands(world: World, stands: Standing, language: str, way: Way) -> str:
    if world.team.paused is not None and stands.word == "paused":
        why = reason(world.team.paused, language)
        return word("stopped_why", language, name=world.team.name, why=why, command=way.start)
    if stands.word != "waiting":
        return still(stands.why, language, way)
    each = (one for letter in world.mail.values() for one in letter.receiver)
    owing = Counter(one for one in each if one in world.agents and world.agents[one].spec.kind == "human")
    people = ", ".join(f"{name} ({count})" for name, count in sorted(owing.items()))
    return word("waits_for", language, people=people) if people else stands.why
