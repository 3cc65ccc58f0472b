"""Questions: to a person about a step, to the house itself (eleven queries), and of a long-tail tool to its agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, MessageId, StageId, TaskId, message_id, waiting_id
from greenroom.core.base.records import Data, encode
from greenroom.core.base.text import fenced
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, not_in_group, unknown
from greenroom.core.rules.intents import AskInfo, NeedToolDecision, Query
from greenroom.core.rules.messages import deliver
from greenroom.core.rules.origins import given_here, known_of_all, tell
from greenroom.core.rules.queue import ahead, enqueue, is_open, open_thread, owed_in, release
from greenroom.core.state.agent import Agent
from greenroom.core.state.knowledge import Note, pool
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.portrait import working_memory
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, Work
from greenroom.core.state.world import World, ordered

Words = Mapping[str, str]

ENGLISH: Final[Words] = {
    "state": "state: {}",
    "goal": "goal: {}",
    "manager": "manager: {}",
    "group": "group: {}",
    "duty": "{}: {} ({})",
    "reports": "{} reports: {}",
    "comma": ", ",
    "colon": ": ",
    "blueprint": "**{}** {}: {}",
    "ability": "**{}** ({}): {}",
    "working": "working_state: {}; waits for: {}",
    "may": "skills: {}; tools: {}",
    "steps": "open steps: {}",
    "work": "working memory: {}",
    "memory": "persistent memory:",
    "nobody": "nobody",
    "none": "none",
    "nothing": "None.",
    "pool": "shared_message_pool (the newest {} of {})",
    "more": "and {} more. Ask for those of one task or stage, or for one of them by its id.",
}
CHINESE: Final[Words] = {
    "state": "状态：{}",
    "goal": "目标：{}",
    "manager": "管理者：{}",
    "group": "任务群组：{}",
    "duty": "{}：{}（{}）",
    "reports": "{}的完成情况：{}",
    "comma": "，",
    "colon": "：",
    "blueprint": "**{}** {}：{}",
    "ability": "**{}**（{}）：{}",
    "working": "working_state：{}；正在等待：{}",
    "may": "技能：{}；工具：{}",
    "steps": "未完成的步骤：{}",
    "work": "工作记忆：{}",
    "memory": "持续性记忆：",
    "nobody": "无",
    "none": "无",
    "nothing": "无。",
    "pool": "共享消息池 shared_message_pool（最新{}条，共{}条）",
    "more": "另有{}项未列出。可以查询某个任务或阶段的内容，或按编号查询其中一项。",
}

LONGEST: Final = 24_000
"""Characters of an answer: whoever asks reads all of it."""

ABOUT_AGENTS: Final = frozenset({"all_agents", "team_agents", "task_agents", "stage_agents"})


def words_of(asker: Agent) -> Words:
    """The words around what the world says, which stays as it is."""
    return CHINESE if asker.spec.language.lower().startswith("zh") else ENGLISH


def answer(world: World, intent: AskInfo, asker: Agent) -> str | Rejected:
    """The answer to one query, or why there is none."""
    return _ANSWERS[intent.query](world, intent, asker)


def told_of(world: World, intent: AskInfo, asker: Agent) -> tuple[Agent, ...]:
    """The agents whose own words may stand in the answer: what they remember, or how they were described."""
    if intent.query == "agent_states":
        named = (world.agents.get(AgentId(one)) for one in intent.about or (asker.agent_id,))
        return tuple(one for one in named if one is not None)
    return tuple(ordered(world.agents)) if intent.query in ABOUT_AGENTS else ()


def _lines(*lines: str) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _some(parts: Iterable[str], say: Words) -> str:
    """As many of them as are not too long, at least one, and how many there are beside those."""
    left, shown, more = LONGEST, list[str](), 0
    for one in parts:
        left -= len(one)
        if shown and left < 0:
            more += 1
        else:
            shown.append(one)
    return "\n".join(shown) + (f"\n- {say['more'].format(more)}" if more else "")


def _task(world: World, task_id: TaskId, stages: Iterable[Stage], say: Words) -> str:
    task = world.tasks[task_id]
    told = {"state": task.state, "goal": task.intention, "manager": task.manager, "group": ", ".join(task.group)}
    head = f"## {task.task_id} {task.name}\n" + _lines(*(say[name].format(value) for name, value in told.items()))
    return "\n".join([head, *(_stage(stage, say) for stage in stages)])


def _stage(stage: Stage, say: Words) -> str:
    lines = [say["state"].format(stage.state), say["goal"].format(stage.intention)]
    lines += [say["duty"].format(one.agent, one.duty, one.state) for one in stage.subtasks]
    lines += [say["reports"].format(one.agent_id, one.completion) for one in stage.members if one.completion]
    return f"### {stage.stage_id}\n" + _lines(*lines)


def _stages(world: World, task: TaskId) -> list[Stage]:
    return [world.stages[stage] for stage in world.tasks[task].stages]


def _profile(agent: Agent, say: Words) -> str:
    spec = agent.spec
    who = say["comma"].join(filter(None, (f"**{agent.agent_id}** {spec.name}", spec.role)))
    return _lines(say["colon"].join(filter(None, (who, spec.profile))))


def _profiles(agents: Iterable[Agent], asker: Agent) -> str:
    say = words_of(asker)
    return _some((_profile(agent, say) for agent in agents), say)


def _managed(world: World, _: AskInfo, asker: Agent) -> str:
    say = words_of(asker)
    mine = [task.task_id for task in ordered(world.tasks) if task.manager == asker.agent_id]
    return _some((_task(world, task, _stages(world, task), say) for task in mine), say) or say["nothing"]


def _joined(world: World, _: AskInfo, asker: Agent) -> str:
    name, say = asker.agent_id, words_of(asker)
    mine = [task.task_id for task in ordered(world.tasks) if name in task.group]
    parts = [_task(world, task, [one for one in _stages(world, task) if one.member(name)], say) for task in mine]
    return _some(parts, say) or say["nothing"]


def _one_task(world: World, intent: AskInfo, asker: Agent) -> str | Rejected:
    name = TaskId(intent.about[0] if intent.about else intent.task_id)
    if name not in world.tasks:
        return unknown("task", name, tuple(world.tasks))
    say = words_of(asker)
    return "\n".join(filter(None, (_task(world, name, _stages(world, name), say), _pool(world, name, asker))))


def _pool(world: World, name: TaskId, asker: Agent) -> str:
    """The newest notes on the task's board, oldest first, for those of its group: what agents wrote, in a fence."""
    task, say = world.tasks[name], words_of(asker)
    notes = [world.notes[one] for one in pool(name, task.notes_made)]
    if asker.agent_id not in task.group or not notes:
        return ""
    head = say["pool"].format(len(notes), task.notes_made)
    return f"### {head}\n{fenced(chr(10).join(map(_note, notes)))}"


