"""What an agent is made of: its spec, and the parts of it that are Python and stay in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, cast

from greenroom.app.agents import values
from greenroom.app.agents.keys import MANY
from greenroom.app.agents.specs import versioned
from greenroom.app.functions.shapes import Shape, shape_of
from greenroom.app.library.gear import Tools, gear_of, several
from greenroom.app.library.results import T
from greenroom.app.settings.values import Reader, Unfit
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.model import Model
from greenroom.core.state.spec import AgentSpec, Turn


class Blueprint(Generic[T]):
    """A description that can be used again and again; nothing runs. See `Agent`."""

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
        self.model = _model(model)
        self.gear = gear_of(tools, groups, use_tools, disable_file_edit=disable_file_edit)
        self.tools = self.gear.own
        self.agents = tuple(_agent(one) for one in several(agents, "agents"))
        self.confirms = execute_tool_confirm
        _fits(values.temperature, 0.0 if temperature is None else temperature, "temperature")
        self.shape: Shape | None = shape_of(output_type) if output_type is not None else None
        base = self.gear.on(spec or AgentSpec(name=name))
        made = evolve(
            base,
            name=name,
            prompt=prompt or base.prompt,
            description=description or base.description,
            calls=tuple(dict.fromkeys((*base.calls, *(one.name for one in self.agents)))),
            answer=self.shape.schema if self.shape is not None else base.answer,
            turn=_turn(base.turn, rounds, repairs),
            llm_config=_config(base.llm_config, model if isinstance(model, str) else own(name), temperature),
        )
        self.spec = versioned(made)


def own(agent: str) -> str:
    """What a model is called that an agent brought itself."""
    return f"of agent {agent}"


def _turn(base: Turn, rounds: int, repairs: int | None) -> Turn:
    """The turn of the spec, with what is said anew."""
    _fits(values.whole(0, MANY), rounds, "rounds")
    _fits(values.whole(0, 10), 0 if repairs is None else repairs, "repairs")
    again = base.repairs if repairs is None else repairs
    return evolve(base, rounds=rounds or base.rounds, repairs=again)


def _checked(name: str) -> str:
    """An agent is called the same wherever it is written down."""
    try:
        return values.name(name)
    except Unfit as unfit:
        raise WorldFault(f"{name!r} is no name for an agent. It must be {unfit}.") from None


def said(text: object) -> str:
    """What somebody gives an agent to do, without the space around it; `WorldFault` for what is no text."""
    if not isinstance(text, str):
        raise WorldFault(f"{text!r} is nothing that can be said: give a text.")
    return text.strip()


def _fits(reader: Reader, value: object, what: str) -> None:
    """What an agent's file may not say, a program may not either."""
    try:
        reader(value)
    except Unfit as unfit:
        raise WorldFault(f"{value!r} cannot be {what}. It must be {unfit}.") from None


def _agent(given: object) -> Blueprint[Any]:
    if not isinstance(given, Blueprint):
        raise WorldFault(f"{given!r} cannot be called: it is no Agent.")
    return given


def _model(given: object) -> str | Model:
    if isinstance(given, str):
        return given
    if not hasattr(given, "stream") or not hasattr(given, "card"):
        raise WorldFault(f"{given!r} cannot answer: give the name of a model (`openai:gpt-5.5`), or a Model.")
    return cast("Model", given)


def _config(base: Data | None, model: str, temperature: float | None) -> Data | None:
    told: dict[str, object] = dict(base or {})
    if model:
        told["model"] = model
    if temperature is not None:
        told["temperature"] = temperature
    return told or None
