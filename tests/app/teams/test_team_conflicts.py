"""Conflicts of a team: merged by structure, proposed by a model, settled by a person."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval
from greenroom.core.state.team_state import TeamState
from greenroom.teamwork.conflicts import ConflictRecord, collect_conflicts
from greenroom.teamwork.merge_queue import FinishMergeTool, MergeTool
from greenroom.teamwork.plan import Plan
from greenroom.testing.scripted import Cue
from tests.app.teams.play import (
    STAGE,
    Gate,
    TeamPlay,
    call,
    done,
    is_state,
    make_plan,
    part,
    plays,
    reads,
    report_files,
    set_team,
    writes,
)

T = TypeVar("T")
RATE = "def tax(price):\n    return price * {}\n"
FIRST, SECOND = RATE.format("0.2"), RATE.format("0.07")
BOTH = f"{FIRST}    return price * 0.07\n"
PLAN = make_plan(part("code-1"), part("code-2"))
Gates = dict[tuple[str, int], Gate]
ROOT = Path(__file__).parents[3]
KILLED = """
import asyncio, os, signal
from tests.app.teams.test_team_conflicts import *

async def main():
    os.chdir(os.environ["SHOP"])
    gates = {("code-writer-1", 2): Gate(), ("code-writer-2", 2): Gate()}
    async with TeamPlay.open(*write_both(), *propose(BOTH), gates=gates) as play:
        await meet(play, gates)
        await ask(play)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
"""A process that is killed while a conflict waits for a person."""


def propose(*stretches: str, agent: str = "merger") -> tuple[Cue, ...]:
    """Return the script of a merger."""
    file = {"path": "shop/tax.py", "stretches": list(stretches), "reason": "both rates"}
    return plays(agent, call("answer", files=[file]))


def write_both(first: str = FIRST, second: str = SECOND, path: str = "shop/tax.py") -> tuple[Cue, ...]:
    """Return the script of two writers of one file."""
    return (*writes("code-writer-1", path, first), *writes("code-writer-2", path, second))


def rewrite(agent: str, path: str, content: str) -> tuple[Cue, ...]:
    """Return the script of a writer of a file that is there."""
    reads_first, writes_then = call("read_code", file=path), call("rewrite", file=path, content=content)
    return plays(agent, reads_first, writes_then, done(path, handoff=report_files(path)))


def find_question(state: TeamState) -> Approval | None:
    """Return the question to a person that waits for words."""
    pending = (asked for asked in state.approvals.values() if asked.state == "pending")
    return next((asked for asked in pending if asked.words), None)


async def until(play: TeamPlay, is_there: Callable[[TeamState], object]) -> TeamState:
    """Wait until the state is like that. Without a sandbox, checks need an approval: a person gives it."""
    async with asyncio.timeout(60):
        async for state in play.states():
            asked = [asked for asked in state.approvals.values() if asked.state == "pending" and not asked.words]
            for approval in asked:
                await play.runtime.ask(play.team, AnswerApproval(approval_id=approval.approval_id, answer="approved"))
            if not asked and is_there(state):
                return state
    raise AssertionError("the team ended")


def has_ended(name: str) -> Callable[[TeamState], bool]:
    """Return whether a subtask has finished."""
    return lambda state: STAGE in state.stages and is_state(state.stages[STAGE], name, "finished")


async def meet(play: TeamPlay, gates: Gates, plan: Plan = PLAN) -> None:
    """Start two writers; the second one hands in when the first one is merged."""
    first, second = gates["code-writer-1", 2], gates["code-writer-2", 2]
    await play.start(plan)
    for gate in (first, second):  # both have their worktrees
        await asyncio.wait_for(gate.is_reached.wait(), 60)
    first.is_open.set()
    await until(play, has_ended("code-1"))
    gates["code-writer-2", 2].is_open.set()


async def ask(play: TeamPlay, after: Approval | None = None) -> Approval:
    """Return the question about the conflict when it waits."""
    old = after.approval_id if after is not None else ""
    asked = find_question(await until(play, lambda state: (new := find_question(state)) and new.approval_id != old))
    assert asked is not None
    return asked


