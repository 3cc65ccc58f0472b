"""Events in Chinese words: the same lines as in `words`, for organisations that speak Chinese."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from greenroom.app.messages import CHINESE
from greenroom.app.organisation.words import STATES
from greenroom.core.base.records import evolve
from greenroom.core.state import agent as agents
from greenroom.core.state import approval as approvals
from greenroom.core.state import budget as budgets
from greenroom.core.state import message as messages
from greenroom.core.state import note as notes
from greenroom.core.state import stage as stages
from greenroom.core.state import step as steps
from greenroom.core.state import task as tasks
from greenroom.core.state import team as teams
from greenroom.core.state import timer as timers
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step
from greenroom.core.state.world import World
from greenroom.interfaces.cli.display.phrases import reason
from greenroom.interfaces.cli.display.words import Said, say, shorten, step_words

ENDS: Final = {
    **STATES,
    "skipped": "已跳过",
    "uncertain": "结果不明",
    "approved": "批准",
    "denied": "拒绝",
}
SKILLS: Final = {
    "converse": "思考",
    "planning": "规划",
    "reflection": "反思",
    "summary": "总结",
    "instruction_generation": "准备调用",
    "think": "思考",
    "quick_think": "快速思考",
    "send_message": "写消息",
    "process_message": "阅读消息",
    "task_manager": "管理任务",
    "agent_manager": "管理Agent",
    "ask_info": "查询信息",
    "tool_decision": "决定工具的使用",
}
RELEASED: Final = {
    "timeout": "没有及时回复",
    "unanswered": "没有回复",
    "stage_over": "阶段已结束",
    "task_over": "任务已结束",
    "agent_gone": "Agent已离开",
    "interrupted": "被中断",
}


def step_words_zh(step: Step) -> str:
    """What a step is, in a few words."""
    if step.work.type == "tool":
        return step_words(step)
    if step.answers is not None:
        return f"回复{step.answers.partition('>')[0]}"
    return SKILLS.get(step.work.executor, step.work.executor)


def say_zh(world: World, event: Event) -> Said:
    """What the event says, on the world as it was before it."""
    said, make = say(world, event), _WORDS.get(type(event))
    return said if make is None else evolve(said, text=make(world, event))


def end_zh(state: str) -> str:
    """How something ended."""
    return ENDS.get(state, state)


def _what(event: object) -> str:
    task = getattr(event, "task_id", None)
    return f"任务{task}" if task is not None else "团队"


def _owner(_: World, event: teams.OwnerChanged) -> str:
    node, pid, *_rest = *event.owner.split(":"), ""
    return f"{node}上的进程{pid}接管了团队"


def _joined(_: World, event: agents.AgentAdded) -> str:
    return f"加入，角色：{event.spec.role or event.spec.kind}"


def _changed(_: World, event: agents.AgentChanged) -> str:
    model = str((event.spec.llm_config or {}).get("model", ""))
    return "已重新设置" + (f"，模型：{model}" if model else "")


def _stage_started(world: World, event: stages.StageStarted) -> str:
    stage = world.stages[event.stage_id]
    parts = "、".join(one.name for one in stage.subtasks)
    return f"阶段{stage.stage_id}开始：{stage.intention}（{parts}）"


def _assigned(world: World, event: stages.SubtaskAssigned | stages.SubtaskHandedOver) -> str:
    subtask = world.stages[event.stage_id].subtask(event.subtask_id)
    return f"接受“{subtask.name}”：{subtask.duty}" if subtask else f"接受{event.subtask_id}"


def _subtask_ended(world: World, event: stages.SubtaskEnded) -> str:
    subtask = world.stages[event.stage_id].subtask(event.subtask_id)
    summary = f"：{shorten(event.summary)}" if event.summary else ""
    return f"“{subtask.name if subtask else event.subtask_id}”{end_zh(event.state)}{summary}"


def _started(world: World, event: steps.StepStarted) -> str:
    again = f"（第{event.attempt}次）" if event.attempt > 1 else ""
    return f"{step_words_zh(world.steps[event.step_id])}{again}"


def _blocked(world: World, event: steps.StepBlocked) -> str:
    why = "人的批准" if event.state == "awaiting_approval" else f"预算{event.budget!r}的余量"
    return f"{step_words_zh(world.steps[event.step_id])}：等待{why}"


def _interrupted(world: World, event: steps.StepInterrupted) -> str:
    return f"被中断（{event.why}）：{step_words_zh(world.steps[event.step_id])}；将重新运行"


def _ended(world: World, event: steps.StepEnded) -> str:
    step = world.steps[event.step_id]
    if event.state == "finished" and step.work.type == "skill":
        text = str((event.result or {}).get("text", ""))
        return f"“{shorten(text)}”" if text else "思考完毕"
    result = event.error or str((event.result or {}).get("output", ""))
    told = f"：{shorten(result)}" if event.error else f" → {shorten(result)}" if result else ""
    state = "" if event.state == "finished" else f"{end_zh(event.state)}："
    return f"{state}{step_words_zh(step)}{told}"


def _sent(_: World, event: messages.MessageSent) -> str:
    message = event.message
    waits = "（等待回复）" if message.waiting else ""
    return f"{'、'.join(message.receiver)}：{shorten(message.message)}{waits}"


def _released(world: World, event: messages.WaitReleased) -> str:
    return f"不再等待{world.waits[event.waiting_id].on}：{RELEASED.get(event.why, event.why)}"


def _answered(_: World, event: approvals.ApprovalAnswered) -> str:
    return f"被{event.by}{end_zh(event.answer)}"


_WORDS: Final[dict[type, Callable[[World, Any], str]]] = {
    teams.TeamCreated: lambda _, event: f"团队{event.team_id}已建立：{event.name}",
    teams.OwnerChanged: _owner,
    teams.TeamPaused: lambda _, event: f"{_what(event)}已暂停：{reason(event.why, CHINESE)}",
    teams.TeamResumed: lambda _, event: f"{_what(event)}继续",
    tasks.TaskPaused: lambda _, event: f"{_what(event)}已暂停：{reason(event.why, CHINESE)}",
    tasks.TaskResumed: lambda _, event: f"{_what(event)}继续",
    agents.AgentAdded: _joined,
    agents.AgentChanged: _changed,
    agents.AgentRemoved: lambda _, event: f"离开：{event.why}",
    tasks.TaskCreated: lambda _, event: f"任务{event.task_id}：{event.name}",
    tasks.TaskEnded: lambda _, event: f"任务{event.task_id}{end_zh(event.state)}",
    stages.StageStarted: _stage_started,
    stages.StageEnded: lambda _, event: f"阶段{event.stage_id}{end_zh(event.state)}",
    stages.SubtaskAssigned: _assigned,
    stages.SubtaskHandedOver: _assigned,
    stages.SubtaskEnded: _subtask_ended,
    steps.StepStarted: _started,
    steps.StepBlocked: _blocked,
    steps.StepInterrupted: _interrupted,
    steps.StepEnded: _ended,
    messages.MessageSent: _sent,
    messages.WaitReleased: _released,
    notes.NotePosted: lambda _, event: f"公告：{shorten(event.note.content)}",
    notes.ValueSet: lambda _, event: f"公告：{event.value.key} = {shorten(event.value.content)}",
    approvals.ApprovalRequested: lambda _, event: f"请求批准：{shorten(event.question)}",
    approvals.ApprovalAnswered: _answered,
    budgets.LimitReached: lambda _, event: f"达到上限：{event.budget_id} {event.limit}",
    timers.TimerFired: lambda _, event: f"定时器{event.timer_id}到时",
}
