"""agent_manager: a manager makes agents, and adds agents to the group of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from greenroom.abilities.skills.planned.naming import agents
from greenroom.abilities.skills.planned.schemas import form, list_of
from greenroom.abilities.skills.planned.skill import TEXT, Answer, Meant, Moment, Skill
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.base.records import Data
from greenroom.core.rules.intents import AddAgent, AddParticipants, Consequence
from greenroom.core.rules.steps import PRIVILEGED
from greenroom.core.state.spec import AgentSpec

Said = Mapping[str, object]

SHAPE: Final[Data] = {
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


def _meaning(moment: Moment, answer: Answer) -> Meant:
    said = cast("Said", answer.value)
    intents = ACTIONS[str(said["action"])](moment, said)
    return Meant(value={"issuer": moment.agent.agent_id, **said}, intents=intents)


def _init_new_agent(moment: Moment, said: Said) -> tuple[Consequence, ...]:
    """Made from what people have described, or as the manager describes it; and in a task's group, if it says so."""
    name, blueprint = AgentId(str(said["agent_id"]).strip()), str(said["blueprint"]).strip()
    if not name:
        raise ModelFault("'agent_id' is empty. Give the new agent an id that nobody has.")
    if blueprint and blueprint not in moment.world.blueprints:
        known = ", ".join(sorted(moment.world.blueprints)) or "none"
        raise ModelFault(f"There is no blueprint {blueprint!r}. Blueprints: {known}. Or describe the agent yourself.")
    made = (
        AddAgent(agent_id=name, blueprint=blueprint)
        if blueprint
        else AddAgent(agent_id=name, spec=_described(moment, said))
    )
    task = str(said["task_id"]).strip()
    joins = (AddParticipants(task_id=_task(moment, task), agents=(name,)),) if task else ()
    return (made, *joins)


def _described(moment: Moment, said: Said) -> AgentSpec:
    """An agent of the manager's making has nothing that the manager has not, and is bound by the same rules."""
    own = moment.spec
    skills, tools = _words(said, "skills"), _words(said, "tools")
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


ACTIONS: Final[dict[str, Callable[[Moment, Said], tuple[Consequence, ...]]]] = {
    "init_new_agent": _init_new_agent,
    "add_task_participant": _add_task_participant,
}


def _task(moment: Moment, name: str) -> TaskId:
    if name not in moment.world.tasks:
        raise ModelFault(f"There is no open task {name!r}. Open tasks: {', '.join(sorted(moment.world.tasks))}.")
    return TaskId(name)


def _words(said: Said, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(one).strip() for one in cast("Sequence[object]", said[name])))


def tidied(value: object) -> object:
    """The answer in its one form: what it leaves out is empty."""
    if not isinstance(value, Mapping):
        return value
    found = dict(value)
    if found.get("action") == "init_new_agent":
        for name in ("blueprint", "name", "role", "profile", "task_id"):
            found.setdefault(name, "")
        for name in ("skills", "tools"):
            found.setdefault(name, [])
    return found


AGENT_MANAGER: Final = Skill(
    name="agent_manager",
    tag="agent_instruction",
    key="agent_instruction",
    said="agent_manager",
    order="history",
    shape=lambda _: SHAPE,
    tidied=tidied,
    meaning=_meaning,
)
