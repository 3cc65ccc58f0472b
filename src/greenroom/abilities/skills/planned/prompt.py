"""The prompt of a step: named sections, and one table of which of them a skill is told, in which order.

What is the same in every step stands first. The sections of a row are grouped: the first group is the system prompt,
each other one a message. A message that somebody sent stands in a group of its own, behind everything else, so that
headings in it are nobody else's. What was done so far stands there as lines of JSON, as many as have room; what was
done with a long-tail tool in one go as the chain of its calls and the decisions between them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from greenroom.abilities.skills.planned.skill import PACK, Moment, Order, Skill, error_of, is_letter, parts, use_guide
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, encode
from greenroom.core.base.text import fenced
from greenroom.core.ports.model import ChatMessage
from greenroom.core.ports.tool import WHOLE
from greenroom.core.state.step import Step, Work

DECISION: Final = "tool_decision"
GAPS: Final = frozenset({"instruction_generation", "send_message"})


def chain(steps: Sequence[Step], tool: str) -> tuple[Step, ...]:
    """The newest chain of this tool, oldest first: calls and decisions in turn, a call at either end.

    A call belongs to it if the decision before it was to go on. A decision that could not be read was made again.
    """
    found: list[Step] = []
    decision: Step | None = None
    for step in reversed(steps):
        is_call = step.work.type == "tool" and step.work.executor == tool
        is_decision = step.work.executor == DECISION and step.work.text_content.strip() == tool
        if is_call and (not found or decision is not None):
            found += (step,) if decision is None else (decision, step)
            decision = None
        elif not found or step.work.executor in GAPS or (is_decision and decision is not None):
            continue
        else:
            made = (step.result or {}).get(DECISION)
            ended = isinstance(made, Mapping) and made.get("decision") == "end"
            if not is_decision or ended or step.state != "finished":
                break
            decision = step
    return tuple(reversed(found))


GOAL: Final = 8000
"""Characters of the goal that the first plan was made for: it is never left out."""

SHORT: Final = 400
"""Characters below which no text of a step is cut: rather the oldest steps are left out."""

SUMS: Final = "compact"
"""The skill that sums up a conversation."""

_BOOKS: Final = frozenset({"text", "calls", "usage", "by", "reasoning", "opaque", "blob", "bytes", WHOLE})
"""What the log keeps of a reply or a result, and is not what came of it."""


def of_stage(steps: Sequence[Step], current: Step) -> list[Step]:
    """The steps of the current stage; outside of one, all of the conversation."""
    return [one for one in steps if current.stage_id is None or one.stage_id == current.stage_id]


def told(steps: Sequence[Step], room: int) -> str:
    """The steps in a fence of at most `room` bytes; empty when there are none.

    What sums up what was before stands first, and is always among them, as is the first plan.
    """
    # What sums up what was before stands first; a sum that failed says nothing.
    sums = [one for one in steps if one.work.executor == SUMS and one.state == "finished"]
    steps = [*sums, *(one for one in steps if one.work.executor != SUMS)]
    if not steps:
        return ""
    whole = [line(one) for one in steps]
    if _size(whole) <= room:
        return fenced("\n".join(whole))
    plans = [place for place, one in enumerate(steps) if one.work.executor == "planning"]
    head = (*range(len(sums))[-1:], *plans[:1])  # these are never left out
    most = max(room // len(steps) // 2, SHORT)
    lines = [line(one, most) for one in steps]
    for place in head:  # what sums up much is told with much: half of the room at most
        longest = max(room // 4, SHORT) if place < len(sums) else most
        lines[place] = line(steps[place], longest, goal=max(min(GOAL, room // 6), SHORT))
    kept = _newest(lines, head, room)
    missing = len(steps) - len(kept)
    note = [f"(steps that are left out here: {missing})"] if missing else []
    shown = (*(lines[place] for place in head), *note, *(lines[place] for place in kept if place not in head))
    return fenced("\n".join(shown))


def _newest(lines: Sequence[str], head: Sequence[int], room: int) -> list[int]:
    """The places of the newest that have room, beside those that always have."""
    left = room - _size([lines[place] for place in head])
    kept = list(head)
    for place in reversed(range(len(lines))):
        if place in head:
            continue
        left -= _size([lines[place]])
        if left < 0:
            break
        kept.append(place)
    return sorted(kept)


def line(step: Step, most: int | None = None, goal: int | None = None) -> str:
    """A step as JSON. Texts are cut to `most` characters, its goal to `goal`."""
    work = step.work
    found: dict[str, object] = {
        "step_id": step.step_id,
        "type": work.type,
        "executor": work.executor,
        "step_intention": cut(work.intention, most),
        "text_content": cut(work.text_content, goal or most),
        "execution_state": step.state,
    }
    if work.type == "tool" and work.instruction_content is not None:
        found["instruction_content"] = _short(work.instruction_content, most)
    if step.result is not None:
        found["execute_result"] = _short(outcome(step), most)
    if step.error:
        found["error"] = cut(step.error, most)
    return json.dumps(found, ensure_ascii=False)


def outcome(step: Step) -> Data:
    """What came of a step, without what only the books need."""
    return {key: value for key, value in (step.result or {}).items() if key not in _BOOKS}


def tool_use(calls: Sequence[Step], room: int) -> dict[str, object]:
    """A tool's chain: why it was begun, what each call brought, what was decided after it."""
    most = max(room // max(len(calls), 1) - SHORT, SHORT)
    rows = [{"decision": one.work.executor == DECISION, "state": one.state, "text": _row(one, most)} for one in calls]
    first = calls[0].work if calls else None
    meant = "\n".join(filter(None, (first.intention, first.text_content))) if first is not None else ""
    return {"rows": rows, "intention": cut(meant, GOAL)}


def _row(step: Step, most: int) -> str:
    shown = {"instruction_content": step.work.instruction_content, "execute_result": outcome(step), "error": step.error}
    made = outcome(step) if step.work.executor == DECISION else {key: one for key, one in shown.items() if one}
    return fenced(json.dumps(_short(made, most), ensure_ascii=False))


def cut(text: str, most: int | None) -> str:
    """The beginning and the end of a text that is too long."""
    if most is None or len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} […{len(text) - 2 * half:,} characters…] {text[len(text) - half :]}"


