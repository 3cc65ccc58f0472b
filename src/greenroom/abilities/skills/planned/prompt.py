"""Build the prompt of a step from named sections. One table lists the sections of each skill, in order.

Constant sections come first. The sections of a row are grouped: the first group is the system prompt, each other group
is a message. A received message has its own group at the end, so that headings in it cannot affect other sections. The
history consists of lines of JSON, as many as fit. The use of a long-tail tool is shown as the chain of its calls and
decisions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from greenroom.abilities.skills.planned.skill import (
    PACK,
    PromptOrder,
    Skill,
    SkillContext,
    is_message,
    read_error,
    read_use_guide,
    render_parts,
)
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, encode
from greenroom.core.base.text import add_fence
from greenroom.core.ports.model import ChatMessage
from greenroom.core.ports.tool import WHOLE_KEY
from greenroom.core.state.step import Step, Work

DECISION_SKILL: Final = "tool_decision"
SKIPPED_SKILLS: Final = frozenset({"instruction_generation", "send_message"})


def find_tool_chain(steps: Sequence[Step], tool: str) -> tuple[Step, ...]:
    """Return the newest chain of this tool, oldest first: calls and decisions alternate, and a call is at each end.

    A call belongs to the chain if the decision before it was to continue. An unreadable decision was repeated.
    """
    found: list[Step] = []
    decision: Step | None = None
    for step in reversed(steps):
        is_call = step.work.type == "tool" and step.work.executor == tool
        is_decision = step.work.executor == DECISION_SKILL and step.work.text_content.strip() == tool
        if is_call and (not found or decision is not None):
            found += (step,) if decision is None else (decision, step)
            decision = None
        elif not found or step.work.executor in SKIPPED_SKILLS or (is_decision and decision is not None):
            continue
        else:
            made = (step.result or {}).get(DECISION_SKILL)
            ended = isinstance(made, Mapping) and made.get("decision") == "end"
            if not is_decision or ended or step.state != "finished":
                break
            decision = step
    return tuple(reversed(found))


MAX_GOAL_CHARS: Final = 8000
"""Maximum characters of the first plan's goal. The goal is never left out."""

MIN_TEXT_CHARS: Final = 400
"""Characters below which no text of a step is cut. The oldest steps are left out instead."""

COMPACT_SKILL: Final = "compact"
"""The skill that compacts a conversation."""

_BOOKKEEPING_KEYS: Final = frozenset(
    {"text", "calls", "usage", "by", "reasoning", "opaque", "blob", "bytes", WHOLE_KEY}
)
"""Keys of a result that are bookkeeping of the log, not part of the result."""


def filter_stage_steps(steps: Sequence[Step], current: Step) -> list[Step]:
    """Return the steps of the current stage; outside of a stage, all steps of the conversation."""
    return [step for step in steps if current.stage_id is None or step.stage_id == current.stage_id]


