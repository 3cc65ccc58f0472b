"""The first checks of a project, where the work itself has set them up: they judge it once a person says that they do.

The question is a step of its own, which waits as every question does; the delivery behind it reads the answer in the
log. Nothing else can make them judges.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from greenroom.abilities.checks.finding.found import found
from greenroom.abilities.checks.judge_names import ignores, in_part, is_set_up
from greenroom.abilities.checks.looking import Look
from greenroom.abilities.checks.meddling import Meddled
from greenroom.abilities.skills.talk.own import proving
from greenroom.app.checks.receipts import DELIVER
from greenroom.app.checks.verdict import Delivered
from greenroom.app.jobs.report import one_line
from greenroom.core.base.errors import Bug
from greenroom.core.base.records import Data, encode, evolve, record
from greenroom.core.ports.checks import Check
from greenroom.core.ports.executor import Outcome
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, Terms, Work

ASKED: Final = "first_checks"
"""Where a step has the checks that it asks about."""

SET_UP: Final = "set_up"
BEGAN: Final = "began"
"""Where it has what else the work has set up, and the step after which the work was to be judged."""

MOST: Final = 3
"""How often a person is asked in one run: each time the work has set up something else."""

COUNTS: Final = "A person has said that these checks prove the work."


@record
class FirstChecks:
    """What the work has set up where there was nothing, and what a person has said to exactly that: None while nobody
    has. `began` is the step after which the work was to be judged; `asked` counts the questions by now."""

    checks: tuple[Check, ...] = ()
    answer: bool | None = None
    began: str = ""
    asked: int = 0

    @property
    def agreed(self) -> bool:
        """Whether they are judges."""
        return bool(self.checks) and self.answer is True

    @property
    def open(self) -> bool:
        """Whether a person is to be asked."""
        return bool(self.checks) and self.answer is None and self.asked < MOST


NONE: Final = FirstChecks()


def set_up_in(look: Look, declined: Collection[str], step: Step, history: Sequence[Step]) -> FirstChecks:
    """Those that a project has now, and what was said to them. Those that a person has `declined` are none."""
    checks = tuple(one for one in found(look) if one.digest not in declined)
    digests = {one.digest for one in checks}
    asked = [one for one in history if asked_in(one)]
    said = [one for one in asked if one.state in ("finished", "failed")]
    same = [one for one in said if {each.digest for each in asked_in(one)} == digests]
    began = next((str(_given(one).get(BEGAN, "")) for one in asked), str(step.cause or ""))
    answer = same[-1].state == "finished" if same else None
    return FirstChecks(checks=checks, answer=answer, began=began, asked=len(asked))


def asked_in(step: Step) -> tuple[Check, ...]:
    """The checks that a step asks about; of all other steps none."""
    return asked_with(_given(step)) if step.work.executor == DELIVER else ()


def asked_with(given: Data) -> tuple[Check, ...]:
    """Those that stand in what a step was given. The house has written them there."""
    held = given.get(ASKED)
    if held is None:
        return ()
    try:
        return msgspec.convert(held, tuple[Check, ...])
    except msgspec.ValidationError as error:
        raise Bug(f"What a delivery asks about cannot be read: {error}") from None


def without_questions(history: Sequence[Step]) -> list[Step]:
    """The steps without those that asked, or led to a question: an agent has heard nothing of them."""
    led = {one.cause for one in history if asked_in(one)}
    return [one for one in history if one.step_id not in led and not asked_in(one)]


def asking(step: Step, said: str, first: FirstChecks, set_up: Sequence[str]) -> QueueSteps:
    """The question, and behind it the delivery that reads the answer."""
    told = msgspec.json.decode(encode(first.checks))
    given = {"said": "", ASKED: told, SET_UP: list(set_up), BEGAN: first.began}
    asks = Work(type="tool", executor=DELIVER, intention="Ask whether its checks count.", instruction_content=given)
    return QueueSteps(agent_id=step.agent_id, works=(asks, proving(DELIVER, said)), place="next")


def terms_of(step: Step, run: str) -> Terms:
    """A person says yes or no, to exactly these."""
    checks = asked_in(step)
    lines = [f"{one.name}: {one.line}   ({one.why})" for one in checks]
    held = _given(step).get(SET_UP)
    more = list(map(str, held)) if isinstance(held, Sequence) else []
    question = "\n".join(
        (
            f"There were no checks here, and the work has set up its own ({', '.join(one.name for one in checks)}).",
            *(f"  {one_line(one)}" for one in (*lines, *more)),
            f"They run what it wrote itself: `greenroom diff {run}` shows it. Do they prove the work, if they pass?",
        )
    )
    return Terms(effect="pure", verdict="ask", question=question)


def answered() -> Outcome:
    """Whoever comes here was allowed to: a no ends the step before it starts."""
    return Outcome(result={"output": COUNTS})


def beside(delivered: Delivered, first: FirstChecks, run: str) -> Delivered:
    """What is delivered, where the checks are the work's own. Then to set them up is no meddling; tests that were there
    before, code of others and what takes the place of something are no part of that."""
    if not first.checks:
        return delivered
    own = [one for one in delivered.meddled if one.kind == "command" or _sets_up(one)]
    return evolve(
        delivered,
        meddled=tuple(one for one in delivered.meddled if one not in own),
        set_up=tuple(dict.fromkeys(one.said for one in own)),
        own=first.agreed,
        unconfirmed=() if first.agreed else (_unconfirmed(first, run),),
    )


def _unconfirmed(first: FirstChecks, run: str) -> str:
    """What keeps the work from being proven while nobody has agreed to them, and what to do."""
    named = ", ".join(f"{one.name}: `{one.line}`" for one in first.checks)
    if first.open:
        return f"The work has set up its checks itself ({named}): they count once a person says so."
    again = f" To be asked again: `greenroom rewind {run} --to {first.began}`." if first.began else ""
    return f"The work has set up its checks itself ({named}), and nobody has agreed to them: they did not run.{again}"


def _sets_up(one: Meddled) -> bool:
    parts = (is_set_up(one.path), bool(in_part(one.path)), ignores(one.path))
    return one.kind == "set-up" and any(parts)


def _given(step: Step) -> Data:
    held = step.work.instruction_content
    return held if isinstance(held, Mapping) else {}
