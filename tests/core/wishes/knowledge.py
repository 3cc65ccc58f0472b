"""Random intents about memories and artifacts."""

from __future__ import annotations

from random import Random

from greenroom.core.base.ids import ArtifactId, MemoryId
from greenroom.core.rules.intents import ClearMemory, Remember, SaveMemory, WriteArtifact
from greenroom.core.state.team_state import TeamState, artifact_key
from tests.core.wishes import words


def memory(rng: Random, state: TeamState) -> MemoryId:
    return words.one(rng, state.memories, MemoryId("20251101_072947_388226"))


def save_memory(rng: Random, state: TeamState) -> SaveMemory:
    return SaveMemory(
        content=" " if rng.randrange(20) == 0 else "it is so",
        tags=rng.choice(((), ("api",), ("api", "search"), ("",))),
        memory_id=memory(rng, state) if rng.randrange(4) == 0 else None,
        merged_from=tuple(memory(rng, state) for _ in range(rng.choice((0, 0, 0, 1, 2)))),
    )


def remember(rng: Random, _: TeamState) -> Remember:
    return Remember(content=rng.choice(("### Ports\nIt is 80.", "it is so", "# Too high", "  ", "x" * 9_000)))


def clear_memory(rng: Random, state: TeamState) -> ClearMemory:
    return ClearMemory(memory_ids=tuple(memory(rng, state) for _ in range(rng.randrange(4))))


def write_artifact(rng: Random, state: TeamState) -> WriteArtifact:
    """Return a mostly valid write. Sometimes its base is not the newest version, or its content is missing."""
    task, name = words.task(rng, state), ArtifactId(rng.choice(("task_plan", "main.py")))
    old = state.artifacts.get(artifact_key(task, name))
    newest = old.version if old is not None else 0
    return WriteArtifact(
        task_id=task,
        artifact_id=ArtifactId("") if rng.randrange(20) == 0 else name,
        title="Plan",
        media_type="text/markdown",
        blob=rng.choice(("b1", "b2", "lost")),
        size=rng.choice((5, 5, 5, 2**30)),
        lines=1,
        based_on=newest if rng.randrange(5) else rng.randrange(3),
    )
