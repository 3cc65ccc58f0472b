"""task_manager and agent_manager: a manager begins and ends tasks and stages, makes agents and adds them to tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, cast

from greenroom.abilities.skills.planned.answer import agents, fields_of, form, list_of, one_of
from greenroom.abilities.skills.planned.skill import TEXT, Answer, Meant, Moment, Skill
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
from greenroom.core.rules.steps import PRIVILEGED
from greenroom.core.state.spec import AgentSpec

Said = Mapping[str, object]

END: Final = one_of("finished", "failed")
STAGES: Final = list_of(fields_of(stage_intention=TEXT, agent_allocation=list_of(fields_of(agent_id=TEXT, duty=TEXT))))
TASK_SHAPE: Final[Data] = {
    "anyOf": [
        form("add_task", task_name=TEXT, task_intention=TEXT, task_group=list_of(TEXT), stages=STAGES),
        form("add_stage", task_id=TEXT, stages=STAGES),
        form("finish_stage", stage_id=TEXT, state=END, summary=TEXT),
        form("finish_task", task_id=TEXT, state=END, summary=TEXT),
    ]
}


def _add_task(moment: Moment, said: Said) -> tuple[Consequence, ...]:
    made = AddTask(
        group=agents(moment, cast("Sequence[object]", said["task_group"])),
        name=_text(said, "task_name"),
        intention=_text(said, "task_intention"),
        manager=moment.agent.agent_id,
        stages=_stages(moment, said),
        driver="manager",
    )
    return (made,)


def _add_stage(moment: Moment, said: Said) -> tuple[Consequence, ...]:
    """Whoever is allotted to a stage belongs to the group: those who do not yet are added to it first."""
    name = _task(moment, _text(said, "task_id"))
    stages = _stages(moment, said)
    if not stages:
        raise ModelFault("There is no stage in `stages`. Add at least one.")
    needed = dict.fromkeys(one.agent for stage in stages for one in stage.subtasks)
    new = tuple(one for one in needed if one not in moment.world.tasks[name].group)
    added = (AddParticipants(task_id=name, agents=new),) if new else ()
    return (*added, AddStages(task_id=name, stages=stages))


def _finish_stage(moment: Moment, said: Said) -> tuple[Consequence, ...]:
    name = StageId(_text(said, "stage_id"))
    if name not in moment.world.stages:
        known = ", ".join(sorted(moment.world.stages)) or "none"
        raise ModelFault(f"There is no open stage {name!r}. Open stages: {known}.")
    return (FinishStage(stage_id=name, state=_end(said), summary=str(said["summary"])),)


def _finish_task(moment: Moment, said: Said) -> tuple[Consequence, ...]:
    name = _task(moment, _text(said, "task_id"))
    return (FinishTask(task_id=name, state=_end(said), summary=str(said["summary"])),)


def _stages(moment: Moment, said: Said) -> tuple[StagePlan, ...]:
    return tuple(_stage(moment, one) for one in cast("Sequence[Said]", said["stages"]))


def _stage(moment: Moment, said: Said) -> StagePlan:
    """What fails in a stage of a manager is the manager's to decide about."""
    duties: dict[AgentId, str] = {}
    for one in cast("Sequence[Said]", said["agent_allocation"]):
        (agent,) = agents(moment, (one["agent_id"],))
        duties[agent] = "\n".join(filter(None, (duties.get(agent, ""), str(one["duty"]))))
    subtasks = tuple(SubtaskPlan(name=agent, duty=duty, agent=agent) for agent, duty in duties.items())
    if not subtasks:
        raise ModelFault(f"The stage {str(said['stage_intention'])!r} is allotted to nobody. Give agent_allocation.")
    return StagePlan(intention=str(said["stage_intention"]), subtasks=subtasks, on_failure="escalate")


def _text(said: Said, name: str) -> str:
    text = str(said[name]).strip()
    if not text:
        raise ModelFault(f"{name!r} is empty.")
    return text


def _end(said: Said) -> Literal["finished", "failed"]:
    return "finished" if said["state"] == "finished" else "failed"


