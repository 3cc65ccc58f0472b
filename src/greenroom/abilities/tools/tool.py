"""What tools share: a base for one that is all on its card, wrappers around one, and how arguments are read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, TypeVar, cast

import msgspec

from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import ModelFault, ProviderFault, StaleOwner, WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard, ToolExecutor
from greenroom.core.rules.intents import NeedToolDecision
from greenroom.core.state.spec import Group
from greenroom.core.state.step import Effect, Step, StepType, Terms
from greenroom.core.state.world import World

ALWAYS: Final = ("read_output",)
"""Tools that every agent with a tool has: a result may be long."""

DEFAULT: Final = (
    "read_code",
    "list_files",
    "search_files",
    "patch",
    "rewrite",
    "execute_script",
    "command_output",
    "stop_command",
    "web_search",
    "web_fetch",
    "ask_user",
)
"""Tools of an agent that names none: enough for most work."""


def make_card(
    name: str,
    description: str,
    arguments: Data,
    *,
    group: Group,
    effect: Effect = "pure",
    pure: bool = False,
    seconds: int = 0,
    alias_of: str = "",
    ends_own: bool = False,
) -> ToolCard:
    """A card. `arguments` is their schema; `pure` says of a tool of any effect on the log that it changes nothing."""
    spec = ToolSpec(name=name, description=description, parameters=arguments, pure=pure)
    return ToolCard(spec=spec, group=group, effect=effect, seconds=seconds, alias_of=alias_of, ends_own=ends_own)


class CardedTool:
    """What tools share that have nothing to say of themselves beyond their card. Unless one says otherwise, it works on
    the log alone, so nobody has to be asked about it."""

    type: StepType = "tool"
    card: ToolCard

    @property
    def name(self) -> str:
        """What a step calls it by."""
        return self.card.spec.name

    @property
    def description(self) -> str:
        """When to use it."""
        return self.card.spec.description

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing outside."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: World, __: Step) -> Terms:
        """As the card says. Whether at all is the policy's word."""
        return Terms(effect=self.card.effect)


class WrappedTool:
    """Everything is the tool's own; who derives from it says what is more in `run`."""

    type: StepType = "tool"

    def __init__(self, tool: ToolExecutor) -> None:
        self._tool = tool
        self.name = tool.name
        self.description = tool.description
        self.card: ToolCard = tool.card

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The tool's."""
        return self._tool.targets(arguments)

    def terms(self, world: World, step: Step) -> Terms:
        """The tool's."""
        return self._tool.terms(world, step)

    async def run(self, bench: Bench) -> Outcome:
        """Call it."""
        return await self._tool.run(bench)


def long_tail(tool: ToolExecutor) -> ToolExecutor:
    """The tool, with a decision behind each call if its card says so."""
    return LongTail(tool) if tool.card.long_tail else tool


class LongTail(WrappedTool):
    """A tool whose every result is judged, also that it failed."""

    async def run(self, bench: Bench) -> Outcome:
        """Call it; then its agent decides, if it is one that plans."""
        spec, step = bench.agent.spec, bench.step
        # A native call has its conversation to come back to.
        if not (spec.kind == "llm" and spec.style == "plan" and step.work.call_id is None):
            return await super().run(bench)
        try:
            outcome = await super().run(bench)
        except (StaleOwner, ProviderFault):
            raise  # nothing came of it at all: it is made again, or somebody has to do something first
        except (ModelFault, WorldFault, OSError) as fault:
            outcome = _failed(step, str(fault), fault)
        except Exception as error:
            # A stranger's tool may raise anything. That is no end of its use: its agent decides about that, too.
            logging.getLogger(__name__).exception("%s failed in %s", self.name, step.step_id)
            outcome = _failed(step, f"{self.name} broke: {type(error).__name__}: {error}", error)
        stage, name = step.stage_id if step.stage_id in bench.world.stages else None, step.work.executor
        decide = NeedToolDecision(agent_id=step.agent_id, task_id=step.task_id, stage_id=stage, tool_name=name)
        return evolve(outcome, intents=(*outcome.intents, decide))


def _failed(step: Step, why: str, fault: Exception) -> Outcome:
    """What nobody knows the cost of has cost what was reserved for it, if a model was asked."""
    known = getattr(fault, "spent", None)
    unknown = step.reserved if step.terms is not None and step.terms.effect == "model" else NOTHING
    return Outcome(state="failed", error=why, spent=unknown if known is None else known)


# ---------------------------------------------------------------------------------------------- arguments


T = TypeVar("T")


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a call. A field says by `msgspec.Meta` what it is for and what it may be."""


def schema_of(kind: type[Arguments]) -> Data:
    """The JSON Schema of these arguments."""
    _, parts = msgspec.json.schema_components((kind,), ref_template="{name}")
    return _plain(parts[kind.__name__], parts)


def _plain(value: object, parts: Mapping[str, object]) -> dict[str, object]:
    """A schema without references, titles, defaults, and without the null of what may be left out."""
    schema = dict(cast("Mapping[str, object]", value))
    if "$ref" in schema:
        return _plain(parts[str(schema["$ref"])], parts)
    if "anyOf" in schema:
        schema = {**cast("list[Data]", schema.pop("anyOf"))[0], **schema}
    if "properties" in schema:
        schema.pop("description", None)  # the docstring of the record
        fields = cast("Data", schema["properties"])
        schema["properties"] = {name: _plain(field, parts) for name, field in fields.items()}
    if "items" in schema:
        schema["items"] = _plain(schema["items"], parts)
    return {key: found for key, found in schema.items() if key not in ("title", "default") and found != []}


def given(kind: type[T], step: Step) -> T:
    """The arguments of this step; `ModelFault` says which one does not fit, and why."""
    return fitted(kind, step.work.instruction_content or {}, step.work.executor)


def fitted(kind: type[T], arguments: Data, name: str) -> T:
    """The arguments of a call of this tool. A number that came as text is a number, and null is left out."""
    try:
        return msgspec.convert(_said(arguments), kind, strict=False)
    except msgspec.ValidationError as misfit:
        raise ModelFault(f"{name} was not called: {misfit}. Look at its parameters and call it again.") from None


def _said(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _said(item) for name, item in value.items() if item is not None}
    return [_said(item) for item in value] if isinstance(value, list | tuple) else value
