"""The merge queue: every guilty entry is found, the others are merged in their order, with few checks."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.base.ids import AgentId, SubtaskId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.checks import Check, CheckComparison, CheckReport, CheckResult, CheckRun
from greenroom.core.ports.executor import StepContext
from greenroom.core.rules import intents as i
from greenroom.core.rules.queue import next_step
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepEnded, Work
from greenroom.runs.verdict import INTEGRATED_KEY, MERGE_QUEUE, PUT_OFF_KEY, SENT_BACK_KEY, SETTLE_MERGE
from greenroom.teamwork.hand_in import build_entry
from greenroom.teamwork.merge_queue import (
    FinishMergeTool,
    MergeQueue,
    MergeTool,
    SettleTool,
    find_first_bad,
)
from greenroom.teamwork.plan import TeamSettings
from tests.core.house import S1, T1, House

RUN = "team"
NOTHING: Mapping[str, str] = {}
CHECK = Check(name="fake", line="true", kind="test", why="")
BASE = CheckRun(check="fake", digest="", outcome="passed", tests={"old": "passed"}, passed=1)
Judge = Callable[[dict[str, str]], set[str]]
"""Returns the tests that fail with these files."""


def git(root: Path, *words: str, stdin: str = "") -> str:
    done = subprocess.run(("git", *words), cwd=root, check=True, capture_output=True, text=True, input=stdin)
    return done.stdout.strip()


def author(number: int) -> AgentId:
    return AgentId(f"writer-{number}")


def find_bad(files: dict[str, str]) -> set[str]:
    return {name for name, text in files.items() if text == "bad"}


@dataclass
class Queue:
    """A team whose writers have all handed in a file of their own, in a real repository."""

    root: Path
    house: House
    queue: MergeQueue
    judge: Judge = find_bad
    checked: list[frozenset[str]] = field(default_factory=list)

    @classmethod
    async def make(
        cls, folder: Path, files: Sequence[str | dict[str, str]], base: Mapping[str, str] = NOTHING, **settings: object
    ) -> Queue:
        """Hand in a file with each of these contents, in order: `1.txt`, `2.txt` … or these files."""
        root = folder / "repository"
        root.mkdir(parents=True)
        git(root, "init", "-q", "-b", "main")
        for key, value in (("user.name", "You"), ("user.email", "you@localhost")):
            git(root, "config", key, value)
        for name, text in base.items():
            (root / name).write_text(text)
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "base")
        workspace = await GitWorkspace.find(root, folder / "cache")
        await workspace.snapshot(RUN)
        queue = MergeQueue(
            run=RUN,
            workspace=workspace,
            settings=evolve(TeamSettings(), **settings),
            checks=(CHECK,),
            base={"fake": BASE},
            describe=lambda finding: f"{finding.check} fails: {', '.join(finding.tests)}",
            list_steps=_list_no_steps,
            asks_person=True,
        )
        play = cls(root, _build_house(len(files)), queue)
        for number, given in enumerate(files, 1):
            play.commit(number, given if isinstance(given, dict) else {f"{number}.txt": given})
            play.hand_in(number)
        return play

    def commit(self, number: int, files: dict[str, str]) -> None:
        """Commit files on the thread of a writer."""
        ref = f"refs/greenroom/{RUN}/code-{number}"
        known = git(self.root, "for-each-ref", "--format=%(objectname)", ref)
        first = known or git(self.root, "rev-parse", f"refs/greenroom/{RUN}/@base")
        lines = [f"commit {ref}", "committer w <w@localhost> 1700000000 +0000", "data 4", "work", f"from {first}"]
        for name, text in files.items():
            lines += [f"M 100644 inline {name}", f"data {len(text)}", text]
        git(self.root, "fast-import", "--quiet", "--force", stdin="\n".join((*lines, "")))

    def hand_in(self, number: int) -> None:
        """Let the next step of a writer hand its work in."""
        agent = author(number)
        step = self.house.start(agent)
        end = i.FinishSubtask(subtask_id=SubtaskId(f"{S1}.{number}"), stage_id=S1, summary=f"did {number}")
        tip = git(self.root, "rev-parse", f"refs/greenroom/{RUN}/code-{number}")
        self.house.finish(agent, build_entry(step, f"code-{number}", tip, end))

    async def run(self) -> None:
        """Merge what is queued, one after the other."""
        while step := next_step(self.house.state, MERGE_QUEUE):
            await self.run_step(step)

    async def run_step(self, step: Step, answer: str = "") -> None:
        tools = (SettleTool(), MergeTool(self.queue, self.check), FinishMergeTool(self.queue))
        tool = next(tool for tool in tools if tool.name == step.work.executor)
        terms = evolve(tool.terms(self.house.state, step), verdict="allow")
        self.house.do(i.StartStep(step_id=step.step_id, terms=terms, work=step.work), by=MERGE_QUEUE)
        outcome = await tool.run(self.context(step, answer))
        self.house.finish(MERGE_QUEUE, *outcome.intents, result=outcome.result)

    def context(self, step: Step, answer: str = "") -> StepContext:
        house = self.house

        async def history() -> list[Step]:
            ended = [event for event in house.log if isinstance(event, StepEnded)]
            own = [event for event in ended if event.thread_id == step.thread_id]
            return [cast("Step", SimpleNamespace(result=event.result, ended_at=event.at)) for event in own]

        name, running = "asked", house.state.steps[step.step_id]
        approvals = {name: SimpleNamespace(reason=answer)}
        state = SimpleNamespace(
            stages=house.state.stages,
            agents=house.state.agents,
            steps_of=house.state.steps_of,
            find_subtask=house.state.find_subtask,
            steps={step.step_id: evolve(running, approval=name)},
            approvals=approvals,
        )
        return cast("StepContext", SimpleNamespace(step=running, state=state, history=history))

    async def check(self, commit: str, _: StepContext) -> CheckReport:
        """Run the fake check."""
        workspace = self.queue.workspace
        paths = await workspace.list_paths(commit)
        files = {path: (await workspace.read(commit, path) or b"").decode() for path in paths}
        self.checked.append(frozenset(files))
        bad = tuple(sorted(self.judge(files)))
        tree = await workspace.tree(commit)
        entry = CheckResult(
            check="fake",
            kind="test",
            digest="",
            outcome="failed" if bad else "passed",
            tree=tree,
            passed=1,
            excerpt="".join(f"{name} is bad\n" for name in bad),
            compared=CheckComparison(new=bad),
        )
        return CheckReport(tree=tree, checks=(entry,), fresh=True)

    @property
    def results(self) -> list[dict[str, object]]:
        """The results of the merges, in their order."""
        ended = [event for event in self.house.log if isinstance(event, StepEnded)]
        return [dict(event.result or {}) for event in ended if event.step_id.startswith(MERGE_QUEUE)]

    @property
    def guilty(self) -> list[object]:
        return [result["guilty"] for result in self.results if SENT_BACK_KEY in result]

    @property
    def merged(self) -> list[str]:
        """The files on main, in the order of their merges."""
        ref = f"refs/greenroom/{RUN}/main"
        if not git(self.root, "for-each-ref", ref):
            return []
        found = git(self.root, "log", "--first-parent", "--reverse", "--format=%s", ref)
        return [line.removeprefix("one-") for line in found.splitlines() if line.startswith("one-")]

    def state(self, number: int) -> str:
        subtask = self.house.state.stages[S1].find_subtask(SubtaskId(f"{S1}.{number}"))
        assert subtask is not None
        return subtask.state


async def _list_no_steps() -> list[Step]:
    return []


def _build_house(count: int) -> House:
    house = House.furnished()
    house.do(*(i.AddAgent(agent_id=author(n), spec=AgentSpec(name="code-writer")) for n in range(1, count + 1)))
    house.do(i.AddAgent(agent_id=MERGE_QUEUE, spec=AgentSpec(name="q", kind="system", tools=("merge",))))
    names = tuple(author(n) for n in range(1, count + 1))
    house.do(i.AddParticipants(task_id=T1, agents=(*names, MERGE_QUEUE)))
    subtasks = tuple(i.SubtaskPlan(name=f"one-{n}", duty="do", agent=name) for n, name in enumerate(names, 1))
    house.do(i.AddStages(task_id=T1, stages=(i.StagePlan(intention="all", subtasks=subtasks),)), by=AgentId("boss"))
    return house.assign(S1)


@pytest.mark.req("RC-81")
@pytest.mark.parametrize(
    ("count", "bad", "most"),
    [
        (30, [3, 11, 12, 30], 25),
        pytest.param(100, [3, 11, 12, 27, 40, 41, 42, 66, 90, 100], 60, marks=pytest.mark.prove),
    ],
)
async def test_entries_with_guilty_ones_take_few_checks_and_keep_their_order(
    tmp_path: Path, count: int, bad: list[int], most: int
) -> None:
    play = await Queue.make(tmp_path, ["bad" if n in bad else "good" for n in range(1, count + 1)])
    await play.run()
    good = [str(n) for n in range(1, count + 1) if n not in bad]
    assert play.merged == good
    assert play.guilty == [f"one-{n}" for n in bad]
    print(f"\n{count} entries, {len(bad)} guilty: {len(play.checked)} checks until all others are merged")
    for number in bad:
        assert "is bad" in play.house.last(author(number)).work.text_content
        play.commit(number, {f"{number}.txt": "mended"})
        play.hand_in(number)
    await play.run()
    assert play.merged == [*good, *map(str, bad)]
    assert {play.state(n) for n in range(1, count + 1)} == {"finished"}
    print(f"{len(play.checked)} checks in all")
    assert len(play.checked) <= most
    tip = await play.queue.workspace.tip(RUN, "main")
    assert [result[INTEGRATED_KEY] for result in play.results if INTEGRATED_KEY in result][-1] == tip


async def test_of_two_that_fail_only_together_the_later_one_is_guilty(tmp_path: Path) -> None:
    play = await Queue.make(tmp_path, ["a", "good", "b", "good"])
    play.judge = lambda files: {"both"} if {"a", "b"} <= set(files.values()) else set()
    await play.run()
    assert (play.guilty, play.merged) == (["one-3"], ["1", "2", "4"])
    assert git(play.root, "show", f"refs/greenroom/{RUN}/code-3:1.txt") == "a", "its worktree has the other one now"


async def test_an_entry_is_not_guilty_of_what_was_merged_because_a_later_one_would_mend_it(tmp_path: Path) -> None:
    entries = [{"1.txt": "breaks"}, {"2.txt": "mends", "b.py": "def broken(:\n"}, {"3.txt": "good"}]
    play = await Queue.make(tmp_path, entries)
    play.judge = lambda files: {"old"} if "breaks" in files.values() and "mends" not in files.values() else set()
    await play.run()
    assert (play.guilty, play.merged) == (["one-2"], ["1", "3"])
    assert play.queue.put_off == {("fake", "old")}, "main fails already"


def go_on(play: Queue, number: int) -> None:
    """Let an author go on in its subtask: it has got a message."""
    threads = [event.thread_id for event in play.house.log if isinstance(event, StepEnded)]
    thread = next(thread for thread in threads if thread.startswith(author(number)))
    works = (Work(type="skill", executor="converse"),)
    play.house.do(i.QueueSteps(agent_id=author(number), works=works, task_id=T1, thread_id=thread), by=MERGE_QUEUE)


async def test_work_is_merged_when_its_author_has_ended_and_only_as_it_reports_last(tmp_path: Path) -> None:
    play = await Queue.make(tmp_path, ["bad", "good"])
    go_on(play, 1)
    play.commit(1, {"1.txt": "half done"})
    await play.run()
    assert (play.merged, play.state(1)) == (["2"], "running"), "it reports again"
    play.hand_in(1)
    play.commit(1, {"1.txt": "not reported"})
    await play.run()
    assert git(play.root, "show", f"refs/greenroom/{RUN}/main:1.txt") == "half done"
    assert play.state(1) == "finished"


async def test_of_two_reports_only_the_newer_one_is_merged(tmp_path: Path) -> None:
    play = await Queue.make(tmp_path, ["bad"])
    go_on(play, 1)
    play.commit(1, {"1.txt": "good", "late.txt": "late"})
    play.hand_in(1)
    await play.run()
    assert (play.guilty, play.merged, play.state(1)) == ([], ["1"], "finished")
    assert git(play.root, "show", f"refs/greenroom/{RUN}/main:late.txt") == "late"


async def test_the_next_process_blames_none_for_what_main_fails(tmp_path: Path) -> None:
    entries = [{"1.txt": "breaks"}, {"2.txt": "mends", "b.py": "def broken(:\n"}, {"3.txt": "good"}, {"4.txt": "good"}]
    for steps in (2, 5):
        play = await Queue.make(tmp_path / str(steps), entries)
        play.judge = lambda files: {"old"} if "breaks" in files.values() and "mends" not in files.values() else set()
        for _ in range(steps):
            step = next_step(play.house.state, MERGE_QUEUE)
            assert step is not None
            await play.run_step(step)
        play.queue.known, play.queue.put_off = {}, frozenset()
        play.queue.load([cast("Step", SimpleNamespace(result=result)) for result in play.results])
        await play.run()
        assert (play.guilty, play.merged) == (["one-2"], ["1", "3", "4"])


async def test_what_goes_back_too_often_is_decided_by_a_person(tmp_path: Path) -> None:
    play = await Queue.make(tmp_path, ["bad", "bad", "bad", "good"], max_rounds=1)
    play.judge = lambda files: {"old"} if "bad" in files.values() else set()
    await play.run()
    for number in (1, 2, 3):
        play.hand_in(number)
    while (step := next_step(play.house.state, MERGE_QUEUE)) and step.work.executor != SETTLE_MERGE:
        await play.run_step(step)
    assert (len(play.guilty), play.merged) == (3, ["4"])
    for answer in ("drop", "back write it so", "merge"):
        step = next(step for step in play.house.state.steps_of(MERGE_QUEUE) if step.work.executor == SETTLE_MERGE)
        assert "fake fails: old" in SettleTool().terms(play.house.state, step).question
        await play.run_step(step, answer)
    assert (play.state(1), play.state(2)) == ("failed", "running")
    assert play.house.last(author(2)).work.text_content.endswith("write it so")
    await play.run()
    assert (play.state(3), play.merged) == ("finished", ["4", "3"])
    assert [result[PUT_OFF_KEY] for result in play.results if PUT_OFF_KEY in result] == [[["fake", "old"]]]
    play.hand_in(2)
    await play.run()
    assert play.merged == ["4", "3", "2"], "what main has already does not count against others"


async def test_without_a_person_it_fails_after_the_last_round(tmp_path: Path) -> None:
    play = await Queue.make(tmp_path, ["bad"], max_rounds=0)
    play.queue.asks_person, play.judge = False, lambda _: {"old"}
    await play.run()
    assert (play.state(1), play.merged) == ("failed", [])


async def test_tests_that_are_new_are_put_off_and_loaded_by_the_next_process(tmp_path: Path) -> None:
    play = await Queue.make(tmp_path, ["bad", "good"], max_rounds=0)
    await play.run()
    assert (play.merged, set(play.queue.put_off)) == (["1", "2"], {("fake", "1.txt")})
    assert any("although checks fail" in str(result.get("output")) for result in play.results)
    put_off, play.queue.put_off = play.queue.put_off, frozenset()
    play.queue.load([cast("Step", SimpleNamespace(result=result)) for result in play.results])
    assert play.queue.put_off == put_off


@pytest.mark.req("RC-85")
async def test_broken_syntax_and_calls_that_no_longer_fit_go_back_before_any_check(tmp_path: Path) -> None:
    old = "".join(f"A{number} = {number}\n" for number in range(9))
    files = {"a.py": "def total(items):\n    return 0\n", "d.py": old}
    work = [
        {"a.py": "def total(items, rate):\n    return rate\n"},
        {"b.py": "def broken(:\n"},
        {"c.py": "from a import total\n\n\ndef show():\n    return total([1])\n"},
        {"d.py": f"def rate():\n    return 1\n\n\n{old}"},
        {"d.py": f"{old}\n\ndef rate(name):\n    return 2\n"},
    ]
    play = await Queue.make(tmp_path, work, base=files)
    await play.run()
    assert (play.guilty, play.merged) == (["one-2", "one-3", "one-5"], ["1", "4"])
    assert "b.py" in play.house.last(author(2)).work.text_content
    assert "total" in play.house.last(author(3)).work.text_content
    lists = [cast("list[Data]", result["conflicts"]) for result in play.results if "conflicts" in result]
    found = [(conflict["type"], conflict["path"]) for conflicts in lists for conflict in conflicts]
    assert found == [("api-inconsistency", "c.py"), ("naming-conflict", "d.py")]


@pytest.mark.parametrize("first", range(9))
def test_the_first_bad_one_is_found(first: int) -> None:
    looked = list[int]()

    async def is_bad(place: int) -> bool:
        looked.append(place)
        return place >= first

    assert asyncio.run(find_first_bad(8, is_bad)) == first
    assert len(looked) <= 4
