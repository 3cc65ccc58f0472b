"""The checks of a project, run in throw-away worktrees: on the base first, then again and again beside the base."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from greenroom.abilities.skills.talk.own import ended
from greenroom.abilities.tools.command_output import Kept, LiveLines, heard
from greenroom.abilities.tools.human import YES
from greenroom.abilities.tools.tool import CardedTool
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.ports.checks import REPORT, Check, Checked, Compared, Ran, Report, Witness, as_data
from greenroom.core.ports.commands import Command, Commands, Ended
from greenroom.core.ports.executor import Bench, Outcome, ToolPrinted
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World
from greenroom.runs.checkout import Checkout, Opened, imports_yours
from greenroom.runs.output import compare, describe, excerpt, outcome, shorten
from greenroom.runs.verdict import (
    BASELINE,
    CONFIRM,
    IMPORTS_YOURS,
    VERDICT,
    Finding,
    Verdict,
    as_kept,
    can_judge,
    why_no_judge,
)
from greenroom.runs.workspace import wanted_in

LONG: Final = 300.0
"""Seconds: a check that takes longer is not run again."""

FEW: Final = 5
"""So many new failures may be flaky; more are not by chance."""

SCRIPT: Final = """
scratch=$(mktemp -d) || exit 125
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM
unset NO_COLOR
if [ -n "$3" ]; then
  export PYTEST_ADDOPTS="'--junitxml=$scratch/pytest.xml' -o junit_family=xunit1 $4"
fi
sh -c "$1"
status=$?
if [ -s "$scratch/pytest.xml" ]; then
  printf '\\n%s\\n' "$2"
  cat "$scratch/pytest.xml"
