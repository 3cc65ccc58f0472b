"""The plan of a running team: read it from its stage, and change it. The rules check the change in one commit."""

from __future__ import annotations

from collections.abc import Mapping

from greenroom.abilities.skills.conversation.builtin_calls import build_finish
from greenroom.abilities.tools.tool import CardedTool, make_card
from greenroom.app.lookup import make_refusal
from greenroom.app.messages import translate
from greenroom.app.teams.start import (
    ARCHITECT,
    CODE_WRITER,
    SPLIT,
    name_members,
    plan_subtask,
)
from greenroom.core.base.ids import AgentId, SubtaskId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.rules.intents import AddAgent, Replan
from greenroom.core.state.stage import Stage, Subtask, SubtaskPlan
from greenroom.core.state.team_state import TeamState
from greenroom.runs import checkout
from greenroom.runs.workspace import WANTED_KEY, RunFlags
from greenroom.teamwork.plan import Plan, PlannedSubtask
from greenroom.teamwork.plan_graph import OWN_SUBTASKS, SPLIT_SUBTASK, VERIFY_SUBTASK
from greenroom.teamwork.planner import split_by_design


def read_plan(state: TeamState, stage: Stage) -> Plan:
    """Return the plan of a stage, without Greenroom's own subtasks."""
    names = {subtask.subtask_id: subtask.name for subtask in stage.subtasks}
    return Plan(
        request=stage.intention,
        task_types=(),
        subtasks=tuple(
            _read_subtask(state, subtask, names) for subtask in stage.subtasks if subtask.name not in OWN_SUBTASKS
        ),
        source="file",
        on_failure=stage.on_failure,
        max_concurrent=stage.concurrency,
    )


def _read_subtask(state: TeamState, subtask: Subtask, names: Mapping[SubtaskId, str]) -> PlannedSubtask:
    return PlannedSubtask(
        id=subtask.name,
        name=subtask.title or subtask.name,
        agent=state.agents[subtask.agent].spec.name,
        description=subtask.duty,
        dependencies=tuple(names[need] for need in subtask.needs if names[need] not in OWN_SUBTASKS),
        priority=subtask.priority,
        seconds=subtask.seconds,
        writes=subtask.writes,
        required=subtask.required,
        tries=subtask.tries,
    )


def build_replan(state: TeamState, stage: Stage, plan: Plan) -> Replan:
    """Return the change of a stage to a plan. New subtasks and changed profiles get new agents.

    Raise `RefusedError` if the whole is being verified: what comes later would not be.
    """
    if any(subtask.name == VERIFY_SUBTASK and subtask.state != "init" for subtask in stage.subtasks):
        raise make_refusal("verifying", translate("teams.verifying"), translate("teams.replan_too_late"))
    known = {subtask.name: subtask for subtask in stage.subtasks}
    names = {subtask.subtask_id: subtask.name for subtask in stage.subtasks}
    kept = {
        subtask.id: known[subtask.id].agent
        for subtask in plan.subtasks
        if subtask.id in known and state.agents[known[subtask.id].agent].spec.name == subtask.agent
    }
    free = _list_free_agents(state, stage, plan)
    kept |= {
        subtask.id: free[subtask.agent].pop(0)
        for subtask in plan.subtasks
        if subtask.id not in kept and free.get(subtask.agent)
    }
    new = [subtask for subtask in plan.subtasks if subtask.id not in kept]
    agents = {**kept, **name_members(new, (*state.agents, *state.retired))}
    own = [_keep(subtask, names) for subtask in stage.subtasks if subtask.name in OWN_SUBTASKS]
    work = [
        _keep(known[subtask.id], names)
        if subtask.id in known and not _can_change(known[subtask.id], subtask)
        else plan_subtask(
            subtask, agents[subtask.id], _find_needs(subtask, stage), setup=_has_setup(stage), wanted=_read_flags(stage)
        )
        for subtask in plan.subtasks
    ]
    everything = tuple(subtask.name for subtask in (*own, *work) if subtask.name != VERIFY_SUBTASK)
    own = [evolve(subtask, needs=everything) if subtask.name == VERIFY_SUBTASK else subtask for subtask in own]
    first, last = own[:-1], own[-1:]
    added = tuple(AddAgent(agent_id=agents[subtask.id], blueprint=subtask.agent) for subtask in new)
    return Replan(stage_id=stage.stage_id, subtasks=(*first, *work, *last), agents=added)


