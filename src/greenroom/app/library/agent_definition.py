"""Agent definitions: the spec, the tools, and the parts that are Python and stay in this process."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
    overload,
)

from greenroom.abilities.tools.tool import ALWAYS_OFFERED
from greenroom.app.agents import specs as values
from greenroom.app.agents.specs import MAX_ROUNDS, add_version, find_missing_tools
from greenroom.app.function_tool import Tool, TypeAdapter, adapt_type, find_context_parameter, to_json_data
from greenroom.app.library.mcp_servers import MCPServer
from greenroom.app.library.run_result import T, check_value
from greenroom.app.settings.schema import suggest_name
from greenroom.app.settings.values import BadValue
from greenroom.core.base.errors import GreenroomError, WorldFault, translate
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Model
from greenroom.core.state.spec import AgentSpec, ToolGroup
from greenroom.core.state.task import Routing

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from greenroom.app.agents.discovery import AgentFile

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

ToolList: TypeAlias = Sequence[str | Tool[..., Any] | Callable[..., Any]]

OutputValidator: TypeAlias = Callable[..., Any]
"""Checks an answer: a function, plain or async, of the answer and, if it wants it, a `Context`. It returns the answer,
a changed one, or nothing. It raises `ModelFault` to make the model answer again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext(Generic[C]):
    """What a function for `instructions` can know of the run.

    - `agent`: The name of the agent whose instructions they are.
    - `text`: The prompt of the run, or the new message of a conversation.
    - `context`: The value that was passed to the run as `context`.
    """

    agent: str
    text: str
    context: C


Instructions: TypeAlias = str | Callable[[RunContext[Any]], str | Awaitable[str]]
"""The system prompt, or a function, plain or async, that returns it when a run starts."""


class AgentOptions(TypedDict, total=False):
    """The arguments of `Agent` beside its name, its instructions and the type of its answer."""

    output_validators: Sequence[OutputValidator]
    description: str
    model: str | Model
    tools: ToolList
    toolsets: Sequence[str]
    mcp_servers: Sequence[MCPServer]
    agents: Sequence[AgentDefinition[Any]]
    confirm_calls: bool | None
    max_turns: int
    output_retries: int | None
    temperature: float | None
    spec: AgentSpec | None


