"""ask_user and propose_plan: a question to the person, and what an agent is going to do, shown before it begins.

The step waits for the answer as it waits for a yes: for days, if need be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final

from msgspec import Meta

from greenroom.abilities.tools.tool import Arguments, CardedTool, fitted, given, make_card, schema_of
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import Target
from greenroom.core.rules.intents import FinishTask, SetValue
from greenroom.core.state.approval import Approval
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World

PROPOSE_PLAN: Final = "propose_plan"
PLAN: Final = "plan"
"""The value on the task's board that holds it."""

YES: Final = frozenset({"", "y", "yes", "ok", "okay", "go", "是", "好", "可以", "同意"})
NO: Final = frozenset({"n", "no", "stop", "不", "否", "不要", "取消"})
AGREED: Final = "The person agrees. Go on."
ALONE: Final = "Nobody is asked. Go on with it, and say in your answer what you assumed."
SAYS: Final = "The person says: "
OTHERWISE: Final = "Do it like this; propose a new plan only if it becomes something else."
UNWANTED: Final = "The person did not want this plan."


class AskUserArguments(Arguments, frozen=True):
    """What to ask."""

    question: Annotated[str, Meta(description="With all that is needed to answer it.")]


class AskUser(CardedTool):
    """The question is asked by the house before the step starts, so the step only has to read the answer."""

    card = make_card(
        "ask_user",
        "Ask the person you work for, and wait for the answer. Use it for what only they can know or decide, "
        "with as few questions as possible, all at once; not for what you can find out yourself, nor to "
        'report. Example: ask_user(question="Which database is this for: PostgreSQL or SQLite?")',
        schema_of(AskUserArguments),
        group="human",
        pure=True,
    )

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing is touched."""
        return ()

    def terms(self, world: World, step: Step) -> Terms:
        """A person must answer first."""
        return _ask(str((step.work.instruction_content or {}).get("question", "")).strip())

    async def run(self, bench: Bench) -> Outcome:
        """Their words."""
        approval = _answer(bench)
        if approval is None or not approval.reason:
            return Outcome(state="failed", error="Nobody has answered.")
        return Outcome(result={"output": approval.reason, "by": approval.answered_by})


def _ask(question: str) -> Terms:
    return Terms(effect="pure", verdict="ask", words=True, question=question, digest=question)


def _answer(bench: Bench) -> Approval | None:
    step = bench.world.steps[bench.step.step_id]
    return bench.world.approvals.get(step.approval) if step.approval is not None else None


class ProposePlanArguments(Arguments, frozen=True):
    """A plan."""

    steps: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(min_length=1, max_length=20, description="What you will do, a short sentence each, in order."),
    ]
    files: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(max_length=100, description="The files that you expect to change or make."),
    ]


Guess = Callable[[World, Step, int], str]
"""What work on so many files may cost, in words; empty where nobody can guess."""


class ProposePlan(CardedTool):
    """Asks before the step starts, as every question is asked; without anybody to ask (`alone`), it goes on."""

    card = make_card(
        PROPOSE_PLAN,
        "Say what you are going to do before you change anything: the steps, and the files that you expect to "
        "touch. The person sees it and says yes, no, or what to do differently. Use it once, when you have "
        "looked around enough to know; again only if the work turns out to be something else. Not for "
        'questions (ask_user). Example: propose_plan(steps=["Add --json to export", "Test it"], '
        'files=["cli.py", "tests/test_cli.py"])',
        schema_of(ProposePlanArguments),
        group="human",
        pure=True,
    )

    def __init__(self, guess: Guess, *, alone: bool = False) -> None:
        self._guess = guess
        self._alone = alone

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing is touched."""
        return ()

    def terms(self, world: World, step: Step) -> Terms:
        """A person must answer first, if there is one."""
        try:
            asked = fitted(ProposePlanArguments, step.work.instruction_content or {}, self.name)
        except ModelFault:
            return Terms(effect="pure")
        if self._alone:
            return Terms(effect="pure")
        question = shown(asked.steps, asked.files, self._guess(world, step, len(asked.files)))
        return _ask(question)

    async def run(self, bench: Bench) -> Outcome:
        """Keep it, and tell what the person says to it."""
        asked, approval = given(ProposePlanArguments, bench.step), _answer(bench)
        said = approval.reason if approval is not None else ""
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
