"""Tools: what the house knows of one beside what a model is told of it. A tool is an executor that has a card."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, record
from greenroom.core.ports.executor import Executor
from greenroom.core.ports.model import ToolSpec
from greenroom.core.state.spec import Group
from greenroom.core.state.step import Effect

SHOWN: Final = 30_000
"""Bytes of a result that an agent reads; of a longer one the beginning and the end, and a handle to the rest."""


WHOLE: Final = "whole"
"""Where a result has its text when `output` is a part of it only. Of a large result the log keeps that as a blob."""

BUILT_IN: Final = "built-in"
"""Where the house's own tools come from."""


@record
class Target:
    """What a call would touch. A `path` is seen from the workspace's root, a `host` may have a port, a `command` is a
    whole command line; `tool` is a call of which nothing is known but its name."""

    kind: Literal["path", "command", "host", "tool"]
    value: str
    writes: bool = False


@dataclass(frozen=True, kw_only=True)
class ToolCard:
    """`spec` is what a model is told. `seconds` is how long a call may take (0: as long as it likes), `shown` how many
    bytes of its result are read at once; `source` says where it comes from. With `alias_of` it is that tool by another
    name: who names it has it, who names its group has the other one. `ends_own` says of a tool of the house that it
    does no more than end what agents of the team have begun, which needs nobody's yes. After a `long_tail` one an agent
    that plans decides each time whether to go on with it."""

    spec: ToolSpec
    group: Group
    effect: Effect = "effectful"
    seconds: int = 0
    shown: int = SHOWN
    source: str = BUILT_IN
    alias_of: str = ""
    ends_own: bool = False
    long_tail: bool = False


class ToolExecutor(Executor, Protocol):
    """A tool. What it returns has its text under `output`; what it cannot do is a `failed` outcome that says why."""

    @property
    def card(self) -> ToolCard:
        """What the house knows of it."""
        ...

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """What a call with these arguments would touch; they are the model's, and may be nonsense."""
        ...


@record
class Ruling:
    """What is decided. `rule` is the rule that decided it, `why` a sentence for the person or the agent that reads it.

    *notify* is done and told; *ask* needs a person. `grant` is the narrowest useful rule that would have allowed it:
    what "always" proposes.
    """

    verdict: Literal["allow", "notify", "ask", "deny"]
    rule: str = ""
    why: str = ""
    grant: str = ""


class Policy(Protocol):
    """One for a team. `grants` are the rules that a person has agreed to for this run, `limits` those that bind this
    agent: they only tighten."""

    def decide(
        self,
        agent: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> Ruling:
        """Whether the agent may make this call. Quick, without effects, and the same for the same question."""
        ...
