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
from typing import Final, Literal

from greenroom.abilities.checks.claims import Facts, among
from greenroom.abilities.checks.closure import Closure, closure
from greenroom.abilities.checks.comparing import in_two_copies
from greenroom.abilities.checks.judge_names import is_test
from greenroom.abilities.checks.meddling import changed_inside, meddled, run_by_checks
from greenroom.abilities.checks.syntax import SyntaxFault
from greenroom.abilities.checks.undone import undone
from greenroom.abilities.skills.talk.origins import told_meanwhile
from greenroom.abilities.skills.talk.own import ended
from greenroom.abilities.tools.carded import CardedTool
from greenroom.abilities.tools.propose_plan import NAME as PLANS
from greenroom.app.checks.base_look import BaseLook
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.idle import acted_elsewhere
from greenroom.app.checks.known_tests import known_tests
from greenroom.app.checks.named_tests import never_ran
from greenroom.app.checks.own_code import tests_own_code
from greenroom.app.checks.planning import Plan
from greenroom.app.checks.receipts import DELIVER, EDITS, VERDICT, Receipt, base_report
from greenroom.app.checks.syntax import broken
from greenroom.app.checks.verdict import Delivered, Verdict, verdict
from greenroom.app.hands.copied import Quiet
from greenroom.app.jobs.judging import Judges, put_back
from greenroom.app.jobs.left_behind import left_behind
from greenroom.app.jobs.place import History, Place
from greenroom.app.jobs.recording import COMMIT, TREE, mark
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.checks import REPORT, Check, Report, as_data, from_data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import Step, Work

NAME: Final = DELIVER
UNFOLLOWED: Final = "What judges the work has too many files to follow all of them: one of the others may be changed."
UNCHANGED: Final = "It set out to change files, and none is different."
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

TRIES: Final = 3
"""How often an agent hears what is missing."""

