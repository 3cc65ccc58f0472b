"""ask_user and propose_plan: ask the person a question, or show a plan before the work begins.

The step waits for the answer like an approval request, for days if necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final

from msgspec import Meta

from greenroom.abilities.tools.tool import (
    Arguments,
    CardedTool,
    build_schema,
    convert_arguments,
    make_card,
    read_arguments,
)
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import Target
from greenroom.core.rules.intents import FinishTask, SetValue
from greenroom.core.state.approval import Approval
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.team_state import TeamState

PLAN_KEY: Final = "plan"
"""The key of the plan on the task board."""

YES_WORDS: Final = frozenset({"", "y", "yes", "ok", "okay", "go", "是", "好", "可以", "同意"})
NO_WORDS: Final = frozenset({"n", "no", "stop", "不", "否", "不要", "取消"})
AGREED_MESSAGE: Final = "The person agrees. Go on."
UNATTENDED_MESSAGE: Final = "No person is asked. Go on with it, and say in your answer what you assumed."
PERSON_SAYS_PREFIX: Final = "The person says: "
FOLLOW_ANSWER_MESSAGE: Final = "Do it like this; propose a new plan only if it becomes something else."
PLAN_REJECTED_MESSAGE: Final = "The person did not want this plan."


class AskUserArguments(Arguments, frozen=True):
    question: Annotated[str, Meta(description="With all that is needed to answer it.")]


class AskUserTool(CardedTool):
    """Asks the person. The question is asked before the step starts; the step only reads the answer."""

    card = make_card(
        "ask_user",
        "Ask the person you work for, and wait for the answer. Use it for what only they can know or decide, "
        "with as few questions as possible, all at once; not for what you can find out yourself, nor to "
        'report. Example: ask_user(question="Which database is this for: PostgreSQL or SQLite?")',
        build_schema(AskUserArguments),
        group="human",
        pure=True,
    )

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return no targets: the tool touches nothing."""
        return ()

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Require an answer from a person first."""
        return _build_question_terms(str((step.work.instruction_content or {}).get("question", "")).strip())

    async def run(self, context: StepContext) -> Outcome:
        """Return the person's answer."""
        approval = _find_approval(context)
        if approval is None or not approval.reason:
            return Outcome(state="failed", error="No person has answered.")
        return Outcome(result={"output": approval.reason, "by": approval.answered_by})


def _build_question_terms(question: str) -> StepTerms:
    return StepTerms(effect="pure", verdict="ask", words=True, question=question, digest=question)


def _find_approval(context: StepContext) -> Approval | None:
    step = context.state.steps[context.step.step_id]
    return context.state.approvals.get(step.approval) if step.approval is not None else None


class ProposePlanArguments(Arguments, frozen=True):
    steps: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(min_length=1, max_length=20, description="What you will do, a short sentence each, in order."),
    ]
    files: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(max_length=100, description="The files that you expect to change or make."),
    ]


GuessCost = Callable[[TeamState, Step, int], str]
"""Estimates the cost of work on a number of files, in words. Empty if there is no estimate."""


class ProposePlanTool(CardedTool):
    """Shows a plan before the step starts, and waits for the answer. Continues without one if `alone`."""

    card = make_card(
        "propose_plan",
        "Say what you are going to do before you change anything: the steps, and the files that you expect to "
        "touch. The person sees it and says yes, no, or what to do differently. Use it once, when you have "
        "looked around enough to know; again only if the work turns out to be something else. Not for "
        'questions (ask_user). Example: propose_plan(steps=["Add --json to export", "Test it"], '
        'files=["cli.py", "tests/test_cli.py"])',
        build_schema(ProposePlanArguments),
        group="human",
        pure=True,
    )

    def __init__(self, guess: GuessCost, *, alone: bool = False) -> None:
        self._guess = guess
        self._alone = alone

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return no targets: the tool touches nothing."""
        return ()

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Require an answer from a person first, unless the agent works alone."""
        try:
            asked = convert_arguments(ProposePlanArguments, step.work.instruction_content or {}, self.name)
        except ModelFault:
            return StepTerms(effect="pure")
        if self._alone:
            return StepTerms(effect="pure")
        question = render_plan(asked.steps, asked.files, self._guess(state, step, len(asked.files)))
        return _build_question_terms(question)

    async def run(self, context: StepContext) -> Outcome:
        """Store the plan and return the person's answer."""
        asked, approval = read_arguments(ProposePlanArguments, context.step), _find_approval(context)
        said = approval.reason if approval is not None else ""
        keep = SetValue(task_id=context.step.task_id, key=PLAN_KEY, content=render_plan(asked.steps, asked.files))
        word = said.strip().rstrip(".!。！").lower()
        if self._alone or word in YES_WORDS:
            return Outcome(result={"output": UNATTENDED_MESSAGE if self._alone else AGREED_MESSAGE}, intents=(keep,))
        no, _, why = word.partition(":")
        if no in NO_WORDS:
            reason = said.strip()[len(no) + 1 :].strip() if why else ""
            summary = f"{PLAN_REJECTED_MESSAGE}\n{reason}".strip()
            ended = FinishTask(task_id=context.step.task_id, state="failed", summary=summary)
            return Outcome(result={"output": summary}, intents=(keep, ended))
        return Outcome(result={"output": f"{PERSON_SAYS_PREFIX}{said}\n{FOLLOW_ANSWER_MESSAGE}"}, intents=(keep,))


def render_plan(steps: Sequence[str], files: Sequence[str], guess: str = "") -> str:
    lines = ["Plan:", *(f"{number}. {step}" for number, step in enumerate(steps, start=1))]
    touched = ", ".join(files) or "no files"
    return "\n".join((*lines, f"Touches: {touched}" + (f" · {guess}" if guess else "")))
