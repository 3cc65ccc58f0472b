"""Runs a project's checks in throw-away worktrees: first on the base, later compared with that baseline."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from greenroom.abilities.skills.conversation.builtin_calls import build_finish
from greenroom.abilities.tools.command_output import LiveLines, OutputBuffer, collect_output
from greenroom.abilities.tools.human import YES_WORDS
from greenroom.abilities.tools.tool import CardedTool
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.ports.checks import (
    REPORT_KEY,
    Check,
    CheckComparison,
    CheckObserver,
    CheckReport,
    CheckResult,
    CheckRun,
    report_to_data,
)
from greenroom.core.ports.commands import Command, CommandEnded, CommandRunner
from greenroom.core.ports.executor import Outcome, StepContext, ToolPrinted
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.rules.intents import FinishTask
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.team_state import TeamState
from greenroom.runs.checkout import Checkout, OpenCheckout, find_imported_folder
from greenroom.runs.output import build_excerpt, compare, describe_report, read_outcome, shorten_name
from greenroom.runs.verdict import (
    BASELINE,
    CONFIRM_UNVERIFIED,
    IMPORTS_YOURS_PREFIX,
    VERDICT_KEY,
    Finding,
    Verdict,
    can_judge,
    encode_verdict,
    explain_no_judgement,
)
from greenroom.runs.workspace import read_run_flags

MAX_RERUN_S: Final = 300.0
"""Maximum seconds of a check that is run again."""

MAX_FLAKY_TESTS: Final = 5
"""Maximum new failures that may count as flaky. More are not a coincidence."""

CHECK_SCRIPT: Final = """
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
"""Runs a command line without Greenroom's `NO_COLOR`, which tests of colours would see. pytest writes its report
outside the tree; the script prints it at the end, behind a mark."""

PYTEST_RUN_ALL: Final = "--maxfail=0 --continue-on-collection-errors"
"""pytest options: an old failure must not hide the tests after it."""

CHECK_ENV: Final = {"CI": "1"}
"""Non-interactive: no runner waits for a key or watches files."""

UNKNOWN_OPTION: Final = ("--junitxml", "unrecognized arguments")
MAX_HEAD_CHARS: Final = 3 * 1024 * 1024
MAX_TAIL_CHARS: Final = 12 * 1024 * 1024
"""Maximum characters of an output that are kept, at its beginning and its end. The report is at the end."""


