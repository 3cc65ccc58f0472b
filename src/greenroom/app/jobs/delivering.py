"""The last word on a job: what an agent says of its work is held against what ran, and against what it has changed.

It is run in the place of the end, when an agent says that it is done. What is missing the agent hears, and mends; after
a few times the work ends as it is, and the report says what nobody has proven.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from greenroom.abilities.checks.claims import Facts
from greenroom.abilities.checks.closure import closure
from greenroom.abilities.checks.meddling import judges, meddled, run_by_checks
from greenroom.abilities.skills.talk.own import ended
from greenroom.abilities.tools.carded import CardedTool
from greenroom.abilities.tools.propose_plan import NAME as PLANS
from greenroom.app.checks.base_look import BaseLook
from greenroom.app.checks.checker import ProjectChecks
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.planning import Plan
from greenroom.app.checks.receipts import EDITS, base_report
from greenroom.app.checks.syntax import broken
from greenroom.app.checks.verdict import Delivered, Verdict, verdict
from greenroom.app.jobs.judging import Judges, put_back
from greenroom.app.jobs.place import History, Place
from greenroom.app.jobs.recording import TREE
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.checks import REPORT, Report, as_data
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import Step, Work

NAME: Final = "deliver"
UNFOLLOWED: Final = "What judges the work has too many files to follow all of them: one of the others may be changed."
UNCHANGED: Final = "It set out to change files, and none is different."
VERDICT: Final = "verdict"
RESTORED: Final = "restored"
"""What the old tests said of the new code, in the result."""

TRIES: Final = 3
"""How often an agent hears what is missing."""

SPEC: Final = ToolSpec(
    name=NAME,
    description="Hold what an agent says of its work against what ran. The house calls it when an agent is done.",
    parameters={"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]},
)


class Deliver(CardedTool):
    """Keyed: it runs checks again that were cut off, and changes nothing."""

    def __init__(
        self,
        place: Place,
        plan: Plan,
        checker: ProjectChecks,
        commands: Commands,
        history: History,
        *,
        judges: Judges | None = None,
    ) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._place = place
        self._plan = plan
        self._checker = checker
        self._commands = commands
        self._history = history
        self._judges = judges

    def targets(self, _: Data) -> tuple[Target, ...]:
        """The command lines of the checks: they run what an agent has written."""
        return tuple(Target(kind="command", value=one.line) for one in self._plan.run)

    async def run(self, bench: Bench) -> Outcome:
        """Run what has not run on this very tree, judge, and end the work or say what is missing."""
        said = str((bench.step.work.instruction_content or {}).get("said", ""))
        steps = list(await self._history(bench.world.team.team_id))
        tried = sum(one.work.executor == NAME and one.thread_id == bench.step.thread_id for one in steps) + 1
        delivered = await self._delivered(said)
        left = (*self._plan.left, *delivered.unfollowed)
        found = verdict(self._plan.run, steps, delivered, left=left)
        report: Report | None = None
        restored: Report | None = None
        if not await self._place.changes():
            found = _as_it_was(found, steps)
        elif self._plan.run and found.missing:
            report = await self._checker.run((), bench)
            steps.append(evolve(bench.step, state="finished", result={REPORT: as_data(report)}))
            found = verdict(self._plan.run, steps, delivered, left=left)
        if found.changed and not found.missing:
            found, restored = await self._judged_as_before(delivered, steps, bench)
        return Outcome(
            result=_result(found, report, restored, delivered.tree),
            intents=(_next(bench.step, delivered, found, tried, sums_up=bench.agent.spec.history.need_summary),),
            blobs=tuple(blob for one in (report, restored) if one is not None for blob in one.blobs),
        )

    async def _judged_as_before(
        self, delivered: Delivered, steps: Sequence[Step], bench: Bench
    ) -> tuple[Verdict, Report | None]:
        """What counts when everything that judges the work is as it was, and what the checks said then. Of several ways
        to put it back each has to hold."""
        found = verdict(self._plan.run, steps, delivered, left=self._plan.left)
        restored: Report | None = None
        for paths in put_back(await self._place.changes(), delivered.meddled) if self._judges is not None else ():
            restored = await self._restored(paths, bench)
            held = evolve(delivered, restored=restored if _same_commands(restored, base_report(steps)) else None)
            found = verdict(self._plan.run, steps, held, left=self._plan.left)
            if found.changed:
                break
        return found, restored

    async def _restored(self, paths: Sequence[str], bench: Bench) -> Report | None:
        if self._judges is None:
            return None
        async with self._judges(paths) as checker:
            return await checker.run((), bench)

    async def _delivered(self, said: str) -> Delivered:
        changes = await self._place.changes()
        every = await self._place.contents(changes)
        contents = [one for one in every if judges(one.path) or _readable(one.path)]
        look = BaseLook(FolderLook(Path(self._place.worktree.folder)), every)
        judging = await asyncio.to_thread(closure, self._plan.run, look, self._place.snapshot.within)
        folder = Path(self._place.folder)
        return Delivered(
            tree=await self._place.worktree.tree(),
            meddled=(*meddled([one for one in contents if judges(one.path)]), *run_by_checks(every, judging)),
            unfollowed=(UNFOLLOWED,) if judging.cut else (),
            broken=await broken(contents, self._commands),
            says=said,
            facts=Facts(exists=lambda path: _exists(folder, path)),
        )


def _as_it_was(found: Verdict, steps: Sequence[Step]) -> Verdict:
    """Where nothing was changed, there is nothing to check: an answer counts if nothing in it is untrue."""
    meant = any(_means_to_change(one) for one in steps)
    claims = (*found.claims, *((UNCHANGED,) if meant else ()))
    return evolve(found, state="unproven" if claims else "verified", missing=(), changed=(), claims=claims)


def _means_to_change(step: Step) -> bool:
    return step.work.executor in EDITS or (step.work.executor == PLANS and bool(_given(step).get("files")))


def _given(step: Step) -> Data:
    return step.work.instruction_content or {}


def _readable(path: str) -> bool:
    return path.endswith((".py", ".pyi", ".json", ".toml", ".yaml", ".yml", ".js", ".mjs", ".cjs"))


def _exists(folder: Path, path: str) -> bool:
    """Whether there is such a file; one that is named without its folder may lie anywhere."""
    if (folder / path).exists():
        return True
    return "/" not in path and next(folder.rglob(path), None) is not None


def _same_commands(restored: Report | None, base: Report | None) -> bool:
    """Whether the checks that ran beside the work mean what they meant on the base: else they prove nothing."""
    if restored is None or base is None:
        return False
    meant = {one.check: one.digest for one in base.checks}
    return all(meant.get(one.check) == one.digest for one in restored.checks)


def _result(found: Verdict, report: Report | None, restored: Report | None, tree: str) -> Data:
    told: dict[str, object] = {"output": spoken(found), TREE: tree, VERDICT: as_kept(found)}
    if report is not None:
        told[REPORT] = as_data(report)
    if restored is not None:
        told[RESTORED] = as_data(restored)
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
    if found.verified:
        return "Verified: every check ran on this tree, and nothing newly fails."
    parts = [
        *(("Not proven:", *(f"- {one}" for one in found.missing)) if found.missing else ()),
        *(("Changed by the work itself:", *(f"- {one}" for one in found.changed)) if found.changed else ()),
        *(("Said, and not so:", *(f"- {one}" for one in found.claims)) if found.claims else ()),
        "Mend what you can, and say the rest as it is. A test that you had to change: say which and why.",
    ]
    return "\n".join(parts)


def _next(step: Step, delivered: Delivered, found: Verdict, tried: int, *, sums_up: bool = False) -> Consequence:
    """The end, or another turn for an agent that can do something about it: without any check, it cannot. What is
    proven may still be summed up."""
    said = delivered.says
    if found.verified and sums_up:
        summary = Work(type="skill", executor="summarize", intention="Sum up the work.")
        return QueueSteps(agent_id=step.agent_id, works=(summary,), place="next")
    if found.verified:
        return ended(step, said, tuple(f"{one.check}: {one.outcome}, step {one.step}" for one in found.receipts))
    if tried < TRIES and (found.claims or found.changed or found.receipts or delivered.broken):
        again = Work(type="skill", executor="converse", intention="Mend what is missing.")
        return QueueSteps(agent_id=step.agent_id, works=(again,), place="next")
    why = "\n".join(f"- {one}" for one in (*found.missing, *found.changed, *found.claims))
    return ended(step, f"{said}\n\nNot verified:\n{why}".strip(), failed=True)
