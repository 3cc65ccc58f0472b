"""The merge queue: work is merged one entry at a time, checked in batches, and goes back to its author if it fails.

An entry is a step `merge` of the agent `merge-queue`. It only decides: the step `finish_merge` moves a branch.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from greenroom.abilities.skills.conversation.builtin_calls import build_finish
from greenroom.abilities.tools.tool import CardedTool, make_card
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.base.text import add_fence
from greenroom.core.ports.checks import (
    REPORT_KEY,
    WHOLE_CHECK,
    Check,
    CheckReport,
    CheckRun,
    report_from_data,
    report_to_data,
)
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import Target
from greenroom.core.ports.workspace import MAIN_THREAD, NO_CONTENTS, CommitInfo, Conflicts, StepCommit, Workspace
from greenroom.core.rules.intents import FinishSubtask, QueueSteps
from greenroom.core.state.stage import Subtask
from greenroom.core.state.step import Step, StepTerms, Work
from greenroom.core.state.team_state import TeamState
from greenroom.runs.checker import read_answer
from greenroom.runs.discovery import is_test
from greenroom.runs.verdict import (
    BASE_KEY,
    COMMIT_KEY,
    FAILURES_KEY,
    FAULTS_KEY,
    FINISH_MERGE,
    HAND_IN,
    INTEGRATED_KEY,
    MERGE,
    MERGE_QUEUE,
    PUT_OFF_KEY,
    SENT_BACK_KEY,
    SETTLE_MERGE,
    THREAD_KEY,
    ChangeFacts,
    Finding,
    decide_verdict,
    find_failing_old_tests,
)
from greenroom.teamwork.conflicts import ACCEPTED_KEY, CONFLICTS_KEY, ConflictRecord, FileMerge, has_markers
from greenroom.teamwork.hand_in import describe_conflicts, find_subtask, read_end
from greenroom.teamwork.ladder import BACK_KEY, add_conflicts, climb, to_data
from greenroom.teamwork.plan import TeamSettings
from greenroom.teamwork.symbols.conflicts import find_semantic_conflicts
from greenroom.teamwork.validation import find_syntax_fault

MAX_BATCH: Final = 16
"""Maximum entries that are checked together."""

UNCHECKED: Final = "built-in: merged without checks, which need an approval"
"""The rule of a merge whose checks may not run without a question."""

NO_FACTS: Final[Data] = {}
SECONDS_KEY: Final = "seconds"
TEXT_KEY: Final = "text"
"""The key of what an author reads, in the instruction of the step that gives its work back."""

TEST_WRITER: Final = "test-writer"

Failures: TypeAlias = frozenset[tuple[str, str]]
"""What fails now and not on the base: the names of a check and of a test."""

RunChecks: TypeAlias = Callable[[str, StepContext], Awaitable[CheckReport]]
"""Runs the checks on a commit, after the baseline."""


@record
class Judgement:
    """What is wrong with a tree: `failures` of checks, described by `findings`, or `faults` that need no check.

    Without a `report`, a tree with the same work and more was checked.
    """

    failures: Failures = frozenset()
    findings: tuple[Finding, ...] = ()
    report: CheckReport | None = None
    faults: tuple[str, ...] = ()
    conflicts: tuple[ConflictRecord, ...] = ()

    @property
    def is_bad(self) -> bool:
        return bool(self.failures or self.faults)


NO_FAILURES: Final[Failures] = frozenset()
NOT_CHECKED: Final = Judgement()


@dataclass(slots=True, kw_only=True)
class MergeQueue:
    """What the merges of one run share in this process: judgements by tree, failures that are put off, and the `paths`
    of the last commit at which work started."""

    run: str
    workspace: Workspace
    settings: TeamSettings
    checks: Sequence[Check]
    base: Mapping[str, CheckRun]
    describe: Callable[[Finding], str]
    list_steps: Callable[[], Awaitable[Sequence[Step]]]
    asks_person: bool = False
    known: dict[str, Judgement] = field(default_factory=dict)
    put_off: Failures = frozenset()
    is_resumed: bool = False
    paths: tuple[str, Sequence[str]] = ("", ())

    def load(self, steps: Sequence[Step]) -> None:
        """Load what a former process has put off."""
        results = [step.result or {} for step in steps]
        self.put_off |= {(str(name), str(test)) for result in results for name, test in _read_pairs(result)}
        self.is_resumed = any(INTEGRATED_KEY in result for result in results)

    async def merge(
        self, state: TeamState, step: Step, onto: str, contents: Mapping[str, bytes | None] = NO_CONTENTS
    ) -> StepCommit | Conflicts:
        """Merge the work of an entry onto a commit. `contents` are files that would conflict."""
        info = self.build_info(step, find_subtask(state, step))
        return await self.workspace.merge(self.run, read_thread(step), onto, info, contents, tip=read_commit(step))

    def build_info(self, step: Step, subtask: Subtask) -> CommitInfo:
        """Return the author of the commit that an entry makes. The key finds it again."""
        return CommitInfo(
            run=self.run,
            key=f"{self.run}/{step.step_id}",
            task=step.task_id,
            agent=subtask.agent,
            step=step.step_id,
            summary=subtask.title or subtask.name,
        )

    async def look_ahead(self, state: TeamState, step: Step, first: StepCommit) -> dict[str, StepCommit]:
        """Merge the entries that wait behind this one on top of it, in order, without those that conflict.

        Return the commits by the name of the subtask.
        """
        tip, chain = first.commit, {find_subtask(state, step).name: first}
        for other in list_waiting(state, step)[: MAX_BATCH - 1] if self.checks else ():
            merged = await self.merge(state, other, tip)
            if isinstance(merged, StepCommit) and merged.commit:
                tip, chain[find_subtask(state, other).name] = merged.commit, merged
        return chain

    def explain(self, judged: Judgement) -> list[str]:
        """Return what is wrong, in sentences for the author."""
        return [*judged.faults, *map(self.describe, judged.findings)]

    def judge(self, report: CheckReport) -> Judgement:
        """Judge a tree by a report on it."""
        verdict = decide_verdict(self.checks, self.base, report, ChangeFacts())
        findings = verdict.reasons if verdict.state == "failed" else ()
        failures = {(found.check, test) for found in findings for test in found.tests or (WHOLE_CHECK,)}
        return Judgement(failures=frozenset(failures), findings=findings, report=report)

    async def inspect(self, subtask: Subtask, step: Step, main: str, merged: str) -> Judgement:
        """Judge merged work without checks: the syntax of its files, and whether it fits what came before it."""
        workspace = self.workspace
        tip = read_commit(step) or await workspace.tip(self.run, read_thread(step))
        fork = await workspace.find_fork(self.run, tip, main)
        own = await self._list_changed(fork, tip)
        others = await self._list_changed(fork, main) if fork != main else set[str]()
        versions = [await self._read_all(commit, own | others) for commit in (fork, main, tip, merged)]
        marked = (path for path in sorted(own) if has_new_markers(path, versions[0], versions[3]))
        faults = [translate("conflicts.markers_left", path=path) for path in marked]
        if self.settings.validate_syntax:
            faults += await asyncio.to_thread(find_broken_files, versions[0], versions[3], own)
        if not others or faults:
            return Judgement(faults=tuple(faults))
        loop = asyncio.get_running_loop()
        if self.paths[0] != fork:  # what neither side has changed is there as it was
            self.paths = (fork, await workspace.list_paths(fork))
        rest = [path for path in self.paths[1] if path not in own | others]
        found = await asyncio.to_thread(
            find_semantic_conflicts,
            *versions,
            paths=rest,
            read=lambda path: asyncio.run_coroutine_threadsafe(workspace.read(merged, path), loop).result(),
            authors=(translate("conflicts.merged_work"), subtask.name),
        )
        conflicts = [
            ConflictRecord(
                type=item.kind,
                involved_agents=(subtask.agent,),
                description=item.sentence,
                severity="high",
                path=item.right.path,
                subtasks=(MAIN_THREAD, subtask.name),
                rung="author",
                state="sent back",
            )
            for item in found
        ]
        return Judgement(faults=tuple(item.sentence for item in found), conflicts=tuple(conflicts))

    async def _list_changed(self, base: str, tip: str) -> set[str]:
        changes = (await self.workspace.diff(base, tip, limit=0)).changes
        return {path for change in changes for path in (change.path, change.before) if path}

    async def _read_all(self, commit: str, paths: Iterable[str]) -> dict[str, bytes]:
        found = {path: await self.workspace.read(commit, path) for path in sorted(paths)}
        return {path: content for path, content in found.items() if content is not None}

    def may_put_off(self, state: TeamState, subtask: Subtask, judged: Judgement) -> bool:
        """Return whether others can still mend this: only tests fail, and those that are older than the change are
        likely to be changed by a subtask that has not ended. New ones are mended when the whole is verified."""
        kinds = {check.name: check.kind for check in self.checks}
        if judged.faults or any(kinds[name] != "test" or test == WHOLE_CHECK for name, test in judged.failures):
            return False
        others = [part for stage in state.stages.values() for part in stage.subtasks if part is not subtask]
        writers = [part for part in others if part.state in ("init", "running") and writes_tests(state, part)]
        return bool(writers) or not find_failing_old_tests(judged.report, self.base)


def has_new_markers(path: str, before: Mapping[str, bytes], merged: Mapping[str, bytes]) -> bool:
    """Return whether a file has conflict markers that were not there before."""
    old, new = (found.get(path, b"").decode(errors="replace") for found in (before, merged))
    return has_markers(new) and not has_markers(old)


def find_broken_files(before: Mapping[str, bytes], merged: Mapping[str, bytes], paths: Iterable[str]) -> list[str]:
    """Return a sentence for each of these files whose syntax is broken, but was not before."""
    faults = {path: find_syntax_fault(path, merged[path]) for path in sorted(paths) if path in merged}
    return [
        translate("teams.bad_syntax", path=path, why=why)
        for path, why in faults.items()
        if why and not (path in before and find_syntax_fault(path, before[path]))
    ]


def _read_pairs(result: Data) -> Sequence[Sequence[object]]:
    pairs = result.get(PUT_OFF_KEY)
    return pairs if isinstance(pairs, list) else ()


def writes_tests(state: TeamState, subtask: Subtask) -> bool:
    """Return whether a subtask is expected to write tests."""
    agent = state.agents.get(subtask.agent)
    is_writer = agent is not None and agent.spec.name == TEST_WRITER
    return is_writer or any(is_test(pattern.replace("*", "x")) for pattern in subtask.writes)


def read_thread(step: Step) -> str:
    """Return the thread with the work of an entry."""
    return str((step.work.instruction_content or {})["thread"])


def read_commit(step: Step) -> str:
    """Return the commit that was handed in; empty in an entry of an earlier version: it merges what its thread has."""
    return str((step.work.instruction_content or {}).get(COMMIT_KEY, ""))


def list_waiting(state: TeamState, step: Step) -> list[Step]:
    """Return the entries behind this one in the queue, in their order."""
    waiting = [other for other in state.steps_of(MERGE_QUEUE) if other.work.executor == MERGE and other.state == "init"]
    return [other for other in waiting if other is not step and find_subtask(state, other).state == "running"]


def will_report_again(state: TeamState, step: Step, subtask: Subtask) -> bool:
    """Return whether a newer report of the subtask waits, or its author still works: a message came meanwhile."""
    if any(find_subtask(state, other) is subtask for other in list_waiting(state, step)):
        return True
    own = [other for other in state.steps_of(subtask.agent) if other.subtask_id == subtask.subtask_id]
    return any(other.work.type == "skill" or other.work.executor == HAND_IN for other in own)


async def find_first_bad(count: int, is_bad: Callable[[int], Awaitable[bool]]) -> int:
    """Return the place of the first bad one, or `count` if all are good. What follows a bad one is bad too."""
    if not count or not await is_bad(count - 1):
        return count
    good, bad = -1, count - 1
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if await is_bad(middle) else (middle, bad)
    return bad


class MergeTool(CardedTool):
    """Merges the work of one subtask, or sends it back to its author. `run_checks` runs them as in its worktree."""

    card = make_card(MERGE, "Merge handed-in work.", {"type": "object"}, group="command", effect="keyed")

    def __init__(self, queue: MergeQueue, run_checks: RunChecks) -> None:
        self._queue = queue
        self._run_checks = run_checks

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return the command lines of the checks: they run what agents have written."""
        return tuple(Target(kind="command", value=check.line) for check in self._queue.checks)

    async def run(self, context: StepContext) -> Outcome:
        """Decide about the work: let it be merged, or send it back. If the subtask is over, nothing happens."""
        step, subtask = context.step, find_subtask(context.state, context.step)
        if subtask.state != "running":
            return _end({"output": f"Not merged: {subtask.name} is over."})
        if will_report_again(context.state, step, subtask):
            return _end({"output": f"Not merged yet: {subtask.agent} goes on, and reports again."})
        try:
            return await self._merge(context, subtask, time.monotonic())
        except WorldFault as fault:
            return _break(step, fault)

    async def _merge(self, context: StepContext, subtask: Subtask, began: float) -> Outcome:
        queue, step = self._queue, context.step
        main = await queue.workspace.tip(queue.run, MAIN_THREAD)
        merged = await queue.merge(context.state, step, main)
        if not isinstance(merged, Conflicts):
            return await self._deliver(context, subtask, merged, main, began)
        files, outcome = await climb(context, queue.workspace, queue.settings, await queue.list_steps(), merged)
        if (advice := (step.work.instruction_content or {}).get(BACK_KEY)) is not None:
            outcome = await self._return_conflict(step, subtask, files, str(advice))
        if outcome is None:
            contents = {file.file.path: file.content for file in files}
            merged = await queue.merge(context.state, step, main, contents)
            if isinstance(merged, Conflicts):
                return _fail(step, "\n".join(describe_conflicts(merged)))
            outcome = await self._deliver(context, subtask, merged, main, began, contents)
        return await add_conflicts(context, outcome, files)

    async def _deliver(
        self,
        context: StepContext,
        subtask: Subtask,
        merged: StepCommit,
        main: str,
        began: float,
        contents: Mapping[str, bytes | None] = NO_CONTENTS,
    ) -> Outcome:
        """Judge merged work, and let the integration branch advance to it, or send it back."""
        queue, step = self._queue, context.step
        if merged.commit in ("", main):  # a process of an earlier version was killed, or there was nothing to merge
            return _finish(step, main)
        is_accepted = bool((step.work.instruction_content or {}).get(ACCEPTED_KEY))
        judged, facts = await queue.inspect(subtask, step, main, merged.commit), NO_FACTS
        if is_accepted or not judged.is_bad:
            judged, facts = await self._judge(context, merged, main)
        if judged.is_bad and not is_accepted:
            facts = {**facts, FAILURES_KEY: _list_pairs(judged.failures), FAULTS_KEY: list(judged.faults)}
            facts = {**facts, **({CONFLICTS_KEY: to_data(judged.conflicts)} if judged.conflicts else {})}
            number = await _count_rounds(context, subtask)
            if number < queue.settings.max_rounds:
                facts = {**facts, SENT_BACK_KEY: number + 1}
                return await self._send_back(context.step, subtask, judged, facts, contents)
            if not queue.may_put_off(context.state, subtask, judged):
                return self._give_up(step, " ".join(queue.explain(judged)), facts)
        if judged.failures:
            queue.put_off |= judged.failures
            facts = {**facts, PUT_OFF_KEY: [*_read_pairs(facts), *_list_pairs(judged.failures)]}
        move = {THREAD_KEY: MAIN_THREAD, COMMIT_KEY: merged.commit, SECONDS_KEY: round(time.monotonic() - began, 3)}
        said = "Merged, although checks fail: the end of the run judges them." if judged.failures else "Checked."
        return _end({"output": said, **facts}, _queue_move(step, move))

    async def _judge(self, context: StepContext, merged: StepCommit, main: str) -> tuple[Judgement, Data]:
        """Judge the entry together with those behind it, and find the first one that is guilty.

        What fails on `main` already, as a later entry of its batch was not merged, is put off. Return the judgement
        without what is put off, and facts for the step's result.
        """
        queue, ran, blameless = self._queue, list[CheckReport](), NO_FAILURES
        chain, terms = {"": merged}, context.step.terms
        may_check = queue.checks and not (terms is not None and terms.rule == UNCHECKED)
        if may_check and merged.tree not in queue.known:
            chain = await queue.look_ahead(context.state, context.step, merged)
            commits = list(chain.values())

            async def check(commit: str, tree: str) -> Failures:
                ran.append(await self._run_checks(commit, context))
                queue.known[tree] = queue.judge(ran[-1])
                return queue.known[tree].failures

            async def is_bad(place: int) -> bool:
                commit, tree = commits[place].commit, commits[place].tree
                known = queue.known.get(tree)
                return bool((await check(commit, tree) if known is None else known.failures) - queue.put_off)

            for commit in commits[: await find_first_bad(len(commits), is_bad)]:
                queue.known.setdefault(commit.tree, Judgement())
            tree = await queue.workspace.tree(main)
            guess = queue.known.get(tree, NOT_CHECKED if queue.is_resumed else None)
            if await is_bad(0) and guess is not None and guess.report is None:
                blameless = await check(main, tree)
                queue.put_off |= blameless
        judged = queue.known.get(merged.tree, Judgement())
        facts: dict[str, object] = {"checks_run": len(ran)} | ({"batch": list(chain)} if len(chain) > 1 else {})
        facts |= {PUT_OFF_KEY: _list_pairs(blameless)} if blameless else {}
        good = [report for report in ran if not queue.known[report.tree].failures - queue.put_off]
        if report := judged.report or next(iter(good), None):
            facts[REPORT_KEY] = report_to_data(report)
        return evolve(judged, failures=judged.failures - queue.put_off), facts

    async def _send_back(
        self, step: Step, subtask: Subtask, judged: Judgement, facts: Data, contents: Mapping[str, bytes | None]
    ) -> Outcome:
        """Give the author its work with what is merged by now, and the failures."""
        explained = self._queue.explain(judged)
        excerpts = [entry.excerpt for entry in judged.report.checks if entry.excerpt] if judged.report else []
        lines = (translate("teams.merge_failed"), *explained)
        facts = {**facts, "output": f"Sent back: {' '.join(explained)}", "guilty": subtask.name}
        return await self._return(step, subtask, contents, lines, (*map(add_fence, excerpts),), facts)

    async def _return_conflict(self, step: Step, subtask: Subtask, files: Sequence[FileMerge], advice: str) -> Outcome:
        """Give a conflict to the author of the work, with both versions and a person's advice."""
        drafts = {file.file.path: file.draft for file in files}
        told = translate("conflicts.sent_back", paths=", ".join(drafts))
        return await self._return(step, subtask, drafts, (told,), (advice,), {"output": f"Sent back: {advice}"})

    async def _return(
        self,
        step: Step,
        subtask: Subtask,
        contents: Mapping[str, bytes | None],
        before: Sequence[str],
        after: Sequence[str],
        facts: Data,
    ) -> Outcome:
        """Merge what is merged by now into the author's work. Between two texts, the author reads what conflicts."""
        queue, thread = self._queue, read_thread(step)
        info = queue.build_info(step, subtask)
        info = evolve(info, key=f"{info.key}/back", summary="Bring in what is merged")
        main, tip = [await queue.workspace.tip(queue.run, name) for name in (MAIN_THREAD, thread)]
        brought = await queue.workspace.merge(queue.run, MAIN_THREAD, tip, info, contents, tip=main)
        clashes = describe_conflicts(brought) if isinstance(brought, Conflicts) else ()
        text = "\n".join((*before, *clashes, *after))
        if isinstance(brought, Conflicts) or not brought.commit:
            return _send(step, subtask, text, facts)
        move = {THREAD_KEY: thread, COMMIT_KEY: brought.commit, BASE_KEY: main, TEXT_KEY: text}
        return _end(facts, _queue_move(step, move))

    def _give_up(self, step: Step, why: str, facts: Data) -> Outcome:
        """Ask a person about work that fails after all rounds. Without one, the subtask fails."""
        if not self._queue.asks_person:
            return _fail(step, why, facts)
        order = {**(step.work.instruction_content or {}), "why": why}
        work = Work(type="tool", executor=SETTLE_MERGE, intention="Decide about a merge.", instruction_content=order)
        return _end({**facts, "output": f"A person decides: {why}"}, QueueSteps(agent_id=MERGE_QUEUE, works=(work,)))