RENAMED_ARGUMENTS: Final = {
    "prompt": "instructions",
    "repairs": "output_retries",
    "rounds": "max_turns",
    "groups": "toolsets",
    "most": "limit",
    "memory": "in_memory",
}
"""Old names of arguments. The error for one names its new name."""


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Make a method raise a `TypeError` that names the right argument when it is called with an unknown one."""
    parameters = inspect.signature(function).parameters.values()
    known = [item.name for item in parameters if item.name != "self" and item.kind is not item.POSITIONAL_ONLY]

    @wraps(function)
    def call(*args: P.args, **arguments: P.kwargs) -> R:
        for name in arguments:
            if name not in known:
                new_name = RENAMED_ARGUMENTS.get(name)
                hint = f"Use `{new_name}`." if new_name in known else suggest_name(name, known)
                public_name = type(args[0]).__name__
                if function.__name__ != "__init__":
                    public_name += f".{function.__name__.removeprefix('_open_')}"
                raise TypeError(f"{public_name}() has no argument `{name}`. {hint}")
        return function(*args, **arguments)

    return call


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSelection:
    """The tools that a program selects for an agent: its functions, built-in tools by name, and groups of them."""

    functions: tuple[Tool[..., Any], ...] = ()
    builtin_names: tuple[str, ...] = ()
    toolsets: tuple[ToolGroup, ...] = ()

    def apply_to(self, base: AgentSpec) -> AgentSpec:
        """Return the spec with these tools added."""
        tools = dict.fromkeys((*base.tools, *self.builtin_names, *(function.name for function in self.functions)))
        return evolve(base, tools=tuple(tools), groups=tuple(dict.fromkeys((*base.groups, *self.toolsets))))


def select_tools(tools: ToolList, toolsets: Sequence[str]) -> ToolSelection:
    """Build the selection. Raise `WorldFault` for invalid values."""
    items = require_list(tools, "tools")
    for item in items:
        require_kind(callable(item) or isinstance(item, str | Tool), item, "tool")
    groups = require_list(toolsets, "toolsets")
    for group in groups:
        if group not in (known := get_args(ToolGroup)):
            raise WorldFault("library.unknown_toolset", group=group, hint=suggest_name(str(group), known))
    return ToolSelection(
        functions=tuple(item if isinstance(item, Tool) else Tool(item) for item in items if not isinstance(item, str)),
        builtin_names=tuple(item for item in items if isinstance(item, str)),
        toolsets=cast("tuple[ToolGroup, ...]", tuple(groups)),
    )


def require_list(value: object, field: str, owner: str = "an agent") -> Sequence[Any]:
    """Return the value if it is a list; raise `WorldFault` otherwise."""
    if not isinstance(value, (list, tuple, Sequence)) or isinstance(value, str):
        raise WorldFault("library.list_expected", value=value, field=field, owner=owner)
    return value


def require_kind(is_valid: bool, value: object, field: str) -> None:
    """Raise `WorldFault` for an argument of the wrong kind."""
    if not is_valid:
        raise WorldFault("library.bad_value", value=value, field=field, unfit=translate(f"library.{field}_kind"))


class AgentDefinition(Generic[T]):
    """An immutable description of an agent. See `Agent`."""

    file: AgentFile | None = None
    routing: Routing | None = None

    @overload
    def __init__(
        self: AgentDefinition[str],
        name: str,
        instructions: Instructions = "",
        *,
        output_type: None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        instructions: Instructions = "",
        *,
        output_type: TypeForm[T],
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @check_arguments
    def __init__(
        self,
        name: str,
        instructions: Instructions = "",
        *,
        output_type: object = None,
        output_validators: Sequence[OutputValidator] = (),
        description: str = "",
        model: str | Model = "",
        tools: ToolList = (),
        toolsets: Sequence[str] = (),
        mcp_servers: Sequence[MCPServer] = (),
        agents: Sequence[AgentDefinition[Any]] = (),
        confirm_calls: bool | None = None,
        max_turns: int = 0,
        output_retries: int | None = None,
        temperature: float | None = None,
        spec: AgentSpec | None = None,
    ) -> None:
        try:
            self.name = values.parse_name(name)
        except BadValue as unfit:
            raise WorldFault("library.bad_agent_name", name=name, unfit=unfit) from None
        require_kind(isinstance(model, str) or hasattr(model, "stream"), model, "model")
        self.model = model
        self.tool_selection = select_tools(tools, toolsets)
        self.tools = self.tool_selection.functions
        self.mcp_servers: tuple[MCPServer, ...] = tuple(require_list(mcp_servers, "mcp_servers"))
        self.agents: tuple[AgentDefinition[Any], ...] = tuple(require_list(agents, "agents"))
        for agent in self.agents:
            require_kind(isinstance(agent, AgentDefinition), agent, "agent")
        self.confirm_calls = confirm_calls
        check_value(values.parse_temperature, 0.0 if temperature is None else temperature, "temperature")
        self.output_validators = tuple(require_list(output_validators, "output_validators"))
        if self.output_validators and output_type is None:
            output_type = str
        self.output_adapter: TypeAdapter | None = adapt_type(output_type) if output_type is not None else None
        self.instructions = instructions
        self._base_spec = spec
        check_value(values.int_between(0, MAX_ROUNDS), max_turns, "max_turns")
        check_value(values.int_between(0, 10), 0 if output_retries is None else output_retries, "output_retries")
        overrides = {"rounds": max_turns} if max_turns else {}
        self._overrides = _SpecOverrides(
            instructions if isinstance(instructions, str) else "",
            description,
            overrides if output_retries is None else {**overrides, "repairs": output_retries},
            temperature,
        )

    @property
    def builtin_names(self) -> list[str]:
        """The tools that the program or the agent's file names and that are not functions of the program."""
        names = (*self.tool_selection.builtin_names, *(self.file.spec.tools if self.file else ()))
        return find_missing_tools(names, {*ALWAYS_OFFERED, *(function.name for function in self.tools)})

    @property
    def toolsets(self) -> tuple[ToolGroup, ...]:
        """The groups of tools that the program or the agent's file names."""
        return (*self.tool_selection.toolsets, *(self.file.spec.groups if self.file else ()))

    @cached_property
    def spec(self) -> AgentSpec:
        """The agent's spec, as the team stores it."""
        base, overrides = self.tool_selection.apply_to(self._base_spec or AgentSpec(name=self.name)), self._overrides
        model = self.model if isinstance(self.model, str) else name_own_model(self.name)
        merged: dict[str, object] = dict(base.llm_config or {})
        if model:
            merged["model"] = model
        if overrides.temperature is not None:
            merged["temperature"] = overrides.temperature
        evolved = evolve(
            base,
            name=self.name,
            prompt=overrides.instructions or base.prompt,
            description=overrides.description or base.description,
            calls=tuple(dict.fromkeys((*base.calls, *(agent.name for agent in self.agents)))),
            answer=self.output_adapter.schema if self.output_adapter is not None else base.answer,
            turn=evolve(base.turn, **overrides.turn_policy),
            llm_config=merged or None,
        )
        return add_version(evolved)


async def instruct_agent(agent: AgentDefinition[Any], spec: AgentSpec, text: str, context: object) -> AgentSpec:
    """Return an agent's spec with the instructions for this prompt."""
    if isinstance(agent.instructions, str):
        return spec
    with _blame_program("library.instructions_failed", agent, agent.instructions):
        given = agent.instructions(RunContext(agent=agent.name, text=text, context=context))
        instructions = await given if inspect.isawaitable(given) else given
    if not isinstance(instructions, str):
        raise WorldFault("library.instructions_not_text", name=agent.name, kind=type(instructions).__name__)
    return spec if spec.prompt == instructions else add_version(evolve(spec, prompt=instructions))


async def validate_answer(agent: AgentDefinition[Any], adapter: TypeAdapter, value: object, context: object) -> object:
    """Return an answer as JSON data, as the validators leave it. Raise `ModelFault` if it is not accepted, and
    `WorldFault` if a validator fails."""
    output = adapter.validate(value)
    before = after = to_json_data(output) if agent.output_validators else None
    for validator in agent.output_validators:
        parameter = find_context_parameter(validator)
        with _blame_program("library.validator_failed", agent, validator):
            given = validator(output, **({parameter: context} if parameter else {}))
            checked = await given if inspect.isawaitable(given) else given
            output = output if checked is None else checked
            after = to_json_data(output)
    return value if after == before else after


@contextmanager
def _blame_program(code: str, agent: AgentDefinition[Any], function: Callable[..., object]) -> Iterator[None]:
    """Raise a `WorldFault` that names the program's function if it fails in an unexpected way."""
    try:
        yield
    except GreenroomError:
        raise
    except Exception as error:
        name = getattr(function, "__qualname__", None) or type(function).__name__
        raise WorldFault(code, agent=agent.name, name=name, error=f"{type(error).__name__}: {error}") from error


class _SpecOverrides(NamedTuple):
    """Values from the program that override those of the agent's file."""

    instructions: str
    description: str
    turn_policy: Mapping[str, int]
    temperature: float | None


def name_own_model(agent: str) -> str:
    """Return the name under which an agent's own `Model` is registered."""
    return f"of agent {agent}"
