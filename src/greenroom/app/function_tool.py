"""Functions as tools: JSON Schemas from Python types, and functions that agents can call.

msgspec handles dataclasses, TypedDicts, enums, literals, unions and dates. A pydantic model validates itself, so
pydantic need not be installed.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NotRequired,
    ParamSpec,
    Required,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
    overload,
)

import msgspec

from greenroom.abilities.skills.conversation.builtin_calls import RESERVED_NAMES
from greenroom.app.messages import translate
from greenroom.app.threads import run_in_thread
from greenroom.core.base.errors import OutputError, WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import MAX_RESULT_BYTES, Target, ToolCard
from greenroom.core.state.spec import ToolGroup
from greenroom.core.state.step import SIDE_EFFECTS, Effect, Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState

MAX_SCHEMA_DEPTH: Final = 16
"""How deeply a schema is inlined. Deeper levels stay references."""


class TypeAdapter:
    """A type with its JSON `schema` for models, and `validate`, which raises `OutputError`."""

    def __init__(self, kind: object, schema: Data, read: Callable[[object], object]) -> None:
        self.kind = kind
        self.schema = schema
        self._validate = read

    def validate(self, data: object) -> object:
        try:
            return self._validate(data)
        except (ValueError, TypeError) as error:  # errors of msgspec and pydantic
            raise OutputError(_describe_error(error)) from error


def adapt_type(kind: object, inside: tuple[object, ...] = ()) -> TypeAdapter:
    """Make the adapter of a type, `inside` other classes. Raise `WorldFault` if the type has no JSON form."""
    model = getattr(kind, "model_json_schema", None)
    if model is not None and isinstance(kind, type):
        return TypeAdapter(kind, inline_references(model()), cast("Any", kind).model_validate)
    try:
        known_type = _replace_parts(kind, inside)
        schema = _make_json_schema(known_type)
    except (TypeError, RecursionError) as error:
        name, why = getattr(kind, "__qualname__", kind), str(error).partition("\n")[0]
        raise WorldFault("function_tool.type_not_describable", name=name, why=why) from None
    return TypeAdapter(
        kind,
        inline_references(schema),
        lambda data: msgspec.convert(data, cast("type[object]", known_type), dec_hook=_decode_value),
    )


def _make_json_schema(kind: object) -> dict[str, Any]:
    return msgspec.json.schema(kind, schema_hook=_make_schema)


class _AnyInstance(type):
    """Lets msgspec accept what a stand-in's adapter has read."""

    adapter: TypeAdapter

    def __instancecheck__(cls, _: object) -> bool:
        return True


def _replace_parts(kind: object, inside: tuple[object, ...]) -> object:
    """Return the type with stand-ins, which msgspec accepts, for unions, pydantic's constraints, and classes with
    either in their fields."""
    is_constrained = _has_constraints(kind)
    with suppress(TypeError):  # msgspec takes at most one class of each JSON form in a union
        _make_json_schema(kind)
        if not is_constrained:
            return kind
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        adapters = [adapt_type(member, inside) for member in arguments]
        members = [(adapter.schema, {"title": _name_type(adapter.kind)}) for adapter in adapters]
        schema = {"anyOf": [{**title, **known} if "properties" in known else known for known, title in members]}
        return _make_stand_in(TypeAdapter(kind, schema, partial(_read_first_match, adapters)))
    if get_origin(kind) is Annotated:
        own = tuple(item for item in arguments[1:] if not _is_constraint(item))
        others = tuple(item for item in arguments[1:] if _is_constraint(item))
        constrained = _adapt_with_pydantic(Annotated[(arguments[0], *others)]) if others else None
        inner = _make_stand_in(constrained) if constrained else _replace_parts(arguments[0], inside)
        return Annotated[(inner, *own)] if own else inner
    if arguments and get_origin(kind) is not Literal:
        origin = cast("Any", get_origin(kind))
        return origin[tuple(item if item is ... else _replace_parts(item, inside) for item in arguments)]
    has_fields = dataclasses.is_dataclass(kind) or is_typeddict(kind) or hasattr(kind, "__struct_fields__")
    if has_fields and not hasattr(kind, "__pydantic_validator__"):
        return _make_stand_in(_adapt_fields(cast("type", kind), inside))
    return _make_stand_in(_adapt_with_pydantic(kind)) if is_constrained else kind


