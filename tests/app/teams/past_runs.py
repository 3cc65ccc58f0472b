"""Logs of team runs that are over, as events."""

from collections.abc import Iterable, Sequence
from typing import Literal

from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import AgentId, StageId, StepId, SubtaskId, TeamId, ThreadId
from greenroom.core.ports.codec import encode_event
from greenroom.core.ports.log import EventBatch, Lease, Log
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.events import Event
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import SubtaskAssigned, SubtaskEnd, SubtaskEnded
from greenroom.core.state.step import StepEnded
from greenroom.core.state.team import TeamCreated

STAGE = StageId("t1/s1")


def created(team: str = "run", kit: str = TEAM_RUN) -> TeamCreated:
    return TeamCreated(at=1, team_id=TeamId(team), name="x", waiting_timeout=None, kit=kit)


def worked(
    agent: str, state: SubtaskEnd | None = "finished", *, kind: Literal["llm", "system"] = "llm", steps: int = 1
) -> Sequence[Event]:
    """One agent's subtask: it starts, takes `steps` steps of 2 s, 100 tokens and $0.01 each, and ends in this state."""
    name, subtask = AgentId(agent), SubtaskId(f"{STAGE}/{agent}")
    spent = Amounts(money=10_000, tokens=100, steps=1, millis=2000)
    ended = () if state is None else (SubtaskEnded(at=9, stage_id=STAGE, subtask_id=subtask, state=state),)
    return (
        AgentAdded(at=1, agent_id=name, spec=AgentSpec(name=agent.rpartition("-")[0], kind=kind), made_by="person"),
        SubtaskAssigned(at=2, stage_id=STAGE, subtask_id=subtask, agent_id=name),
        *(
            StepEnded(
                at=3,
                step_id=StepId(f"{agent}#{number}"),
                thread_id=ThreadId(f"{agent}@t1"),
                attempt=1,
                state="finished",
                spent=spent,
            )
            for number in range(steps)
        ),
        *ended,
    )


async def write_run(log: Log, stream: str, events: Iterable[Event]) -> None:
    """Append events to a stream, which is created if it is not there."""
    lease = await log.acquire(stream, "me", made_at=1)
    assert isinstance(lease, Lease)
    version = (await log.head(stream)).version
    new = [encode_event(event) for event in events]
    await log.append(
        EventBatch(stream=stream, expected_version=version, epoch=lease.epoch, batch=f"{stream}-{version}", events=new)
    )
    await log.release(lease)
