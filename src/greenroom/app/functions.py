"""Functions as tools: a Python type as a JSON Schema, and a function that agents can call.

msgspec knows dataclasses, TypedDicts, enums, literals, unions, dates and all that is made of them; a pydantic model
knows itself, so pydantic need not be installed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    overload,
)

import msgspec

from greenroom.abilities.skills.talk.own import HOUSE
from greenroom.app.threads import in_thread
from greenroom.core.base.errors import GreenroomError, WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import SHOWN, Target, ToolCard
from greenroom.core.state.spec import Group
from greenroom.core.state.step import SIDE_EFFECTS, Effect, Step, StepType, Terms
from greenroom.core.state.world import World

DEEPEST: Final = 16
"""How deep a schema is written out; what goes deeper refers to itself."""


class Misfit(GreenroomError):
    """Data that is not of the shape; says what and where."""


class Shape:
    """`schema` tells a model what to write; `read` makes a value of it, `Misfit` if it is none."""

    def __init__(self, kind: object, schema: Data, read: Callable[[object], object]) -> None:
        self.kind = kind
        self.schema = schema
        self._read = read

    def read(self, data: object) -> object:
        try:
            return self._read(data)
        except (ValueError, TypeError) as error:  # of msgspec and pydantic alike
            raise Misfit(_said(error)) from error


def shape_of(kind: object) -> Shape:
    """The shape of a type; `WorldFault` when JSON has none for it."""
    model = getattr(kind, "model_json_schema", None)
    if model is not None and isinstance(kind, type):
        return Shape(kind, written_out(model()), cast("Any", kind).model_validate)
    try:
        schema = msgspec.json.schema(kind, schema_hook=_schema_of)
    except (TypeError, RecursionError) as error:
        name, why = getattr(kind, "__qualname__", kind), str(error).partition("\n")[0]
        raise WorldFault(f"{name} cannot be told to a model: {why}") from None
    known = cast("type[object]", kind)
    return Shape(kind, written_out(schema), lambda data: msgspec.convert(data, known, dec_hook=_value_of))


def _schema_of(kind: type) -> dict[str, Any]:
    """Of what msgspec does not know: pydantic's models, and paths."""
    model = getattr(kind, "model_json_schema", None)
    if model is not None:
        return dict(written_out(model()))
    if issubclass(kind, PurePath):
        return {"type": "string", "description": "a path"}
    raise TypeError(f"a {kind.__qualname__} has no form in JSON. Take text, numbers, lists, dataclasses or enums")


def _value_of(kind: type, data: object) -> object:
    validate = getattr(kind, "model_validate", None)
    return validate(data) if validate is not None else kind(data)


def plain(value: object) -> object:
    """A value as JSON data."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    return msgspec.to_builtins(value)


def as_text(value: object) -> str:
    """A value as a model reads it: text as it is, all else as JSON; nothing is said as such."""
    if isinstance(value, str):
        return value
    if value is None:
        return "Done."
    try:
        return msgspec.json.encode(plain(value)).decode()
    except (TypeError, ValueError, RecursionError):
        return str(value)


def written_out(schema: Mapping[str, object]) -> Data:
    """The schema without references where it can be: many endpoints do not follow them."""
    named = schema.get("$defs")
    parts = cast("Mapping[str, object]", named) if isinstance(named, dict) else {}
    bare = {name: value for name, value in schema.items() if name != "$defs"}
    used: set[str] = set()
    found = cast("dict[str, object]", _inlined(bare, parts, (), used))
    found.pop("title", None)
    return {**found, "$defs": dict(parts)} if used else found


def _inlined(node: object, parts: Mapping[str, object], path: tuple[str, ...], used: set[str]) -> object:
    if isinstance(node, list):
        return [_inlined(one, parts, path, used) for one in node]
    if not isinstance(node, dict):
        return node
    target = str(node.get("$ref", "")).removeprefix("#/$defs/")
    if target in parts:
        if target in path or len(path) > DEEPEST:
            used.add(target)
            return node
        rest = {name: value for name, value in node.items() if name != "$ref"}
        inner = _inlined(parts[target], parts, (*path, target), used)
        return {**cast("dict[str, object]", inner), **rest}
    return {name: _inlined(value, parts, path, used) for name, value in node.items()}


def _said(error: Exception) -> str:
    """msgspec says it in one line; pydantic in many, of which the details matter."""
    details = getattr(error, "errors", None)
    if details is None:
        return str(error)
    found = [f"{one['msg']} - at `{'.'.join(map(str, one['loc']))}`" for one in details()]
    return "; ".join(found[:5])


P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ARGUMENTS: Final = re.compile(r"^\s*(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")
_FIELD: Final = re.compile(r"^\s*:param (?:\w+ )?(\w+):\s*(.+)$", re.MULTILINE)


GIVEN: Final = "given to the run"
"""Marks a parameter that the program fills in, not the model."""

Context: TypeAlias = Annotated[C, GIVEN]
"""`shop: Context[Shop]`: the parameter gets what the run was given as `context`; the model is not told of it."""


@dataclass(frozen=True)
class Done:
    """What a tool returns to end the work: `value` is the agent's answer, and its model is not asked again."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameters:
    """What a function is called with: which parameters the house fills in, if any, and the shape of all others."""

    shape: Shape
    bench: str
    context: str
    needs_context: bool