def _is_constraint(item: object) -> bool:
    return not isinstance(item, type) and type(item).__module__.partition(".")[0] in ("annotated_types", "pydantic")


def _has_constraints(kind: object, seen: tuple[object, ...] = ()) -> bool:
    """Return whether a type has constraints that pydantic checks, and msgspec does not. A pydantic model has none: it
    validates itself."""
    if hasattr(kind, "__pydantic_validator__"):
        return dataclasses.is_dataclass(kind)
    parts = getattr(kind, "__supertype__", None), getattr(kind, "__value__", None), *get_args(kind)
    has_fields = any(hasattr(kind, mark) for mark in ("__dataclass_fields__", "__struct_fields__", "_fields"))
    if isinstance(kind, type) and kind not in seen and (has_fields or is_typeddict(kind)):
        parts = (*parts, *get_type_hints(kind, include_extras=True).values())
    return any(_is_constraint(part) or _has_constraints(part, (*seen, kind)) for part in parts if part is not None)


def _adapt_with_pydantic(kind: object) -> TypeAdapter:
    pydantic = cast("Any", sys.modules.get("pydantic"))
    if pydantic is None:
        raise TypeError(f"only pydantic checks {kind}. Import pydantic, or use msgspec.Meta")
    try:
        adapter = pydantic.TypeAdapter(kind)
        return TypeAdapter(kind, inline_references(adapter.json_schema()), adapter.validate_python)
    except RuntimeError as error:  # pydantic does not know the type
        raise TypeError(str(error)) from None


def _make_stand_in(adapter: TypeAdapter) -> type:
    return _AnyInstance(_name_type(adapter.kind), (), {"adapter": adapter})


def _name_type(kind: object) -> str:
    return getattr(kind, "__name__", None) or str(kind)


def _adapt_fields(kind: type, inside: tuple[object, ...]) -> TypeAdapter:
    """Make the adapter of a dataclass, TypedDict or struct from its fields."""
    if kind in inside:
        raise TypeError(f"{kind.__qualname__} contains itself and a union or constraint. Leave one of them out.")
    hints, doc, options = get_type_hints(kind, include_extras=True), kind.__dict__.get("__doc__"), dict[str, Any]()
    if dataclasses.is_dataclass(kind):
        own_fields = [field for field in dataclasses.fields(kind) if field.init]
        required = {field.name: field.default is field.default_factory is dataclasses.MISSING for field in own_fields}
        doc = "" if str(doc).startswith(f"{kind.__name__}(") else doc  # made from the fields
    elif is_typeddict(kind):
        marks, optional = {name: get_origin(hint) for name, hint in hints.items()}, cast("Any", kind).__optional_keys__
        required = {
            name: mark is Required or not (name in optional or mark is NotRequired) for name, mark in marks.items()
        }
        marked = [name for name, mark in marks.items() if mark in (Required, NotRequired)]
        hints |= {name: get_args(hints[name])[0] for name in marked}
    else:
        required = {info.name: info.required for info in msgspec.structs.fields(kind)}
        options["rename"] = {info.name: info.encode_name for info in msgspec.structs.fields(kind)}
        options["forbid_unknown_fields"] = cast("Any", kind).__struct_config__.forbid_unknown_fields
    types = {name: cast("Any", _replace_parts(hints[name], (*inside, kind))) for name in required}
    members = [
        (name, types[name]) if is_required else (name, types[name] | msgspec.UnsetType, msgspec.UNSET)
        for name, is_required in required.items()
    ]
    struct = msgspec.defstruct(kind.__name__, members, kw_only=True, namespace={"__doc__": doc}, **options)

    def read(data: object) -> object:
        values = msgspec.structs.asdict(msgspec.convert(data, struct, dec_hook=_decode_value))
        return kind(**{name: value for name, value in values.items() if value is not msgspec.UNSET})

    return TypeAdapter(kind, inline_references(_make_json_schema(struct)), read)


def _read_first_match(adapters: Sequence[TypeAdapter], data: object) -> object:
    """Return the value of the first member of a union that fits; one that knows all fields of the data comes first.
    Raise `OutputError` with the reason of each."""
    problems = []
    for adapter in sorted(adapters, key=lambda adapter: _has_unknown_fields(adapter.schema, data)):
        try:
            return adapter.validate(data)
        except OutputError as error:
            problems.append(f"{_name_type(adapter.kind)}: {error}")
    raise OutputError("; ".join(problems))


