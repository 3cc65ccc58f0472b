"""What an agent is made of: its spec, and the parts of it that are Python and stay in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias

from greenroom.app.library.results import T
from greenroom.app.library.shapes import Shape, shape_of
from greenroom.app.library.tools import NAME, Tool
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.model import Model
from greenroom.core.state.spec import AgentSpec

Callables: TypeAlias = Sequence[Tool[..., Any] | Callable[..., Any]]


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
        tools: Callables = (),
        agents: Sequence[Blueprint[Any]] = (),
        rounds: int = 0,
        repairs: int = 2,
        temperature: float | None = None,
        spec: AgentSpec | None = None,
    ) -> None:
        if not NAME.fullmatch(name):
            raise WorldFault(f"{name!r} is no name for an agent: letters, digits, _ and -, at most 64.")
        self.name = name
        self.model = model
        self.tools = tuple(one if isinstance(one, Tool) else Tool(one) for one in tools)
        self.agents = tuple(agents)
        self.shape: Shape | None = shape_of(output_type) if output_type is not None else None
        base = spec or AgentSpec(name=name)
        self.spec = evolve(
            base,
            name=name,
            prompt=prompt or base.prompt,
            description=description or base.description,
            tools=tuple(dict.fromkeys((*base.tools, *(one.name for one in self.tools)))),
            calls=tuple(dict.fromkeys((*base.calls, *(one.name for one in self.agents)))),
            answer=self.shape.schema if self.shape is not None else base.answer,
            turn=evolve(base.turn, rounds=rounds or base.turn.rounds, repairs=repairs),
            llm_config=_config(base.llm_config, model if isinstance(model, str) else own(name), temperature),
        )


def own(agent: str) -> str:
    """What a model is called that an agent brought itself."""
    return f"of agent {agent}"


def _config(base: Data | None, model: str, temperature: float | None) -> Data | None:
    told: dict[str, object] = dict(base or {})
    if model:
        told["model"] = model
    if temperature is not None:
        told["temperature"] = temperature
    return told or None