class FinishMergeTool(CardedTool):
    """Moves a thread to a merge that is decided: the integration branch, or the work that goes back to its author.

    If a process was killed after that, nothing is moved again.
    """

    card = make_card(FINISH_MERGE, "Move a branch.", {"type": "object"}, group="edit", effect="keyed")

    def __init__(self, queue: MergeQueue) -> None:
        self._queue = queue

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return nothing: it moves only branches of the run."""
        return ()

    async def run(self, context: StepContext) -> Outcome:
        """Move the thread, then end the subtask or let its author go on. If the subtask is over, nothing happens."""
        step, subtask = context.step, find_subtask(context.state, context.step)
        if subtask.state != "running":
            return _end({"output": f"Not merged: {subtask.name} is over."})
        order = step.work.instruction_content or {}
        thread, commit = str(order[THREAD_KEY]), str(order[COMMIT_KEY])
        facts = {name: order[name] for name in (COMMIT_KEY, THREAD_KEY, BASE_KEY) if name in order}
        try:
            await self._queue.workspace.advance(self._queue.run, thread, commit)
        except WorldFault as fault:
            if thread == MAIN_THREAD:
                return _break(step, fault)
            facts = {}  # its author has committed meanwhile, and goes on with that
        if thread == MAIN_THREAD:
            return _finish(step, commit, {SECONDS_KEY: order.get(SECONDS_KEY, 0)})
        return _send(step, subtask, str(order[TEXT_KEY]), facts)


class SettleTool(CardedTool):
    """Asks a person what becomes of work that cannot be merged."""

    card = make_card(SETTLE_MERGE, "Ask a person about a merge.", {"type": "object"}, group="human")

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Ask: `merge`, `drop`, or `back` with advice."""
        subtask, order = find_subtask(state, step), step.work.instruction_content or {}
        question = translate("teams.ask_merge", name=subtask.name, agent=subtask.agent, why=order.get("why", ""))
        return StepTerms(effect="pure", verdict="ask", words=True, question=question, digest=step.step_id)

    async def run(self, context: StepContext) -> Outcome:
        """Queue the work again, give it back with the person's words, or end its subtask."""
        step, subtask = context.step, find_subtask(context.state, context.step)
        order = {**(step.work.instruction_content or {})}
        why, (word, _, advice) = str(order.pop("why", "")), read_answer(context).strip().partition(" ")
        match word.lower().strip(".,:"):
            case "drop":
                return _fail(step, why)
            case "merge" | "":
                work = Work(type="tool", executor=MERGE, instruction_content={**order, ACCEPTED_KEY: True})
                return _end({"output": "Merged anyway."}, QueueSteps(agent_id=MERGE_QUEUE, works=(work,)))
            case _:
                advice = advice if word.lower() == "back" else f"{word} {advice}"
                text = "\n".join((translate("teams.merge_failed"), why, advice))
                return _send(step, subtask, text, {"output": advice})