def _has_unknown_fields(schema: Data, data: object) -> bool:
    known = schema.get("properties")
    return isinstance(data, dict) and isinstance(known, dict) and not data.keys() <= known.keys()


def _make_schema(kind: type) -> dict[str, Any]:
    """Return the schema of types that msgspec does not know: pydantic models and paths."""
    if isinstance(kind, _AnyInstance):
        return dict(kind.adapter.schema)
    model = getattr(kind, "model_json_schema", None)
    if model is not None:
        return dict(inline_references(model()))
    if issubclass(kind, PurePath):
        return {"type": "string", "description": "a path"}
    raise TypeError(f"a {kind.__qualname__} has no JSON form. Use text, numbers, lists, dataclasses or enums")


def _decode_value(kind: type, data: object) -> object:
    if isinstance(kind, _AnyInstance):
        try:
            return kind.adapter.validate(data)
        except OutputError as error:
            raise ValueError(str(error)) from error  # msgspec adds where it is
    validate = getattr(kind, "model_validate", None)
    return validate(data) if validate is not None else kind(data)


def to_json_data(value: object) -> object:
    """Return a value as JSON data."""
    return msgspec.to_builtins(value, enc_hook=_encode_value)


def _encode_value(value: object) -> object:
    """Return the JSON data of types that msgspec does not know: pydantic models and paths."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json", by_alias=True)  # as in its schema
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"a {type(value).__qualname__} has no JSON form")


def format_value(value: object) -> str:
    """Format a value for a model: text unchanged, everything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return "Done."
    try:
        return msgspec.json.encode(to_json_data(value)).decode()
    except (TypeError, ValueError, RecursionError):
        return str(value)


def inline_references(schema: Mapping[str, object]) -> Data:
    """Inline the references of a schema where possible. Many providers do not follow references."""
    definitions = schema.get("$defs")
    parts = cast("Mapping[str, object]", definitions) if isinstance(definitions, dict) else {}
    root = {name: value for name, value in schema.items() if name != "$defs"}
    used: set[str] = set()
    inlined = cast("dict[str, object]", _inline_node(root, parts, (), used))
    inlined.pop("title", None)
    return {**inlined, "$defs": dict(parts)} if used else inlined


def _inline_node(node: object, parts: Mapping[str, object], path: tuple[str, ...], used: set[str]) -> object:
    if isinstance(node, list):
        return [_inline_node(item, parts, path, used) for item in node]
    if not isinstance(node, dict):
        return node
    target = str(node.get("$ref", "")).removeprefix("#/$defs/")
    if target in parts:
        if target in path or len(path) > MAX_SCHEMA_DEPTH:
            used.add(target)
            return node
        siblings = {name: value for name, value in node.items() if name != "$ref"}
        inner = _inline_node(parts[target], parts, (*path, target), used)
        return {**cast("dict[str, object]", inner), **siblings}
    return {name: _inline_node(value, parts, path, used) for name, value in node.items()}


