"""The plan of a running team: read it from its stage, and change it. The rules check the change in one commit."""

from __future__ import annotations

from msgspec import convert

from greenroom.abilities.skills.conversation.builtin_calls import build_finish
from greenroom.abilities.tools.tool import CardedTool, make_card
from greenroom.app.messages import translate
from greenroom.app.teams.start import ARCHITECT, CODE_WRITER, SPLIT, name_members, plan_subtask
from greenroom.core.base.errors import Rejection, make_refusal
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.rules.decide import decide
from greenroom.core.rules.intents import AddAgent, Replan
from greenroom.core.state.stage import Stage, Subtask, SubtaskPlan
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.teamwork.plan import Plan, PlannedSubtask
from greenroom.teamwork.plan_graph import OWN_SUBTASKS, VERIFY_SUBTASK
from greenroom.teamwork.planner import split_by_design


def read_plan(state: TeamState, stage: Stage) -> Plan:
    """Return the plan of a stage, without Greenroom's own subtasks."""
    names = {subtask.subtask_id: subtask.name for subtask in stage.subtasks if subtask.name not in OWN_SUBTASKS}
    subtasks = [
        PlannedSubtask(
            id=subtask.name,
            name=subtask.title or subtask.name,
            agent=state.agents[subtask.agent].spec.name,
            description=subtask.duty,
            dependencies=tuple(names[need] for need in subtask.needs if need in names),
            priority=subtask.priority,
            seconds=subtask.seconds,
            writes=subtask.writes,
            required=subtask.required,
            tries=subtask.tries,
        )
        for subtask in stage.subtasks
        if subtask.subtask_id in names
    ]
    return Plan(
        request=stage.intention,
        subtasks=tuple(subtasks),
        source="file",
        on_failure=stage.on_failure,
        max_concurrent=stage.concurrency,
    )


def build_replan(state: TeamState, stage: Stage, plan: Plan) -> Replan:
    """Return the change of a stage to a plan. New subtasks and changed profiles get new agents.

    Raise `RefusedError` if the whole is being verified: what comes later would not be.
    """
    if any(subtask.name == VERIFY_SUBTASK and subtask.state != "init" for subtask in stage.subtasks):
        raise make_refusal("verifying", translate("teams.verifying"), translate("teams.replan_too_late"))
    kept = _choose_agents(state, stage, plan)
    new = [subtask for subtask in plan.subtasks if subtask.id not in kept]
    agents = {**kept, **name_members(new, (*state.agents, *state.retired))}
    first_steps = next(subtask.work for subtask in stage.subtasks if subtask.name not in OWN_SUBTASKS)
    *own, verify = [_read_plan_of(subtask, stage) for subtask in stage.subtasks if subtask.name in OWN_SUBTASKS]
    work = [
        plan_subtask(subtask, agents[subtask.id], subtask.dependencies, first_steps, own) for subtask in plan.subtasks
    ]
    verify = evolve(verify, needs=tuple(subtask.name for subtask in (*own, *work)))
    added = tuple(AddAgent(agent_id=agents[subtask.id], blueprint=subtask.agent) for subtask in new)
    return Replan(stage_id=stage.stage_id, subtasks=(*own, *work, verify), agents=added)


def _choose_agents(state: TeamState, stage: Stage, plan: Plan) -> dict[str, AgentId]:
    """Return the agents that are there: of the same profile, and of the same subtask or of one that goes unstarted."""
    names = {*OWN_SUBTASKS, *(subtask.id for subtask in plan.subtasks)}
    own = {subtask.name: subtask.agent for subtask in stage.subtasks}
    free = [subtask.agent for subtask in stage.subtasks if subtask.state == "init" and subtask.name not in names]
    chosen = dict[str, AgentId]()
    for subtask in plan.subtasks:
        candidates = [own[subtask.id], *free] if subtask.id in own else free
        for agent in [agent for agent in candidates if state.agents[agent].spec.name == subtask.agent][:1]:
            chosen[subtask.id] = agent
            free = [other for other in free if other != agent]
    return chosen


def _read_plan_of(subtask: Subtask, stage: Stage) -> SubtaskPlan:
    """Return the plan of a subtask that stays as it is."""
    names = tuple(other.name for other in stage.subtasks if other.subtask_id in subtask.needs)
    return convert(evolve(subtask, needs=names), SubtaskPlan, from_attributes=True)


class SplitTool(CardedTool):
    """Splits the code by the architect's design, so that parallel writers rarely meet. It decides by rules alone."""

    card = make_card(SPLIT, "Split the code by the design.", {"type": "object"}, group="read")

    def __init__(self, max_subtasks: int) -> None:
        self._max_subtasks = max_subtasks

    async def run(self, context: StepContext) -> Outcome:
        """Replace the code subtask by one per disjoint write set, or leave it as it is."""
        state, step = context.state, context.step
        stage = next(stage for stage in state.stages.values() if stage.stage_id == step.stage_id)
        designs = (part.output for part in stage.subtasks if state.agents[part.agent].spec.name == ARCHITECT)
        plan = read_plan(state, stage)
        parts = split_by_design(plan.subtasks, next(filter(None, designs), {}), self._max_subtasks)
        if parts is None:
            return _finish_split(step, translate("teams.one_part"))
        change = build_replan(state, stage, evolve(plan, subtasks=parts))
        refused = decide(state, change, by=step.agent_id, now=0)
        if isinstance(refused, Rejection):
            return _finish_split(step, translate("teams.one_part_refused", why=refused))
        names = ", ".join(part.id for part in parts if part.agent == CODE_WRITER)
        return _finish_split(step, translate("teams.parts", names=names), change)


def _finish_split(step: Step, text: str, *changes: Replan) -> Outcome:
    return Outcome(result={"output": text}, intents=(*changes, build_finish(step, text)))