class ProjectChecks:
    """Runs `checks`, each time in a new worktree. `base` holds their baseline results by name. `left` says which checks
    are not run, and why. Those that share `base` share the `lock`, under which the baseline runs."""

    def __init__(
        self,
        checks: Sequence[Check],
        open_checkout: OpenCheckout,
        *,
        base: Mapping[str, CheckRun] | None = None,
        left: Sequence[str] = (),
        lock: asyncio.Lock | None = None,
    ) -> None:
        self.checks = tuple(checks)
        self._lock = lock or asyncio.Lock()
        self._open_checkout = open_checkout
        self.base: dict[str, CheckRun] = dict(base or {})
        self._not_run = tuple(left)

    @property
    def runnable(self) -> Sequence[Check]:
        """The checks that could run on the base."""
        unable = {name for name, ran in self.base.items() if ran.outcome == "could_not_run"}
        return [check for check in self.checks if check.name not in unable]

    async def ensure_baseline(self, observer: CheckObserver) -> None:
        """Wait for a baseline that runs under the same lock. Run it if there is none then."""
        async with self._lock:
            if any(check.name not in self.base for check in self.checks):
                await self._run_baseline(observer)

    async def run_baseline(self, observer: CheckObserver) -> CheckReport:
        """Run all checks on the base. Their failures count as old from now on."""
        async with self._lock:
            return await self._run_baseline(observer)

    async def _run_baseline(self, observer: CheckObserver) -> CheckReport:
        async with self._open_checkout((), observer) as checkout:
            entries = [await self._run_check(check, checkout, observer, base=True) for check in self.checks]
        return CheckReport(tree=checkout.tree, checks=tuple(entries), left=self._not_run, base=True, fresh=True)

    async def run(
        self,
        only: Sequence[str],
        observer: CheckObserver,
        *,
        paths: Sequence[str] = (),
        first: Callable[[Checkout], Awaitable[None]] | None = None,
    ) -> CheckReport:
        """Run the named checks, or all, on the newest commit with these `paths` restored from the base."""
        chosen = [check for check in self.runnable if not only or check.name in only]
        async with self._open_checkout(paths, observer) as checkout:
            if first is not None:
                await first(checkout)
            entries = [await self._run_check(check, checkout, observer, base=False) for check in chosen]
        entries = await self._rerun_flaky(chosen, entries, paths, observer)
        return CheckReport(tree=checkout.tree, checks=tuple(entries), left=self._not_run, fresh=True)

    async def _rerun_flaky(
        self, checks: Sequence[Check], entries: Sequence[CheckResult], paths: Sequence[str], observer: CheckObserver
    ) -> list[CheckResult]:
        """Rerun a few newly failing tests in another fresh worktree. Those that pass there are flaky."""
        doubtful = {entry.check for entry in entries if _may_be_flaky(entry)}
        if not doubtful:
            return list(entries)
        async with self._open_checkout(paths, observer) as checkout:
            again = {
                check.name: (await run_once(check, checkout.commands, observer))[0]
                for check in checks
                if check.name in doubtful
            }
        return [_remove_flaky(entry, again[entry.check]) if entry.check in again else entry for entry in entries]

    async def _run_check(self, check: Check, checkout: Checkout, observer: CheckObserver, *, base: bool) -> CheckResult:
        if checkout.unable:
            ran, text = build_unable(check, checkout.unable), ""
        else:
            ran, text = await run_once(check, checkout.commands, observer)
        if base and check.kind == "test" and ran.outcome == "failed":
            yours = await find_imported_folder(check, checkout, observer)
            ran = build_unable(check, f"{IMPORTS_YOURS_PREFIX}{yours}") if yours else ran
        ran = evolve(ran, tree=checkout.tree, output=await observer.keep(text.encode(errors="replace")))
        old = self.base.get(check.name)
        against: CheckComparison | None = None
        if base:
            self.base[check.name] = ran
        elif old is not None:
            against = compare(old, ran)
        failed_tests = sorted(against.new if against is not None else ran.failed_tests)
        shown = build_excerpt(text, failed_tests) if failed_tests or ran.outcome == "could_not_run" else ""
        return CheckResult(
            check=ran.check,
            kind=check.kind,
            digest=ran.digest,
            outcome=ran.outcome,
            reason=ran.reason,
            exit=ran.exit,
            seconds=ran.seconds,
            tree=ran.tree,
            passed=ran.passed,
            failing=len(ran.failed_tests),
            skipped=ran.skipped,
            tests=await observer.keep(encode(ran)),
            output=ran.output,
            excerpt=shown,
            compared=against,
        )


def _may_be_flaky(entry: CheckResult) -> bool:
    new = entry.compared.new if entry.compared is not None else ()
    return (
        entry.kind == "test"
        and entry.outcome == "failed"
        and 0 < len(new) <= MAX_FLAKY_TESTS
        and entry.seconds <= MAX_RERUN_S
    )


def _remove_flaky(entry: CheckResult, again: CheckRun) -> CheckResult:
    known = entry.compared
    if known is None or again.outcome == "could_not_run":
        return entry
    failed_tests = {shorten_name(name) for name in again.failed_tests}
    flaky = tuple(name for name in known.new if name not in failed_tests)
    new = tuple(name for name in known.new if name in failed_tests)
    return evolve(entry, compared=evolve(known, new=new, flaky=flaky))