SPEC: Final = ToolSpec(
    name=NAME,
    description="Hold what an agent says of its work against what ran. The house calls it when an agent is done.",
    parameters={"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]},
)


@record
class Seen:
    """What a fresh copy shows besides its checks: files that are `broken`, and checks that look `elsewhere`."""

    broken: tuple[SyntaxFault, ...] = ()
    elsewhere: tuple[str, ...] = ()


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
    fresh copy has packages of its own.
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
    ) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._place = place
        self._plan = plan
        self._history = history
        self._judges = judges
        self._quiet = quiet
        self._blob = blob
        self._prepares = prepares
        self._judging: Closure | None = None
        self._seen: dict[str, Seen] = {}

    def targets(self, _: Data) -> tuple[Target, ...]:
        """The command lines of the checks: they run what an agent has written."""
        return tuple(Target(kind="command", value=one.line) for one in self._plan.run)

    async def run(self, bench: Bench) -> Outcome:
        """Record what there is, run what has not run on this very tree, judge, and end the work or say what is
        missing. What a person has said meanwhile is read before anything ends."""
        said = str((bench.step.work.instruction_content or {}).get("said", ""))
        steps = await self._history(bench.world.team.team_id)
        tried = sum(one.work.executor == NAME and one.thread_id == bench.step.thread_id for one in steps) + 1
        stopped = await self._quiet()
        worktree = self._place.worktree
        made = await worktree.commit(mark(bench))
        looked = await worktree.look()
        tree = made.tree if made is not None else looked.tree
        changes = await self._place.changes()
        delivered = await self._delivered(said, tree, changes, base_report(steps))
        delivered = evolve(delivered, left_out=left_behind(looked.left_out))
        judged = await self._judged(delivered, changes, steps, bench)
        found = _with_remarks(judged.found, stopped)
        if never := await never_ran(said, found.receipts, self._blob):
            found = evolve(found, state="unproven", claims=(*found.claims, *never))
        if await worktree.tree() != tree:
            found = evolve(found, state="unproven", missing=(*found.missing, UNSTEADY))
        after = _next(bench.step, judged.delivered, found, tried)
        return Outcome(
            result={**_result(found, judged, tree), **({COMMIT: made.commit} if made is not None else {})},
            intents=() if told_meanwhile(bench.world, bench.step) else (after,),
            blobs=tuple(blob for one in (judged.report, judged.restored) if one is not None for blob in one.blobs),
        )

    async def _judged(
        self, delivered: Delivered, changes: Sequence[str], history: Sequence[Step], bench: Bench
    ) -> Judged:
        """What holds of it. Checks that an earlier delivery ran on the same tree are not run again."""
        steps, report, restored = list(history), None, None
        found = self._verdict(steps, delivered)
        if not changes:
            return Judged(found=_as_it_was(found, steps, delivered), delivered=delivered)
        unrun = _unrun(self._plan.run, found)
        if unrun or delivered.tree not in self._seen:
            report = await self._on_a_fresh_copy(delivered.tree, changes, bench, run=unrun)
        if report is not None:
            steps.append(evolve(bench.step, state="finished", result={REPORT: as_data(report)}))
        seen = self._seen[delivered.tree]
        delivered = evolve(delivered, broken=seen.broken, elsewhere=seen.elsewhere)
        found = self._verdict(steps, delivered)
        if not found.missing and not found.lost:
            found, restored = await self._beside_old_ones(found, delivered, changes, steps, bench)
        if found.missing and not self._prepares and any(map(_lacks, found.receipts)):
            found = evolve(found, missing=(*found.missing, UNINSTALLED))
        return Judged(found=found, delivered=delivered, report=report, restored=restored)

    async def _on_a_fresh_copy(self, tree: str, changes: Sequence[str], bench: Bench, *, run: bool) -> Report | None:
        """Look at what is delivered, and run all checks on it if they are to be run."""
        contents = await self._place.contents([one for one in changes if _readable(one)])
        async with self._judges((), bench) as checker:
            faults = await broken(contents, checker.commands)
            elsewhere = await tests_own_code(self._plan.run, checker.commands, checker.look, self._place.at)
            report = await checker.run((), bench) if run else None
        self._seen = {tree: Seen(broken=faults, elsewhere=elsewhere)}
        return await self._steady(report, (), bench) if report is not None else None

    async def _beside_old_ones(
        self, found: Verdict, delivered: Delivered, changes: Sequence[str], steps: Sequence[Step], bench: Bench
    ) -> tuple[Verdict, Report | None]:
        """What holds when judges, or tests that were added, are as they were; asked once for one tree."""
        known, tests = _known(steps, delivered.tree), await self._test_files(changes, steps, found)
        if found.changed:
            ways = put_back(changes, tests, delivered.meddled)
            restored = known or await self._by_old_judges(delivered, ways, steps, bench)
            return self._held(delivered, restored, steps), restored
        if 0 < len(tests) < len(changes):  # without them it would be the base, which is known
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
            restored = await self._ran(paths, bench)
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
        return await self._ran(tests, bench, only=checks) if checks else None

    async def _test_files(self, changes: Sequence[str], steps: Sequence[Step], found: Verdict) -> list[str]:
        """Those of the changed files that hold tests: by their names, or because some ran, on the base or now."""
        base = base_report(steps)
        ran = (*(base.checks if base is not None else ()), *(one.checked for one in found.receipts))
        named = [await known_tests(self._plan.run, [one], self._blob, self._place.snapshot.within) for one in ran]
        return [path for path in changes if is_test(path) or any(path in one.files for one in named)]

    def _verdict(self, steps: Sequence[Step], delivered: Delivered) -> Verdict:
        return verdict(self._plan.run, steps, delivered, left=(*self._plan.left, *delivered.unfollowed))

    async def _ran(self, paths: Sequence[str], bench: Bench, *, only: Sequence[str] = ()) -> Report:
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

    async def _delivered(self, said: str, tree: str, changes: Sequence[str], base: Report | None) -> Delivered:
        every = await self._place.contents(changes)
        within = self._place.snapshot.within
        if self._judging is None:  # it is of the base, and that stays as it is
            look = BaseLook(FolderLook(Path(self._place.worktree.folder)), every)
            self._judging = await asyncio.to_thread(closure, self._plan.run, look, within)
        judging = self._judging
        known = await known_tests(self._plan.run, base.checks if base is not None else (), self._blob, within)
        paths = await self._place.workspace.paths(await self._place.worktree.tip())
        return Delivered(
            tree=tree,
            meddled=(
                *meddled(every, known.files),
                *changed_inside(every, known.documented),
                *run_by_checks(every, judging, known.files),
            ),
            unfollowed=(UNFOLLOWED,) if judging.cut else (),
            says=said,
            facts=Facts(exists=among(paths)),
        )


def _unrun(needed: Sequence[Check], found: Verdict) -> bool:
    """Whether a check has to be run: it was not on this tree, or could not. One that fails would fail again."""
    known = {one.check for one in found.receipts if one.outcome != "could_not_run"}
    return any(one.name not in known for one in needed)


