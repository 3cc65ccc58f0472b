"""What a model may wish while it leads a browser: a closed set of actions, how they are told and how they are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from greenroom.abilities.tools.output.given import fitted
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.browser import Back, Click, Move, Open, Scroll, Type
from greenroom.core.ports.model import ToolCall, ToolSpec
from greenroom.core.ports.web import address


@record
class Extract:
    """Keep something that was found."""

    content: str


@record
class Done:
    """The task is done, or cannot be."""

    result: str
    success: bool = True


Wish: TypeAlias = Move | Extract | Done

_REF: Final = {"type": "string", "description": "The mark of what is meant, such as e5."}


def _action(name: str, description: str, *required: str, **properties: object) -> ToolSpec:
    shape: Data = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name=name, description=description, parameters=shape)


ACTIONS: Final = (
    _action("open", "Go to an address (http:// or https://).", "url", url={"type": "string"}),
    _action("click", "Click a link, a button or anything else that has a mark.", "ref", ref=_REF),
    _action(
        "type",
        "Fill in a field or choose in a list, in the place of what stands there. With submit, press Enter then.",
        *("ref", "text"),
        ref=_REF,
        text={"type": "string"},
        submit={"type": "boolean"},
    ),
    _action("scroll", "See the next part of the page, or with down=false the one before.", down={"type": "boolean"}),
    _action("back", "Go back to the page before."),
    _action("extract", "Write down something that was found; it is kept.", "content", content={"type": "string"}),
    _action(
        "done",
        "End: the result in full. With success=false: why the task cannot be done.",
        "result",
        result={"type": "string"},
        success={"type": "boolean"},
    ),
)
_READ: Final[Mapping[str, Callable[[Data], Wish]]] = {
    "open": lambda told: _to_an_address(fitted(Open, told, "open")),
    "click": lambda told: fitted(Click, told, "click"),
    "type": lambda told: fitted(Type, told, "type"),
    "scroll": lambda told: fitted(Scroll, told, "scroll"),
    "back": lambda told: fitted(Back, told, "back"),
    "extract": lambda told: fitted(Extract, told, "extract"),
    "done": lambda told: fitted(Done, told, "done"),
}


def in_words() -> str:
    """The actions for a model that knows no calls."""
    rows = ((one.name, one.description, json.dumps(one.parameters["properties"])) for one in ACTIONS)
    return "\n".join(f"- {name}: {description} {shape}" for name, description, shape in rows)


def wished(calls: tuple[ToolCall, ...], text: str) -> tuple[str, Wish]:
    """The one action of an answer, and how it is told of later; `ModelFault` says why it is none."""
    name, arguments = _called(calls[0]) if calls else _said(text)
    read = _READ.get(name)
    if read is None:
        raise ModelFault(f"There is no action {name[:40]!r}. There are: {', '.join(_READ)}.")
    wish = read(arguments)
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({given})", wish


def _to_an_address(wish: Open) -> Open:
    """Only the web is opened, and read as everybody here reads it."""
    return evolve(wish, url=address(wish.url).url)


def _called(call: ToolCall) -> tuple[str, Data]:
    if call.unread:
        raise ModelFault(f"The arguments of {call.name} are no JSON object.")
    return call.name, call.arguments


def _said(text: str) -> tuple[str, Data]:
    """An action in text: one JSON object, whatever stands around it."""
    begin, end = text.find("{"), text.rfind("}")
    try:
        read = json.loads(text[begin : end + 1]) if begin >= 0 else None
    except ValueError:
        read = None
    if not isinstance(read, dict) or not isinstance(read.get("action"), str):
        raise ModelFault('That was no action. Make one move: an action, or as JSON {"action": NAME, …}.')
    return read["action"], {name: value for name, value in read.items() if name != "action"}
