"""Gear: which tools an agent is given: functions of the program, tools of the house by name, whole groups of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast, get_args

from greenroom.app.agents.designs import EDITS, without_edits
from greenroom.app.functions.tools import Tool
from greenroom.app.hands.toolbox import DEFAULT
from greenroom.app.settings.reading import meant
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
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