async def run_once(check: Check, commands: CommandRunner, observer: CheckObserver) -> tuple[CheckRun, str]:
    """Run a check. Return its result and its whole output."""
    try:
        ended, text, report = await _run_command(check, commands, observer, report=check.kind == "test")
        if ended.code and all(word in text for word in UNKNOWN_OPTION):
            ended, text, report = await _run_command(check, commands, observer, report=False)
    except WorldFault as fault:
        return build_unable(check, str(fault)), ""
    return read_outcome(check, ended, text, report), text


def build_unable(check: Check, why: str) -> CheckRun:
    """Build the result of a check that could not start."""
    return CheckRun(check=check.name, digest=check.digest, kind=check.kind, outcome="could_not_run", reason=why)


async def _run_command(
    check: Check, commands: CommandRunner, observer: CheckObserver, *, report: bool
) -> tuple[CommandEnded, str, str]:
    mark = f"greenroom-report-{secrets.token_hex(8)}"
    words = ("sh", "-c", CHECK_SCRIPT, "check", check.line, mark, "1" if report else "", PYTEST_RUN_ALL)
    command = Command(words=words, folder=check.folder, seconds=check.seconds, env=CHECK_ENV)
    buffer = OutputBuffer(MAX_HEAD_CHARS, MAX_TAIL_CHARS)
    ended = await collect_output(
        commands.run(command), observer.prepare, buffer, LiveLines(_hide_report(mark, observer.show))
    )
    text, _, found = buffer.text.partition(f"\n{mark}\n")
    return ended, text, found


def _hide_report(mark: str, show: Callable[[ToolPrinted], None]) -> Callable[[ToolPrinted], None]:
    """Show the check's output to live listeners, without the report behind the mark."""
    over = False

    def show_before_mark(event: ToolPrinted) -> None:
        nonlocal over
        text, found, _ = event.text.partition(mark)
        if not over and text:
            show(ToolPrinted(text=text))
        over = over or bool(found)

    return show_before_mark


async def load_base(report: CheckReport, fetch: Callable[[str], Awaitable[bytes]]) -> dict[str, CheckRun]:
    """Load the baseline results that a report names, by check, for a run that resumes after a restart."""
    found: dict[str, CheckRun] = {}
    for entry in report.checks:
        try:
            found[entry.check] = msgspec.json.decode(await fetch(entry.tests), type=CheckRun)
        except msgspec.MsgspecError as error:
            raise WorldFault("runs.baseline_unreadable", check=entry.check, error=error) from None
    return found


FOUND_KEY: Final = "found"
"""The key of the project's checks in the baseline's result. They judge the run even if the folder changes."""

BEFORE_PREFIX: Final = "Before any change: "
GO_ON_MESSAGE: Final = "Go on without verification."
CAN_JUDGE_MESSAGE: Final = "The project's tests can judge the change."
NO_CHECKS_MESSAGE: Final = "No checks were found here, so nothing can verify the change."
NO_TESTS_MESSAGE: Final = "None of the tests can run here, so nothing can verify the change:"
CONTINUE_QUESTION: Final = "Continue anyway?"
STOPPED_MESSAGE: Final = (
    "Nothing here can verify a change, so no model was called. To continue anyway, add --allow-unverified."
)


