"""A team run that is paused, cancelled, spoken to and given another plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.app.conversation.send import send_to_run
from greenroom.app.lookup import TaskReference
from greenroom.app.runs.workspaces import find_change, list_rewind_points, rewind_run
from greenroom.app.teams.replan import build_replan, read_plan
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import AddAgent, CancelTask, PauseTask, ResumeTask
from greenroom.core.state.message import MessageSent
from greenroom.core.state.spec import AgentSpec
from greenroom.testing.demo_run import fingerprint
from greenroom.testing.scripted import Cue
from tests.app.teams.play import (
    DISCOUNT,
    TASK,
    TAX,
    TESTS,
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
    writes,
)

COVERAGE = {"test_files": [], "tests_added": 1}
BOTH = make_plan(part("code-1"), part("code-2"))
BOTH_CUES = (
    *writes("code-writer-1", "shop/tax.py", TAX),
    *writes("code-writer-2", "shop/discount.py", DISCOUNT),
)


async def test_a_paused_run_starts_nothing_and_goes_on_in_another_process(shop: Path) -> None:
    plan = make_plan(part("code-1"), part("code-2", "code-writer", "code-1"))
    gates = {("code-writer-1", 2): Gate()}
    before = fingerprint(shop)
    async with TeamPlay.open(*BOTH_CUES, gates=gates) as play:
        await play.start(plan)
        await gates["code-writer-1", 2].is_reached.wait()
        await play.runtime.ask(play.team, PauseTask(task_id=TASK))
        gates["code-writer-1", 2].is_open.set()
        assert (await play.end()).state == "paused"
        assert (await play.ends())["code-2"] == "init"
    async with TeamPlay.open(*BOTH_CUES) as again:
        await again.runtime.ask(again.team, ResumeTask(task_id=TASK))
        await again.runtime.start(again.team)
        status = await again.end()
        assert status.state == "finished", status
        assert again.files() == {"shop/tax.py": TAX, "shop/discount.py": DISCOUNT}
        assert len(await again.steps("rewrite", "code-writer-1")) == 1
        assert fingerprint(shop) == before


@pytest.mark.usefixtures("shop")
async def test_a_cancelled_run_ends_and_keeps_what_was_integrated() -> None:
    gates = {("code-writer-2", 1): Gate()}
    async with TeamPlay.open(*BOTH_CUES, gates=gates) as play:
        await play.start(make_plan(part("code-1"), part("code-2", tries=3)))
        await play.until(lambda stage: is_state(stage, "code-1", "finished"))
        await play.runtime.ask(play.team, CancelTask(task_id=TASK))
        assert (await play.end()).state == "cancelled"
        ends = await play.ends()
        assert (ends["code-1"], ends["code-2"], ends["verify"]) == ("finished", "cancelled", "cancelled")
        assert play.files() == {"shop/tax.py": TAX}


@pytest.mark.usefixtures("shop")
async def test_work_that_is_merged_while_its_run_is_cancelled_is_not_part_of_the_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, gate, merged = GitWorkspace.advance, Gate(), list[str]()

    async def hold(self: GitWorkspace, run: str, thread: str, commit: str) -> None:
        await real(self, run, thread, commit)
        merged.append(commit)
        if len(merged) > 1:
            gate.is_reached.set()
            await gate.is_open.wait()

    monkeypatch.setattr(GitWorkspace, "advance", hold)
    async with TeamPlay.open(*BOTH_CUES) as play:
        await play.start(make_plan(part("code-1"), part("code-2", "code-writer", "code-1")))
        await gate.is_reached.wait()
        await play.runtime.ask(play.team, CancelTask(task_id=TASK))
        assert (await play.end()).state == "cancelled"
        assert (await play.ends())["code-2"] == "cancelled"
        change = await find_change((await play.runtime.state(play.team)).team, play.app.steps)
        assert [entry.path for entry in (await change.diff()).changes] == ["shop/tax.py"]


async def wait_for_question(play: TeamPlay) -> None:
    """Wait until a specialist waits for an answer."""
    async for state in play.states():
        if state.waits:
            return


@pytest.mark.req("RC-69", "RC-70")
@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("is_asked_at_work", [False, True])
async def test_specialists_ask_answer_and_tell_each_other(is_asked_at_work: bool) -> None:
    asks = call("send_message", receiver=["code-writer-2"], message="Which rate?", waiting=True)
    tells = call("send_message", receiver=["code-writer-1"], message="I am on the discount.")
    cues = (
        *plays("code-writer-1", asks, call("rewrite", file="shop/tax.py", content=TAX), done(handoff=report_files())),
        *plays(
            "code-writer-2",
            tells,
            call("rewrite", file="shop/discount.py", content=DISCOUNT),
            done(handoff=report_files()),
        ),
        Cue(agent="code-writer-2", answering=True, reply="Twenty percent."),
    )
    gates = {("code-writer-2", 1): Gate()} if is_asked_at_work else {}
    async with TeamPlay.open(*cues, gates=gates) as play:
        await play.start(BOTH)
        for gate in gates.values():
            await gate.is_reached.wait()
            await wait_for_question(play)  # it comes during a turn of the asked one
            gate.is_open.set()
        status = await play.end()
        assert status.state == "finished", status
        assert play.files() == {"shop/tax.py": TAX, "shop/discount.py": DISCOUNT}
        sent = [event.message for event in await play.events(MessageSent)]
        between = {(message.sender_id, message.message, message.kind) for message in sent if message.receiver}
        assert {message.receiver for message in sent if message.message == "Which rate?"} == {("code-writer-2",)}
        assert ("code-writer-1", "Which rate?", "request") in between
        assert ("code-writer-2", "Twenty percent.", "response") in between
        assert ("code-writer-2", "I am on the discount.", "notification") in between
        heard = "\n".join(map(reads, play.asked("code-writer-1")))
        assert "Twenty percent." in heard
        assert "I am on the discount." in heard


@pytest.mark.usefixtures("shop")
async def test_a_message_of_a_person_reaches_who_works_who_starts_later_or_only_who_is_named() -> None:
    gates = {(f"code-writer-{number}", 2): Gate() for number in (1, 2)}
    cues = (
        *writes("code-writer-1", "shop/tax.py", TAX),
        *writes("code-writer-2", "shop/discount.py", DISCOUNT),
        *writes("test-writer-1", "tests/test_tax.py", TESTS, handoff=COVERAGE),
    )
    async with TeamPlay.open(*cues, gates=gates) as play:
        await play.start(make_plan(*BOTH.subtasks, part("test", "test-writer", "code-1", "code-2")))
        for gate in gates.values():
            await gate.is_reached.wait()
        where, sent = TaskReference(team=play.team), dict[str, tuple[object, ...]]()
        for text in (
            "Use\nfractions.",
            "@code-writer-2 Round down.",
            "@test-writer-1 Test zero.",
            "@shop/tax.py has it",
        ):
            delivery = await send_to_run(play.runtime, where, text)
            sent[text] = (*delivery.readers, delivery.later)
        assert list(sent.values()) == [
            ("code-writer-1", "code-writer-2", True),
            ("code-writer-2", False),
            (True,),
            ("code-writer-1", "code-writer-2", True),
        ]
        for gate in gates.values():
            gate.is_open.set()
        status = await play.end()
        assert status.state == "finished", status
        heard = {agent: "\n".join(map(reads, play.asked(agent))) for agent in ("code-writer-1", "code-writer-2")}
        assert all("Use\nfractions." in text and "@shop/tax.py has it" in text for text in heard.values())
        assert ["Round down." in text for text in heard.values()] == [False, True]
        briefing = reads(play.asked("test-writer-1")[0])
        assert "A person says: Use fractions.\nA person says: @test-writer-1 Test zero." in briefing
        assert "Round down." not in briefing
        assert play.asked("lead") == []
        assert play.files() == {"shop/tax.py": TAX, "shop/discount.py": DISCOUNT, "tests/test_tax.py": TESTS}


@pytest.mark.usefixtures("shop")
async def test_a_message_that_no_agent_would_read_is_refused() -> None:
    gates = {("code-writer-2", 1): Gate()}
    async with TeamPlay.open(*BOTH_CUES, gates=gates) as play:
        await play.start(BOTH)
        await play.until(lambda stage: is_state(stage, "code-1", "finished"))
        with pytest.raises(RefusedError, match="no such agent of"):
            await send_to_run(play.runtime, TaskReference(team=play.team), "@code-writer-1 again")
        gates["code-writer-2", 1].is_open.set()
        assert (await play.end()).state == "finished"


@pytest.mark.usefixtures("shop")
async def test_a_running_team_gets_another_plan() -> None:
    gates = {("code-writer-1", 1): Gate()}
    cues = (
        *writes("code-writer-1", "shop/tax.py", TAX),
        *writes("documentation-1", "docs/tax.md", "# Tax\n", handoff={"documents": []}),
        *writes("test-writer-1", "tests/test_tax.py", TESTS, handoff=COVERAGE),
    )
    plan = make_plan(part("code"), part("review", "review", "code"), part("test", "test-writer", "code"))
    async with TeamPlay.open(*cues, gates=gates) as play:
        await play.start(plan)
        stage = await play.until(lambda stage: is_state(stage, "code", "running"))
        state = await play.runtime.state(play.team)
        now = read_plan(state, stage)
        assert [subtask.id for subtask in now.subtasks] == ["code", "review", "test"]
        changed = evolve(now, subtasks=(now.subtasks[0], now.subtasks[2], part("doc", "documentation", "code")))
        await play.runtime.ask(play.team, build_replan(state, stage, changed))
        without = evolve(now, subtasks=now.subtasks[1:])
        with pytest.raises(RefusedError, match="code"):
            await play.runtime.ask(play.team, build_replan(state, stage, without))
        gates["code-writer-1", 1].is_open.set()
        status = await play.end()
        assert status.state == "finished", status
        assert (await play.ends()).keys() == {"baseline", "code", "test", "doc", "verify"}
        assert play.files().keys() == {"shop/tax.py", "tests/test_tax.py", "docs/tax.md"}


async def test_a_rewound_team_prepares_the_worktrees_that_it_goes_on_in(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = tmp_path / "config" / "greenroom" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[workspace]\nsetup = "mkdir __pycache__"\n')
    asks = call("execute_script", interpreter="bash", script="test -d __pycache__ && echo ready")
    cues = (
        *plays("code-writer-1", asks, call("rewrite", file="shop/tax.py", content=TAX), done(handoff=report_files())),
        *writes("code-writer-2", "shop/discount.py", DISCOUNT),
    )
    gates = {("code-writer-1", 1): Gate()}
    async with TeamPlay.open(*cues, gates=gates) as play:
        await play.create(BOTH, setup=True)
        await play.runtime.start(play.team)
        await gates["code-writer-1", 1].is_reached.wait()
        await play.until(lambda stage: is_state(stage, "code-2", "finished"))
        await play.runtime.stop(play.team)
        point = (await list_rewind_points(play.runtime, play.team))[-1]
        gates["code-writer-1", 1].is_open.set()
        play.team = await rewind_run(play.runtime, play.app.steps, play.team, point)
        await play.runtime.start(play.team)
        status = await play.end()
        assert status.state == "finished", status
        assert "ready" in str(await play.results("execute_script", "code-writer-1"))
        assert [len(await play.steps("prepare", f"code-writer-{number}")) for number in (1, 2)] == [2, 1]
        assert play.files() == {"shop/tax.py": TAX, "shop/discount.py": DISCOUNT}


@pytest.mark.usefixtures("shop")
async def test_a_new_plan_waits_for_the_checks_as_the_old_one_did() -> None:
    async with TeamPlay.open() as play:
        await play.create(make_plan(part("code"), part("test", "test-writer", "code")), confirms=True)
        state = await play.runtime.state(play.team)
        (stage,) = state.stages.values()
        now = read_plan(state, stage)
        changed = build_replan(state, stage, evolve(now, subtasks=(*now.subtasks, part("doc", "documentation"))))
        needs = {subtask.name: subtask.needs for subtask in changed.subtasks}
        assert needs["code"] == needs["doc"] == ("baseline",)
        assert needs["test"] == ("code",)


@pytest.mark.usefixtures("shop")
async def test_a_model_of_a_team_makes_no_system_agent() -> None:
    own = AgentSpec(name="own", kind="system")
    async with TeamPlay.open(*BOTH_CUES) as play:
        await play.create(BOTH)
        host = await play.runtime.start(play.team)
        for by in ("lead", "code-writer-1"):
            (refused,) = await host.submit(AddAgent(agent_id=AgentId("own"), spec=own), by=by)
            assert refused is not None
        await play.end()
        assert AgentId("own") not in (await play.runtime.state(play.team)).agents
