"""Shared parts of tools: a base class with a card, wrappers, and the parsing of arguments."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, TypeVar, cast

import msgspec

from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import ModelFault, ProviderFault, StaleOwner, WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.skill_library import READ_SKILL
from greenroom.core.ports.tool import Target, ToolCard, ToolExecutor
from greenroom.core.rules.intents import NeedToolDecision
from greenroom.core.state.spec import ToolGroup
from greenroom.core.state.step import Effect, Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState

ALWAYS_OFFERED: Final = ("read_output", READ_SKILL)
"""Tools that every agent with tools gets, because any result may be long."""

DEFAULT_TOOLS: Final = (
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
"""Tools of an agent that does not name any: enough for most work."""


def make_card(
    name: str,
    description: str,
    arguments: Data,
    *,
    group: ToolGroup,
    effect: Effect = "pure",
    pure: bool = False,
    seconds: int = 0,
    alias_of: str = "",
    ends_own: bool = False,
) -> ToolCard:
    """Build a card. `arguments` is their JSON Schema. `pure` marks a call that changes nothing, for any `effect`."""
    spec = ToolSpec(name=name, description=description, parameters=arguments, pure=pure)
    return ToolCard(spec=spec, group=group, effect=effect, seconds=seconds, alias_of=alias_of, ends_own=ends_own)


class CardedTool:
    """Base class of tools that a card fully describes. By default a tool touches only the log and needs no approval."""

    type: StepType = "tool"
    card: ToolCard

    @property
    def name(self) -> str:
        """The name that steps use."""
        return self.card.spec.name

    @property
    def description(self) -> str:
        """When to use the tool."""
        return self.card.spec.description

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return the tool itself as the only target: it touches nothing outside."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return the effect on the card. The policy decides whether the call is allowed."""
        return StepTerms(effect=self.card.effect)


class WrappedTool:
    """Delegates everything to another tool. Subclasses extend `run`."""

    type: StepType = "tool"

    def __init__(self, tool: ToolExecutor) -> None:
        self._tool = tool
        self.name = tool.name
        self.description = tool.description
        self.card: ToolCard = tool.card

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        return self._tool.targets(arguments)

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        return self._tool.terms(state, step)

    async def run(self, context: StepContext) -> Outcome:
        return await self._tool.run(context)


def wrap_long_tail(tool: ToolExecutor) -> ToolExecutor:
    """Wrap the tool if its card asks for a decision after each call."""
    return LongTailTool(tool) if tool.card.long_tail else tool


class LongTailTool(WrappedTool):
    """A tool whose agent decides after every result, including failures."""

    async def run(self, context: StepContext) -> Outcome:
        """Run the tool, then let a planning agent decide about the result."""
        spec, step = context.agent.spec, context.step
        # A native call returns to its own conversation.
        if not (spec.kind == "llm" and spec.style == "plan" and step.work.call_id is None):
            return await super().run(context)
        try:
            outcome = await super().run(context)
        except (StaleOwner, ProviderFault):
            raise  # there is no result: the call is retried, or a person must act first
        except (ModelFault, WorldFault, OSError) as fault:
            outcome = _build_failure(step, str(fault), fault)
        except Exception as error:
            # A custom tool may raise anything. Its agent decides about that, too.
            logging.getLogger(__name__).exception("%s failed in %s", self.name, step.step_id)
            outcome = _build_failure(step, f"{self.name} broke: {type(error).__name__}: {error}", error)
        stage, name = step.stage_id if step.stage_id in context.state.stages else None, step.work.executor
        decide = NeedToolDecision(agent_id=step.agent_id, task_id=step.task_id, stage_id=stage, tool_name=name)
        return evolve(outcome, intents=(*outcome.intents, decide))


def _build_failure(step: Step, why: str, fault: Exception) -> Outcome:
    """Build a failed outcome. If the cost of a model call is unknown, it is the whole reservation."""
    known = getattr(fault, "spent", None)
    unknown = step.reserved if step.terms is not None and step.terms.effect == "model" else NOTHING
    return Outcome(state="failed", error=why, spent=unknown if known is None else known)


T = TypeVar("T")


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a call. Each field documents and bounds itself with `msgspec.Meta`."""


def build_schema(kind: type[Arguments]) -> Data:
    """Build the JSON Schema of these arguments."""
    _, parts = msgspec.json.schema_components((kind,), ref_template="{name}")
    return _simplify_schema(parts[kind.__name__], parts)


def _simplify_schema(value: object, parts: Mapping[str, object]) -> dict[str, object]:
    """Remove references, titles, defaults, and the null of optional fields from a schema."""
    schema = dict(cast("Mapping[str, object]", value))
    if "$ref" in schema:
        return _simplify_schema(parts[str(schema["$ref"])], parts)
    if "anyOf" in schema:
        schema = {**cast("list[Data]", schema.pop("anyOf"))[0], **schema}
    if "properties" in schema:
        schema.pop("description", None)  # the docstring of the record
        fields = cast("Data", schema["properties"])
        schema["properties"] = {name: _simplify_schema(field, parts) for name, field in fields.items()}
    if "items" in schema:
        schema["items"] = _simplify_schema(schema["items"], parts)
    return {key: found for key, found in schema.items() if key not in ("title", "default") and found != []}


def read_arguments(kind: type[T], step: Step) -> T:
    """Return the arguments of this step. `ModelFault` names the argument that does not fit, and why."""
    return convert_arguments(kind, step.work.instruction_content or {}, step.work.executor)


def convert_arguments(kind: type[T], arguments: Data, name: str) -> T:
    """Convert the arguments of a call of this tool. Numbers in text form become numbers; nulls are dropped."""
    try:
        return msgspec.convert(_drop_nulls(arguments), kind, strict=False)
    except msgspec.ValidationError as misfit:
        raise ModelFault(f"{name} was not called: {misfit}. Look at its parameters and call it again.") from None


def _drop_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _drop_nulls(item) for name, item in value.items() if item is not None}
    return [_drop_nulls(item) for item in value] if isinstance(value, list | tuple) else value
