"""The tools under fire: the house's own and strangers' of all manners. None does anything but note that it was run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.toolset.toolset import toolbox_of
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard, ToolExecutor
from greenroom.core.state.spec import Group
from greenroom.core.state.step import Effect, Step, StepType, Terms
from greenroom.core.state.world import World

Touches = Callable[[Data], tuple[Target, ...]]


@dataclass(frozen=True)
class Entered:
    """A tool was run: the only thing that counts, whatever anybody says about it."""

    step: str
    attempt: int
    agent: AgentId
    tool: str
    arguments: str
    targets: tuple[Target, ...]


class Probe:
    """A tool, up to the moment in which it would do something."""

    type: StepType = "tool"

    def __init__(self, tool: ToolExecutor, entered: list[Entered]) -> None:
        self._tool = tool
        self._entered = entered
        self.name, self.description, self.card = tool.name, tool.description, tool.card

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The tool's own."""
        return self._tool.targets(arguments)

    def terms(self, world: World, step: Step) -> Terms:
        """The tool's own."""
        return self._tool.terms(world, step)

    async def run(self, bench: Bench) -> Outcome:
        """Note it."""
        step = bench.step
        given = step.work.instruction_content or {}
        told = Entered(
            step=step.step_id,
            attempt=step.attempt,
            agent=step.agent_id,
            tool=self.name,
            arguments=json.dumps(given, sort_keys=True),
            targets=self._tool.targets(given),
        )
        self._entered.append(told)
        return Outcome(result={"output": "done"})


STRING: Data = {"type": "string"}


class Stranger:
    """A tool of somebody else, who says of it what they like."""

    type: StepType = "tool"
    description: str = "Somebody's."

    def __init__(
        self,
        name: str,
        group: Group,
        source: str,
        touches: Touches,
        *,
        effect: Effect = "effectful",
        own: Terms | None = None,
    ) -> None:
        self.name = name
        names = ("path", "host", "command", "text")
        schema: Data = {"type": "object", "properties": dict.fromkeys(names, STRING), "required": list(names)}
        spec = ToolSpec(name=name, description=self.description, parameters=schema)
        self.card = ToolCard(spec=spec, group=group, effect=effect, source=source)
        self._touches = touches
        self._own = own or Terms(effect=effect)

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """What its author says."""
        return self._touches(arguments)

    def terms(self, _: World, __: Step) -> Terms:
        """What its author says."""
        return self._own

    async def run(self, bench: Bench) -> Outcome:
        """Nobody comes here."""
        raise NotImplementedError


def _nothing(_: Data) -> tuple[Target, ...]:
    return ()


def _host(given: Data) -> tuple[Target, ...]:
    return (Target(kind="host", value=str(given["host"])),)


def _all(given: Data) -> tuple[Target, ...]:
    return (
        Target(kind="path", value=str(given["path"]), writes=True),
        Target(kind="command", value=str(given["command"])),
        *_host(given),
    )


def _breaks(_: Data) -> tuple[Target, ...]:
    raise RuntimeError("nobody knows what it touches")


def strangers() -> list[Stranger]:
    """One of each manner."""
    return [
        Stranger("fetch", "web", "built-in", _host),
        Stranger("custom", "read", "file: custom.py", _nothing, effect="pure"),
        Stranger("everything", "command", "file: everything.py", _all),
        Stranger("mcp__notes__read", "mcp", "mcp:notes", _nothing, effect="pure"),
        Stranger("mcp__notes__write", "mcp", "mcp:notes", _nothing),
        Stranger("mcp__web__get", "mcp", "mcp:web", _host),
        Stranger("breaks", "edit", "file: breaks.py", _breaks),
        Stranger("asks", "edit", "file: own.py", _all, own=Terms(effect="effectful", verdict="ask", question="May I?")),
        Stranger("notifies", "edit", "file: own.py", _all, own=Terms(effect="effectful", verdict="notify")),
        Stranger("denies", "edit", "file: own.py", _all, own=Terms(effect="effectful", verdict="deny")),
    ]


def probes(root: Path, entered: list[Entered]) -> Toolbox:
    """The registry, as a team has it."""
    return Toolbox(Probe(tool, entered) for tool in (*toolbox_of(root), *strangers()))


def workspace(root: Path) -> None:
    """With links that lead in, out, nowhere and round."""
    for name in ("src/deep/y.py", "src/x.py", "a.txt", ".env", ".git/config", "keys/id_rsa"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n", encoding="utf-8")
    (root / "link").symlink_to("/etc")
    (root / "inner").symlink_to("src")
    (root / "dangling").symlink_to("gone/away")
    (root / "loop").symlink_to("loop")
