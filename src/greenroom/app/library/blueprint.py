"""What an agent is made of: its spec, its tools, and the parts of it that are Python and stay in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeAlias, cast, get_args

from greenroom.abilities.tools.tool import DEFAULT
from greenroom.app.agents import specs as values
from greenroom.app.agents.specs import EDITS, MANY, versioned, without_edits
from greenroom.app.functions import Shape, Tool, shape_of
from greenroom.app.library.results import T
from greenroom.app.settings.schema import meant
from greenroom.app.settings.values import Reader, Unfit
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.model import Model
from greenroom.core.state.spec import AgentSpec, Group

Tools: TypeAlias = Sequence[str | Tool[..., Any] | Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gear:
    """What a program says about an agent's tools. `named` are tools of the house; `only` is all that it
    may have, if it is anything."""

    own: tuple[Tool[..., Any], ...] = ()
    named: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    only: tuple[str, ...] = ()
    edits: bool = True

    @property
    def of_house(self) -> bool:
        """Whether it has tools of the house, for which there must be a workspace."""
        return bool(self.named or self.groups)

    def on(self, base: AgentSpec) -> AgentSpec:
        """An agent with this, beside what it has by itself."""
        tools = dict.fromkeys((*base.tools, *self.named, *(one.name for one in self.own)))
        groups = tuple(dict.fromkeys((*base.groups, *self.groups)))
        spec = evolve(base, tools=tuple(tools), groups=groups)
        return spec if self.edits else without_edits(spec)


def gear_of(
    tools: Tools, groups: Sequence[str], use_tools: Sequence[str] | None, *, disable_file_edit: bool = False
) -> Gear:
    """What was said; `WorldFault` for what cannot be meant. With `use_tools`, even if empty, there are the usual ones
    where nothing else is said, and of all of them those that it lists, if it lists any."""
    given = several(tools, "tools")
    named = tuple(one for one in given if isinstance(one, str))
    own = tuple(one if isinstance(one, Tool) else Tool(one) for one in given if not isinstance(one, str))
    wanted = _groups(several(groups, "groups"))
    if use_tools is not None and not given and not wanted:
        named = DEFAULT
    listed = tuple(several(use_tools if use_tools is not None else (), "use_tools"))
    return Gear(
        own=own,
        named=tuple(one for one in named if not disable_file_edit or one not in EDITS),
        groups=wanted,
        only=listed,
        edits=not disable_file_edit,
    )


def several(given: object, what: str, of: str = "an agent") -> Sequence[Any]:
    """A list of things."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise WorldFault(f"{given!r} cannot be the {what} of {of}. Give a list: {what}=[…].")
    return given


def _groups(given: Sequence[object]) -> tuple[Group, ...]:
    known = get_args(Group)
    for one in given:
        if one not in known:
            raise WorldFault(f"There is no group of tools {one!r}. {meant(str(one), known)}")
    return cast("tuple[Group, ...]", tuple(given))


class Blueprint(Generic[T]):
    """A description that can be used again and again, and is not changed; nothing runs. See `Agent`."""

    def __init__(
        self,
        name: str,
        prompt: str = "",
        *,
        output_type: type[T] | None = None,
        description: str = "",
        model: str | Model = "",
        tools: Tools = (),
        groups: Sequence[str] = (),
        agents: Sequence[Blueprint[Any]] = (),
        use_tools: Sequence[str] | None = None,
        disable_file_edit: bool = False,
        execute_tool_confirm: bool | None = None,
        rounds: int = 0,
        repairs: int | None = None,
        temperature: float | None = None,
        spec: AgentSpec | None = None,
    ) -> None:
        self.name = _checked(name)
        self.model = model
        self.gear = gear_of(tools, groups, use_tools, disable_file_edit=disable_file_edit)
        self.tools = self.gear.own
        self.agents: tuple[Blueprint[Any], ...] = tuple(several(agents, "agents"))
        self.confirms = execute_tool_confirm
        _fits(values.temperature, 0.0 if temperature is None else temperature, "temperature")
        self.shape: Shape | None = shape_of(output_type) if output_type is not None else None
        self._base = spec
        self._said = _Said(prompt, description, _turn(rounds, repairs), temperature)

    @cached_property
    def spec(self) -> AgentSpec:
        """The agent as a team knows it."""
        base, said = self.gear.on(self._base or AgentSpec(name=self.name)), self._said
        made = evolve(
            base,
            name=self.name,
            prompt=said.prompt or base.prompt,
            description=said.description or base.description,
            calls=tuple(dict.fromkeys((*base.calls, *(one.name for one in self.agents)))),
            answer=self.shape.schema if self.shape is not None else base.answer,
            turn=evolve(base.turn, **said.turn),
            llm_config=_config(
                base.llm_config, self.model if isinstance(self.model, str) else own(self.name), said.temperature
            ),
        )
        return versioned(made)


class _Said(NamedTuple):
    """What a program says of an agent, over what its file does."""

    prompt: str
    description: str
    turn: Mapping[str, int]
    temperature: float | None


def own(agent: str) -> str:
    """What a model is called that an agent brought itself."""
    return f"of agent {agent}"


def _turn(rounds: int, repairs: int | None) -> dict[str, int]:
    """What is said anew of the agent's turns."""
    _fits(values.whole(0, MANY), rounds, "rounds")
    _fits(values.whole(0, 10), 0 if repairs is None else repairs, "repairs")
    said = {"rounds": rounds} if rounds else {}
    return said if repairs is None else {**said, "repairs": repairs}


def _checked(name: str) -> str:
    """An agent is called the same wherever it is written down."""
    try:
        return values.name(name)
    except Unfit as unfit:
        raise WorldFault(f"{name!r} is no name for an agent. It must be {unfit}.") from None


def _fits(reader: Reader, value: object, what: str) -> None:
    """What an agent's file may not say, a program may not either."""
    try:
        reader(value)
    except Unfit as unfit:
        raise WorldFault(f"{value!r} cannot be {what}. It must be {unfit}.") from None


def _config(base: Data | None, model: str, temperature: float | None) -> Data | None:
    told: dict[str, object] = dict(base or {})
    if model:
        told["model"] = model
    if temperature is not None:
        told["temperature"] = temperature
    return told or None
