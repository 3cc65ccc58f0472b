"""What the tools for files share: a card, a workspace, and which paths a call would touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeAlias

from greenroom.abilities.tools.files.arguments import Arguments
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.files import FileFault, Files, within
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import SIDE_EFFECTS, Step, StepType, Terms
from greenroom.core.state.world import World

Hides: TypeAlias = Callable[[str], bool]
"""Whether a path is one that tools that look at many files pass over."""


class FileTool:
    """A tool for one workspace."""

    type: StepType = "tool"
    card: ToolCard

    def __init__(self, files: Files, hides: Hides) -> None:
        self._files = files
        self._hides = hides

    @property
    def name(self) -> str:
        """What a step calls it by."""
        return self.card.spec.name

    @property
    def description(self) -> str:
        """When to use it."""
        return self.card.spec.description

    def terms(self, _: World, __: Step) -> Terms:
        """Free; permission is somebody else's business."""
        return Terms(effect=self.card.effect)

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The paths, as they were named and as they really are."""
        writes = self.card.effect in SIDE_EFFECTS
        paths = [path for named in self._paths(arguments) for path in self._both(named)]
        found = tuple(Target(kind="path", value=path, writes=writes) for path in dict.fromkeys(paths))
        return found or (Target(kind="tool", value=self.name, writes=writes),)

    def _paths(self, arguments: Data) -> Iterable[object]:
        return (arguments.get("file"),)

    def _both(self, named: object) -> Iterator[str]:
        """A path and, where links lead elsewhere, where. Of one that is none, only what was said."""
        if not isinstance(named, str):
            return
        try:
            real = self._files.real(named)
        except FileFault:
            yield named  # it will be refused by whoever opens it
            return
        with suppress(FileFault):
            yield within(named, (self._files.root,)) or "."
        yield real or "."


def given(bench: Bench) -> Arguments:
    """The arguments of the step."""
    return Arguments(bench.step.work.instruction_content or {}, bench.step.work.executor)


def failed(fault: ModelFault | FileFault, more: str = "") -> Outcome:
    """A failure that says why, to the agent and (in a word) to programs."""
    return Outcome(state="failed", error=f"{fault}{more}", result={"reason": getattr(fault, "reason", "arguments")})
