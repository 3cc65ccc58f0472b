"""ask_info: one of eleven questions about the house. The answer comes as a message, and is read next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast, get_args

from greenroom.abilities.skills.planned.schemas import fields_of, list_of
from greenroom.abilities.skills.planned.skill import TEXT, Answer, Meant, Moment, Skill
from greenroom.core.base.errors import ModelFault
from greenroom.core.rules.intents import AskInfo, Query

QUERIES: Final[tuple[Query, ...]] = get_args(Query)
"""In MAS's order: the first is number 1."""

NAMED: Final = ("task_id", "stage_id", "agent_id", "agents", "task", "stage", "agent")
"""Fields in which MAS names what a question is about."""

SHAPE: Final = fields_of(type=TEXT, about=list_of(TEXT))


def _meaning(moment: Moment, answer: Answer) -> Meant:
    said = cast("Mapping[str, object]", answer.value)
    about = tuple(str(one).strip() for one in cast("Sequence[object]", said["about"]))
    query = _query(str(said["type"]).strip())
    asked = AskInfo(query=query, task_id=moment.step.task_id, about=about)
    value = {
        "type": query,
        "about": list(about),
        "sender_id": moment.agent.agent_id,
        "sender_task_id": moment.step.task_id,
    }
    return Meant(value=value, intents=(asked,))


def _query(name: str) -> Query:
    if name.isdecimal() and 1 <= int(name) <= len(QUERIES):
        return QUERIES[int(name) - 1]
    for one in QUERIES:
        if one == name:
            return one
    listed = ", ".join(f"{number} {one}" for number, one in enumerate(QUERIES, start=1))
    raise ModelFault(f"There is no question {name!r}. Ask one of: {listed}.")


def tidied(value: object) -> object:
    """The answer in its one form: a number is a type too, and what it is about may have a field of its own."""
    if not isinstance(value, Mapping):
        return value
    told = value.get("type")
    kind = str(told) if isinstance(told, int) and not isinstance(told, bool) else told
    about = value.get("about", list(_named(value)))
    return {"type": kind, "about": [about] if isinstance(about, str) else about}


def _named(value: Mapping[str, object]) -> Iterator[object]:
    for name in NAMED:
        found = value.get(name)
        yield from found if isinstance(found, list) else (found,) if found else ()


ASK_INFO: Final = Skill(
    name="ask_info",
    tag="ask_instruction",
    key="ask_instruction",
    said="Ask Info",
    order="plain",
    shape=lambda _: SHAPE,
    tidied=tidied,
    meaning=_meaning,
)
