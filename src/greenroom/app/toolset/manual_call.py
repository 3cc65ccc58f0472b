"""A tool call by a person: a step in the log under the same rules, already approved."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from greenroom.app.conversation.factories import TeamToolsFactory
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import AgentId, StepId, TaskId, TeamId, agent_of, step_id, task_id
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Capabilities
from greenroom.core.rules.intents import AddTask, AnswerApproval, FinishTask, QueueSteps
from greenroom.core.state.approval import Approval
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team import Team
from greenroom.core.sync import replay

MANUAL_CALL: Final = "by-hand"
YOU: Final = AgentId("you")
CALL_TASK: Final[TaskId] = task_id(1)


def make_manual_call_capabilities(make_tools: TeamToolsFactory, team: Team) -> Capabilities:
    toolset = make_tools(Path(team.workspace))
    return Capabilities(toolset.executors, on_close=toolset.close)


async def create_manual_call(runtime: Runtime, root: Path, tool: str, arguments: Data) -> TeamId:
    """Create a team with the person and this call as the only step. It does not start yet."""
    work = Work(type="tool", executor=tool, instruction_content=arguments)
    task = AddTask(name=tool, intention=f"Call {tool} by hand.", manager=YOU, group=(YOU,), driver="manager")
    queued = QueueSteps(agent_id=YOU, works=(work,), task_id=CALL_TASK)
    you = AgentSpec(name=YOU, role="the person", manager=True, tools=(tool,))
    return await runtime.create(
        tool, [(YOU, you)], capabilities_name=MANUAL_CALL, workspace=str(root), first_intents=(task, queued)
    )


async def run_manual_call(runtime: Runtime, team: TeamId) -> Step:
    """Run the call and return its step."""
    try:
        await runtime.start(team)
        await runtime.wait(team, CALL_TASK)
        while pending := [
            approval for approval in (await runtime.state(team)).approvals.values() if approval.state == "pending"
        ]:
            await runtime.ask(team, *map(_make_answer, pending))
            await runtime.wait(team, CALL_TASK)
        step = next(iter([step async for step in runtime.archive(team, "step") if isinstance(step, Step)]), None)
        if step is None:
            raise Bug(f"The call of {team!r} has not ended and cannot continue.")
        is_finished = step.state == "finished"
        await runtime.ask(
            team, FinishTask(task_id=CALL_TASK, state="finished" if is_finished else "failed", summary=step.error)
        )
        return step
    finally:
        await runtime.stop(team)


def _make_answer(approval: Approval) -> AnswerApproval:
    """Approve the call. A question that wants a text is denied, because the person is the caller."""
    return AnswerApproval(approval_id=approval.approval_id, answer="denied" if approval.words else "approved")


async def find_ended_step(runtime: Runtime, team: TeamId, name: StepId) -> Step | None:
    """Return an ended step of a team, or None. Nothing is read for an id that cannot exist."""
    state = await runtime.state(team)
    agent, number = state.agents.get(agent_of(name)), name.rpartition("#")[2]
    number_made = int(number) if number.isdecimal() and len(number) < 10 else 0
    if agent is None or name in state.steps or not 0 < number_made <= agent.steps_made:
        return None
    return (
        await replay.read_ended_step(runtime.log, team, name) if name == step_id(agent.agent_id, number_made) else None
    )
