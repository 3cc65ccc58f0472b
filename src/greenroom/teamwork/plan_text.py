"""A plan as data and as text: TOML that a person edits, and JSON that a model or a manager answers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from typing import Final, get_args

from msgspec import ValidationError, convert
from msgspec.json import schema

from greenroom.core.base.errors import translate
from greenroom.core.base.records import Data, evolve, record, to_full_dict
from greenroom.core.state.stage import OnFailure
from greenroom.teamwork.plan import Plan, PlanFault, PlannedSubtask, PlanSource, TaskType, TeamSettings
from greenroom.teamwork.plan_graph import check_plan, find_nearest


@record
class ProposedPlan:
    """The plan that a model or a manager answers."""

    task_types: tuple[TaskType, ...]
    subtasks: tuple[PlannedSubtask, ...]


_PARTS: Final[Mapping[str, Data]] = schema(ProposedPlan)["$defs"]
PLAN_SCHEMA: Final[Data] = {**_PARTS["ProposedPlan"], "$defs": _PARTS}
"""The JSON Schema of an answer that `parse_model_plan` reads."""

_PLAN_KEYS: Final = ("request", "task_types", "on_failure", "phases", "max_concurrent")
_SUBTASK_KEYS: Final = tuple(to_full_dict(PlannedSubtask(id="", agent="")))
_SHOWN: Final = ("id", "agent", "name", "description", "dependencies", "priority", "seconds", "writes")
_WORDS: Final = {"on_failure": get_args(OnFailure), "task_types": get_args(TaskType)}
_MAX_TEXT: Final = 400_000
_LINE: Final = re.compile(r"at line (\d+)")
_PLACE: Final = re.compile(r" - at `\$(?:\.?subtasks\[(\d+)\])?(?:\.(\w+))?.*")
_QUOTED: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)
_HEADER: Final = re.compile(r"^[ \t]*\[\[[ \t]*subtasks[ \t]*\]\]", re.MULTILINE)


def parse_model_plan(data: Data, request: str, source: PlanSource = "model") -> Plan | PlanFault:
    """Read the answer of a model or a manager, which has the keys of `PLAN_SCHEMA`. The request is the person's."""
    plan = _read_plan({**data, "request": request})
    return plan if isinstance(plan, PlanFault) else evolve(plan, source=source)


def parse_plan_text(
    text: str, profile_names: Collection[str] = (), settings: TeamSettings | None = None
) -> Plan | PlanFault:
    """Read an edited plan, and with `settings` check it too. A fault names the line."""
    if len(text) > _MAX_TEXT:
        return PlanFault("plan.text_too_long", limit=f"{_MAX_TEXT:,}").at(line=1)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # tomllib passes on what int() and the stack say
        found = _LINE.search(str(error))
        line = int(found[1]) if found else max(1, text.rstrip().count("\n") + 1)
        return PlanFault("plan.not_toml", why=str(error).partition(" (at ")[0]).at(line=line)
    plan = _read_plan(data)
    fault = plan if isinstance(plan, PlanFault) else settings and check_plan(plan, profile_names, settings)
    if isinstance(fault, PlanFault):
        fault.line = _find_line(text, *fault.place)
        return fault
    return plan


def _find_line(text: str, subtask: int | None, key: str) -> int:
    """Return the line of a key, else that of its subtask, else the first."""
    bare = _QUOTED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    starts = [found.start() for found in _HEADER.finditer(bare)]
    start, end = 0, starts[0] if starts else len(bare)
    if subtask is not None and subtask < len(starts):
        start, end = starts[subtask], [*starts, len(bare)][subtask + 1]
    elif subtask is not None:
        key = "subtasks"
    found = re.compile(rf"^[ \t]*({re.escape(key)})(?![\w-])", re.MULTILINE).search(bare, start, end) if key else None
    return text.count("\n", 0, found.start(1) if found else start) + 1


def _read_plan(data: Data) -> Plan | PlanFault:
    tables = data.get("subtasks")
    places: list[tuple[int | None, object, tuple[str, ...]]] = [(None, data, (*_PLAN_KEYS, "subtasks"))]
    places += [(index, table, _SUBTASK_KEYS) for index, table in enumerate(tables if isinstance(tables, list) else ())]
    for index, table, keys in places:
        for key in map(str, table if isinstance(table, Mapping) else ()):
            if key not in keys:
                return PlanFault("plan.unknown_key", key=key).at(index, key, nearest=find_nearest(key, keys))
    try:
        return convert({**data, "source": "file"}, Plan)
    except ValidationError as error:
        return _explain(str(error), data)


def _explain(why: str, data: Data) -> PlanFault:
    """Return the fault for what a conversion says, like ``Expected `int`, got `str` - at `$.subtasks[0].tries` ``."""
    found = _PLACE.search(why)
    index, key = (int(found[1]) if found[1] else None, found[2] or "") if found else (None, "")
    if key in _WORDS and why.startswith("Invalid enum"):
        value = data[key]
        wrong = next(str(word) for word in (value if isinstance(value, list) else [value]) if word not in _WORDS[key])
        fault = PlanFault("plan.wrong_word", key=key, known=", ".join(_WORDS[key]))
        return fault.at(index, key, nearest=find_nearest(wrong, _WORDS[key]))
    return PlanFault("plan.wrong_value", why=f"`{key}`: {_PLACE.sub('', why)}" if key else why).at(index, key)


def render_plan_text(plan: Plan) -> str:
    """Return a plan as text that `parse_plan_text` reads. Comments at the top explain the keys."""
    lines = [f"# {line}".rstrip() for line in translate("plan.text_help").splitlines()]
    lines += ["", *_render_values(plan, _PLAN_KEYS, _PLAN_KEYS)]
    for subtask in plan.subtasks:
        lines += ["", "[[subtasks]]", *_render_values(subtask, _SUBTASK_KEYS, _SHOWN)]
    return "\n".join(lines) + "\n"


def _render_values(holder: Plan | PlannedSubtask, keys: Collection[str], shown: Collection[str]) -> Iterator[str]:
    defaults = to_full_dict(PlannedSubtask(id="", agent=""))
    for key in keys:
        value = getattr(holder, key)
        if key in shown or value != defaults[key]:
            yield f"{key} = {_render_value(value)}"


def _render_value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_render_value(item) for item in value)}]"
    if not isinstance(value, str):
        return json.dumps(value)
    lines = [json.dumps(line, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f") for line in value.split("\n")]
    return f'"{lines[0]}"' if len(lines) == 1 else '"""\n' + "\n".join(lines) + '"""'
