"""Questions: to a person about a step, to the team state (eleven queries), and from a long-tail tool to its agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from greenroom.core.base.errors import Rejection
from greenroom.core.base.ids import AgentId, MessageId, StageId, TaskId, message_id, waiting_id
from greenroom.core.base.records import Data, encode
from greenroom.core.base.text import add_fence
from greenroom.core.rules.draft import Draft, RuleResult, is_trusted, reject_not_in_group, reject_unknown
from greenroom.core.rules.intents import AskInfo, NeedToolDecision, Query
from greenroom.core.rules.messages import deliver
from greenroom.core.rules.origins import collect_origins, emit_message, list_principals
from greenroom.core.rules.queue import (
    enqueue,
    find_owed_answer,
    find_place_in_thread,
    is_thread_open,
    open_thread,
    release_wait,
)
from greenroom.core.state.agent import AgentState
from greenroom.core.state.knowledge import list_newest_notes, render_notes
from greenroom.core.state.mas_format import collect_working_memory
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team_state import TeamState, sort_rows

QueryPhrases = Mapping[str, str]

ENGLISH: Final[QueryPhrases] = {
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
    "nobody": "no one",
    "none": "none",
    "nothing": "None.",
    "pool": "shared_message_pool (the newest {} of {})",
    "more": "and {} more. Ask for those of one task or stage, or for one of them by its id.",
}
CHINESE: Final[QueryPhrases] = {
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

MAX_ANSWER_CHARS: Final = 24_000
"""Maximum characters of an answer. The agent reads all of it."""

AGENT_QUERIES: Final = frozenset({"all_agents", "team_agents", "task_agents", "stage_agents"})


def choose_phrases(asker: AgentState) -> QueryPhrases:
    """Return the phrases in the agent's language. Values from the state are not translated."""
    return CHINESE if asker.spec.language.lower().startswith("zh") else ENGLISH


def answer_query(state: TeamState, intent: AskInfo, asker: AgentState) -> str | Rejection:
    return _ANSWERERS[intent.query](state, intent, asker)


def list_quoted_agents(state: TeamState, intent: AskInfo, asker: AgentState) -> tuple[AgentState, ...]:
    """Return the agents whose memory or description the answer may quote."""
    if intent.query == "agent_states":
        named = (state.agents.get(AgentId(item)) for item in intent.about or (asker.agent_id,))
        return tuple(item for item in named if item is not None)
    return tuple(sort_rows(state.agents)) if intent.query in AGENT_QUERIES else ()


def _render_list(*lines: str) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _join_within_limit(parts: Iterable[str], phrases: QueryPhrases) -> str:
    """Join as many parts as fit, at least one, and add how many were omitted."""
    left, shown, omitted = MAX_ANSWER_CHARS, list[str](), 0
    for part in parts:
        left -= len(part)
        if shown and left < 0:
            omitted += 1
        else:
            shown.append(part)
    return "\n".join(shown) + (f"\n- {phrases['more'].format(omitted)}" if omitted else "")


def _render_rows(name: str, rows: Iterable[tuple[str, ...]], phrases: QueryPhrases) -> str:
    return _join_within_limit((f"- {phrases[name].format(*row)}" for row in rows), phrases) or phrases["nothing"]


def _render_task(state: TeamState, task_id: TaskId, stages: Iterable[Stage], phrases: QueryPhrases) -> str:
    task = state.tasks[task_id]
    fields = {"state": task.state, "goal": task.intention, "manager": task.manager, "group": ", ".join(task.group)}
    head = f"## {task.task_id} {task.name}\n" + _render_list(
        *(phrases[name].format(value) for name, value in fields.items())
    )
    return "\n".join([head, *(_render_stage(stage, phrases) for stage in stages)])


def _render_stage(stage: Stage, phrases: QueryPhrases) -> str:
    lines = [phrases["state"].format(stage.state), phrases["goal"].format(stage.intention)]
    lines += [phrases["duty"].format(part.agent, part.duty, part.state) for part in stage.subtasks]
    lines += [phrases["reports"].format(part.agent_id, part.completion) for part in stage.members if part.completion]
    return f"### {stage.stage_id}\n" + _render_list(*lines)


def _list_stages(state: TeamState, task: TaskId) -> list[Stage]:
    return [state.stages[stage] for stage in state.tasks[task].stages]


def _render_profile(agent: AgentState, phrases: QueryPhrases) -> str:
    spec = agent.spec
    who = phrases["comma"].join(filter(None, (f"**{agent.agent_id}** {spec.name}", spec.role)))
    return _render_list(phrases["colon"].join(filter(None, (who, spec.profile))))


def _render_profiles(agents: Iterable[AgentState], asker: AgentState) -> str:
    phrases = choose_phrases(asker)
    return _join_within_limit((_render_profile(agent, phrases) for agent in agents), phrases)


