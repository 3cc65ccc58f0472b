"""Random intents about the team, its agents, tasks, stages and subtasks."""

from __future__ import annotations

from random import Random

from greenroom.core.base.amounts import UNLIMITED, Limits
from greenroom.core.base.ids import StageId, SubtaskId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.agent import Capability
from greenroom.core.state.spec import AgentKind, AgentSpec, AgentStyle, Cooperation
from greenroom.core.state.stage import MemberState, SubtaskEnd
from greenroom.core.state.step import Work
from greenroom.core.state.team import ForkOrigin
from greenroom.core.state.team_state import TeamState
from tests.core.wishes import words

NAMES = ("one", "two", "three", "four", "five")
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


def cooperation(rng: Random) -> Cooperation | None:
    return rng.choice((None, Cooperation(concurrency=rng.randrange(3))))


def add_agent(rng: Random, _: TeamState) -> i.AddAgent:
    name = rng.choice(words.NAMES)
    kind: AgentKind = rng.choice(("llm", "llm", "human", "system"))
    spec = AgentSpec(
        name=str(name),
        kind=kind,
        style=rng.choice(("plan", "converse")),
        manager=rng.randrange(4) == 0,
        tools=("shell",),
        cooperation=cooperation(rng),
    )
    return rng.choice((i.AddAgent(agent_id=name, spec=spec), i.AddAgent(agent_id=name, blueprint="guest")))


def change_agent(rng: Random, state: TeamState) -> i.ChangeAgent:
    name = words.agent(rng, state)
    style: AgentStyle = rng.choice(("plan", "converse"))
    spec = AgentSpec(
        name=rng.choice((str(name), "writer")),
        style=style,
        tools=rng.choice((("shell",), ())),
        role="another",
        cooperation=cooperation(rng),
    )
    return i.ChangeAgent(agent_id=name, spec=spec)


def remove_agent(rng: Random, state: TeamState) -> i.RemoveAgent:
    return i.RemoveAgent(agent_id=words.agent(rng, state))


def add_participants(rng: Random, state: TeamState) -> i.AddParticipants:
    return i.AddParticipants(task_id=words.task(rng, state), agents=(words.agent(rng, state), words.agent(rng, state)))


def update_working_memory(rng: Random, state: TeamState) -> i.UpdateWorkingMemory:
    stage = rng.choice((None, words.stage(rng, state)))
    return i.UpdateWorkingMemory(agent_id=words.agent(rng, state), task_id=words.task(rng, state), stage_id=stage)


def stage_plan(rng: Random, state: TeamState) -> i.StagePlan:
    names = NAMES[: rng.randint(0 if rng.randrange(8) == 0 else 1, 3)]
    return i.StagePlan(
        intention="get on",
        subtasks=tuple(subtask_plan(rng, state, name, names) for name in names),
        on_failure=rng.choice(("stop", "continue", "escalate")),
        concurrency=rng.choice((0, 0, 1, 2)),
    )


def subtask_plan(rng: Random, state: TeamState, name: str, names: tuple[str, ...]) -> i.SubtaskPlan:
    return i.SubtaskPlan(
        name=name,
        duty=f"do {name}",
        agent=words.agent(rng, state),
        needs=tuple(rng.sample(names, k=1)) if rng.randrange(3) == 0 else (),
        required=rng.randrange(4) > 0,
        priority=rng.randrange(3),
        tries=rng.choice((1, 1, 2, 3)),
        work=(Work(type="tool", executor="shell"),) if rng.randrange(4) == 0 else (),
        anyway=rng.randrange(6) == 0,
    )


def replan(rng: Random, state: TeamState) -> i.Replan:
    """Keep most subtasks, change some, add some, leave some out."""
    stage = words.stage(rng, state)
    known = {one.name: one for one in state.stages[stage].subtasks} if stage in state.stages else {}
    old = {one.subtask_id: name for name, one in known.items()}
    names = (*known, *rng.sample([name for name in NAMES if name not in known], k=rng.randrange(2) if known else 1))
    plans = []
    for name in names:
        plan = subtask_plan(rng, state, name, names)
        if name in known and rng.randrange(4):
            one = known[name]
            needs = tuple(old[need] for need in one.needs)
            plan = evolve(plan, agent=one.agent, duty=one.duty, needs=needs, work=one.work)
        if name not in known or known[name].state != "init" or rng.randrange(3):
            plans.append(plan)
    agents = tuple(add_agent(rng, state) for _ in range(rng.randrange(5) == 0))
    return i.Replan(stage_id=stage, subtasks=tuple(plans), agents=agents)


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
