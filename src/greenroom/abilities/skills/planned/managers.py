"""The skills `task_manager` and `agent_manager`: start and end tasks and stages, create agents and assign them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, cast

from greenroom.abilities.skills.planned.answer import build_enum, build_form, build_list, build_object, resolve_agents
from greenroom.abilities.skills.planned.skill import TEXT_SCHEMA, Skill, SkillAnswer, SkillContext, SkillResult
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import AgentId, StageId, TaskId
from greenroom.core.base.records import Data
from greenroom.core.rules.intents import (
    AddAgent,
    AddParticipants,
    AddStages,
    AddTask,
    Consequence,
    FinishStage,
    FinishTask,
    StagePlan,
    SubtaskPlan,
)
from greenroom.core.rules.steps import MANAGER_SKILLS
from greenroom.core.state.spec import AgentSpec

ActionFields = Mapping[str, object]

END_STATE_SCHEMA: Final = build_enum("finished", "failed")
STAGES_SCHEMA: Final = build_list(
    build_object(
        stage_intention=TEXT_SCHEMA, agent_allocation=build_list(build_object(agent_id=TEXT_SCHEMA, duty=TEXT_SCHEMA))
    )
)
TASK_SHAPE: Final[Data] = {
    "anyOf": [
        build_form(
            "add_task",
            task_name=TEXT_SCHEMA,
            task_intention=TEXT_SCHEMA,
            task_group=build_list(TEXT_SCHEMA),
            stages=STAGES_SCHEMA,
        ),
        build_form("add_stage", task_id=TEXT_SCHEMA, stages=STAGES_SCHEMA),
        build_form("finish_stage", stage_id=TEXT_SCHEMA, state=END_STATE_SCHEMA, summary=TEXT_SCHEMA),
        build_form("finish_task", task_id=TEXT_SCHEMA, state=END_STATE_SCHEMA, summary=TEXT_SCHEMA),
    ]
}


def _add_task(skill_context: SkillContext, said: ActionFields) -> tuple[Consequence, ...]:
    made = AddTask(
        group=resolve_agents(skill_context, cast("Sequence[object]", said["task_group"])),
        name=_read_text(said, "task_name"),
        intention=_read_text(said, "task_intention"),
        manager=skill_context.agent.agent_id,
        stages=_read_stages(skill_context, said),
        driver="manager",
    )
    return (made,)


def _add_stage(skill_context: SkillContext, said: ActionFields) -> tuple[Consequence, ...]:
    """Add a stage. Agents of the stage that are not yet in the task's group are added first."""
    name = _find_task(skill_context, _read_text(said, "task_id"))
    stages = _read_stages(skill_context, said)
    if not stages:
        raise ModelFault("There is no stage in `stages`. Add at least one.")
    needed = dict.fromkeys(item.agent for stage in stages for item in stage.subtasks)
    new = tuple(item for item in needed if item not in skill_context.state.tasks[name].group)
    added = (AddParticipants(task_id=name, agents=new),) if new else ()
    return (*added, AddStages(task_id=name, stages=stages))


def _finish_stage(skill_context: SkillContext, said: ActionFields) -> tuple[Consequence, ...]:
    name = StageId(_read_text(said, "stage_id"))
    if name not in skill_context.state.stages:
        known = ", ".join(sorted(skill_context.state.stages)) or "none"
        raise ModelFault(f"There is no open stage {name!r}. Open stages: {known}.")
    return (FinishStage(stage_id=name, state=_read_end_state(said), summary=str(said["summary"])),)


def _finish_task(skill_context: SkillContext, said: ActionFields) -> tuple[Consequence, ...]:
    name = _find_task(skill_context, _read_text(said, "task_id"))
    return (FinishTask(task_id=name, state=_read_end_state(said), summary=str(said["summary"])),)


def _read_stages(skill_context: SkillContext, said: ActionFields) -> tuple[StagePlan, ...]:
    return tuple(_read_stage(skill_context, stage) for stage in cast("Sequence[ActionFields]", said["stages"]))


def _read_stage(skill_context: SkillContext, said: ActionFields) -> StagePlan:
    """Read a stage. The manager decides about failures in it."""
    duties: dict[AgentId, str] = {}
    for allocation in cast("Sequence[ActionFields]", said["agent_allocation"]):
        (agent,) = resolve_agents(skill_context, (allocation["agent_id"],))
        duties[agent] = "\n".join(filter(None, (duties.get(agent, ""), str(allocation["duty"]))))
    subtasks = tuple(SubtaskPlan(name=agent, duty=duty, agent=agent) for agent, duty in duties.items())
    if not subtasks:
        raise ModelFault(f"The stage {str(said['stage_intention'])!r} has no agents. Give agent_allocation.")
    return StagePlan(intention=str(said["stage_intention"]), subtasks=subtasks, on_failure="escalate")


def _read_text(said: ActionFields, name: str) -> str:
    text = str(said[name]).strip()
    if not text:
        raise ModelFault(f"{name!r} is empty.")
    return text


def _read_end_state(said: ActionFields) -> Literal["finished", "failed"]:
    return "finished" if said["state"] == "finished" else "failed"


ACTION_DEFAULTS: Final[Mapping[str, ActionFields]] = {
    "add_task": {"task_group": []},
    "finish_stage": {"state": "finished", "summary": ""},
    "finish_task": {"state": "finished", "summary": ""},
    "init_new_agent": {
        "blueprint": "",
        "name": "",
        "role": "",
        "profile": "",
        "task_id": "",
        "skills": [],
        "tools": [],
    },
}
"""Default values of omitted fields, by action."""