def _answer_managed_tasks(state: TeamState, _: AskInfo, asker: AgentState) -> str:
    phrases = choose_phrases(asker)
    task_ids = [task.task_id for task in sort_rows(state.tasks) if task.manager == asker.agent_id]
    return (
        _join_within_limit(
            (_render_task(state, task, _list_stages(state, task), phrases) for task in task_ids), phrases
        )
        or phrases["nothing"]
    )


def _answer_joined_tasks(state: TeamState, _: AskInfo, asker: AgentState) -> str:
    name, phrases = asker.agent_id, choose_phrases(asker)
    task_ids = [task.task_id for task in sort_rows(state.tasks) if name in task.group]
    parts = [
        _render_task(state, task, [stage for stage in _list_stages(state, task) if stage.find_member(name)], phrases)
        for task in task_ids
    ]
    return _join_within_limit(parts, phrases) or phrases["nothing"]


def _answer_task(state: TeamState, intent: AskInfo, asker: AgentState) -> str | Rejection:
    name = TaskId(intent.about[0] if intent.about else intent.task_id)
    if name not in state.tasks:
        return reject_unknown("task", name, tuple(state.tasks))
    phrases = choose_phrases(asker)
    return "\n".join(
        filter(None, (_render_task(state, name, _list_stages(state, name), phrases), _render_notes(state, name, asker)))
    )


def _render_notes(state: TeamState, name: TaskId, asker: AgentState) -> str:
    """Render the newest notes of the task board, oldest first and fenced. Only its group may read them."""
    task, phrases = state.tasks[name], choose_phrases(asker)
    notes = [state.notes[note_id] for note_id in list_newest_notes(name, task.notes_made)]
    if asker.agent_id not in task.group or not notes:
        return ""
    head = phrases["pool"].format(len(notes), task.notes_made)
    return f"### {head}\n{render_notes(notes)}"


def _answer_stage(state: TeamState, intent: AskInfo, asker: AgentState) -> str | Rejection:
    name = StageId(intent.about[0] if intent.about else "")
    stage = state.stages.get(name)
    if stage is not None:
        return _render_stage(stage, choose_phrases(asker))
    return reject_unknown("stage", name, tuple(state.stages))


def _answer_blueprints(state: TeamState, _: AskInfo, asker: AgentState) -> str:
    rows = ((blueprint.name, blueprint.role, blueprint.profile) for blueprint in sort_rows(state.blueprints))
    return _render_rows("blueprint", rows, choose_phrases(asker))


def _answer_all_agents(state: TeamState, _: AskInfo, asker: AgentState) -> str:
    return _render_profiles(sort_rows(state.agents), asker)


def _answer_task_agents(state: TeamState, intent: AskInfo, asker: AgentState) -> str | Rejection:
    name = TaskId(intent.about[0] if intent.about else intent.task_id)
    if name not in state.tasks:
        return reject_unknown("task", name, tuple(state.tasks))
    return _render_profiles((state.agents[agent] for agent in state.tasks[name].group), asker)


def _answer_stage_agents(state: TeamState, intent: AskInfo, asker: AgentState) -> str | Rejection:
    name = StageId(intent.about[0] if intent.about else "")
    if name not in state.stages:
        return reject_unknown("stage", name, tuple(state.stages))
    members = (state.agents.get(member.agent_id) for member in state.stages[name].members)
    return _render_profiles((member for member in members if member is not None), asker)


def _answer_agent_states(state: TeamState, intent: AskInfo, asker: AgentState) -> str | Rejection:
    parts = []
    for name in intent.about or (asker.agent_id,):
        agent = state.agents.get(AgentId(name))
        if agent is None:
            return reject_unknown("agent", name, tuple(state.agents))
        parts.append(_render_agent_state(state, agent, choose_phrases(asker)))
    return _join_within_limit(parts, choose_phrases(asker))


def _render_agent_state(state: TeamState, agent: AgentState, phrases: QueryPhrases) -> str:
    """Render the parts of MAS's agent_state that the spec alone does not contain."""
    spec, steps = agent.spec, (step.step_id for step in state.steps_of(agent.agent_id))
    details = [
        phrases["working"].format(agent.working_state, ", ".join(agent.step_lock) or phrases["nobody"]),
        phrases["may"].format(*(", ".join(names) or phrases["none"] for names in (spec.skills, spec.tools))),
        phrases["steps"].format(", ".join(steps) or phrases["none"]),
        phrases["work"].format(encode(collect_working_memory(state, agent.agent_id)).decode()),
    ]
    lines = [_render_profile(agent, phrases), *(f"  - {detail}" for detail in details)]
    if agent.memory:
        lines += [f"  - {phrases['memory']}", add_fence(agent.memory)]
    return "\n".join(lines)


def _answer_abilities(state: TeamState, _: AskInfo, asker: AgentState) -> str:
    rows = ((ability.name, ability.type, ability.description) for ability in sort_rows(state.abilities))
    return _render_rows("ability", rows, choose_phrases(asker))