DEFAULTS: Final[Mapping[str, Said]] = {
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
"""What an answer means by what it leaves out, by its action."""


def tidied(value: object) -> object:
    """The answer in its one form: MAS writes one stage without a list, and an allocation by agent."""
    if not isinstance(value, Mapping):
        return value
    found = dict(value)
    if found.get("action") in ("add_stage", "add_task"):
        single = {name: found.pop(name) for name in ("stage_intention", "agent_allocation") if name in found}
        stages = found.setdefault("stages", [single] if single else [])
        found["stages"] = [_tidied_stage(one) for one in stages] if isinstance(stages, list) else []
    for name, default in DEFAULTS.get(str(found.get("action")), {}).items():
        found.setdefault(name, default)
    return found


def _tidied_stage(stage: object) -> object:
    allotted = stage.get("agent_allocation") if isinstance(stage, Mapping) else None
    if not isinstance(stage, Mapping) or not isinstance(allotted, Mapping):
        return stage
    return {**stage, "agent_allocation": [{"agent_id": one, "duty": duty} for one, duty in allotted.items()]}


TASK_MANAGER: Final = Skill(
    name="task_manager",
    tag="task_instruction",
    key="task_instruction",
    shape=lambda _: TASK_SHAPE,
    tidied=tidied,
    meaning=lambda moment, answer: _meant(moment, answer, "agent_id"),
)


AGENT_SHAPE: Final[Data] = {
    "anyOf": [
        form(
            "init_new_agent",
            agent_id=TEXT,
            blueprint=TEXT,
            name=TEXT,
            role=TEXT,
            profile=TEXT,
            skills=list_of(TEXT),
            tools=list_of(TEXT),
            task_id=TEXT,
        ),
        form("add_task_participant", task_id=TEXT, agents=list_of(TEXT)),
    ]
}


def _init_new_agent(moment: Moment, said: Said) -> tuple[Consequence, ...]:
    """Made from what people have described, or as the manager describes it; and in a task's group, if it says so."""
    name, blueprint = AgentId(str(said["agent_id"]).strip()), str(said["blueprint"]).strip()
    if not name:
        raise ModelFault("'agent_id' is empty. Give the new agent an id that nobody has.")
    if blueprint and blueprint not in moment.world.blueprints:
        known = ", ".join(sorted(moment.world.blueprints)) or "none"
        raise ModelFault(f"There is no blueprint {blueprint!r}. Blueprints: {known}. Or describe the agent yourself.")
    spec = _described(moment, said) if not blueprint else None
    made = AddAgent(agent_id=name, blueprint=blueprint or None, spec=spec)
    task = str(said["task_id"]).strip()
    joins = (AddParticipants(task_id=_task(moment, task), agents=(name,)),) if task else ()
    return (made, *joins)


def _described(moment: Moment, said: Said) -> AgentSpec:
    """An agent of the manager's making has nothing that the manager has not, and is bound by the same rules."""
    own = moment.spec
    skills, tools = (
        tuple(dict.fromkeys(str(one).strip() for one in cast("Sequence[object]", said[name])))
        for name in ("skills", "tools")
    )
    mine = frozenset(moment.skills).union(own.skills) - PRIVILEGED
    for what, wanted, given in (("skills", skills, mine), ("tools", tools, frozenset(own.tools))):
        more = [one for one in wanted if one not in given]
        if more:
            there = ", ".join(sorted(given)) or "none"
            raise ModelFault(f"You cannot give the {what} {', '.join(more)}. What you can give: {there}.")
    name = str(said["name"]).strip() or str(said["agent_id"]).strip()
    return AgentSpec(
        name=name,
        role=str(said["role"]),
        profile=str(said["profile"]),
        style="plan",
        skills=skills,
        tools=tools,
        rules=own.rules,
        turn=own.turn,
        language=own.language,
        llm_config=own.llm_config,
    )


def _add_task_participant(moment: Moment, said: Said) -> tuple[Consequence, ...]:
    found = agents(moment, cast("Sequence[object]", said["agents"]))
    if not found:
        raise ModelFault("'agents' is empty. Say who is to take part.")
    return (AddParticipants(task_id=_task(moment, str(said["task_id"]).strip()), agents=found),)


def _task(moment: Moment, name: str) -> TaskId:
    if name not in moment.world.tasks:
        raise ModelFault(f"There is no open task {name!r}. Open tasks: {', '.join(sorted(moment.world.tasks))}.")
    return TaskId(name)


ACTIONS: Final[dict[str, Callable[[Moment, Said], tuple[Consequence, ...]]]] = {
    "add_task": _add_task,
    "add_stage": _add_stage,
    "finish_stage": _finish_stage,
    "finish_task": _finish_task,
    "init_new_agent": _init_new_agent,
    "add_task_participant": _add_task_participant,
}


def _meant(moment: Moment, answer: Answer, by: str) -> Meant:
    """What follows from an answer; under `by` it is kept who gave it."""
    said = cast("Said", answer.value)
    return Meant(value={by: moment.agent.agent_id, **said}, intents=ACTIONS[str(said["action"])](moment, said))


AGENT_MANAGER: Final = Skill(
    name="agent_manager",
    tag="agent_instruction",
    key="agent_instruction",
    shape=lambda _: AGENT_SHAPE,
    tidied=tidied,
    meaning=lambda moment, answer: _meant(moment, answer, "issuer"),
)