async def _count_rounds(context: StepContext, subtask: Subtask) -> int:
    """Return how often the work of this attempt went back to its author."""
    ended = [step.ended_at or 0 for step in await context.history() if SENT_BACK_KEY in (step.result or {})]
    return sum(at >= (subtask.started_at or 0) for at in ended)


def _list_pairs(failures: Failures) -> list[list[str]]:
    return [list(pair) for pair in sorted(failures)]


def _send(step: Step, subtask: Subtask, text: str, result: Data) -> Outcome:
    """Let the author of the work go on with this text."""
    work = Work(type="skill", executor="converse", intention="Mend what fails.", text_content=text)
    return _end(result, QueueSteps(agent_id=subtask.agent, works=(work,)))


def _finish(step: Step, commit: str, facts: Data = NO_FACTS) -> Outcome:
    """End the subtask of merged work as its hand-in reported it."""
    end = read_end(step)
    return _end({"output": end.summary, INTEGRATED_KEY: commit, **facts}, end)


def _fail(step: Step, why: str, facts: Data = NO_FACTS) -> Outcome:
    """End the subtask as failed: its work is not merged."""
    end = read_end(step)
    return _end({**facts, "output": why}, evolve(end, state="failed", summary=f"{why}\n{end.summary}", final=True))


def _break(step: Step, fault: WorldFault) -> Outcome:
    """End the subtask as failed: git could not merge its work."""
    return Outcome(state="failed", error=str(fault), intents=(build_finish(step, str(fault), failed=True),))


def _queue_move(step: Step, move: Data) -> QueueSteps:
    """Return the step that moves a thread, before any other entry is merged."""
    order = {**(step.work.instruction_content or {}), **move}
    work = Work(type="tool", executor=FINISH_MERGE, intention=f"Move {move[THREAD_KEY]}.", instruction_content=order)
    return QueueSteps(agent_id=MERGE_QUEUE, works=(work,), place="next")


def _end(result: Data, *intents: QueueSteps | FinishSubtask) -> Outcome:
    report = report_from_data(result.get(REPORT_KEY))
    return Outcome(result=result, intents=intents, blobs=report.blobs if report is not None else ())