async def answer(play: TeamPlay, words: str) -> None:
    """Answer the question about the conflict."""
    name = (await ask(play)).approval_id
    await play.runtime.ask(play.team, AnswerApproval(approval_id=name, answer="approved", reason=words))


async def find_conflict(play: TeamPlay) -> ConflictRecord:
    """Return the only conflict of the run."""
    (found,) = collect_conflicts(await play.app.steps(play.team))
    return found


@pytest.fixture(name="gates")
def _gates() -> Gates:
    return {("code-writer-1", 2): Gate(), ("code-writer-2", 2): Gate()}


@pytest.fixture(name="again", params=[False, True], ids=["once", "again after a kill"])
def _again(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every step of the merge queue a second time, as if its process was killed before the result was stored."""

    def repeat(run: Callable[[T, StepContext], Awaitable[Outcome]]) -> Callable[[T, StepContext], Awaitable[Outcome]]:
        async def run_twice(tool: T, context: StepContext) -> Outcome:
            await run(tool, context)
            return await run(tool, context)

        return run_twice

    if request.param:
        monkeypatch.setattr(MergeTool, "run", repeat(MergeTool.run))
        monkeypatch.setattr(FinishMergeTool, "run", repeat(FinishMergeTool.run))


@pytest.mark.req("RC-83", "RC-84", "RC-136")
async def test_two_writers_of_one_file_are_merged_by_structure(shop: Path, gates: Gates) -> None:
    gates["code-writer-2", 3] = gates["code-writer-2", 2]
    script = [
        cue
        for agent, pattern in (("code-writer-1", "*.log"), ("code-writer-2", "*.tmp"))
        for cue in rewrite(agent, ".gitignore", f"__pycache__/\n{pattern}\n")
    ]
    async with TeamPlay.open(*script, gates=gates) as play:
        await meet(play, gates)
        assert (await play.end()).state == "finished"
        assert play.files() == {".gitignore": "__pycache__/\n*.log\n*.tmp\n"}
        found = await find_conflict(play)
        assert (found.rung, found.state, found.subtasks) == ("structure", "resolved", ("code-1", "code-2"))
        assert found.involved_agents == ("code-writer-1", "code-writer-2")
        assert (await play.app.blob(found.result)).decode() == play.files()[".gitignore"]
        assert not play.asked("merger")


async def test_a_model_proposes_with_both_intents_and_a_setting_accepts(shop: Path, gates: Gates) -> None:
    set_team(shop, accept_model_merges=True)
    async with TeamPlay.open(*write_both(), *propose(BOTH), gates=gates) as play:
        await meet(play, gates)
        assert (await play.end()).state == "finished"
        assert play.files() == {"shop/tax.py": BOTH}
        found = await find_conflict(play)
        assert (found.rung, found.state, found.why, found.confidence) == ("model", "resolved", "both rates", None)
        read = reads(play.asked("merger")[0])
        for text in ("do code-1", "do code-2", "price * 0.2", "price * 0.07", "shop/tax.py"):
            assert text in read


@pytest.mark.parametrize(
    ("accepts", "stretch"), [(False, BOTH), (True, SECOND)], ids=["without the setting", "with a dropped line"]
)
async def test_a_proposal_waits_for_a_person(shop: Path, gates: Gates, accepts: bool, stretch: str) -> None:
    set_team(shop, accept_model_merges=accepts)
    async with TeamPlay.open(*write_both(), *propose(stretch), gates=gates) as play:
        await meet(play, gates)
        asked = await ask(play)
        assert "code-1 and code-2 changed shop/tax.py. A model proposes a merge." in asked.question
        assert ("The proposal drops:\n  return price * 0.2" in asked.question) is accepts
        assert f"greenroom conflicts {play.team}" in asked.question
        assert play.files() == {"shop/tax.py": FIRST}, "nothing is merged yet"
        await answer(play, "accept")
        assert (await play.end()).state == "finished"
        assert play.files() == {"shop/tax.py": stretch}
        assert (await find_conflict(play)).rung == "person"


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("left", FIRST),
        ("right", SECOND),
        ("code-2", SECOND),
        (encode({"texts": {"shop/tax.py": "TAX = 1\n"}}).decode(), "TAX = 1\n"),
        (encode({"choices": {"shop/tax.py": "right"}}).decode(), SECOND),
    ],
)
async def test_a_person_chooses(shop: Path, gates: Gates, words: str, content: str) -> None:
    set_team(shop, conflict_strategy="human")
    async with TeamPlay.open(*write_both(), gates=gates) as play:
        await meet(play, gates)
        await answer(play, words)
        assert (await play.end()).state == "finished"
        assert play.files() == {"shop/tax.py": content}
        assert not play.asked("merger"), "by this strategy no model is asked"


async def test_an_answer_that_is_not_possible_is_asked_again(shop: Path, gates: Gates) -> None:
    set_team(shop, conflict_strategy="human")
    async with TeamPlay.open(*write_both(), gates=gates) as play:
        await meet(play, gates)
        last = first = await ask(play)
        for words in ("accept", "perhaps", "{", encode({"texts": {"shop/tax.py": "<<<<<<< left\n"}}).decode()):
            await answer(play, words)
            again = await ask(play, after=last)
            assert again.question.endswith(first.question)
            assert again.question != first.question, "it says why"
            last = again
        await answer(play, "drop")
        assert (await play.end()).state == "failed"
        assert "code-1 and code-2 changed shop/tax.py" in (await play.subtasks())["code-2"].summary


@pytest.mark.req("RC-154")
async def test_a_conflict_fails_if_no_person_is_to_be_asked(shop: Path, gates: Gates) -> None:
    set_team(shop, fallback_to_human=False)
    async with TeamPlay.open(*write_both(), gates=gates) as play:
        await meet(play, gates)
        assert (await play.end()).state == "failed"
        failed = (await play.subtasks())["code-2"]
        assert (failed.state, failed.attempt) == ("failed", 1)
        why = "Not merged: code-1 and code-2 changed shop/tax.py (code-writer-1, code-writer-2)."
        assert failed.summary.partition("\n")[0] == why
        assert not play.asked("merger"), "a proposal would have no use"
        assert play.files() == {"shop/tax.py": FIRST}


@pytest.mark.usefixtures("again")
async def test_a_person_sends_a_conflict_back_with_advice(shop: Path, gates: Gates) -> None:
    set_team(shop, conflict_strategy="human")
    mended = (call("read_code", file="shop/tax.py"), call("rewrite", file="shop/tax.py", content=BOTH))
    report = done("shop/tax.py", handoff=report_files("shop/tax.py"))
    wrote = call("rewrite", file="shop/tax.py", content=SECOND)
    script = (
        *writes("code-writer-1", "shop/tax.py", FIRST),
        *plays("code-writer-2", wrote, report, report, *mended, report),
    )
    async with TeamPlay.open(*script, gates=gates) as play:
        await meet(play, gates)
        await answer(play, "back Keep both rates.")
        await until(play, has_ended("code-2"))
        assert (await play.end()).state == "finished"
        assert play.files() == {"shop/tax.py": BOTH}
        read = reads(play.asked("code-writer-2")[-1])
        assert "shop/tax.py still has conflict markers." in read, "they are never merged"
        assert "Your work conflicts with work that is merged by now: shop/tax.py." in read
        assert "Keep both rates." in read
        shown = "\n".join(str(found.get("output")) for found in await play.results("read_code", "code-writer-2"))
        assert "<<<<<<< left" in shown, "both versions are in its worktree"
        assert (await find_conflict(play)).state == "mended"


@pytest.mark.parametrize(("strategy", "content"), [("timestamp", SECOND), ("priority", FIRST)])
@pytest.mark.req("RC-82", "RC-153")
@pytest.mark.usefixtures("again")
async def test_a_strategy_merges_without_a_person(shop: Path, gates: Gates, strategy: str, content: str) -> None:
    set_team(shop, conflict_strategy=strategy)
    first, second = PLAN.subtasks
    plan = make_plan(first, evolve(second, priority=first.priority + 1))
    async with TeamPlay.open(*write_both(), gates=gates) as play:
        await meet(play, gates, plan)
        assert (await play.end()).state == "finished"
        assert play.files() == {"shop/tax.py": content}
        found = await find_conflict(play)
        assert (found.rung, found.strategy, len(found.dropped_lines)) == ("strategy", strategy, 1)


@pytest.mark.usefixtures("shop")
async def test_an_answer_is_void_if_the_conflict_is_another_one_by_now(gates: Gates) -> None:
    gates["code-writer-3", 2] = Gate()
    third = RATE.format("0.3")
    script = (*write_both(), *propose(BOTH), *rewrite("code-writer-3", "shop/tax.py", third))
    plan = make_plan(part("code-1"), part("code-2"), part("code-3", "code-writer", "code-1"))
    async with TeamPlay.open(*script, gates=gates) as play:
        await meet(play, gates, plan)
        first = await ask(play)
        gates["code-writer-3", 2].is_open.set()
        await until(play, has_ended("code-3"))
        await answer(play, "accept")
        assert "code-3 and code-2 changed shop/tax.py" in (await ask(play, after=first)).question
        assert play.files() == {"shop/tax.py": third}
        await answer(play, "left")
        assert (await play.end()).state == "finished"
        assert play.files() == {"shop/tax.py": third}


@pytest.mark.usefixtures("shop")
async def test_a_conflict_waits_although_its_process_is_killed() -> None:
    script = (*write_both(), *propose(BOTH))
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, cwd=ROOT, env={**os.environ, "SHOP": str(Path.cwd())}
    )
    assert await killed.wait() == -signal.SIGKILL
    async with TeamPlay.open(*script) as play:
        await play.runtime.start(play.team, take_over=True)
        await answer(play, "accept")
        assert (await play.end()).state == "finished"
        assert play.files() == {"shop/tax.py": BOTH}
        assert not play.asked("merger"), "the proposal is in the log"


@pytest.mark.usefixtures("shop")
async def test_an_unusable_proposal_is_asked_for_once_more_and_then_a_person_decides(gates: Gates) -> None:
    script = (*write_both(), *propose(BOTH, BOTH))
    async with TeamPlay.open(*script, gates=gates) as play:
        await meet(play, gates)
        assert "Answer left (code-1), right (code-2), back ADVICE, or drop." in (await ask(play)).question
        assert [len(play.asked(name)) for name in ("merger", "merger-2")] == [2, 0]
        assert "has 1 stretches to merge, and the answer has 2" in reads(play.asked("merger")[1])


@pytest.mark.usefixtures("shop")
async def test_a_proposal_for_one_of_two_files_is_kept(gates: Gates) -> None:
    script = [
        cue
        for agent, content in (("code-writer-1", FIRST), ("code-writer-2", SECOND))
        for cue in plays(
            agent,
            call("rewrite", file="shop/tax.py", content=content),
            call("rewrite", file="shop/vat.py", content=content),
            done("both", handoff=report_files("shop/tax.py", "shop/vat.py")),
        )
    ]
    async with TeamPlay.open(*script, *propose(BOTH), gates=gates) as play:
        await meet(play, gates)
        question = (await ask(play)).question
        assert "changed shop/tax.py. A model proposes a merge." in question
        assert "Answer left (code-1), right (code-2), back ADVICE, or drop." in question, "shop/vat.py is open"
        assert "has no merge of shop/vat.py" in reads(play.asked("merger")[1])


@pytest.mark.req("RC-86")
async def test_several_conflicts_are_proposed_side_by_side(shop: Path, gates: Gates) -> None:
    set_team(shop, accept_model_merges=True)
    gates |= {("merger", 1): Gate(), ("merger-2", 1): Gate(), ("code-writer-3", 2): Gate()}
    third = RATE.format("0.3")
    other = propose(f"{FIRST}\n\n{third}", agent="merger-2")
    script = (*write_both(), *writes("code-writer-3", "shop/tax.py", third), *propose(BOTH), *other)
    async with TeamPlay.open(*script, gates=gates) as play:
        await meet(play, gates, make_plan(part("code-1"), part("code-2"), part("code-3")))
        gates["code-writer-3", 2].is_open.set()
        mergers = [AgentId(name) for name in ("merger", "merger-2")]
        await until(play, lambda state: all(state.agents[name].running for name in mergers))
