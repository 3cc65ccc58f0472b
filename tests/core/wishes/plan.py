"""Random intents about the team, its agents, tasks, stages and subtasks."""

from __future__ import annotations

from random import Random

from greenroom.core.base.amounts import UNLIMITED, Limits
from greenroom.core.base.ids import StageId, SubtaskId, TeamId
from greenroom.core.rules import intents as i
from greenroom.core.state.agent import Capability
from greenroom.core.state.spec import AgentKind, AgentSpec, AgentStyle
from greenroom.core.state.stage import MemberState, SubtaskEnd
from greenroom.core.state.team import ForkOrigin
from greenroom.core.state.team_state import TeamState
from tests.core.wishes import words

SPEC = AgentSpec(name="guest", role="helper", tools=("shell",))


def create_team(rng: Random, _: TeamState) -> i.CreateTeam:
    return i.CreateTeam(team_id=TeamId("again"), name="again")


def fork_team(rng: Random, state: TeamState) -> i.ForkTeam:
    return i.ForkTeam(
        team_id=TeamId(f"fork{rng.randrange(3)}"), origin=ForkOrigin(team_id=state.team.team_id, version=1)
    )


def recover(rng: Random, state: TeamState) -> i.Recover:
    return i.Recover(epoch=state.team.epoch + rng.randint(0, 2), owner="somebody")


def declare(rng: Random, _: TeamState) -> i.Declare:
    ability = Capability(name="shell", type="tool", description=rng.choice(("a shell", "a better shell")))
    patience = rng.choice((None, 0, 1000))
    return i.Declare(blueprints=(SPEC,) if rng.randrange(2) else (), abilities=(ability,), approvals_expire=patience)


def pause_team(rng: Random, _: TeamState) -> i.PauseTeam:
    return i.PauseTeam(now=rng.random() < 0.5)


def resume_team(_: Random, __: TeamState) -> i.ResumeTeam:
    return i.ResumeTeam()


def add_agent(rng: Random, _: TeamState) -> i.AddAgent:
    name = rng.choice(words.NAMES)
    kind: AgentKind = rng.choice(("llm", "llm", "human", "system"))
    spec = AgentSpec(
        name=str(name),
        kind=kind,
        style=rng.choice(("plan", "converse")),
        manager=rng.randrange(4) == 0,
        tools=("shell",),
    )
    return rng.choice((i.AddAgent(agent_id=name, spec=spec), i.AddAgent(agent_id=name, blueprint="guest")))


def change_agent(rng: Random, state: TeamState) -> i.ChangeAgent:
    name = words.agent(rng, state)
    style: AgentStyle = rng.choice(("plan", "converse"))
    spec = AgentSpec(name=str(name), style=style, tools=rng.choice((("shell",), ())), role="another")
    return i.ChangeAgent(agent_id=name, spec=spec)


def remove_agent(rng: Random, state: TeamState) -> i.RemoveAgent:
    return i.RemoveAgent(agent_id=words.agent(rng, state))


def add_participants(rng: Random, state: TeamState) -> i.AddParticipants:
    return i.AddParticipants(task_id=words.task(rng, state), agents=(words.agent(rng, state), words.agent(rng, state)))


def update_working_memory(rng: Random, state: TeamState) -> i.UpdateWorkingMemory:
    stage = rng.choice((None, words.stage(rng, state)))
    return i.UpdateWorkingMemory(agent_id=words.agent(rng, state), task_id=words.task(rng, state), stage_id=stage)


def stage_plan(rng: Random, state: TeamState) -> i.StagePlan:
    names = ("one", "two", "three")[: rng.randint(0 if rng.randrange(8) == 0 else 1, 3)]
    subtasks = tuple(
        i.SubtaskPlan(
            name=name,
            duty=f"do {name}",
            agent=words.agent(rng, state),
            needs=tuple(rng.sample(names, k=1)) if rng.randrange(3) == 0 else (),
        )
        for name in names
    )
    return i.StagePlan(intention="get on", subtasks=subtasks, on_failure=rng.choice(("stop", "continue", "escalate")))


def add_task(rng: Random, state: TeamState) -> i.AddTask:
    limits = Limits(money=20, tokens=40, hops=rng.randint(0, 6)) if rng.randrange(3) == 0 else UNLIMITED
    return i.AddTask(
        name="more",
        intention="do more",
        manager=words.agent(rng, state),
        group=words.some(rng, state.agents, 4),
        stages=tuple(stage_plan(rng, state) for _ in range(rng.randrange(3))),
        limits=limits,
        start=rng.randrange(4) > 0,
        driver=rng.choice(("auto", "manager")),
    )


def start_task(rng: Random, state: TeamState) -> i.StartTask:
    return i.StartTask(task_id=words.task(rng, state))


def finish_task(rng: Random, state: TeamState) -> i.FinishTask:
    return i.FinishTask(task_id=words.task(rng, state), state=rng.choice(("finished", "failed")))


def pause_task(rng: Random, state: TeamState) -> i.PauseTask:
    return i.PauseTask(task_id=words.task(rng, state), now=rng.random() < 0.5)


def resume_task(rng: Random, state: TeamState) -> i.ResumeTask:
    return i.ResumeTask(task_id=words.task(rng, state))


def cancel_task(rng: Random, state: TeamState) -> i.CancelTask:
    return i.CancelTask(task_id=words.task(rng, state))


def add_stages(rng: Random, state: TeamState) -> i.AddStages:
    plans = tuple(stage_plan(rng, state) for _ in range(rng.randint(1, 2)))
    return i.AddStages(task_id=words.task(rng, state), stages=plans)


def start_stage(rng: Random, state: TeamState) -> i.StartStage:
    first = [task.stages[0] for _, task in sorted(state.tasks.items()) if task.stages]
    return i.StartStage(stage_id=rng.choice(first) if first and rng.randrange(4) else words.stage(rng, state))


def finish_stage(rng: Random, state: TeamState) -> i.FinishStage:
    return i.FinishStage(stage_id=words.stage(rng, state), state=rng.choice(("finished", "failed")))


def report_stage(rng: Random, state: TeamState) -> i.ReportStage:
    return i.ReportStage(stage_id=words.stage(rng, state))


def subtask(rng: Random, state: TeamState) -> tuple[StageId, SubtaskId]:
    known = [(name, one.subtask_id) for name, stage in sorted(state.stages.items()) for one in stage.subtasks]
    return rng.choice(known) if known and rng.randrange(10) else (words.stage(rng, state), SubtaskId(words.GHOST))


def assign_subtask(rng: Random, state: TeamState) -> i.AssignSubtask:
    stage, name = subtask(rng, state)
    return i.AssignSubtask(stage_id=stage, subtask_id=name)


def finish_subtask(rng: Random, state: TeamState) -> i.FinishSubtask:
    stage, name = subtask(rng, state)
    state_name: SubtaskEnd = rng.choice(("finished", "failed", "skipped", "cancelled"))
    return i.FinishSubtask(stage_id=stage, subtask_id=name, state=state_name, summary=rng.choice(("", "done")))


def update_stage_agent_state(rng: Random, state: TeamState) -> i.UpdateStageAgentState:
    state_name: MemberState = rng.choice(("idle", "working", "finished", "failed"))
    return i.UpdateStageAgentState(stage_id=words.stage(rng, state), agent_id=words.agent(rng, state), state=state_name)


def update_stage_agent_completion(rng: Random, state: TeamState) -> i.UpdateStageAgentCompletion:
    return i.UpdateStageAgentCompletion(
        stage_id=words.stage(rng, state), agent_id=words.agent(rng, state), completion_summary="my part"
    )