def _known(history: Sequence[Step], tree: str) -> Report | None:
    """What the old tests have said of this very tree before."""
    told = [one.result or {} for one in history if one.work.executor == NAME and one.state == "finished"]
    return next((from_data(one[RESTORED]) for one in told if one.get(TREE) == tree and RESTORED in one), None)


def _lacks(one: Receipt) -> bool:
    """Whether a check failed for something that is not there."""
    return one.outcome != "clean" and LACKS.search(f"{one.checked.reason}\n{one.checked.excerpt}") is not None


def _with_remarks(found: Verdict, stopped: Sequence[str]) -> Verdict:
    """What ran in the background when the work was done is no part of it; whoever began it may want to know."""
    if not stopped:
        return found
    return evolve(found, remarks=(*found.remarks, f"Ended before it was judged: {', '.join(stopped)} (background)."))


def _as_it_was(found: Verdict, steps: Sequence[Step], delivered: Delivered) -> Verdict:
    """Where nothing was changed, there is nothing to check: an answer counts if nothing in it is untrue, and if it
    speaks of nothing that was done."""
    meant = any(_means_to_change(one) for one in steps)
    said = undone(delivered.says, elsewhere=acted_elsewhere(steps))
    claims = (*found.claims, *said, *((UNCHANGED,) if meant else ()))
    state: Literal["verified", "unproven"] = "unproven" if claims or delivered.left_out else "verified"
    return evolve(found, state=state, receipts=(), missing=delivered.left_out, changed=(), claims=claims)


def _means_to_change(step: Step) -> bool:
    return step.work.executor in EDITS or (step.work.executor == PLANS and bool(_given(step).get("files")))


def _given(step: Step) -> Data:
    return step.work.instruction_content or {}


def _readable(path: str) -> bool:
    return path.endswith((".py", ".pyi", ".json", ".toml", ".yaml", ".yml", ".js", ".mjs", ".cjs"))


def _same_commands(restored: Report, base: Report | None) -> bool:
    """Whether the checks that ran beside the work mean what they meant on the base: else they prove nothing."""
    if base is None:
        return False
    meant = {one.check: one.digest for one in base.checks}
    return all(meant.get(one.check) == one.digest for one in restored.checks)


def _result(found: Verdict, judged: Judged, tree: str) -> Data:
    told: dict[str, object] = {"output": spoken(found), TREE: tree, VERDICT: as_kept(found)}
    if judged.report is not None:
        told[REPORT] = as_data(judged.report)
    if judged.restored is not None:
        told[RESTORED] = as_data(judged.restored)
    return told


def as_kept(found: Verdict) -> Data:
    """A verdict as the log has it."""
    return {
        "state": found.state,
        "missing": list(found.missing),
        "changed": list(found.changed),
        "claims": list(found.claims),
        "remarks": list(found.remarks),
        "receipts": [
            {"check": one.check, "outcome": one.outcome, "exit": one.exit, "tree": one.tree, "step": one.step}
            for one in found.receipts
        ],
    }


def spoken(found: Verdict) -> str:
    """A verdict as an agent reads it."""
    if found.verified and not found.receipts:
        return "No file was changed, so nothing was checked: it counts as an answer."
    if found.verified:
        return "Verified: every check ran on this tree, and nothing newly fails."
    parts = [
        *(("Not proven:", *(f"- {one}" for one in found.missing)) if found.missing else ()),
        *(("Changed by the work itself:", *(f"- {one}" for one in found.changed)) if found.changed else ()),
        *(("Said, and not so:", *(f"- {one}" for one in found.claims)) if found.claims else ()),
        "Mend what you can, and say the rest as it is. A test that you had to change: say which and why.",
    ]
    return "\n".join(parts)


def _next(step: Step, delivered: Delivered, found: Verdict, tried: int) -> Consequence:
    """The end, or another turn for an agent that can do something about it: without any check, it cannot."""
    said = delivered.says
    if found.verified:
        return ended(step, said, tuple(f"{one.check}: {one.outcome}, step {one.step}" for one in found.receipts))
    if tried < TRIES and _can_mend(delivered, found):
        again = Work(type="skill", executor="converse", intention="Mend what is missing.")
        return QueueSteps(agent_id=step.agent_id, works=(again,), place="next")
    why = "\n".join(f"- {one}" for one in (*found.missing, *found.changed, *found.claims))
    return ended(step, f"{said}\n\nNot verified:\n{why}".strip(), failed=True)


def _can_mend(delivered: Delivered, found: Verdict) -> bool:
    return bool(found.claims or found.changed or found.receipts or delivered.broken or delivered.left_out)