def _list_free_agents(state: TeamState, stage: Stage, plan: Plan) -> dict[str, list[AgentId]]:
    """Return the agents whose subtasks have not started and are not in the plan, by profile."""
    names, free = {subtask.id for subtask in plan.subtasks}, dict[str, list[AgentId]]()
    for subtask in stage.subtasks:
        if subtask.state == "init" and subtask.name not in names | set(OWN_SUBTASKS):
            free.setdefault(state.agents[subtask.agent].spec.name, []).append(subtask.agent)
    return free


def _can_change(subtask: Subtask, planned: PlannedSubtask) -> bool:
    """Return whether a subtask waits, or has failed and is to be tried again."""
    return subtask.state == "init" or (subtask.state == "failed" and planned.tries > subtask.attempt)


def _find_needs(subtask: PlannedSubtask, stage: Stage) -> tuple[str, ...]:
    splits = subtask.agent == CODE_WRITER and any(own.name == SPLIT_SUBTASK for own in stage.subtasks)
    return (*subtask.dependencies, SPLIT_SUBTASK) if splits else subtask.dependencies


def _keep(subtask: Subtask, names: Mapping[SubtaskId, str]) -> SubtaskPlan:
    """Return the plan of a subtask that stays as it is."""
    return SubtaskPlan(
        name=subtask.name,
        title=subtask.title,
        duty=subtask.duty,
        agent=subtask.agent,
        needs=tuple(names[need] for need in subtask.needs),
        required=subtask.required,
        priority=subtask.priority,
        tries=subtask.tries,
        seconds=subtask.seconds,
        writes=subtask.writes,
        work=subtask.work,
        anyway=subtask.anyway,
    )


def _has_setup(stage: Stage) -> bool:
    return any(work.executor == checkout.NAME for subtask in stage.subtasks for work in subtask.work)


def _read_flags(stage: Stage) -> RunFlags:
    """Return the flags that the person gave at the start: the first steps of the specialists carry them."""
    for subtask in stage.subtasks:
        for work in subtask.work:
            flags = (work.instruction_content or {}).get(WANTED_KEY)
            if isinstance(flags, Mapping):
                return RunFlags(**{str(name): bool(value) for name, value in flags.items()})
    return RunFlags()


class SplitTool(CardedTool):
    """Splits the code by the architect's design, so that parallel writers rarely meet. It decides by rules alone."""

    card = make_card(SPLIT, "Split the code by the design.", {"type": "object"}, group="read")

    def __init__(self, max_subtasks: int) -> None:
        self._max_subtasks = max_subtasks

    async def run(self, context: StepContext) -> Outcome:
        """Replace the code subtask by one per disjoint write set, or leave it as it is."""
        state, step = context.state, context.step
        stage = state.stages[step.stage_id] if step.stage_id is not None else None
        outputs = [
            subtask.output
            for subtask in (stage.subtasks if stage is not None else ())
            if subtask.output is not None and state.agents[subtask.agent].spec.name == ARCHITECT
        ]
        plan = read_plan(state, stage) if stage is not None else None
        parts = split_by_design(plan.subtasks, outputs[0], self._max_subtasks) if plan and outputs else None
        if stage is None or plan is None or parts is None:
            text = "The code stays one part: the design names no two parts with different files."
            return Outcome(result={"output": text}, intents=(build_finish(step, text),))
        text = f"The code is split: {', '.join(part.id for part in parts if part.agent == CODE_WRITER)}."
        change = build_replan(state, stage, evolve(plan, subtasks=parts))
        return Outcome(result={"output": text}, intents=(change, build_finish(step, text)))
