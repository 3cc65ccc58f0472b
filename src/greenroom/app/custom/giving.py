"""What a file or a package gives: its tools, checked, or a sentence about why it gives none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType

from greenroom.abilities.protocols.schemas import BadSchema, faults
from greenroom.app.custom.foreign import Foreign, Unfit, has_form
from greenroom.app.functions.tools import Tool
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.tool import ToolExecutor


def given_by(module: ModuleType, source: str) -> list[ToolExecutor]:
    """The tools that stand at the top of a module, in their order. What it has imported is another's."""
    own = [value for name, value in vars(module).items() if not name.startswith("_") and _is_own(value, module)]
    return made(own, source)


def made(things: Iterable[object], source: str) -> list[ToolExecutor]:
    """Tools of these; what says that it cannot be used now (`check`) is left out without a word."""
    unique = {id(one): one for one in things}
    tools = [one for thing in unique.values() for one in _tool(thing, source)]
    for tool in tools:
        _refuse_schema(tool)
    return tools


def _is_own(value: object, module: ModuleType) -> bool:
    if isinstance(value, Tool):
        return getattr(value.function, "__module__", None) == module.__name__
    if not has_form(value):
        return False
    kind = value if isinstance(value, type) else type(value)
    made_here = kind.__module__ == module.__name__
    # An instance stands for its class, which else would be a second tool of the same name.
    return made_here and not (isinstance(value, type) and any(type(one) is value for one in vars(module).values()))


def _tool(thing: object, source: str) -> Iterator[ToolExecutor]:
    if isinstance(thing, Tool):
        mine = thing.given(None)
        mine.source = source
        yield mine
    elif has_form(thing):
        foreign = Foreign(thing, source)
        if foreign.can_be_used():
            yield foreign
    else:
        raise Unfit(f"{type(thing).__name__} is no tool. Make it one with @tool")


def _refuse_schema(tool: ToolExecutor) -> None:
    schema = tool.card.spec.parameters
    if schema.get("type") != "object":
        raise WorldFault(f"the parameters of the tool {tool.name!r} are no schema of an object")
    try:
        faults(schema, {})
    except BadSchema as error:
        raise WorldFault(f"the parameters of the tool {tool.name!r} are no JSON schema: {error}") from None