def _describe_error(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if details is None:
        return str(error)
    located = [(detail["msg"], ".".join(map(str, detail["loc"]))) for detail in details()[:5]]
    return "; ".join(f"{message} - at `{place}`" if place else message for message, place in located)


P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
TOOL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ARGUMENTS: Final = re.compile(r"^\s*(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")
_FIELD: Final = re.compile(r"^\s*:param (?:\w+ )?(\w+):\s*(.+)$", re.MULTILINE)


CONTEXT_MARK: Final = "given to the run"
"""Marks a parameter that the program provides, not the model."""

Context: TypeAlias = Annotated[C, CONTEXT_MARK]
"""`shop: Context[Shop]`: the parameter receives the run's `context`. The model does not see it."""


@dataclass(frozen=True)
class Done:
    """Return this from a tool to end the run. `value` is the agent's answer."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameters:
    """The parameters of a function: those that Greenroom provides, and the adapter of all others."""

    adapter: TypeAdapter
    step_context: str
    context: str
    needs_context: bool


class Tool(Generic[P, R]):
    """A function that agents can call. The program can still call it as a function.

    Args:

    - `function`: The function. Its docstring becomes the tool's description.
    - `name`: The tool's name. Default: the function's name.
    - `effect`: What happens after a crash: *effectful* calls are never repeated, *pure* calls run again.
    - `needs_approval`: Whether each call needs approval.
    - `group`: The toolset of a custom tool. Default: *read* for a pure tool, else *command*.
    - `timeout`: The time limit of a call in seconds. 0 means no limit.
    - `max_result_bytes`: How many bytes of a result the agent reads at once.
    - `long_tail`: For tools with many calls in a row, such as a browser. A planning agent decides after each call.

    The model receives the text of an exception. Raise `ModelFault` to make it try again. A `Context` parameter receives
    the run's `context`. Custom tools in a tools folder need approval unless they are pure.

    A coroutine stops when it is interrupted. Other functions run in a thread, which cannot be stopped: an interrupted
    call is abandoned after a few seconds. Write long-running tools as coroutines.
    """

    type: StepType = "tool"

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str = "",
        effect: Effect = "effectful",
        needs_approval: bool = False,
        group: ToolGroup | None = None,
        timeout: int = 0,
        max_result_bytes: int = MAX_RESULT_BYTES,
        long_tail: bool = False,
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "")
        check_tool_name(self.name)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise WorldFault("function_tool.is_generator", name=self.name)
        self.effect: Effect = effect
        self.needs_approval = needs_approval
        self.group = choose_group(group, effect, self.name)
        self.timeout = timeout
        self.max_result_bytes = max_result_bytes
        self.long_tail = long_tail
        self.source = "program"
        text = inspect.getdoc(function) or ""
        section = _ARGUMENTS.search(text)
        body = text[: section.start()] if section else text
        self.description = _FIELD.sub("", body).strip()
        if not self.description:
            raise WorldFault("function_tool.no_docstring", name=self.name)
        self._parameters = _read_parameters(function, self.name, _read_argument_descriptions(text))
        self.context: object = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """The spec that models receive."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=self._parameters.adapter.schema,
            pure=self.effect == "pure",
        )

    @property
    def card(self) -> ToolCard:
        """The tool's properties for the pipeline and the policy."""
        return ToolCard(
            spec=self.spec,
            group=self.group,
            effect=self.effect,
            seconds=self.timeout,
            shown=self.max_result_bytes,
            source=self.source,
            long_tail=self.long_tail,
        )

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return no targets: what a function touches is unknown."""
        return (Target(kind="tool", value=self.name, writes=self.effect in SIDE_EFFECTS),)

    def with_context(self, context: object) -> Tool[P, R]:
        """Return the tool with a run's context. Raise `WorldFault` if it needs a context and none was given."""
        if context is None and self._parameters.needs_context:
            raise WorldFault("function_tool.context_missing", name=self.name)
        tool_copy = copy(self)
        tool_copy.context = context
        return tool_copy

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a call: its effect, and an approval question if `needs_approval` is set."""
        if not self.needs_approval:
            return StepTerms(effect=self.effect)
        arguments = format_value(dict(step.work.instruction_content or {}))
        question = translate("question.call_tool", agent=step.agent_id, tool=self.name, arguments=arguments)
        return StepTerms(effect=self.effect, verdict="ask", question=question, digest=arguments)

    async def run(self, context: StepContext) -> Outcome:
        """Call the function: coroutines on the event loop, other functions in a thread."""
        try:
            values = self._parameters.adapter.validate(dict(context.step.work.instruction_content or {}))
        except OutputError as error:
            return Outcome(state="failed", error=f"Not called: {error}. Look at the parameters of {self.name}.")
        arguments: dict[str, object] = msgspec.structs.asdict(cast("msgspec.Struct", values))
        if self._parameters.step_context:
            arguments[self._parameters.step_context] = context
        if self._parameters.context and self.context is not None:
            arguments[self._parameters.context] = self.context
        function = cast("Callable[..., object]", self.function)
        if inspect.iscoroutinefunction(function):
            value: object = await function(**arguments)
        else:
            value = await run_in_thread(function, arguments)
        if isinstance(value, Done):
            return Outcome(result={"output": format_value(value.value), "need_return": True})
        return Outcome(result={"output": format_value(value)})


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str = "",
    effect: Effect = "effectful",
    needs_approval: bool = False,
    group: ToolGroup | None = None,
    timeout: int = 0,
    max_result_bytes: int = MAX_RESULT_BYTES,
    long_tail: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str = "",
    effect: Effect = "effectful",
    needs_approval: bool = False,
    group: ToolGroup | None = None,
    timeout: int = 0,
    max_result_bytes: int = MAX_RESULT_BYTES,
    long_tail: bool = False,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool from a function: `@tool`, or `@tool(effect="pure", needs_approval=True)`. See `Tool`."""
    if function is not None:
        return Tool(function)
    return lambda function: Tool(
        function,
        name=name,
        effect=effect,
        needs_approval=needs_approval,
        group=group,
        timeout=timeout,
        max_result_bytes=max_result_bytes,
        long_tail=long_tail,
    )