class Tool(Generic[P, R]):
    """A function that agents can call; people can call it as before.

    `effect` says what a crash in the middle means: *effectful* (the default) is never run twice, *pure* is run again.
    With `ask`, a person is asked before each call. What it raises is told to the model; the words of a `ModelFault` as
    they are, to have it try again. A parameter that is a `Context` gets what the run was given.

    In a folder of tools four more things count. `group` is whose agents have it (if nobody says, *read* for a pure
    one, else *command*), `seconds` how long a call may take (0: as long as it likes), `shown` how many bytes of its
    result an agent reads at once. A person is asked before a call, unless it is pure. After each call of a `long_tail`
    one an agent that plans decides whether to go on with it: for what is used many times in a row, like a browser.

    A coroutine ends when it is interrupted. Another function runs in a thread, which nobody can end: the call is over
    when it has returned, or when it was waited for a few seconds. Make long ones coroutines.
    """

    type: StepType = "tool"

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str = "",
        effect: Effect = "effectful",
        ask: bool = False,
        group: Group | None = None,
        seconds: int = 0,
        shown: int = SHOWN,
        long_tail: bool = False,
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "")
        refuse_name(self.name)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise WorldFault(f"The tool {self.name!r} yields, and a model reads one result. Return it, whole.")
        self.effect: Effect = effect
        self.ask = ask
        self.group = group_of(group, effect, self.name)
        self.seconds = seconds
        self.shown = shown
        self.long_tail = long_tail
        self.source = "program"
        text = inspect.getdoc(function) or ""
        self.description = _purpose(text)
        if not self.description:
            raise WorldFault(f"The tool {self.name!r} has no docstring: nobody would know when to call it.")
        self._parameters = _parameters(function, self.name, _argument_words(text))
        self.context: object = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of it."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=self._parameters.shape.schema,
            pure=self.effect == "pure",
        )

    @property
    def card(self) -> ToolCard:
        """What the house knows of it."""
        return ToolCard(
            spec=self.spec,
            group=self.group,
            effect=self.effect,
            seconds=self.seconds,
            shown=self.shown,
            source=self.source,
            long_tail=self.long_tail,
        )

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing is known of what it touches."""
        return (Target(kind="tool", value=self.name, writes=self.effect in SIDE_EFFECTS),)

    def given(self, context: object) -> Tool[P, R]:
        """The same tool for one run, which is given this; `WorldFault` when it needs something and there is nothing."""
        if context is None and self._parameters.needs_context:
            raise WorldFault(
                f"The tool {self.name!r} needs a context, and none was given. It is kept nowhere, so give it each "
                "time: `run(…, context=…)`, also to `resume` and `chat`."
            )
        mine = copy(self)
        mine.context = context
        return mine

    def terms(self, world: World, step: Step) -> Terms:
        """Its effect, and a person's word where one is wanted."""
        if not self.ask:
            return Terms(effect=self.effect)
        given = as_text(dict(step.work.instruction_content or {}))
        question = f"{step.agent_id} wants to call {self.name} with {given}"
        return Terms(effect=self.effect, verdict="ask", question=question, digest=given)

    async def run(self, bench: Bench) -> Outcome:
        """Call it: a coroutine here, everything else in a thread, so that nobody else has to wait."""
        try:
            given = self._parameters.shape.read(dict(bench.step.work.instruction_content or {}))
        except Misfit as misfit:
            return Outcome(state="failed", error=f"Not called: {misfit}. Look at the parameters of {self.name}.")
        arguments: dict[str, object] = msgspec.structs.asdict(cast("msgspec.Struct", given))
        if self._parameters.bench:
            arguments[self._parameters.bench] = bench
        if self._parameters.context and self.context is not None:
            arguments[self._parameters.context] = self.context
        function = cast("Callable[..., object]", self.function)
        if inspect.iscoroutinefunction(function):
            value: object = await function(**arguments)
        else:
            value = await in_thread(function, arguments)
        if isinstance(value, Done):
            return Outcome(result={"output": as_text(value.value), "need_return": True})
        return Outcome(result={"output": as_text(value)})


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str = "",
    effect: Effect = "effectful",
    ask: bool = False,
    group: Group | None = None,
    seconds: int = 0,
    shown: int = SHOWN,
    long_tail: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str = "",
    effect: Effect = "effectful",
    ask: bool = False,
    group: Group | None = None,
    seconds: int = 0,
    shown: int = SHOWN,
    long_tail: bool = False,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a function: `@tool`, or `@tool(effect="pure", ask=True)`. See `Tool` for what becomes of it."""
    if function is not None:
        return Tool(function)
    return lambda function: Tool(
        function,
        name=name,
        effect=effect,
        ask=ask,
        group=group,
        seconds=seconds,
        shown=shown,
        long_tail=long_tail,
    )


def refuse_name(name: str) -> None:
    """`WorldFault` for what no tool may be called."""
    if not NAME.fullmatch(name):
        raise WorldFault(f'{name!r} is no name for a tool. Letters, digits, _ and -: @tool(name="…").')
    if name in HOUSE:
        raise WorldFault(f'{name!r} is what the house itself is called by. Choose another: @tool(name="…").')


def group_of(group: object, effect: Effect, name: str) -> Group:
    """The group of a tool: what it says, else what its effect is like; `WorldFault` for what is none."""
    if group is None:
        return "read" if effect == "pure" else "command"
    if group not in get_args(Group):
        raise WorldFault(f"The tool {name!r} is in no group {group!r}. There are: {', '.join(get_args(Group))}.")
    return cast("Group", group)


def _parameters(function: Callable[..., object], name: str, words: Mapping[str, str]) -> _Parameters:
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, SyntaxError) as error:
        raise WorldFault(f"A type hint of the tool {name!r} cannot be read: {error}.") from None
    except TypeError:
        raise WorldFault(f"{name!r} is no function, so nobody can say what it takes. Write one around it.") from None
    bench, context, fields = "", None, list[tuple[str, type, object] | tuple[str, type]]()
    for one in inspect.signature(function).parameters.values():
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise WorldFault(f"The tool {name!r} takes {one}: a model can only fill in parameters that have a name.")
        if one.name not in hints:
            raise WorldFault(f"The parameter {one.name!r} of the tool {name!r} has no type hint: a model needs one.")
        if hints[one.name] is Bench:
            bench = one.name
        elif GIVEN in getattr(hints[one.name], "__metadata__", ()):
            context = one
        else:
            _tellable(name, one.name, hints[one.name])
            fields.append(_field(one, hints[one.name], words.get(one.name, "")))
    kind = msgspec.defstruct(f"{name.replace('-', '_')}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return _Parameters(
        shape=shape_of(kind),
        bench=bench,
        context=context.name if context is not None else "",
        needs_context=context is not None and context.default is context.empty,
    )


def _tellable(name: str, parameter: str, hint: object) -> None:
    try:
        shape_of(hint)
    except WorldFault as fault:
        raise WorldFault(f"The parameter {parameter!r} of the tool {name!r}: {fault}.") from None


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