def _note(note: Note) -> str:
    """A note in MAS's fields, on one line."""
    fields = {"agent_id": note.agent_id, "role": note.role, "stage_id": note.stage_id, "content": note.content}
    return encode(fields).decode()


def _one_stage(world: World, intent: AskInfo, asker: Agent) -> str | Rejected:
    name = StageId(intent.about[0] if intent.about else "")
    found = world.stages.get(name)
    return _stage(found, words_of(asker)) if found is not None else unknown("stage", name, tuple(world.stages))


def _blueprints(world: World, _: AskInfo, asker: Agent) -> str:
    say = words_of(asker)
    known = (say["blueprint"].format(one.name, one.role, one.profile) for one in ordered(world.blueprints))
    return _some(map(_lines, known), say) or say["nothing"]


def _all_agents(world: World, _: AskInfo, asker: Agent) -> str:
    return _profiles(ordered(world.agents), asker)


def _task_agents(world: World, intent: AskInfo, asker: Agent) -> str | Rejected:
    name = TaskId(intent.about[0] if intent.about else intent.task_id)
    if name not in world.tasks:
        return unknown("task", name, tuple(world.tasks))
    return _profiles((world.agents[one] for one in world.tasks[name].group), asker)


def _stage_agents(world: World, intent: AskInfo, asker: Agent) -> str | Rejected:
    name = StageId(intent.about[0] if intent.about else "")
    if name not in world.stages:
        return unknown("stage", name, tuple(world.stages))
    members = (world.agents.get(one.agent_id) for one in world.stages[name].members)
    return _profiles((one for one in members if one is not None), asker)


def _agent_states(world: World, intent: AskInfo, asker: Agent) -> str | Rejected:
    found = []
    for name in intent.about or (asker.agent_id,):
        agent = world.agents.get(AgentId(name))
        if agent is None:
            return unknown("agent", name, tuple(world.agents))
        found.append(_agent_state(world, agent, words_of(asker)))
    return _some(found, words_of(asker))


def _agent_state(world: World, agent: Agent, say: Words) -> str:
    """All that MAS's agent_state has and that is not said by the agent's spec alone."""
    spec, steps = agent.spec, (step.step_id for step in world.steps_of(agent.agent_id))
    told = [
        say["working"].format(agent.working_state, ", ".join(agent.step_lock) or say["nobody"]),
        say["may"].format(*(", ".join(names) or say["none"] for names in (spec.skills, spec.tools))),
        say["steps"].format(", ".join(steps) or say["none"]),
        say["work"].format(encode(working_memory(world, agent.agent_id)).decode()),
    ]
    lines = [_profile(agent, say), *(f"  - {one}" for one in told)]
    if agent.memory:
        lines += [f"  - {say['memory']}", fenced(agent.memory)]
    return "\n".join(lines)


