"""The toolbox: all tools of a team by name, further tool sources, and the tools of each agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TypeAlias

from greenroom.abilities.tools.tool import ALWAYS_OFFERED, DEFAULT_TOOLS
from greenroom.app.messages import translate
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.executor import CloseCallback, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.skill_library import READ_SKILL
from greenroom.core.ports.tool import BUILT_IN, ToolExecutor
from greenroom.core.state.spec import SEARCH_HISTORY, AgentSpec
from greenroom.core.state.step import Step

ToolObserver: TypeAlias = Callable[[Step, Outcome], Awaitable[None]]


class Toolbox:
    """Tools by name, in order. Of two with one name the first wins. `notes` say what is missing and what to do."""

    def __init__(self, tools: Iterable[ToolExecutor] = (), notes: Sequence[str] = ()) -> None:
        self.notes = tuple(notes)
        self._tools: dict[str, ToolExecutor] = {}
        for tool in tools:
            self._tools.setdefault(tool.name, tool)

    def __iter__(self) -> Iterator[ToolExecutor]:
        return iter(self._tools.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.card.spec for tool in self)

    @property
    def default_names(self) -> tuple[str, ...]:
        """The tools of the default assistant: the default built-in tools and all custom tools."""
        return (*DEFAULT_TOOLS, *(tool.name for tool in self if tool.card.source != BUILT_IN))

    def get(self, name: str) -> ToolExecutor:
        """Return a tool by name. Raise `RefusedError` with the closest name if there is none."""
        tool = self._tools.get(name)
        if tool is None:
            near = get_close_matches(name, self._tools, n=1)
            hint = translate("hints.meant", near=near[0]) if near else translate("tools.see_list")
            raise make_refusal("unknown_tool", translate("tools.unknown", name=name), hint)
        return tool

    def equip(self, spec: AgentSpec, *, default: Collection[str] = ()) -> AgentSpec:
        """Return the agent's spec with its tools by name: those it lists and those of its groups. An agent without any
        gets the `default`. Unknown names stay, because the tool may exist later."""
        of_groups = (tool for tool in self if tool.card.group in spec.groups and not tool.card.alias_of)
        grouped = [tool.name for tool in of_groups if tool.name != SEARCH_HISTORY]  # offered once it has something
        wanted: Sequence[str] = (*spec.tools, *grouped) if spec.tools or spec.groups else tuple(default)
        has_any = any(name in self._tools for name in wanted)
        left_out = () if spec.use_skills else (READ_SKILL,)
        extra = [name for name in ALWAYS_OFFERED if has_any and name in self._tools and name not in left_out]
        return evolve(spec, tools=tuple(dict.fromkeys((*wanted, *extra))))


@record
class ToolSource:
    """Tools from one source, with their observers and close callbacks. `notes` say what is missing and what to do.
    `untrusted` says what only waits for trust."""

    tools: tuple[ToolExecutor, ...] = ()
    observers: tuple[ToolObserver, ...] = ()
    notes: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    close_callbacks: tuple[CloseCallback, ...] = ()


def merge_tool_sources(sources: Iterable[ToolSource]) -> ToolSource:
    """Merge tool sources in this order."""
    all_sources = tuple(sources)
    return ToolSource(
        tools=tuple(tool for source in all_sources for tool in source.tools),
        observers=tuple(observer for source in all_sources for observer in source.observers),
        notes=tuple(note for source in all_sources for note in source.notes),
        untrusted=tuple(note for source in all_sources for note in source.untrusted),
        close_callbacks=tuple(closing for source in all_sources for closing in source.close_callbacks),
    )