class BaselineTool(CardedTool):
    """Runs the baseline. Keyed: an interrupted one is run again."""

    def __init__(self, checker: ProjectChecks, found: Sequence[Check] = ()) -> None:
        spec = _build_spec(BASELINE, "Run the project's checks before anything is changed.")
        self.card = ToolCard(spec=spec, group="command", effect="keyed")
        self._found_checks = msgspec.json.decode(encode(tuple(found)))
        self._checker = checker

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return nothing: these checks are approved, or run in a sandbox."""
        return ()

    async def run(self, context: StepContext) -> Outcome:
        """Run the baseline. If checks cannot run here, end the run before a model is paid."""
        try:
            report = await self._checker.run_baseline(context)
        except WorldFault as fault:
            message = translate("checks.cannot_run_here", fault=fault)
            return Outcome(result={"output": message}, intents=(build_finish(context.step, message, failed=True),))
        lines = (f"{BEFORE_PREFIX}{describe_report(report)}.", *report.left)
        result = {"output": "\n".join(lines), REPORT_KEY: report_to_data(report), FOUND_KEY: self._found_checks}
        return Outcome(result=result, blobs=report.blobs)


class ConfirmUnverifiedTool(CardedTool):
    """Asks a person before a model is paid, if no check of kind *test* can judge. `allowed` approves everything
    (--yes). If `alone`, no person is present: the run ends here, unless --allow-unverified was given."""

    def __init__(self, checker: ProjectChecks, *, allowed: bool, alone: bool) -> None:
        spec = _build_spec(CONFIRM_UNVERIFIED, "Ask whether to go on when nothing can verify the change.")
        self.card = ToolCard(spec=spec, group="human", effect="pure")
        self._checker = checker
        self._allowed = allowed
        self._alone = alone

    def targets(self, _: Data) -> tuple[Target, ...]:
        return ()

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Ask a person first, if one is present and there is something to ask."""
        if self._alone or self._can_go_on(state, step):
            return StepTerms(effect="pure")
        question = "\n".join((*self._explain(), CONTINUE_QUESTION))
        return StepTerms(effect="pure", verdict="ask", words=True, question=question, digest=question)

    async def run(self, context: StepContext) -> Outcome:
        """Continue, or end the run as unverified."""
        if can_judge(self._checker.checks, self._checker.base):
            return Outcome(result={"output": CAN_JUDGE_MESSAGE})
        if self._can_go_on(context.state, context.step):
            return Outcome(result={"output": GO_ON_MESSAGE})
        if not self._alone and read_answer(context).strip().rstrip(".!。！").lower() in YES_WORDS - {""}:
            return Outcome(result={"output": GO_ON_MESSAGE})
        verdict = self._build_verdict()
        end = FinishTask(task_id=context.step.task_id, summary=STOPPED_MESSAGE)
        return Outcome(result={"output": STOPPED_MESSAGE, VERDICT_KEY: encode_verdict(verdict)}, intents=(end,))

    def _can_go_on(self, state: TeamState, step: Step) -> bool:
        """Return whether there is nothing to ask. The run's flags are in the first turn, which still waits."""
        agreed = self._allowed or read_run_flags(state.steps_of(step.agent_id)).allow_unverified
        return agreed or can_judge(self._checker.checks, self._checker.base)

    def _build_verdict(self) -> Verdict:
        checks = self._checker.checks
        code: Finding = Finding(code="no_test_judged" if checks else "no_checks")
        notes = (
            Finding(code="does_not_judge", check=check.name, why=why)
            for check in checks
            if (why := explain_no_judgement(self._checker.base.get(check.name)))
        )
        return Verdict(state="unverified", reasons=(code,), notes=tuple(notes))

    def _explain(self) -> Sequence[str]:
        if not self._checker.checks:
            return (NO_CHECKS_MESSAGE,)
        named = [f"  {note.check}: {note.why}" for note in self._build_verdict().notes]
        return (NO_TESTS_MESSAGE, *named)


def read_answer(context: StepContext) -> str:
    """Return what a person said to the question of a step; empty if they only agreed."""
    step = context.state.steps[context.step.step_id]
    approval = context.state.approvals.get(step.approval) if step.approval is not None else None
    return approval.reason if approval is not None else ""


def _build_spec(name: str, description: str) -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters={"type": "object", "properties": {}})


def load_found_checks(steps: Iterable[Step]) -> tuple[Check, ...] | None:
    """Return the project's checks as recorded at the start of the run; None if they were not recorded."""
    base = [step for step in steps if step.work.executor == BASELINE and step.state == "finished"]
    stored_checks = [(step.result or {}).get(FOUND_KEY) for step in base]
    return next((msgspec.convert(found, tuple[Check, ...]) for found in stored_checks if found is not None), None)