def _abilities(world: World, _: AskInfo, asker: Agent) -> str:
    say = words_of(asker)
    known = (say["ability"].format(one.name, one.type, one.description) for one in ordered(world.abilities))
    return _some(map(_lines, known), say) or say["nothing"]


_ANSWERS: Final[dict[Query, Callable[[World, AskInfo, Agent], str | Rejected]]] = {
    "managed_tasks": _managed,
    "joined_tasks": _joined,
    "task": _one_task,
    "stage": _one_stage,
    "blueprints": _blueprints,
    "all_agents": _all_agents,
    "team_agents": _all_agents,
    "task_agents": _task_agents,
    "stage_agents": _stage_agents,
    "agent_states": _agent_states,
    "abilities": _abilities,
}


def ask_person(draft: Draft, step: Step, person: AgentId, question: str, data: Data) -> None:
    """A question about a step, as a message to a person; the asker is not locked, the step waits."""
    tell(draft, step.agent_id, (person,), question, task=step.task_id, data=data, kind="request")


def ask_who_is_there(draft: Draft) -> None:
    """A step that waits for a yes, and of which nobody who is there was told, is asked about again: whom it was asked
    of has left, or people came only now."""
    person = draft.world.human()
    told = {(message.data or {}).get("approval_id") for message in draft.world.mail.values()}
    for approval in ordered(draft.world.approvals):
        if person is not None and approval.state == "pending" and approval.approval_id not in told:
            step = draft.world.steps[approval.step_id]
            ask_person(draft, step, person, approval.question, {"approval_id": approval.approval_id})


def ask_info(draft: Draft, intent: AskInfo, by: str) -> Verdict:
    """Lock, answer and unlock: the answer is the asker's next step."""
    agent = draft.world.agents.get(AgentId(by))
    if agent is None:
        return Rejected(code="not_an_agent", why=f"{by!r} is no agent: views are for doors.")
    task = draft.world.tasks.get(intent.task_id)
    if task is None or by not in task.group or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    found = answer(draft.world, intent, agent)
    if isinstance(found, Rejected):
        return found
    asked = message_id(agent.agent_id, agent.messages_made + 1)
    waiting = waiting_id(asked, agent.agent_id)
    for name, text, waits_on, returns in (
        (asked, f"ask_info: {intent.query} {', '.join(intent.about)}".strip(), (waiting,), None),
        (message_id(agent.agent_id, agent.messages_made + 2), found, None, waiting),
    ):
        message = Message(
            message_id=name,
            task_id=intent.task_id,
            sender_id=agent.agent_id,
            receiver=(agent.agent_id,),
            message=text,
            waiting=waits_on,
            return_waiting_id=returns,
            kind="request" if returns is None else "response",
            sent_at=draft.now,
            origins=known_of_all(draft, told_of(draft.world, intent, agent)) if returns is not None else (),
        )
        draft.emit(MessageSent(at=draft.now, message=message, thread_id=draft.cause.thread_id if draft.cause else None))
        if returns is not None:
            deliver(draft, message, agent.agent_id, None)
            release(draft, returns, "reply")
    return None


def need_tool_decision(draft: Draft, intent: NeedToolDecision, by: str) -> Verdict:
    """The result of a long-tail tool is judged next: an instruction to its agent, as a message that is a step."""
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if intent.agent_id not in task.group:
        return not_in_group(intent.agent_id, task)
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return unknown("stage", intent.stage_id, task.stages)
    cause = draft.cause
    if not is_trusted(draft.world, by) and (cause is None or cause.work.type != "tool" or by != intent.agent_id):
        return Rejected(code="tool_decision_not_planned", why="Only a tool step may ask for a tool_decision.")
    work = Work(
        type="skill",
        executor="tool_decision",
        intention=f"Decide how to go on with {intent.tool_name}.",
        text_content=intent.tool_name,
    )
    here = cause is not None and (cause.agent_id, cause.task_id) == (intent.agent_id, intent.task_id)
    if cause is not None and here and is_open(draft.world, cause.thread_id):
        thread = cause.thread_id
    else:
        thread = open_thread(draft, intent.agent_id, intent.task_id, on_behalf=given_here(draft))
    owed = owed_in(draft, thread)
    place = ahead(draft.world, draft.world.agents[intent.agent_id], thread, owed)
    told = _instruct(draft, intent, work.intention)
    enqueue(
        draft,
        thread,
        work,
        place=place,
        message=told,
        answers=owed,
        stage=intent.stage_id,
        jumped=owed is not None,
        goes_on=True,
    )
    return None


def _instruct(draft: Draft, intent: NeedToolDecision, text: str) -> MessageId:
    """The instruction as a message, so that the log says where the step came from."""
    agent, told = intent.agent_id, {"instruction": "add_tool_decision", "tool_name": intent.tool_name}
    return tell(draft, agent, (agent,), text, task=intent.task_id, data=told, kind="instruction", stage=intent.stage_id)