def check_tool_name(name: str) -> None:
    """Raise `WorldFault` for an invalid or reserved tool name."""
    if not TOOL_NAME.fullmatch(name):
        raise WorldFault("function_tool.invalid_name", name=name)
    if name in RESERVED_NAMES:
        raise WorldFault("function_tool.reserved_name", name=name)


def choose_group(group: object, effect: Effect, name: str) -> ToolGroup:
    """Return the group of a tool, by default from its effect. Raise `WorldFault` for an unknown group."""
    if group is None:
        return "read" if effect == "pure" else "command"
    if group not in get_args(ToolGroup):
        raise WorldFault("function_tool.unknown_group", name=name, group=group, known=", ".join(get_args(ToolGroup)))
    return cast("ToolGroup", group)


def _read_parameters(function: Callable[..., object], name: str, descriptions: Mapping[str, str]) -> _Parameters:
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, SyntaxError) as error:
        raise WorldFault("function_tool.unreadable_type_hint", name=name, error=error) from None
    except TypeError:
        raise WorldFault("function_tool.not_a_function", name=name) from None
    step_context, context, fields = "", None, list[tuple[str, type, object] | tuple[str, type]]()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise WorldFault("function_tool.unnamed_parameter", name=name, parameter=parameter)
        if parameter.name not in hints:
            raise WorldFault("function_tool.no_type_hint", name=parameter.name, name2=name)
        if hints[parameter.name] is StepContext:
            step_context = parameter.name
        elif CONTEXT_MARK in getattr(hints[parameter.name], "__metadata__", ()):
            context = parameter
        else:
            _check_hint(name, parameter.name, hints[parameter.name])
            fields.append(_make_field(parameter, hints[parameter.name], descriptions.get(parameter.name, "")))
    kind = msgspec.defstruct(f"{name.replace('-', '_')}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return _Parameters(
        adapter=adapt_type(kind),
        step_context=step_context,
        context=context.name if context is not None else "",
        needs_context=context is not None and context.default is context.empty,
    )


def find_context_parameter(function: Callable[..., object]) -> str:
    """Return the name of a function's `Context` parameter, or an empty string."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return ""
    return next((name for name, hint in hints.items() if CONTEXT_MARK in getattr(hint, "__metadata__", ())), "")


def _check_hint(name: str, parameter: str, hint: object) -> None:
    try:
        adapt_type(hint)
    except WorldFault as fault:
        raise WorldFault("function_tool.parameter_fault", parameter=parameter, name=name, fault=fault) from None


def _make_field(
    parameter: inspect.Parameter, hint: object, description: str
) -> tuple[str, type, object] | tuple[str, type]:
    described_hint = cast("type", Annotated[hint, msgspec.Meta(description=description)] if description else hint)
    default: object = parameter.default
    if default is parameter.empty:
        return (parameter.name, described_hint)
    if isinstance(default, bool | int | float | str | bytes | None | tuple | Enum):
        return (parameter.name, described_hint, default)
    return (parameter.name, described_hint, msgspec.field(default_factory=lambda: default))


def _read_argument_descriptions(text: str) -> dict[str, str]:
    descriptions = {name: words.strip() for name, words in _FIELD.findall(text)}
    section = _ARGUMENTS.search(text)
    for line in text[section.end() :].splitlines() if section else ():
        entry = _ARGUMENT.match(line)
        if entry:
            descriptions[entry.group(1)] = entry.group(2).strip()
        elif line.strip() and not line.startswith(" "):
            break
    return descriptions
