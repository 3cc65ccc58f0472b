"""A tool called by a person: a step in the log like every other, under the same rules, and already agreed to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from greenroom.app.conversation.kits import HandsOf
from greenroom.app.kit import Kit, KitMaker
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import AgentId, StepId, TaskId, TeamId, agent_of, step_id, task_id
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Abilities
from greenroom.core.rules.intents import AddTask, AnswerApproval, FinishTask, QueueSteps
from greenroom.core.state.approval import Approval
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team import Team
from greenroom.core.sync import replay

BY_HAND: Final = "by-hand"
YOU: Final = AgentId("you")
CALL: Final[TaskId] = task_id(1)


def by_hand_kits(hands: HandsOf) -> Mapping[str, KitMaker]:
    """The kit of such a call."""

    def kit(team: Team) -> Kit:
        mine = hands(Path(team.workspace))
        return Kit(abilities=Abilities(mine.executors), closing=mine.close)

    return {BY_HAND: kit}


async def found_by_hand(runtime: Runtime, root: Path, tool: str, arguments: Data) -> TeamId:
    """A team of the person alone, whose only step is this call; it does not work yet."""
    work = Work(type="tool", executor=tool, instruction_content=arguments)
    task = AddTask(name=tool, intention=f"Call {tool} by hand.", manager=YOU, group=(YOU,), driver="manager")
    queued = QueueSteps(agent_id=YOU, works=(work,), task_id=CALL)
    you = AgentSpec(name=YOU, role="the person", manager=True, tools=(tool,))
    return await runtime.create(tool, [(YOU, you)], kit=BY_HAND, workspace=str(root), begin=(task, queued))


async def called_by_hand(runtime: Runtime, team: TeamId) -> Step:
    """Have it done, and say what came of it."""
    try:
        await runtime.start(team)
        await runtime.wait(team, CALL)
        while asked := [one for one in (await runtime.world(team)).approvals.values() if one.state == "pending"]:
            await runtime.ask(team, *map(_agreed, asked))
            await runtime.wait(team, CALL)
        step = next(iter([step async for step in runtime.archive(team, "step") if isinstance(step, Step)]), None)
        if step is None:
            raise Bug(f"The call of {team!r} has not ended, and nothing happens in it any more.")
        done = step.state == "finished"
        await runtime.ask(team, FinishTask(task_id=CALL, state="finished" if done else "failed", summary=step.error))
        return step
    finally:
        await runtime.stop(team)


def _agreed(one: Approval) -> AnswerApproval:
    """A yes; to a question of a tool, which an agent would ask a person, there is nobody else to ask."""
    return AnswerApproval(approval_id=one.approval_id, answer="denied" if one.words else "approved")


async def ended_step(runtime: Runtime, team: TeamId, name: StepId) -> Step | None:
    """An ended step of a team; None when it has none of that name. For a name that somebody made up nothing is read."""
    world = await runtime.world(team)
    agent, number = world.agents.get(agent_of(name)), name.rpartition("#")[2]
    made = int(number) if number.isdecimal() and len(number) < 10 else 0
    if agent is None or name in world.steps or not 0 < made <= agent.steps_made:
        return None
    return await replay.ended_step(runtime.log, team, name) if name == step_id(agent.agent_id, made) else None