def normalize_answer(value: object) -> object:
    """Normalise the answer. MAS writes a single stage without a list, and allocations by agent."""
    if not isinstance(value, Mapping):
        return value
    found = dict(value)
    if found.get("action") in ("add_stage", "add_task"):
        single = {name: found.pop(name) for name in ("stage_intention", "agent_allocation") if name in found}
        stages = found.setdefault("stages", [single] if single else [])
        found["stages"] = [_normalize_stage(stage) for stage in stages] if isinstance(stages, list) else []
    for name, default in ACTION_DEFAULTS.get(str(found.get("action")), {}).items():
        found.setdefault(name, default)
    return found


def _normalize_stage(stage: object) -> object:
    allotted = stage.get("agent_allocation") if isinstance(stage, Mapping) else None
    if not isinstance(stage, Mapping) or not isinstance(allotted, Mapping):
        return stage
    return {**stage, "agent_allocation": [{"agent_id": agent_id, "duty": duty} for agent_id, duty in allotted.items()]}


TASK_MANAGER: Final = Skill(
    name="task_manager",
    tag="task_instruction",
    key="task_instruction",
    build_schema=lambda _: TASK_SHAPE,
    normalize=normalize_answer,
    interpret=lambda moment, answer: _interpret_action(moment, answer, "agent_id"),
)


AGENT_SHAPE: Final[Data] = {
    "anyOf": [
        build_form(
            "init_new_agent",
            agent_id=TEXT_SCHEMA,
            blueprint=TEXT_SCHEMA,
            name=TEXT_SCHEMA,
            role=TEXT_SCHEMA,
            profile=TEXT_SCHEMA,
            skills=build_list(TEXT_SCHEMA),
            tools=build_list(TEXT_SCHEMA),
            task_id=TEXT_SCHEMA,
        ),
        build_form("add_task_participant", task_id=TEXT_SCHEMA, agents=build_list(TEXT_SCHEMA)),
    ]
}


def _init_new_agent(skill_context: SkillContext, said: ActionFields) -> tuple[Consequence, ...]:
    """Create an agent from a spec that people wrote, or as the manager describes it. Optionally add it to a task."""
    name, blueprint = AgentId(str(said["agent_id"]).strip()), str(said["blueprint"]).strip()
    if not name:
        raise ModelFault("'agent_id' is empty. Give the new agent an id that no agent has.")
    if blueprint and blueprint not in skill_context.state.blueprints:
        known = ", ".join(sorted(skill_context.state.blueprints)) or "none"
        raise ModelFault(f"There is no blueprint {blueprint!r}. Blueprints: {known}. Or describe the agent yourself.")
    spec = _build_spec(skill_context, said) if not blueprint else None
    made = AddAgent(agent_id=name, blueprint=blueprint or None, spec=spec)
    task = str(said["task_id"]).strip()
    joins = (AddParticipants(task_id=_find_task(skill_context, task), agents=(name,)),) if task else ()
    return (made, *joins)


def _build_spec(skill_context: SkillContext, said: ActionFields) -> AgentSpec:
    """Build the spec of a new agent. It gets only what its manager has, with the same limits."""
    manager_spec = skill_context.spec
    skills, tools = (
        tuple(dict.fromkeys(str(entry).strip() for entry in cast("Sequence[object]", said[name])))
        for name in ("skills", "tools")
    )
    own_skills = frozenset(skill_context.skills).union(manager_spec.skills) - MANAGER_SKILLS
    for what, wanted, given in (("skills", skills, own_skills), ("tools", tools, frozenset(manager_spec.tools))):
        not_owned = [entry for entry in wanted if entry not in given]
        if not_owned:
            there = ", ".join(sorted(given)) or "none"
            raise ModelFault(f"You cannot give the {what} {', '.join(not_owned)}. What you can give: {there}.")
    name = str(said["name"]).strip() or str(said["agent_id"]).strip()
    return AgentSpec(
        name=name,
        role=str(said["role"]),
        profile=str(said["profile"]),
        style="plan",
        skills=skills,
        tools=tools,
        rules=manager_spec.rules,
        turn=manager_spec.turn,
        language=manager_spec.language,
        llm_config=manager_spec.llm_config,
    )


def _add_task_participant(skill_context: SkillContext, said: ActionFields) -> tuple[Consequence, ...]:
    found = resolve_agents(skill_context, cast("Sequence[object]", said["agents"]))
    if not found:
        raise ModelFault("'agents' is empty. Say who is to take part.")
    return (AddParticipants(task_id=_find_task(skill_context, str(said["task_id"]).strip()), agents=found),)


def _find_task(skill_context: SkillContext, name: str) -> TaskId:
    if name not in skill_context.state.tasks:
        raise ModelFault(f"There is no open task {name!r}. Open tasks: {', '.join(sorted(skill_context.state.tasks))}.")
    return TaskId(name)


ACTIONS: Final[dict[str, Callable[[SkillContext, ActionFields], tuple[Consequence, ...]]]] = {
    "add_task": _add_task,
    "add_stage": _add_stage,
    "finish_stage": _finish_stage,
    "finish_task": _finish_task,
    "init_new_agent": _init_new_agent,
    "add_task_participant": _add_task_participant,
}


def _interpret_action(skill_context: SkillContext, answer: SkillAnswer, by: str) -> SkillResult:
    """Return the consequences of an answer. `by` is the result key of the acting agent."""
    said = cast("ActionFields", answer.value)
    return SkillResult(
        value={by: skill_context.agent.agent_id, **said}, intents=ACTIONS[str(said["action"])](skill_context, said)
    )


AGENT_MANAGER: Final = Skill(
    name="agent_manager",
    tag="agent_instruction",
    key="agent_instruction",
    build_schema=lambda _: AGENT_SHAPE,
    normalize=normalize_answer,
    interpret=lambda moment, answer: _interpret_action(moment, answer, "issuer"),
)
