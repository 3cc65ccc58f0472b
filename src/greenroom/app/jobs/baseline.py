"""The first steps of a run: the project's checks on the base, and a question when none of them can judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from greenroom.abilities.checks.compare import describe
from greenroom.abilities.skills.talk.own import ended
from greenroom.abilities.tools.human import YES
from greenroom.abilities.tools.tool import CardedTool
from greenroom.app.jobs.checker import ProjectChecks
from greenroom.app.jobs.verdict import BASELINE, CONFIRM, VERDICT, Finding, Verdict, as_kept, can_judge, why_no_judge
from greenroom.app.talks.wanted import wanted_in
from greenroom.core.base.records import Data, encode
from greenroom.core.ports.checks import REPORT, Check, as_data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World

FOUND: Final = "found"
"""Where the baseline's result has the checks of the project, whole: they judge the run however the folder changes."""

GO_ON: Final = "Go on without verification."
JUDGED: Final = "The project's tests can judge the change."
STOPPED: Final = "Nothing here can verify a change, so no model was asked. To go on all the same: --allow-unverified."


class Baseline(CardedTool):
    """Keyed: one that was cut off is run again."""

    def __init__(self, checker: ProjectChecks, found: Sequence[Check] = ()) -> None:
        spec = _spec(BASELINE, "Run the project's checks before anything is changed.")
        self.card = ToolCard(spec=spec, group="command", effect="keyed")
        self._found = msgspec.json.decode(encode(tuple(found)))
        self._checker = checker

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing to be asked about: these checks are approved, or run in a sandbox."""
        return ()

    async def run(self, bench: Bench) -> Outcome:
        """Run them all."""
        report = await self._checker.baseline(bench)
        lines = (f"Before any change: {describe(report)}.", *report.left)
        result = {"output": "\n".join(lines), REPORT: as_data(report), FOUND: self._found}
        return Outcome(result=result, blobs=report.blobs)


class ConfirmUnverified(CardedTool):
    """Asks a person before a model is paid, when no check of the kind *test* can judge. `allowed` says that they agree
    to everything (--yes), `alone` that nobody is there: then the run ends here, unless they said --allow-unverified."""

    def __init__(self, checker: ProjectChecks, *, allowed: bool, alone: bool) -> None:
        spec = _spec(CONFIRM, "Ask whether to go on when nothing can verify the change.")
        self.card = ToolCard(spec=spec, group="human", effect="pure")
        self._checker = checker
        self._allowed = allowed
        self._alone = alone

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing is touched."""
        return ()

    def terms(self, world: World, step: Step) -> Terms:
        """A person answers first, if there is one and something to ask."""
        if self._alone or self._goes_on(world, step):
            return Terms(effect="pure")
        question = "\n".join((*self._why(), "Go on without verification? [y/N]"))
        return Terms(effect="pure", verdict="ask", words=True, question=question, digest=question)

    async def run(self, bench: Bench) -> Outcome:
        """Go on, or end the run as unverified."""
        if can_judge(self._checker.checks, self._checker.base):
            return Outcome(result={"output": JUDGED})
        if self._goes_on(bench.world, bench.step):
            judged = can_judge(self._checker.checks, self._checker.base)
            return Outcome(result={"output": JUDGED if judged else GO_ON})
        if not self._alone and _answer(bench).strip().rstrip(".!。！").lower() in YES - {""}:
            return Outcome(result={"output": GO_ON})
        verdict = self._verdict()
        end = ended(bench.step, STOPPED)
        return Outcome(result={"output": STOPPED, VERDICT: as_kept(verdict)}, intents=(end,))

    def _goes_on(self, world: World, step: Step) -> bool:
        """Whether there is nothing to ask. What was said beforehand stands in the first turn, which still waits."""
        agreed = self._allowed or wanted_in(world.steps_of(step.agent_id)).allow_unverified
        return agreed or can_judge(self._checker.checks, self._checker.base)

    def _verdict(self) -> Verdict:
        checks = self._checker.checks
        code: Finding = Finding(code="no_test_judged" if checks else "no_checks")
        notes = (
            Finding(code="does_not_judge", check=check.name, why=why)
            for check in checks
            if (why := why_no_judge(self._checker.base.get(check.name)))
        )
        return Verdict(state="unverified", reasons=(code,), notes=tuple(notes))

    def _why(self) -> Sequence[str]:
        if not self._checker.checks:
            return ("No checks were found here, so nothing can verify the change.",)
        named = [f"  {note.check}: {note.why}" for note in self._verdict().notes]
        return ("None of the tests can run here, so nothing can verify the change:", *named)


def _answer(bench: Bench) -> str:
    step = bench.world.steps[bench.step.step_id]
    approval = bench.world.approvals.get(step.approval) if step.approval is not None else None
    return approval.reason if approval is not None else ""


def _spec(name: str, description: str) -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters={"type": "object", "properties": {}})


def found_in(steps: Iterable[Step]) -> tuple[Check, ...] | None:
    """The checks that the project had when the run began; None if that is not written down."""
    held = [(step.result or {}).get(FOUND) for step in steps if _is_base(step)]
    return next((msgspec.convert(found, tuple[Check, ...]) for found in held if found is not None), None)


def _is_base(step: Step) -> bool:
    return step.work.executor == BASELINE and step.state == "finished"
