"""Which runs and conversations of programs there are, and how they stand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from greenroom.app.library.kits import RUN, TALK
from greenroom.app.runtime import Runtime
from greenroom.app.standing import standing
from greenroom.app.talks.founding import FIRST
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.log import StreamInfo
from greenroom.core.state.task import Task

OVER: Final = ("finished", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run, or with `talk` a conversation: its id, whose it is, what was asked for, how it stands and since when.

    `state` is *stopped* when it can go on and nobody lets it; a conversation in which nothing is open is *idle*.
    """

    run: TeamId
    agent: str
    text: str
    state: str
    begun: datetime
    talk: bool

    @property
    def over(self) -> bool:
        """Whether nothing can go on in it."""
        return self.state in OVER


async def listed(runtime: Runtime, *, agent: str = "", most: int) -> list[RunInfo]:
    """The newest, newest first. A log that cannot be read keeps nobody from the others."""
    found: list[RunInfo] = []
    for info in reversed(await runtime.log.streams()):
        one = await _known(runtime, info) if info.head.version else None
        if one is not None and agent in ("", one.agent):
            found.append(one)
        if len(found) >= most:
            break
    return found


async def _known(runtime: Runtime, info: StreamInfo) -> RunInfo | None:
    team = TeamId(info.stream)
    try:
        world = await runtime.world(team)
    except StoreFault:
        return None
    if world.team.kit not in (RUN, TALK):
        return None
    task = world.tasks.get(FIRST) or next(iter(await runtime.ended_tasks(team)), None)
    if task is None:
        return None
    stands = standing(world, FIRST)
    state = stands.word if stands is not None else task.state
    stopped = state == "working" and info.owner is None
    return _info(team, task, "stopped" if stopped else state, talk=world.team.kit == TALK)


def _info(team: TeamId, task: Task, state: str, *, talk: bool) -> RunInfo:
    return RunInfo(
        run=team,
        agent=task.manager,
        text=task.name if talk else task.intention,
        state=state,
        begun=datetime.fromtimestamp(task.created_at / 1000, UTC),
        talk=talk,
    )
