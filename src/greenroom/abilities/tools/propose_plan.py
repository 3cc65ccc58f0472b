"""propose_plan: what somebody is going to do, shown to the person before it begins, and kept on the task's board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final

import msgspec

from greenroom.abilities.tools.carded import CardedTool
from greenroom.abilities.tools.output.given import fitted, given
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.rules.intents import FinishTask, SetValue
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World

NAME: Final = "propose_plan"
PLAN: Final = "plan"
"""The value on the task's board that holds it."""

DESCRIPTION: Final = (
    "Say what you are going to do before you change anything: the steps, and the files that you expect to touch. The "
    "person sees it and says yes, no, or what to do differently. Use it once, when you have looked around enough to "
    "know; again only if the work turns out to be something else. Not for questions (ask_user). "
    'Example: propose_plan(steps=["Add --json to export", "Test it"], files=["cli.py", "tests/test_cli.py"])'
)
SCHEMA: Final[Data] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "minItems": 1,
            "maxItems": 20,
            "description": "What you will do, a short sentence each, in order.",
        },
        "files": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "maxItems": 100,
            "description": "The files that you expect to change or make.",
        },
    },
    "required": ["steps", "files"],
    "additionalProperties": False,
}
YES: Final = frozenset({"", "y", "yes", "ok", "okay", "go", "是", "好", "可以", "同意"})
NO: Final = frozenset({"n", "no", "stop", "不", "否", "不要", "取消"})
AGREED: Final = "The person agrees. Go on."
ALONE: Final = "Nobody is asked. Go on with it, and say in your answer what you assumed."
SAYS: Final = "The person says: "
OTHERWISE: Final = "Do it like this; propose a new plan only if it becomes something else."
UNWANTED: Final = "The person did not want this plan."


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call's arguments."""

    steps: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=20)]
    files: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)]


Guess = Callable[[World, Step, int], str]
"""What work on so many files may cost, in words; empty where nobody can guess."""


class ProposePlan(CardedTool):
    """Asks before the step starts, as every question is asked; without anybody to ask (`alone`), it goes on."""

    def __init__(self, guess: Guess, *, alone: bool = False) -> None:
        spec = ToolSpec(name=NAME, description=DESCRIPTION, parameters=SCHEMA, pure=True)
        self.card = ToolCard(spec=spec, group="human", effect="pure")
        self._guess = guess
        self._alone = alone

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing is touched."""
        return ()

    def terms(self, world: World, step: Step) -> Terms:
        """A person must answer first, if there is one."""
        try:
            asked = fitted(Asked, step.work.instruction_content or {}, NAME)
        except ModelFault:
            return Terms(effect="pure")
        if self._alone:
            return Terms(effect="pure")
        question = shown(asked.steps, asked.files, self._guess(world, step, len(asked.files)))
        return Terms(effect="pure", verdict="ask", words=True, question=question, digest=question)

    async def run(self, bench: Bench) -> Outcome:
        """Keep it, and tell what the person says to it."""
        asked, said = given(Asked, bench.step), _answer(bench)
        keep = SetValue(task_id=bench.step.task_id, key=PLAN, content=shown(asked.steps, asked.files))
        word = said.strip().rstrip(".!。！").lower()
        if self._alone or word in YES:
            return Outcome(result={"output": ALONE if self._alone else AGREED}, intents=(keep,))
        if word in NO:
            ended = FinishTask(task_id=bench.step.task_id, state="failed", summary=UNWANTED)
            return Outcome(result={"output": UNWANTED}, intents=(keep, ended))
        return Outcome(result={"output": f"{SAYS}{said}\n{OTHERWISE}"}, intents=(keep,))


def shown(steps: Sequence[str], files: Sequence[str], guess: str = "") -> str:
    """A plan as it is read."""
    lines = ["Plan:", *(f"{number}. {one}" for number, one in enumerate(steps, start=1))]
    touched = ", ".join(files) or "no files"
    return "\n".join((*lines, f"Touches: {touched}" + (f" · {guess}" if guess else "")))


def _answer(bench: Bench) -> str:
    step = bench.world.steps[bench.step.step_id]
    approval = bench.world.approvals.get(step.approval) if step.approval is not None else None
    return approval.reason if approval is not None else ""