def _short(value: object, most: int | None) -> object:
    """A result with its texts cut; one that is long by the number of its parts is told as the text that it is."""
    if most is None:
        return value
    short = _texts(value, most)
    written = json.dumps(short, ensure_ascii=False, default=str)
    return short if len(written) <= 2 * most else cut(written, most)


def _texts(value: object, most: int) -> object:
    if isinstance(value, str):
        return cut(value, most)
    if isinstance(value, Mapping):
        return {str(key): _texts(one, most) for key, one in value.items()}
    return [_texts(one, most) for one in value] if isinstance(value, list | tuple) else value


def _size(lines: Sequence[str]) -> int:
    return sum(len(one.encode()) + 1 for one in lines)


Section = Literal["system", "role", "step", "tool_step", "history", "tool_history", "memory"]
Groups = tuple[tuple[Section, ...], ...]

ORDERS: Final[dict[Order, Groups]] = {
    "plain": (("system", "role"), ("step", "memory")),
    "history": (("system", "role"), ("step", "history", "memory")),
    "tool": (("system", "role"), ("step", "tool_step", "memory")),
    "tool_history": (("system", "role"), ("step", "tool_history", "memory")),
    "message": (("system", "role"), ("history", "memory"), ("step",)),
}

SHOWN: Final = 30
"""Members of a group that are named."""


def messages(moment: Moment, skill: Skill, *, tags: bool, room: int) -> tuple[ChatMessage, ...]:
    """What one step is told: the sections of its skill, group by group. With `tags` it answers between them; `room` is
    how many bytes the history may take."""

    def written(section: Section) -> str:
        return PACK.render(
            moment.spec.language, f"section_{section}", _told_in(section, moment, skill, tags=tags, room=room)
        )

    first, *others = ("\n\n".join(map(written, group)) for group in ORDERS[skill.order])
    return (ChatMessage(role="system", content=first), *(ChatMessage(role="user", content=text) for text in others))


def _told_in(section: Section, here: Moment, skill: Skill, *, tags: bool, room: int) -> dict[str, object]:
    """What is filled in in a section."""
    language, memory = here.spec.language, here.agent.memory
    steps = of_stage(here.history, here.step)
    match section:
        case "system":
            return {"base": PACK.render(language, "base", {})}
        case "role":
            return _of_agent(here)
        case "step":
            return _of_step(here, skill, tags=tags)
        case "tool_step":
            return _of_tool(here)
        case "history":
            return {"steps": told(steps, room)}
        case "tool_history":
            tool = here.step.work.text_content.strip()
            shown = tool_use(chain(steps, tool), room)
            return {"tool": tool, "shown": PACK.render(language, "tool_use", {**shown, "tool": tool})}
        case "memory":
            rules = PACK.render(language, "persistent_memory", {"tags": tags})
            return {"rules": rules, "memory": fenced(memory) if memory else ""}


def _of_agent(here: Moment) -> dict[str, object]:
    spec = here.spec
    return {
        "agent_id": here.agent.agent_id,
        "name": spec.name,
        "role": spec.role,
        "profile": spec.profile or spec.description,
        "prompt": spec.prompt,
        "manager": spec.manager,
        "skills": [(name, use_guide(here.skills[name], spec.language)) for name in here.may_plan],
        "tools": [(name, here.tools[name].description) for name in spec.tools if name in here.tools],
        "project": here.project,
    }


def _of_step(here: Moment, skill: Skill, *, tags: bool) -> dict[str, object]:
    work, own = here.step.work, parts(skill, here.spec.language, tags=tags)
    return {
        "executor": work.executor,
        "intention": work.intention,
        "text": fenced(work.text_content) if is_letter(here.step) else work.text_content,
        "letter": is_letter(here.step),
        "task": here.task,
        "stage": here.stage,
        "group": [_member(here, one) for one in here.group[:SHOWN]],
        "others": max(0, len(here.group) - SHOWN),
        "notices": here.notices,
        "error": error_of(here.step),
        "skill_prompt": own.skill_prompt,
        "return_format": own.return_format,
        "tag": skill.tag,
        "tags": tags,
    }


def _of_tool(here: Moment) -> dict[str, object]:
    work = here.to_fill.work if here.to_fill is not None else Work(type="tool", executor="")
    tool = here.tools.get(work.executor)
    return {
        "tool": work.executor,
        "intention": work.intention,
        "text": work.text_content,
        "description": tool.description if tool is not None else "",
        "schema": fenced(encode(tool.parameters).decode()) if tool is not None else "",
    }


def _member(here: Moment, name: str) -> dict[str, object]:
    """Somebody of the group, as the others see them."""
    found = here.world.agents.get(AgentId(name))
    spec = found.spec if found is not None else None
    return {
        "id": name,
        "name": spec.name if spec is not None else "",
        "role": spec.role if spec is not None else "",
        "human": spec is not None and spec.kind == "human",
        "you": name == here.agent.agent_id,
    }
