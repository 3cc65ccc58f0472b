"""The first checks of a project, where the work itself has set them up: they judge it once a person says that they do.

The question is a step of its own. It is about one tree: after a yes they run there and then, on that tree, and nowhere
else; the delivery behind it reads in the log what came of it. Whatever is changed later is another tree, and nobody has
said anything about that one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

import msgspec

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.finding.found import found
from greenroom.abilities.checks.finding.python import is_pytest
from greenroom.abilities.checks.looking import Look
from greenroom.abilities.checks.meddling import Meddled
from greenroom.abilities.checks.shadowing import shadowed
from greenroom.abilities.skills.talk.own import proving
from greenroom.app.checks.receipts import DELIVER, FIRST_CHECKS
from greenroom.app.checks.verdict import Delivered
from greenroom.app.jobs.recording import TREE
from greenroom.app.jobs.report import one_line
from greenroom.core.base.errors import Bug
from greenroom.core.base.records import Data, encode, evolve, record
from greenroom.core.ports.checks import Check
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, Terms, Work

SET_UP: Final = "set_up"
BEGAN: Final = "began"
"""Where a step that asks has what else the work has set up, and the step after which the work was to be judged."""

MOST: Final = 3
"""How often a person is asked in one run: each time the work is another."""

RECIPE: Final = 20
"""Lines of what a check stands for that a person is shown."""

PACKAGES: Final = frozenset({".venv", "venv", "node_modules"})
"""Folders in which checks look for what is installed."""

COUNTS: Final = "A person has said that these checks prove the work."
AGAIN: Final = "You were asked before, and files were changed since: what you said then does not count for these."
OTHER: Final = "The work is not what a person was asked about, so nothing was run."


@record
class FirstChecks:
    """What the work has set up where there was nothing, and what a person has said to exactly that in this very tree:
    None while nobody has. Checks that are `unfit` prove nothing where the work has set them up itself. `began` is the
    step after which it was to be judged; `asked` counts the questions by now."""

    checks: tuple[Check, ...] = ()
    unfit: tuple[Check, ...] = ()
    tree: str = ""
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

    def are_asked_in(self, step: Step) -> bool:
        """Whether a step asks about exactly these, in this very tree."""
        digests = {one.digest for one in self.checks}
        return _given(step).get(TREE) == self.tree and {one.digest for one in asked_in(step)} == digests


NONE: Final = FirstChecks()


def set_up_in(look: Look, tree: str, step: Step, history: Sequence[Step]) -> FirstChecks:
    """Those that a project has now, and what was said to them. Only pytest says in a report which tests it ran: where
    it is not among them, they may print whatever they like."""
    checks = found(look)
    if not any(map(is_pytest, checks)):
        return FirstChecks(unfit=checks)
    asked = [one for one in history if asked_in(one)]
    first = FirstChecks(checks=checks, tree=tree, began=str(step.cause or ""), asked=len(asked))
    same = [(one, said) for one in asked if first.are_asked_in(one) and (said := _said(one, tree)) is not None]
    if not same:
        return first
    last, answer = same[-1]
    return evolve(first, answer=answer, began=str(_given(last).get(BEGAN, "")))


def _said(step: Step, tree: str) -> bool | None:
    """A no ends a step before it starts; a yes is one to what lay there when it ran, unless it could not."""
    if step.state == "failed":
        return None if step.started_at is not None else False
    return True if step.state == "finished" and (step.result or {}).get(TREE) == tree else None


def asked_in(step: Step) -> tuple[Check, ...]:
    """The checks that a step asks about; of all other steps none, and of what an agent has called itself either."""
    return asked_with(_given(step)) if step.work.executor == DELIVER and step.work.call_id is None else ()


def asked_with(given: Data) -> tuple[Check, ...]:
    """Those that stand in what a step was given. The house has written them there."""
    held = given.get(FIRST_CHECKS)
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


def asking(step: Step, delivered: Delivered, first: FirstChecks) -> QueueSteps:
    """The question, and behind it the delivery that reads what came of it."""
    told = msgspec.json.decode(encode(first.checks))
    again = (AGAIN,) if first.asked else ()
    set_up = [*delivered.set_up, *(one.said for one in delivered.meddled), *again]
    given = {"said": "", FIRST_CHECKS: told, TREE: first.tree, SET_UP: set_up, BEGAN: first.began}
    asks = Work(type="tool", executor=DELIVER, intention="Ask whether its checks count.", instruction_content=given)
    return QueueSteps(agent_id=step.agent_id, works=(asks, proving(DELIVER, delivered.says)), place="next")


def terms_of(step: Step, run: str) -> Terms:
    """A person says yes or no, to exactly these and to exactly this tree. What is cut off is run again."""
    checks = asked_in(step)
    held = _given(step).get(SET_UP)
    more = list(map(str, held)) if isinstance(held, Sequence) else []
    question = "\n".join(
        (
            f"There were no checks here, and the work has set up its own ({', '.join(one.name for one in checks)}).",
            *(f"  {one_line(one)}" for check in checks for one in _shown(check)),
            *(f"  {one_line(one)}" for one in more),
            f"They run what it wrote itself: `greenroom diff {run}` shows it. A yes runs them on exactly these files.",
            "Do they prove the work, if they pass?",
        )
    )
    return Terms(effect="keyed", verdict="ask", question=question)


def _shown(check: Check) -> Iterator[str]:
    """A check with what its line stands for."""
    yield f"{check.name}: {check.line}   ({check.why})"
    lines = check.means.splitlines()
    yield from (f"  | {one}" for one in lines[:RECIPE])
    if len(lines) > RECIPE:
        yield f"  | and {len(lines) - RECIPE} more lines"


def beside(delivered: Delivered, first: FirstChecks, changes: Iterable[Changed], run: str) -> Delivered:
    """What is delivered, where the checks are the work's own. Then files that it added to set them up are no meddling;
    what a person had, and whatever takes the place of something that is installed, is no part of that."""
    if not first.checks and not first.unfit:
        return delivered
    new = [one.path for one in changes if one.before is None]
    own = [one for one in delivered.meddled if _sets_up(one, new)] if first.checks else []
    rest = [one for one in delivered.meddled if one not in own]
    rest += [_installed(one) for one in new if _packages(one)]
    return evolve(
        delivered,
        meddled=tuple(rest),
        set_up=tuple(dict.fromkeys(one.said for one in own)),
        own=first.agreed,
        unconfirmed=() if first.agreed else (_unconfirmed(first, run, alone=not rest),),
    )


def _sets_up(one: Meddled, new: Collection[str]) -> bool:
    return one.path in new and not shadowed(one.path)


def _packages(path: str) -> bool:
    return not PACKAGES.isdisjoint(PurePosixPath(path.lower()).parts)


def _installed(path: str) -> Meddled:
    return Meddled(kind="set-up", path=path, said=f"{path}, which takes the place of what is installed, was added.")


def _unconfirmed(first: FirstChecks, run: str, *, alone: bool) -> str:
    """What keeps the work from being proven while nobody has agreed to them, and what to do. `alone` says that nothing
    else was changed that judges it."""
    named = ", ".join(f"{one.name}: `{one.line}`" for one in first.checks or first.unfit)
    told = f"The work has set up its checks itself ({named})"
    if first.open:
        return (
            f"{told}: they count once a person says so{'' if alone else ', who is asked when nothing else is changed'}."
        )
    if first.answer is False:
        again = f" To be asked again: `greenroom rewind {run} --to {first.began}`." if first.began else ""
        return f"{told}, and nobody has agreed to them: they did not run.{again}"
    taken = f"Look at it (`greenroom diff {run}`): once you have taken it over they are the project's own."
    if first.unfit:
        return f"{told}, and none of them is pytest, which reports what it ran: others prove nothing here. {taken}"
    return f"{told}, and has changed after each of {MOST} questions: nobody is asked again. {taken}"


def _given(step: Step) -> Data:
    held = step.work.instruction_content
    return held if isinstance(held, Mapping) else {}
