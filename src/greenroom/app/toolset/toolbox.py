"""All tools of a team by name, what adds to them (equipment, a copied workspace), and which of them an agent has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TypeAlias

from greenroom.abilities.tools.tool import ALWAYS, DEFAULT
from greenroom.app.kit import Closing
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.executor import Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import BUILT_IN, ToolExecutor
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step

After: TypeAlias = Callable[[Step, Outcome], Awaitable[None]]
"""Who hears of a call that was made."""


class Toolbox:
    """Tools by name, in the order in which they came. Of two with one name the first one stays.

    `notes` say what is not there, and what to do about it.
    """

    def __init__(self, tools: Iterable[ToolExecutor] = (), notes: Sequence[str] = ()) -> None:
        self.notes = tuple(notes)
        self._tools: dict[str, ToolExecutor] = {}
        for tool in tools:
            self._tools.setdefault(tool.name, tool)

    def __iter__(self) -> Iterator[ToolExecutor]:
        return iter(self._tools.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What models are told of them."""
        return tuple(tool.card.spec for tool in self)

    @property
    def usual(self) -> tuple[str, ...]:
        """What the house's own assistant has: the usual ones, and all that the person has got from elsewhere."""
        return (*DEFAULT, *(tool.name for tool in self if tool.card.source != BUILT_IN))

    def named(self, name: str) -> ToolExecutor:
        """The tool of this name; `Refused` with the nearest one if there is none."""
        found = self._tools.get(name)
        if found is None:
            near = get_close_matches(name, self._tools, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else "`greenroom tools list` has them."
            raise Refused(Rejected(code="unknown_tool", why=f"There is no tool {name!r}.", hint=hint))
        return found

    def equipped(
        self, spec: AgentSpec, *, default: Collection[str] = (), only: Collection[str] | None = None
    ) -> AgentSpec:
        """The agent with its tools by name: those it names and those of its groups, of which it keeps what is allowed.

        One that says nothing about tools gets the `default`. What it names and nobody has stays: it may come later.
        """
        grouped = [tool.name for tool in self if tool.card.group in spec.groups and not tool.card.alias_of]
        wanted: Sequence[str] = (*spec.tools, *grouped) if spec.tools or spec.groups else tuple(default)
        allowed = [name for name in dict.fromkeys(wanted) if only is None or name in only]
        has_any = any(name in self._tools for name in allowed)
        extra = [name for name in ALWAYS if has_any and name in self._tools and name not in allowed]
        return evolve(spec, tools=(*allowed, *extra))


@record
class Equipment:
    """Tools, who hears of calls afterwards, and how it ends. `notes` say what is not there, and what to do about it;
    `unagreed` what only waits for a person's trust."""

    tools: tuple[ToolExecutor, ...] = ()
    after: tuple[After, ...] = ()
    notes: tuple[str, ...] = ()
    unagreed: tuple[str, ...] = ()
    closing: tuple[Closing, ...] = ()


def together(some: Iterable[Equipment]) -> Equipment:
    """All of it, in this order."""
    every = tuple(some)
    return Equipment(
        tools=tuple(tool for one in every for tool in one.tools),
        after=tuple(after for one in every for after in one.after),
        notes=tuple(note for one in every for note in one.notes),
        unagreed=tuple(note for one in every for note in one.unagreed),
        closing=tuple(closing for one in every for closing in one.closing),
    )