def render_history(steps: Sequence[Step], room: int) -> str:
    """Render the steps in a fence of at most `room` bytes. Return "" if there are none.

    A summary of earlier steps comes first. The summary and the first plan are always included.
    """
    # The summary of earlier steps comes first. A failed summary has no content.
    sums = [step for step in steps if step.work.executor == COMPACT_SKILL and step.state == "finished"]
    steps = [*sums, *(step for step in steps if step.work.executor != COMPACT_SKILL)]
    if not steps:
        return ""
    whole = [render_step_line(step) for step in steps]
    if _measure_lines(whole) <= room:
        return add_fence("\n".join(whole))
    plans = [place for place, step in enumerate(steps) if step.work.executor == "planning"]
    head = (*range(len(sums))[-1:], *plans[:1])  # these are never left out
    max_chars = max(room // len(steps) // 2, MIN_TEXT_CHARS)
    lines = [render_step_line(step, max_chars) for step in steps]
    for place in head:  # a summary gets more room: at most half
        longest = max(room // 4, MIN_TEXT_CHARS) if place < len(sums) else max_chars
        lines[place] = render_step_line(steps[place], longest, goal=max(min(MAX_GOAL_CHARS, room // 6), MIN_TEXT_CHARS))
    kept = _choose_newest(lines, head, room)
    missing = len(steps) - len(kept)
    note = [f"(steps that are left out here: {missing})"] if missing else []
    shown = (*(lines[place] for place in head), *note, *(lines[place] for place in kept if place not in head))
    return add_fence("\n".join(shown))


def _choose_newest(lines: Sequence[str], head: Sequence[int], room: int) -> list[int]:
    """Return the indexes of the newest lines that fit, together with those of `head`."""
    left = room - _measure_lines([lines[place] for place in head])
    kept = list(head)
    for place in reversed(range(len(lines))):
        if place in head:
            continue
        left -= _measure_lines([lines[place]])
        if left < 0:
            break
        kept.append(place)
    return sorted(kept)


def render_step_line(step: Step, max_chars: int | None = None, goal: int | None = None) -> str:
    """Render a step as JSON. Texts are cut to `max_chars` characters, its goal to `goal`."""
    work = step.work
    found: dict[str, object] = {
        "step_id": step.step_id,
        "type": work.type,
        "executor": work.executor,
        "step_intention": cut_text(work.intention, max_chars),
        "text_content": cut_text(work.text_content, goal or max_chars),
        "execution_state": step.state,
    }
    if work.type == "tool" and work.instruction_content is not None:
        found["instruction_content"] = _shorten_result(work.instruction_content, max_chars)
    if step.result is not None:
        found["execute_result"] = _shorten_result(strip_bookkeeping(step), max_chars)
    if step.error:
        found["error"] = cut_text(step.error, max_chars)
    return json.dumps(found, ensure_ascii=False)


def strip_bookkeeping(step: Step) -> Data:
    """Return the result of a step without bookkeeping keys."""
    return {key: value for key, value in (step.result or {}).items() if key not in _BOOKKEEPING_KEYS}


def build_tool_use(calls: Sequence[Step], room: int) -> dict[str, object]:
    """Describe a tool chain: why it began, the result of each call, and each decision."""
    max_chars = max(room // max(len(calls), 1) - MIN_TEXT_CHARS, MIN_TEXT_CHARS)
    rows = [
        {"decision": step.work.executor == DECISION_SKILL, "state": step.state, "text": _render_row(step, max_chars)}
        for step in calls
    ]
    first = calls[0].work if calls else None
    meant = "\n".join(filter(None, (first.intention, first.text_content))) if first is not None else ""
    return {"rows": rows, "intention": cut_text(meant, MAX_GOAL_CHARS)}


def _render_row(step: Step, max_chars: int) -> str:
    shown = {
        "instruction_content": step.work.instruction_content,
        "execute_result": strip_bookkeeping(step),
        "error": step.error,
    }
    made = (
        strip_bookkeeping(step)
        if step.work.executor == DECISION_SKILL
        else {key: part for key, part in shown.items() if part}
    )
    return add_fence(json.dumps(_shorten_result(made, max_chars), ensure_ascii=False))


def cut_text(text: str, max_chars: int | None) -> str:
    """Cut the middle of a text that is too long."""
    if max_chars is None or len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]} […{len(text) - 2 * half:,} characters…] {text[len(text) - half :]}"


def _shorten_result(value: object, max_chars: int | None) -> object:
    """Cut the texts of a result. A result with too many parts becomes a cut text."""
    if max_chars is None:
        return value
    short = _cut_texts(value, max_chars)
    written = json.dumps(short, ensure_ascii=False, default=str)
    return short if len(written) <= 2 * max_chars else cut_text(written, max_chars)


def _cut_texts(value: object, max_chars: int) -> object:
    if isinstance(value, str):
        return cut_text(value, max_chars)
    if isinstance(value, Mapping):
        return {str(key): _cut_texts(part, max_chars) for key, part in value.items()}
    return [_cut_texts(part, max_chars) for part in value] if isinstance(value, list | tuple) else value


def _measure_lines(lines: Sequence[str]) -> int:
    return sum(len(text.encode()) + 1 for text in lines)


Section = Literal["system", "role", "step", "tool_step", "history", "tool_history", "memory"]
Groups = tuple[tuple[Section, ...], ...]

SECTION_ORDERS: Final[dict[PromptOrder, Groups]] = {
    "plain": (("system", "role"), ("step", "memory")),
    "history": (("system", "role"), ("step", "history", "memory")),
    "tool": (("system", "role"), ("step", "tool_step", "memory")),
    "tool_history": (("system", "role"), ("step", "tool_history", "memory")),
    "message": (("system", "role"), ("history", "memory"), ("step",)),
}

MAX_MEMBERS_SHOWN: Final = 30
"""Maximum number of group members that are listed."""


def build_messages(skill_context: SkillContext, skill: Skill, *, tags: bool, room: int) -> tuple[ChatMessage, ...]:
    """Build the messages of one step: the sections of its skill, group by group. With `tags`, the answer stands between
    tags. `room` is the maximum size of the history in bytes."""

    def render_section(section: Section) -> str:
        return PACK.render(
            skill_context.spec.language,
            f"section_{section}",
            _collect_section_values(section, skill_context, skill, tags=tags, room=room),
        )

    first, *others = ("\n\n".join(map(render_section, group)) for group in SECTION_ORDERS[skill.order])
    return (ChatMessage(role="system", content=first), *(ChatMessage(role="user", content=text) for text in others))


def _collect_section_values(
    section: Section, skill_context: SkillContext, skill: Skill, *, tags: bool, room: int
) -> dict[str, object]:
    language, memory = skill_context.spec.language, skill_context.agent.memory
    steps = filter_stage_steps(skill_context.history, skill_context.step)
    match section:
        case "system":
            return {"base": PACK.render(language, "base", {})}
        case "role":
            return _describe_agent(skill_context)
        case "step":
            return _describe_step(skill_context, skill, tags=tags)
        case "tool_step":
            return _describe_tool(skill_context)
        case "history":
            return {"steps": render_history(steps, room)}
        case "tool_history":
            tool = skill_context.step.work.text_content.strip()
            shown = build_tool_use(find_tool_chain(steps, tool), room)
            return {"tool": tool, "shown": PACK.render(language, "tool_use", {**shown, "tool": tool})}
        case "memory":
            rules = PACK.render(language, "persistent_memory", {"tags": tags})
            return {"rules": rules, "memory": add_fence(memory) if memory else ""}


def _describe_agent(skill_context: SkillContext) -> dict[str, object]:
    spec = skill_context.spec
    return {
        "agent_id": skill_context.agent.agent_id,
        "name": spec.name,
        "role": spec.role,
        "profile": spec.profile or spec.description,
        "prompt": spec.prompt,
        "manager": spec.manager,
        "skills": [
            (name, read_use_guide(skill_context.skills[name], spec.language)) for name in skill_context.plannable_skills
        ],
        "tools": [(name, skill_context.tools[name].description) for name in spec.tools if name in skill_context.tools],
        "project": skill_context.project,
    }


def _describe_step(skill_context: SkillContext, skill: Skill, *, tags: bool) -> dict[str, object]:
    work, prompt_parts = skill_context.step.work, render_parts(skill, skill_context.spec.language, tags=tags)
    return {
        "executor": work.executor,
        "intention": work.intention,
        "text": add_fence(work.text_content) if is_message(skill_context.step) else work.text_content,
        "letter": is_message(skill_context.step),
        "task": skill_context.task,
        "stage": skill_context.stage,
        "group": [_describe_member(skill_context, agent_id) for agent_id in skill_context.group[:MAX_MEMBERS_SHOWN]],
        "others": max(0, len(skill_context.group) - MAX_MEMBERS_SHOWN),
        "notices": skill_context.notices,
        "error": read_error(skill_context.step),
        "skill_prompt": prompt_parts.skill_prompt,
        "return_format": prompt_parts.return_format,
        "tag": skill.tag,
        "tags": tags,
    }


def _describe_tool(skill_context: SkillContext) -> dict[str, object]:
    work = skill_context.step_to_fill.work if skill_context.step_to_fill is not None else Work(type="tool", executor="")
    tool = skill_context.tools.get(work.executor)
    return {
        "tool": work.executor,
        "intention": work.intention,
        "text": work.text_content,
        "description": tool.description if tool is not None else "",
        "schema": add_fence(encode(tool.parameters).decode()) if tool is not None else "",
    }


def _describe_member(skill_context: SkillContext, name: str) -> dict[str, object]:
    """Describe a member of the group as other agents see it."""
    found = skill_context.state.agents.get(AgentId(name))
    spec = found.spec if found is not None else None
    return {
        "id": name,
        "name": spec.name if spec is not None else "",
        "role": spec.role if spec is not None else "",
        "human": spec is not None and spec.kind == "human",
        "you": name == skill_context.agent.agent_id,
    }
