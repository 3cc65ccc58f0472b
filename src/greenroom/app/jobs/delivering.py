"""The last word on a job: what an agent says of its work is held against what ran, and against what it has changed.

It is run in the place of the end, when an agent says that it is done. Whatever lies there becomes a commit, and that
commit is judged, on a fresh copy: it is what a person would be given. What is missing the agent hears, and mends; after
a few times the work ends as it is, and the report says what nobody has proven.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from greenroom.abilities.checks.claims import Facts, among
from greenroom.abilities.checks.closure import Closure, closure
from greenroom.abilities.checks.comparing import in_two_copies
from greenroom.abilities.checks.deleted_tests import deleted_tests
from greenroom.abilities.checks.judge_names import is_test
from greenroom.abilities.checks.meddling import Meddled, changed_inside, meddled, run_by_checks
from greenroom.abilities.checks.syntax import SyntaxFault
from greenroom.abilities.skills.talk.origins import told_meanwhile
from greenroom.abilities.tools.carded import CardedTool
from greenroom.app.checks.base_look import BaseLook
from greenroom.app.checks.delivered_look import DeliveredLook
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.known_tests import known_tests
from greenroom.app.checks.named_tests import Here, beside_names
from greenroom.app.checks.own_code import tests_own_code
from greenroom.app.checks.planning import Plan
from greenroom.app.checks.receipts import DELIVER, VERDICT, Receipt, base_report
from greenroom.app.checks.syntax import broken
from greenroom.app.checks.taken_places import taken_places
from greenroom.app.checks.verdict import Delivered, Verdict, verdict
from greenroom.app.hands.copied import Quiet
from greenroom.app.jobs import first_checks
from greenroom.app.jobs.baseline import unknown_base
from greenroom.app.jobs.first_checks import FirstChecks
from greenroom.app.jobs.following import as_it_was, as_kept, follows, spoken, with_remarks
from greenroom.app.jobs.judging import Judges, judged_by, put_back
from greenroom.app.jobs.left_behind import left_behind
from greenroom.app.jobs.place import History, Place
from greenroom.app.jobs.recording import TREE, facts, mark
from greenroom.app.talks.wanted import wanted_in
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.checks import REPORT, Check, Report, as_data, from_data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.ports.workspace import Recorded
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World

NAME: Final = DELIVER
UNFOLLOWED: Final = "What judges the work has too many files to follow all of them: one of the others may be changed."
UNSTEADY: Final = "Files went on changing while they were judged: what lies there now is not what was checked."
UNINSTALLED: Final = (
    "A check runs without what the work itself has installed: it sees what is delivered, and packages of yours. If it "
    "needs others, write the command that installs them as `setup` below [workspace] into your settings file."
)
LACKS: Final = re.compile(
    r"No module named|Cannot find (?:module|package)|(?:command )?not found\b|Missing script|unresolved import",
    re.IGNORECASE,
)
"""What a check says that misses a package or a program."""

RESTORED: Final = "restored"
"""What the old tests said of the new code, in the result."""

SPEC: Final = ToolSpec(
    name=NAME,
    description="Hold what an agent says of its work against what ran. The house calls it when an agent is done.",
    parameters={"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]},
)


@record
class Seen:
    """What a fresh copy shows besides its checks: files that are `broken`, checks that look `elsewhere`, and files that
    are `taken` for what is installed."""

    broken: tuple[SyntaxFault, ...] = ()
    elsewhere: tuple[str, ...] = ()
    taken: tuple[Meddled, ...] = ()


@record
class Judged:
    """What was found of what is `delivered`, the `report` of the checks that were run for it, and what the old judges
    said (`restored`)."""

    found: Verdict
    delivered: Delivered
    report: Report | None = None
    restored: Report | None = None


class Deliver(CardedTool):
    """Keyed: it runs checks again that were cut off, and its commit is found again.

    `quiet` ends what agents have begun in the background; `blob` is what reports have kept. `prepares` says that a
    fresh copy has packages of its own, `own` that the checks of the plan are those that the work has set up itself.
    """

    def __init__(
        self,
        place: Place,
        plan: Plan,
        history: History,
        *,
        judges: Judges,
        quiet: Quiet,
        blob: Callable[[str], Awaitable[bytes]],
        prepares: bool = False,
        own: bool = False,
    ) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._place = place
        self._plan = plan
        self._history = history
        self._judges = judges
        self._quiet = quiet
        self._blob = blob
        self._prepares = prepares
        self._own = own
        self._judging: Closure | None = None
        self._seen: dict[str, Seen] = {}

    def targets(self, given: Data) -> tuple[Target, ...]:
        """The command lines of the checks: they run what an agent has written."""
        checks = first_checks.asked_with(given) or self._plan.run
        return tuple(Target(kind="command", value=one.line) for one in checks)

    def terms(self, world: World, step: Step) -> Terms:
        """A person is asked whether checks count that the work has set up itself."""
        asks = first_checks.asked_in(step)
        return first_checks.terms_of(step, world.team.team_id) if asks else super().terms(world, step)

    async def run(self, bench: Bench) -> Outcome:
        """Record what there is, and judge it: by the checks of the project, or where it had none by those that the work
        has set up, if a person has said so."""
        steps = await self._history(bench.world.team.team_id)
        stopped = await self._quiet()
        made = await self._place.worktree.commit(mark(bench))
        first = await self._first(bench.step, steps, made.tree)
        if first_checks.asked_in(bench.step):
            return await self._agreed(bench, made, first)
        judge = self._by(first.checks) if first.agreed else self
        return await judge.judgement(bench, steps, made, stopped, first)

    async def _agreed(self, bench: Bench, made: Recorded, first: FirstChecks) -> Outcome:
        """A person has said yes. This is the one step in which checks of the work are run: the policy has ruled on it,
        and it is about this tree."""
        if not first.are_asked_in(bench.step):
            return Outcome(result={"output": first_checks.OTHER, **facts(made)})
        report = await self._by(first.checks).ran((), bench)
        result = {"output": first_checks.COUNTS, REPORT: as_data(report), **facts(made)}
        return Outcome(result=result, blobs=report.blobs)

    async def _first(self, step: Step, steps: Sequence[Step], tree: str) -> FirstChecks:
        """What the work has set up, where the project had nothing that could be run and nobody has declined any."""
        place, plan = self._place, self._plan
        if plan.run or plan.left or plan.declined or not await place.changes():
            return first_checks.NONE
        paths = await place.workspace.paths(await place.worktree.tip())
        folder, within = Path(place.worktree.folder), place.snapshot.within
        look = await asyncio.to_thread(DeliveredLook, folder, paths, within=within, lent=place.lent)
        return await asyncio.to_thread(first_checks.set_up_in, look, tree, step, steps)

    def _by(self, checks: Sequence[Check]) -> Deliver:
        """The same with these for judges."""
        return Deliver(
            self._place,
            Plan(run=tuple(checks)),
            self._history,
            judges=judged_by(self._judges, checks),
            quiet=self._quiet,
            blob=self._blob,
            prepares=self._prepares,
            own=True,
        )

    async def judgement(
        self, bench: Bench, steps: Sequence[Step], made: Recorded, stopped: Sequence[str], first: FirstChecks
    ) -> Outcome:
        """Run what has not run on this very tree, judge, and end the work or say what is missing. What a person has
        said meanwhile is read before anything ends."""
        said = str((bench.step.work.instruction_content or {}).get("said", ""))
        worktree, tree = self._place.worktree, made.tree
        changes = await self._place.changes()
        delivered = await self._delivered(said, tree, changes, base_report(steps), first)
        may = wanted_in(steps).tests_may_change
        delivered = evolve(delivered, left_out=await left_behind(worktree, steps), tests_may_change=may)
        judged = await self._judged(delivered, changes, steps, bench)
        commit, within = (self._place.workspace, await worktree.tip()), self._place.snapshot.within
        here = Here(checks=self._plan.run, steps=steps, fetch=self._blob, tree=commit, within=within)
        found = await beside_names(with_remarks(judged.found, stopped), said, changes, here)
        if await worktree.tree() != tree:
            found = evolve(found, state="unproven", missing=(*found.missing, UNSTEADY))
        after = self._after(bench.step, judged, found, steps, first)
        return Outcome(
            result={**_result(found, judged), **facts(made)},
            intents=() if told_meanwhile(bench.world, bench.step) else (after,),
            blobs=tuple(blob for one in (judged.report, judged.restored) if one is not None for blob in one.blobs),
        )

    def _after(
        self, step: Step, judged: Judged, found: Verdict, steps: Sequence[Step], first: FirstChecks
    ) -> Consequence:
        """What comes next. A person is asked about checks of the work when it can be judged by them: not while there is
        something that no yes would excuse."""
        delivered = judged.delivered
        if first.open and not delivered.broken and not delivered.left_out and not found.changed:
            return first_checks.asking(step, delivered, first)
        return follows(step, delivered, found, first_checks.without_questions(steps))

    async def _judged(
        self, delivered: Delivered, changes: Sequence[str], history: Sequence[Step], bench: Bench
    ) -> Judged:
        """What holds of it. Checks that an earlier delivery ran on the same tree are not run again, and those of the
        work's own only where a person was asked."""
        steps, report, restored = list(history), None, None
        found = self._verdict(steps, delivered)
        if not changes:
            return Judged(found=as_it_was(found, steps, delivered), delivered=delivered)
        unrun = not self._own and _unrun(self._plan.run, found)
        if unrun or delivered.tree not in self._seen:
            report = await self._on_a_fresh_copy(delivered.tree, changes, bench, run=unrun)
        if report is not None:
            steps.append(evolve(bench.step, state="finished", result={REPORT: as_data(report)}))
        seen = self._seen[delivered.tree]
        delivered = evolve(delivered, broken=seen.broken, elsewhere=seen.elsewhere)
        delivered = evolve(delivered, meddled=(*delivered.meddled, *seen.taken))
        found = self._verdict(steps, delivered)
        if not found.missing and not found.lost:
            found, restored = await self._beside_old_ones(found, delivered, changes, steps, bench)
        if found.missing and not self._prepares and any(map(_lacks, found.receipts)):
            found = evolve(found, missing=(*found.missing, UNINSTALLED))
        return Judged(found=found, delivered=delivered, report=report, restored=restored)

    async def _on_a_fresh_copy(self, tree: str, changes: Sequence[str], bench: Bench, *, run: bool) -> Report | None:
        """Look at what is delivered, and run all checks on it if they are to be run."""
        place = self._place
        contents = await place.contents([one for one in changes if _readable(one)])
        before = frozenset(await place.before())
        async with self._judges((), bench) as checker:
            faults = await broken(contents, checker.commands)
            here = (self._plan.run, checker.commands, checker.look, place.at)
            elsewhere = await tests_own_code(*here)
            taken = await taken_places(*here, before=before, changes=changes, within=place.snapshot.within)
            report = await checker.run((), bench) if run else None
        self._seen = {tree: Seen(broken=faults, elsewhere=elsewhere, taken=taken)}
        return await self._steady(report, (), bench) if report is not None else None

    async def _beside_old_ones(
        self, found: Verdict, delivered: Delivered, changes: Sequence[str], steps: Sequence[Step], bench: Bench
    ) -> tuple[Verdict, Report | None]:
        """What holds when judges, or tests that were added, are as they were; asked once for one tree."""
        if self._own:
            return found, None  # there are no old ones
        known, tests = _known(steps, delivered.tree), await self._test_files(changes, steps, found)
        if found.changed:
            ways = put_back(changes, tests, delivered.meddled)
            restored = known or await self._by_old_judges(delivered, ways, steps, bench)
            return self._held(delivered, restored, steps), restored
        if tests and (len(tests) < len(changes) or _mended(found)):  # else it would be the base, which is known
            restored = known or await self._by_old_tests(tests, bench)
            return self._verdict(steps, evolve(delivered, restored=restored)), restored
        return found, None

    async def _by_old_judges(
        self, delivered: Delivered, ways: Sequence[Sequence[str]], steps: Sequence[Step], bench: Bench
    ) -> Report | None:
        """What the checks said when everything that judges the work was as it was. Of several ways to put it back each
        has to hold: it is the first that does not, or the last."""
        restored: Report | None = None
        for paths in ways:
            restored = await self.ran(paths, bench)
            if self._held(delivered, restored, steps).changed:
                break
        return restored

    def _held(self, delivered: Delivered, restored: Report | None, steps: Sequence[Step]) -> Verdict:
        """What counts beside what the old judges have said, if they were asked as on the base."""
        same = restored is not None and _same_commands(restored, base_report(steps))
        return self._verdict(steps, evolve(delivered, restored=restored if same else None))

    async def _by_old_tests(self, tests: Sequence[str], bench: Bench) -> Report | None:
        """What the old tests say by themselves: a test file that is only added runs beside them, and may put something
        in the place of what they test."""
        checks = tuple(one.name for one in self._plan.run if one.kind == "test")
        return await self.ran(tests, bench, only=checks) if checks else None

    async def _test_files(self, changes: Sequence[str], steps: Sequence[Step], found: Verdict) -> list[str]:
        """Those of the changed files that hold tests: by their names, or because some ran, on the base or now."""
        base = base_report(steps)
        ran = (*(base.checks if base is not None else ()), *(one.checked for one in found.receipts))
        named = [await known_tests(self._plan.run, [one], self._blob, self._place.snapshot.within) for one in ran]
        return [path for path in changes if is_test(path) or any(path in one.files for one in named)]

    def _verdict(self, steps: Sequence[Step], delivered: Delivered) -> Verdict:
        left = (*self._plan.left, *delivered.unfollowed, *unknown_base(steps))
        return verdict(self._plan.run, steps, delivered, left=left)

    async def ran(self, paths: Sequence[str], bench: Bench, *, only: Sequence[str] = ()) -> Report:
        """All checks, or these, on a fresh copy, with these files put back."""
        async with self._judges(paths, bench) as checker:
            report = await checker.run(only, bench)
        return await self._steady(report, paths, bench)

    async def _steady(self, report: Report, paths: Sequence[str], bench: Bench) -> Report:
        """The report; what is flaky in it is so in another fresh copy too, or it just fails."""
        flaky = [one.check for one in report.checks if one.compared is not None and one.compared.flaky]
        if not flaky:
            return report
        async with self._judges(paths, bench) as checker:
            return in_two_copies(report, await checker.run(flaky, bench))

    async def _delivered(
        self, said: str, tree: str, changes: Sequence[str], base: Report | None, first: FirstChecks
    ) -> Delivered:
        every = await self._place.contents(changes)
        within = self._place.snapshot.within
        now = FolderLook(Path(self._place.worktree.folder))
        if self._judging is None:  # it is of the base, and that stays as it is
            then = BaseLook(now, every, await self._place.before())
            self._judging = await asyncio.to_thread(closure, self._plan.run, then, within)
        own = await asyncio.to_thread(closure, first.checks, now, within)  # on the base they were not there
        judging = (self._judging, own)
        known = await known_tests(self._plan.run, base.checks if base is not None else (), self._blob, within)
        paths = await self._place.workspace.paths(await self._place.worktree.tip())
        delivered = Delivered(
            tree=tree,
            meddled=(
                *meddled(every, known.files),
                *changed_inside(every, known.documented),
                *(found for one in judging for found in run_by_checks(every, one, known.files)),
            ),
            deleted=deleted_tests(every, known.files),
            unfollowed=(UNFOLLOWED,) if any(one.cut for one in judging) else (),
            says=said,
            facts=Facts(exists=among(paths), changed=among(changes) if changes else None),
        )
        return first_checks.beside(delivered, first, every, self._place.run)