_ANSWERERS: Final[dict[Query, Callable[[TeamState, AskInfo, AgentState], str | Rejection]]] = {
    "managed_tasks": _answer_managed_tasks,
    "joined_tasks": _answer_joined_tasks,
    "task": _answer_task,
    "stage": _answer_stage,
    "blueprints": _answer_blueprints,
    "all_agents": _answer_all_agents,
    "team_agents": _answer_all_agents,
    "task_agents": _answer_task_agents,
    "stage_agents": _answer_stage_agents,
    "agent_states": _answer_agent_states,
    "abilities": _answer_abilities,
}


def ask_person(draft: Draft, step: Step, person: AgentId, question: str, data: Data) -> None:
    """Send a person a question about a step. The step waits; the agent is not locked."""
    emit_message(draft, step.agent_id, (person,), question, task=step.task_id, data=data, kind="request")


def ask_present_person(draft: Draft) -> None:
    """Ask again about pending requests that no present person has received: the person left, or joined only now."""
    person = draft.state.find_human()
    asked_approvals = {(message.data or {}).get("approval_id") for message in draft.state.mail.values()}
    for approval in sort_rows(draft.state.approvals):
        if person is not None and approval.state == "pending" and approval.approval_id not in asked_approvals:
            step = draft.state.steps[approval.step_id]
            ask_person(draft, step, person, approval.question, {"approval_id": approval.approval_id})


def ask_info(draft: Draft, intent: AskInfo, by: str) -> RuleResult:
    """Answer a query. The answer is the agent's next step."""
    agent = draft.state.agents.get(AgentId(by))
    if agent is None:
        return Rejection(code="not_an_agent", why=f"{by!r} is not an agent: read a view instead.")
    task = draft.state.tasks.get(intent.task_id)
    if task is None or by not in task.group or task.state == "cancelling":
        return reject_unknown("task", intent.task_id, tuple(draft.state.tasks))
    reply = answer_query(draft.state, intent, agent)
    if isinstance(reply, Rejection):
        return reply
    question_id = message_id(agent.agent_id, agent.messages_made + 1)
    waiting = waiting_id(question_id, agent.agent_id)
    for name, text, waits_on, returns in (
        (question_id, f"ask_info: {intent.query} {', '.join(intent.about)}".strip(), (waiting,), None),
        (message_id(agent.agent_id, agent.messages_made + 2), reply, None, waiting),
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
            origins=collect_origins(draft, list_quoted_agents(draft.state, intent, agent))
            if returns is not None
            else (),
        )
        draft.emit(MessageSent(at=draft.now, message=message, thread_id=draft.cause.thread_id if draft.cause else None))
        if returns is not None:
            deliver(draft, message, agent.agent_id, None)
            release_wait(draft, returns, "reply")
    return None


def need_tool_decision(draft: Draft, intent: NeedToolDecision, by: str) -> RuleResult:
    """Queue a step that judges the result of a long-tail tool, with an instruction message."""
    task = draft.state.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return reject_unknown("task", intent.task_id, tuple(draft.state.tasks))
    if intent.agent_id not in task.group:
        return reject_not_in_group(intent.agent_id, task)
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return reject_unknown("stage", intent.stage_id, task.stages)
    cause = draft.cause
    if not is_trusted(draft.state, by) and (cause is None or cause.work.type != "tool" or by != intent.agent_id):
        return Rejection(code="tool_decision_not_planned", why="Only a tool step may ask for a tool_decision.")
    work = Work(
        type="skill",
        executor="tool_decision",
        intention=f"Decide how to go on with {intent.tool_name}.",
        text_content=intent.tool_name,
    )
    here = cause is not None and (cause.agent_id, cause.task_id) == (intent.agent_id, intent.task_id)
    if cause is not None and here and is_thread_open(draft.state, cause.thread_id):
        thread = cause.thread_id
    else:
        thread = open_thread(draft, intent.agent_id, intent.task_id, on_behalf=list_principals(draft))
    owed_answer = find_owed_answer(draft, thread)
    place = find_place_in_thread(draft.state, draft.state.agents[intent.agent_id], thread, owed_answer)
    message = _instruct(draft, intent, work.intention)
    enqueue(
        draft,
        thread,
        work,
        place=place,
        message=message,
        answers=owed_answer,
        stage=intent.stage_id,
        jumped=owed_answer is not None,
        goes_on=True,
    )
    return None


def _instruct(draft: Draft, intent: NeedToolDecision, text: str) -> MessageId:
    """Emit the instruction as a message, so that the log shows the origin of the step."""
    agent, data = intent.agent_id, {"instruction": "add_tool_decision", "tool_name": intent.tool_name}
    return emit_message(
        draft, agent, (agent,), text, task=intent.task_id, data=data, kind="instruction", stage=intent.stage_id
    )
