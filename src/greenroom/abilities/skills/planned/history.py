"""What was done so far, as a model reads it: every ended step of the stage as a line of JSON, as many as have room."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from greenroom.abilities.skills.planned.chain import DECISION
from greenroom.core.base.fences import fenced
from greenroom.core.base.records import Data
from greenroom.core.ports.tool import WHOLE
from greenroom.core.state.step import Step

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
    steps = _in_order(steps)
    if not steps:
        return ""
    head = _head(steps)
    whole = [line(one) for one in steps]
    if _size(whole) <= room:
        return fenced("\n".join(whole))
    most = max(room // len(steps) // 2, SHORT)
    goal = max(min(GOAL, room // 6), SHORT)
    lines = [_head_line(one, most, goal, room) if place in head else line(one, most) for place, one in enumerate(steps)]
    kept = _newest(lines, head, room)
    missing = len(steps) - len(kept)
    note = [f"(steps that are left out here: {missing})"] if missing else []
    shown = (*(lines[place] for place in head), *note, *(lines[place] for place in kept if place not in head))
    return fenced("\n".join(shown))


def _in_order(steps: Sequence[Step]) -> list[Step]:
    """The steps behind what sums up what was before them; a sum that failed says nothing."""
    others = [one for one in steps if one.work.executor != SUMS]
    return [*(one for one in steps if one.work.executor == SUMS and one.state == "finished"), *others]


def _head(steps: Sequence[Step]) -> tuple[int, ...]:
    """The places of those that are never left out."""
    first = next((place for place, one in enumerate(steps) if one.work.executor == "planning"), None)
    sums = [place for place, one in enumerate(steps) if one.work.executor == SUMS][-1:]
    return (*sums, *(() if first is None else (first,)))


def _head_line(step: Step, most: int, goal: int, room: int) -> str:
    """What sums up much is told with much: half of the room at most."""
    return line(step, max(room // 4, SHORT) if step.work.executor == SUMS else most, goal=goal)


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


def tool_use(calls: Sequence[Step], room: int, render: Callable[[dict[str, object]], str]) -> str:
    """A tool's chain as Markdown: why it was begun, what each call brought, what was decided after it."""
    most = max(room // max(len(calls), 1) - SHORT, SHORT)
    rows = [{"decision": one.work.executor == DECISION, "state": one.state, "text": _row(one, most)} for one in calls]
    first = calls[0].work if calls else None
    meant = "\n".join(filter(None, (first.intention, first.text_content))) if first is not None else ""
    return render({"rows": rows, "intention": cut(meant, GOAL)})


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