fi
exit $status
"""
"""Runs a line, without the setting of ours that tests of colours would see. pytest writes its report outside of the
tree; it is printed at the end, behind a mark."""

TO_THE_END: Final = "--maxfail=0 --continue-on-collection-errors"
"""Options of pytest: an old failure must not hide the tests behind it."""

ENV: Final = {"CI": "1"}
"""Nobody sits there: no runner waits for a key or watches files."""

UNKNOWN_OPTION: Final = ("--junitxml", "unrecognized arguments")
BEGINNING: Final = 3 * 1024 * 1024
END: Final = 12 * 1024 * 1024
"""Characters of an output that are kept; the report stands at its end."""


class ProjectChecks:
    """Runs `checks`, each time in a worktree that is `opened` for it. `base` is what they said on the base, by name;
    `left` says which are not run, and why."""

    def __init__(
        self,
        checks: Sequence[Check],
        opened: Opened,
        *,
        base: Mapping[str, Ran] | None = None,
        left: Sequence[str] = (),
    ) -> None:
        self._checks = tuple(checks)
        self._opened = opened
        self.base: dict[str, Ran] = dict(base or {})
        self._left = tuple(left)

    @property
    def checks(self) -> Sequence[Check]:
        """Those that it runs, the most useful first."""
        return self._checks

    @property
    def runnable(self) -> Sequence[Check]:
        """Those that could run on the base."""
        unable = {name for name, ran in self.base.items() if ran.outcome == "could_not_run"}
        return [check for check in self._checks if check.name not in unable]

    async def baseline(self, witness: Witness) -> Report:
        """Run all of them: what fails now is old from now on."""
        async with self._opened((), witness) as checkout:
            entries = [await self._entry(check, checkout, witness, base=True) for check in self._checks]
        return Report(tree=checkout.tree, checks=tuple(entries), left=self._left, base=True, fresh=True)

    async def run(
        self,
        only: Sequence[str],
        witness: Witness,
        *,
        paths: Sequence[str] = (),
        first: Callable[[Checkout], Awaitable[None]] | None = None,
    ) -> Report:
        """Run those with these names, or all, on the newest commit with these `paths` as the base has them."""
        chosen = [check for check in self.runnable if not only or check.name in only]
        async with self._opened(paths, witness) as checkout:
            if first is not None:
                await first(checkout)
            entries = [await self._entry(check, checkout, witness, base=False) for check in chosen]
        entries = await self._steady(chosen, entries, paths, witness)
        return Report(tree=checkout.tree, checks=tuple(entries), left=self._left, fresh=True)

    async def _steady(
        self, checks: Sequence[Check], entries: Sequence[Checked], paths: Sequence[str], witness: Witness
    ) -> list[Checked]:
        """The entries; of a few tests that newly fail, those that pass in another fresh worktree are flaky."""
        doubtful = {entry.check for entry in entries if _may_be_flaky(entry)}
        if not doubtful:
            return list(entries)
        async with self._opened(paths, witness) as checkout:
            again = {
                check.name: (await run_once(check, checkout.commands, witness))[0]
                for check in checks
                if check.name in doubtful
            }
        return [_without_flaky(entry, again[entry.check]) if entry.check in again else entry for entry in entries]

    async def _entry(self, check: Check, checkout: Checkout, witness: Witness, *, base: bool) -> Checked:
        if checkout.unable:
            ran, text = unable(check, checkout.unable), ""
        else:
            ran, text = await run_once(check, checkout.commands, witness)
        if base and check.kind == "test" and ran.outcome == "failed":
            yours = await imports_yours(check, checkout, witness)
            ran = unable(check, f"{IMPORTS_YOURS}{yours}") if yours else ran
        ran = evolve(ran, tree=checkout.tree, output=await witness.keep(text.encode(errors="replace")))
        old = self.base.get(check.name)
        against: Compared | None = None
        if base:
            self.base[check.name] = ran
        elif old is not None:
            against = compare(old, ran)
        failing = sorted(against.new if against is not None else ran.failing)
        shown = excerpt(text, failing) if failing or ran.outcome == "could_not_run" else ""
        return Checked(
            check=ran.check,
            kind=check.kind,
            digest=ran.digest,
            outcome=ran.outcome,
            reason=ran.reason,
            exit=ran.exit,
            seconds=ran.seconds,
            tree=ran.tree,
            passed=ran.passed,
            failing=len(ran.failing),
            skipped=ran.skipped,
            tests=await witness.keep(encode(ran)),
            output=ran.output,
            excerpt=shown,
            compared=against,
        )


def _may_be_flaky(entry: Checked) -> bool:
    new = entry.compared.new if entry.compared is not None else ()
    return entry.kind == "test" and entry.outcome == "failed" and 0 < len(new) <= FEW and entry.seconds <= LONG


def _without_flaky(entry: Checked, again: Ran) -> Checked:
    known = entry.compared
    if known is None or again.outcome == "could_not_run":
        return entry
    failing = {shorten(name) for name in again.failing}
    flaky = tuple(name for name in known.new if name not in failing)
    new = tuple(name for name in known.new if name in failing)
    return evolve(entry, compared=evolve(known, new=new, flaky=flaky))


async def run_once(check: Check, commands: Commands, witness: Witness) -> tuple[Ran, str]:
    """Run a check. Returns what came of it, and all that it printed."""
    try:
        ended, text, report = await _run(check, commands, witness, report=check.kind == "test")
        if ended.code and all(word in text for word in UNKNOWN_OPTION):
            ended, text, report = await _run(check, commands, witness, report=False)
    except WorldFault as fault:
        return unable(check, str(fault)), ""
    return outcome(check, ended, text, report), text


def unable(check: Check, why: str) -> Ran:
    """A check that was not even begun."""
    return Ran(check=check.name, digest=check.digest, kind=check.kind, outcome="could_not_run", reason=why)


async def _run(check: Check, commands: Commands, witness: Witness, *, report: bool) -> tuple[Ended, str, str]:
    mark = f"greenroom-report-{secrets.token_hex(8)}"
    words = ("sh", "-c", SCRIPT, "check", check.line, mark, "1" if report else "", TO_THE_END)
    command = Command(words=words, folder=check.folder, seconds=check.seconds, env=ENV)
    kept = Kept(BEGINNING, END)
    ended = await heard(commands.run(command), witness.prepare, kept, LiveLines(_until(mark, witness.show)))
    text, _, found = kept.text.partition(f"\n{mark}\n")
    return ended, text, found


def _until(mark: str, show: Callable[[ToolPrinted], None]) -> Callable[[ToolPrinted], None]:
    """Who watches sees what the check prints, and not the report behind it."""
    over = False

    def shown(event: ToolPrinted) -> None:
        nonlocal over
        text, found, _ = event.text.partition(mark)
        if not over and text:
            show(ToolPrinted(text=text))
        over = over or bool(found)

    return shown


async def base_of(report: Report, fetch: Callable[[str], Awaitable[bytes]]) -> dict[str, Ran]:
    """What a report of the base has kept, by check: for a run that goes on after a restart."""
    found: dict[str, Ran] = {}
    for entry in report.checks:
        try:
            found[entry.check] = msgspec.json.decode(await fetch(entry.tests), type=Ran)
        except msgspec.MsgspecError as error:
            raise WorldFault(f"What {entry.check!r} said on the base cannot be read again ({error}).") from None
    return found


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
        """Run them. What cannot be done here cannot be done at the end either, so no model is paid for it."""
        try:
            report = await self._checker.baseline(bench)
        except WorldFault as fault:
            said = f"The checks cannot run here, so no model was asked. {fault}"
            return Outcome(result={"output": said}, intents=(ended(bench.step, said, failed=True),))
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
            return Outcome(result={"output": GO_ON})
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
    base = [step for step in steps if step.work.executor == BASELINE and step.state == "finished"]
    held = [(step.result or {}).get(FOUND) for step in base]
    return next((msgspec.convert(found, tuple[Check, ...]) for found in held if found is not None), None)
