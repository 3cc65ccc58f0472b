"""What comes of a run, and what is heard while it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    T = _TypeVar("T", default=str)
else:
    T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T]):
    """A run that is over. `output` is the answer, `text` its words; `run` is its name in the log."""

    output: T
    text: str
    run: TeamId
    spent: Amounts

    @property
    def cost(self) -> float:
        """Dollars."""
        return self.spent.money / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A piece of what an agent says."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A piece of what it thinks before it speaks."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """It calls a tool, or another agent."""

    agent: str
    tool: str
    arguments: Data
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What came of a call."""

    agent: str
    tool: str
    output: str
    failed: bool
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What the agent said in this turn is void: its provider failed, and it is asked again."""

    agent: str
    why: str


Heard = Said | Thought | Called | Returned | Again | Result[T]
