"""`@tool`: a function as a tool. Its name, its docstring and its type hints are all that a model is told."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final, Generic, ParamSpec, TypeVar, cast, get_type_hints, overload

import msgspec

from greenroom.app.library.shapes import Misfit, Shape, as_text, shape_of
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.state.step import Effect, Step, StepType, Terms
from greenroom.core.state.world import World

P = ParamSpec("P")
R = TypeVar("R")

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ARGUMENTS: Final = re.compile(r"^\s*(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")
_FIELD: Final = re.compile(r"^\s*:param (?:\w+ )?(\w+):\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Done:
    """What a tool returns to end the work: `value` is the agent's answer, and its model is not asked again."""

    value: object


class Tool(Generic[P, R]):
    """A function that agents can call; people can call it as before.

    `effect` says what a crash in the middle means: *effectful* (the default) is never run twice, *pure* is run again.
    With `ask`, a person is asked before each call.
    """

    type: StepType = "tool"

    def __init__(
        self, function: Callable[P, R], *, name: str = "", effect: Effect = "effectful", ask: bool = False
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "")
        if not NAME.fullmatch(self.name):
            raise WorldFault(f'{self.name!r} is no name for a tool. Letters, digits, _ and -: @tool(name="…").')
        self.effect: Effect = effect
        self.ask = ask
        text = inspect.getdoc(function) or ""
        self.description = _purpose(text)
        if not self.description:
            raise WorldFault(f"The tool {self.name!r} has no docstring: nobody would know when to call it.")
        self._bench, self._shape = _parameters(function, self.name, _argument_words(text))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of it."""
        return ToolSpec(
            name=self.name, description=self.description, parameters=self._shape.schema, pure=self.effect == "pure"
        )

    def terms(self, world: World, step: Step) -> Terms:
        """Its effect, and a person's word where one is wanted."""
        given = as_text(dict(step.work.instruction_content or {}))
        if not self.ask:
            return Terms(effect=self.effect)
        question = f"{step.agent_id} wants to call {self.name} with {given}"
        return Terms(effect=self.effect, verdict="ask", question=question, digest=given)

    async def run(self, bench: Bench) -> Outcome:
        """Call it: a coroutine here, everything else in a thread, so that nobody else has to wait."""
        try:
            given = self._shape.read(dict(bench.step.work.instruction_content or {}))
        except Misfit as misfit:
            return Outcome(state="failed", error=f"Not called: {misfit}. Look at the parameters of {self.name}.")
        arguments: dict[str, object] = msgspec.structs.asdict(cast("msgspec.Struct", given))
        if self._bench:
            arguments[self._bench] = bench
        function = cast("Callable[..., object]", self.function)
        if inspect.iscoroutinefunction(function):
            value: object = await function(**arguments)
        else:
            value = await asyncio.to_thread(function, **arguments)
        if isinstance(value, Done):
            return Outcome(result={"output": as_text(value.value), "need_return": True})
        return Outcome(result={"output": as_text(value)})


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *, name: str = "", effect: Effect = "effectful", ask: bool = False
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None, /, *, name: str = "", effect: Effect = "effectful", ask: bool = False
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a function: `@tool`, or `@tool(effect="pure", ask=True)`."""
    if function is not None:
        return Tool(function)
    return lambda function: Tool(function, name=name, effect=effect, ask=ask)


def _parameters(function: Callable[..., object], name: str, words: Mapping[str, str]) -> tuple[str, Shape]:
    """Which parameter gets the bench, if any does, and the shape of all others."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise WorldFault(f"A type hint of the tool {name!r} cannot be read: {error}.") from None
    bench, fields = "", list[tuple[str, type, object] | tuple[str, type]]()
    for one in inspect.signature(function).parameters.values():
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise WorldFault(f"The tool {name!r} takes {one}: a model can only fill in parameters that have a name.")
        if one.name not in hints:
            raise WorldFault(f"The parameter {one.name!r} of the tool {name!r} has no type hint: a model needs one.")
        if hints[one.name] is Bench:
            bench = one.name
            continue
        fields.append(_field(one, hints[one.name], words.get(one.name, "")))
    kind = msgspec.defstruct(f"{name.replace('-', '_')}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return bench, shape_of(kind)


def _field(parameter: inspect.Parameter, hint: object, words: str) -> tuple[str, type, object] | tuple[str, type]:
    told = cast("type", Annotated[hint, msgspec.Meta(description=words)] if words else hint)
    given: object = parameter.default
    if given is parameter.empty:
        return (parameter.name, told)
    if isinstance(given, bool | int | float | str | bytes | None | tuple | Enum):
        return (parameter.name, told, given)
    return (parameter.name, told, msgspec.field(default_factory=lambda: given))


def _purpose(text: str) -> str:
    """The docstring without the part about arguments, which stands with them."""
    cut = _ARGUMENTS.search(text)
    kept = text[: cut.start()] if cut else text
    return _FIELD.sub("", kept).strip()


def _argument_words(text: str) -> dict[str, str]:
    found = {name: words.strip() for name, words in _FIELD.findall(text)}
    section = _ARGUMENTS.search(text)
    for line in text[section.end() :].splitlines() if section else ():
        entry = _ARGUMENT.match(line)
        if entry:
            found[entry.group(1)] = entry.group(2).strip()
        elif line.strip() and not line.startswith(" "):
            break
    return found
