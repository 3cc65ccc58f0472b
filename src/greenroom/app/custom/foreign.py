"""Tools in the form that Jarvis has them: a class with a name, a description, parameters and `execute`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, cast, get_args

from greenroom.app.functions.shapes import as_text
from greenroom.app.functions.threads import in_thread
from greenroom.app.functions.tools import group_of, refuse_name
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import SHOWN, Target, ToolCard
from greenroom.core.state.step import SIDE_EFFECTS, Effect, Step, StepType, Terms
from greenroom.core.state.world import World

FORM: Final = ("name", "description", "parameters", "execute")


class Unfit(WorldFault):
    """It has the form, and cannot be used. The text says why."""


def has_form(value: object) -> bool:
    """Whether this is a tool in that form, or the class of one."""
    return all(hasattr(value, name) for name in FORM)


class Foreign:
    """One of them. What it does not say of itself is what is safest: effectful, and a person is asked."""

    type: StepType = "tool"

    def __init__(self, thing: object, source: str) -> None:
        self._thing = thing() if isinstance(thing, type) else thing
        self.name = str(self._said("name", ""))
        refuse_name(self.name)
        self.description = str(self._said("description", "")).strip()
        if not self.description:
            raise Unfit(f"the tool {self.name!r} has no description: nobody would know when to call it")
        effect = self._effect()
        spec = ToolSpec(
            name=self.name, description=self.description, parameters=self._parameters(), pure=effect == "pure"
        )
        self.card = ToolCard(
            spec=spec,
            group=group_of(self._said("group", None), effect, self.name),
            effect=effect,
            seconds=self._number("seconds", 0),
            shown=self._number("shown", SHOWN),
            source=source,
        )

    def can_be_used(self) -> bool:
        """What its `check` says, if it has one."""
        check = self._said("check", None)
        return not callable(check) or bool(check())

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing is known of what it touches."""
        return (Target(kind="tool", value=self.name, writes=self.card.effect in SIDE_EFFECTS),)

    def terms(self, _: World, __: Step) -> Terms:
        """Its effect; permission is somebody else's business."""
        return Terms(effect=self.card.effect)

    async def run(self, bench: Bench) -> Outcome:
        """Call it: a coroutine here, everything else in a thread."""
        execute = cast("Callable[..., object]", self._said("execute", None))
        given = dict(bench.step.work.instruction_content or {})
        if inspect.iscoroutinefunction(execute):
            value: object = await execute(given)
        else:
            value = await in_thread(partial(execute, given), {})
        return _outcome(value)

    def _said(self, name: str, otherwise: object) -> object:
        return getattr(self._thing, name, otherwise)

    def _effect(self) -> Effect:
        said = self._said("effect", "effectful")
        if said not in get_args(Effect):
            raise Unfit(f"the tool {self.name!r} has an effect {said!r}. There are: {', '.join(get_args(Effect))}")
        return cast("Effect", said)

    def _number(self, name: str, otherwise: int) -> int:
        said = self._said(name, otherwise)
        if type(said) is not int or said < 0:
            raise Unfit(f"`{name}` of the tool {self.name!r} must be a whole number from 0 on, not {said!r}")
        return said

    def _parameters(self) -> Data:
        said = self._said("parameters", None)
        if not isinstance(said, Mapping):
            raise Unfit(f"`parameters` of the tool {self.name!r} must be a JSON schema, not {type(said).__name__}")
        return dict(said)


def _outcome(value: object) -> Outcome:
    """What `execute` returned: `success`, `stdout` and `stderr`; anything else is the result itself."""
    if not isinstance(value, Mapping) or "success" not in value:
        return Outcome(result={"output": as_text(value)})
    out, error = as_text(value.get("stdout") or ""), as_text(value.get("stderr") or "")
    if value["success"]:
        return Outcome(result={"output": f"{out}\n{error}".strip("\n") if error else out})
    told = error or out or "It failed and did not say why."
    return Outcome(state="failed", error=told, result={"output": out} if error and out else None)