def _unrun(needed: Sequence[Check], found: Verdict) -> bool:
    """Whether a check has to be run: it was not on this tree, or could not. One that fails would fail again."""
    known = {one.check for one in found.receipts if one.outcome != "could_not_run"}
    return any(one.name not in known for one in needed)


def _known(history: Sequence[Step], tree: str) -> Report | None:
    """What the old tests have said of this very tree before."""
    told = [one.result or {} for one in history if one.work.executor == NAME and one.state == "finished"]
    return next((from_data(one[RESTORED]) for one in told if one.get(TREE) == tree and RESTORED in one), None)


def _mended(found: Verdict) -> bool:
    """Whether something passes now that failed on the base."""
    return any(one.checked.compared is not None and one.checked.compared.mended for one in found.receipts)


def _lacks(one: Receipt) -> bool:
    """Whether a check failed for something that is not there."""
    return one.outcome != "clean" and LACKS.search(f"{one.checked.reason}\n{one.checked.excerpt}") is not None


def _readable(path: str) -> bool:
    return path.endswith((".py", ".pyi", ".json", ".toml", ".yaml", ".yml", ".js", ".mjs", ".cjs"))


def _same_commands(restored: Report, base: Report | None) -> bool:
    """Whether the checks that ran beside the work mean what they meant on the base: else they prove nothing."""
    if base is None:
        return False
    meant = {one.check: one.digest for one in base.checks}
    return all(meant.get(one.check) == one.digest for one in restored.checks)


def _result(found: Verdict, judged: Judged) -> Data:
    told: dict[str, object] = {"output": spoken(found), VERDICT: as_kept(found)}
    if judged.report is not None:
        told[REPORT] = as_data(judged.report)
    if judged.restored is not None:
        told[RESTORED] = as_data(judged.restored)
    return told
