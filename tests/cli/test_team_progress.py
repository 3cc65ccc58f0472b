"""The table of a team run, from its events: what runs, what waits for whom, what it cost, and what fits the screen."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from rich.console import Console

from greenroom.app.approvals import describe_asker
from greenroom.app.messages import set_language
from greenroom.app.runtime import LoggedEvent, Runtime
from greenroom.app.teams.report import count_subtasks, find_phase, list_contributions
from greenroom.app.teams.start import create_team_run
from greenroom.cli.render.output import Output
from greenroom.cli.render.team import TeamHistory
from greenroom.cli.render.team_progress import (
    MAX_ROWS,
    TeamView,
    find_team_stage,
    render_live,
    render_results,
    subtask_fields,
)
from greenroom.cli.setup import CommandSetup
from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.ids import AgentId, ApprovalId, StageId, StepId, SubtaskId, TaskId, ThreadId
from greenroom.core.base.records import evolve
from greenroom.core.state.approval import Approval
from greenroom.core.state.events import Event
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage, SubtaskAssigned, SubtaskEnd, SubtaskEnded, SubtaskRetried
from greenroom.core.state.step import Step, StepQueued, StepStarted, StepTerms
from greenroom.core.state.team import OwnerChanged
from greenroom.core.state.thread import ThreadOpened
from greenroom.core.state.work import Work
from greenroom.runs.verdict import MERGE_QUEUE, SETTLE_CONFLICT
from greenroom.teamwork.plan import Plan, PlannedSubtask, TeamSettings

STAGE = StageId("t1.s1")


class TeamStory:
    """A team run that a test tells event by event."""

    def __init__(self, events: list[LoggedEvent]) -> None:
        self.history, self.at = TeamHistory(), 0
        for event in events:
            self.history.add(event)
        self.at = self.history.at
        self.lines = list[str]()

    @property
    def stage(self) -> Stage:
        stage = find_team_stage(self.history)
        assert stage is not None
        return stage

    def tell(self, event: Event, view: TeamView | None = None) -> None:
        line = self.history.add(LoggedEvent(version=self.history.version + 1, event=event))
        if view is not None:
            view.line(self.history, line)

    def find(self, name: str) -> tuple[SubtaskId, AgentId]:
        subtask = next(subtask for subtask in self.stage.subtasks if subtask.name == name)
        return subtask.subtask_id, subtask.agent

    def start(self, name: str, view: TeamView | None = None) -> None:
        subtask, agent = self.find(name)
        self.tell(SubtaskAssigned(at=self.at, stage_id=STAGE, subtask_id=subtask, agent_id=agent), view)

    def end(self, name: str, state: SubtaskEnd = "finished", summary: str = "", view: TeamView | None = None) -> None:
        self.tell(
            SubtaskEnded(at=self.at, stage_id=STAGE, subtask_id=self.find(name)[0], state=state, summary=summary), view
        )

    def draw(self, width: int = 80, height: int = 50) -> list[str]:
        out = io.StringIO()
        console = Console(file=out, width=width, highlight=False)
        for part in render_live(self.history, self.at, height):
            console.print(part)
        return out.getvalue().splitlines()


def make_plan(*subtasks: PlannedSubtask) -> Plan:
    return Plan(request="add tax\nand discount", subtasks=subtasks)


SHOP = make_plan(
    PlannedSubtask(id="architect", agent="architect", name="Design", seconds=60),
    PlannedSubtask(id="code-1", agent="code-writer", name="Tax", seconds=100, dependencies=("architect",)),
    PlannedSubtask(id="code-2", agent="code-writer", name="Discount", dependencies=("architect",)),
    PlannedSubtask(id="test", agent="test-writer", name="Tests", dependencies=("code-1", "code-2")),
)


async def tell_plan(folder: Path, plan: Plan) -> TeamStory:
    names = {subtask.agent for subtask in plan.subtasks}
    runtime = await Runtime.open(folder)
    team = await create_team_run(
        runtime,
        plan,
        {name: AgentSpec(name=name, role=name) for name in names},
        model="openai:x",
        language="en",
        workspace="",
        limits=Limits(money=2_000_000),
        splits=False,
    )
    events = [event async for event in runtime.events(team)]
    await runtime.close()
    return TeamStory(events)


@pytest_asyncio.fixture(name="shop")
async def _shop(tmp_path: Path) -> AsyncIterator[TeamStory]:
    yield await tell_plan(tmp_path / "home", SHOP)


@pytest.fixture(name="chinese")
def _chinese() -> None:
    set_language("zh")


def view_of(settings: TeamSettings, out: io.StringIO) -> TeamView:
    view = TeamView(CommandSetup(), Output("text", io.StringIO()), settings)
    view._console.file = out
    return view


@pytest.mark.req("RC-111", "RC-131")
def test_80_columns_show_what_each_agent_does_and_what_waits_for_what(shop: TeamStory) -> None:
    shop.start("architect")
    shop.at += 30_000
    lines = shop.draw()
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("[phase 1/4] add tax and discount")
    rows = {line.split()[1]: line for line in lines[3:]}
    assert "━━━━╌╌╌╌  50%" in rows["architect-1"]
    assert rows["architect-1"].startswith("●")
    assert "30.0s" in rows["architect-1"]
    assert "waits for architect" in rows["code-writer-1"]
    assert "waits for code-1, code-2" in rows["test-writer-1"]
    assert "0 of 4 subtasks" in lines[-1]
    assert "$0.00 of $2.00" in lines[-1]


@pytest.mark.req("RC-111")
def test_a_bar_is_full_only_when_the_subtask_has_ended(shop: TeamStory) -> None:
    shop.start("architect")
    shop.at += 3_600_000
    assert "99%" in "\n".join(shop.draw())
    shop.end("architect", summary="Two modules.")
    drawn = "\n".join(shop.draw(120))
    assert "100%" in drawn
    assert "Two modules." in drawn
    assert "[phase 2/4]" in drawn
    assert count_subtasks(shop.stage) == (1, 4)


def test_a_narrow_terminal_keeps_its_width_and_a_wide_one_has_titles_tokens_and_cost(shop: TeamStory) -> None:
    shop.start("architect")
    agent = shop.find("architect")[1]
    shop.history.spent[agent] = shop.history.spent_on[agent, None] = Amounts(tokens=1234, money=56_000)
    for width in (30, 60, 80, 100, 140):
        assert max(map(len, shop.draw(width))) <= width
    wide = "\n".join(shop.draw(140))
    assert all(word in wide for word in ("Design", "1,234", "$0.0560", "1,234 tokens", "$0.0560 of $2.00"))


async def test_many_rows_are_cut_to_a_window_with_a_count(tmp_path: Path) -> None:
    plan = make_plan(*(PlannedSubtask(id=f"p{number}", agent="refactor", name="Port") for number in range(200)))
    story = await tell_plan(tmp_path / "home", plan)
    for number in range(90):
        story.start(f"p{number}")
        story.at += 1
        story.end(f"p{number}", "failed" if number == 7 else "finished")
    for number in range(90, 98):
        story.start(f"p{number}")
    lines = story.draw(120)
    rows = [line for line in lines if line[:1] in "●○✓✗" and line.strip()]
    assert len(rows) == MAX_ROWS
    assert sum(line.startswith("●") for line in rows) == 8, "all that runs is shown"
    assert any("p98 " in line for line in rows), "and what starts next"
    assert any("p89 " in line for line in rows), "and what ended last"
    (more,) = (line for line in lines if "more:" in line)
    assert "and 182 more: " in more
    assert "1 failed" in more
    assert len(story.draw(120, height=24)) <= 24


async def test_a_screen_of_few_lines_shows_at_least_one_row(shop: TeamStory) -> None:
    shop.start("architect")
    assert any("architect-1" in line for line in shop.draw(80, height=5))


@pytest.mark.req("RC-160", "RC-161")
def test_without_a_terminal_each_start_and_end_is_a_line(shop: TeamStory, capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    view = view_of(TeamSettings(), out)
    view.begin(shop.history)
    shop.start("architect", view)
    shop.tell(SubtaskRetried(at=shop.at, stage_id=STAGE, subtask_id=shop.find("architect")[0], why="no design"), view)
    shop.end("code-1", "skipped", "architect failed", view)
    view.end()
    told = [line.split(maxsplit=1)[1] for line in out.getvalue().splitlines()]
    assert [line.split()[0] for line in told] == ["architect-1", "architect-1", "code-writer-1"]
    assert told[0].endswith("takes 'architect': Design")
    assert told[1].endswith("! failed 'architect'; it is tried again: no design")
    assert told[2].endswith("✗ skipped 'code-1': architect failed")


@pytest.mark.req("RC-161")
@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (TeamSettings(), True),
        (TeamSettings(detailed_logs=False), False),
        (TeamSettings(real_time_progress=False), False),
    ],
)
def test_tool_calls_are_lines_if_logs_are_detailed(shop: TeamStory, settings: TeamSettings, shown: bool) -> None:
    out = io.StringIO()
    view = view_of(settings, out)
    for executor, result in (("read_code", "cart.py: lines 1-2"), ("hand_in", "done"), ("open_workspace", "main")):
        view.end_step(make_step(shop, executor, result))
    told = out.getvalue().splitlines()
    assert told == (["· architect-1 reads cart.py → cart.py: lines 1-2"] if shown else [])


def make_step(story: TeamStory, executor: str, output: str) -> Step:
    subtask, agent = story.find("architect")
    return Step(
        step_id=StepId(f"{agent}#9"),
        agent_id=agent,
        task_id=TaskId("t1"),
        stage_id=STAGE,
        subtask_id=subtask,
        thread_id=ThreadId("x"),
        queued_at=1,
        work=Work(type="tool", executor=executor, intention="", instruction_content={"file": "cart.py"}),
        state="finished",
        result={"output": output, "changes": {"files": ["a.py", "b.py"], "file_count": 2, "added": 5, "removed": 1}},
    )


def test_work_that_is_handed_in_waits_to_be_merged_and_may_go_back(shop: TeamStory) -> None:
    shop.start("architect")
    subtask, _ = shop.find("architect")
    queued = StepQueued(
        at=shop.at,
        step_id=StepId("merge-queue#1"),
        agent_id=MERGE_QUEUE,
        thread_id=ThreadId("merge-queue@t1.s1.1"),
        task_id=TaskId("t1"),
        stage_id=STAGE,
        subtask_id=subtask,
        work=Work(type="tool", executor="merge", instruction_content={}),
        place=0,
    )
    opened = ThreadOpened(
        at=shop.at,
        thread_id=queued.thread_id,
        agent_id=MERGE_QUEUE,
        task_id=TaskId("t1"),
        stage_id=STAGE,
        subtask_id=subtask,
    )
    shop.tell(opened)
    shop.tell(queued)
    (row,) = (line for line in shop.draw() if "architect-1" in line)
    assert "waiting to be merged" in row
    started = StepStarted(
        at=shop.at, step_id=queued.step_id, attempt=1, terms=StepTerms(effect="keyed"), reserved=Amounts()
    )
    shop.tell(started)
    (row,) = (line for line in shop.draw() if "architect-1" in line)
    assert "merging" in row
    out = io.StringIO()
    view = view_of(TeamSettings(detailed_logs=False), out)
    view.line(shop.history, shop.history.add(LoggedEvent(version=99, event=OwnerChanged(at=1, epoch=2, owner="x"))))
    failures = [["pytest", "test_a"], ["pytest", "test_b"]]
    step = make_step(shop, "merge", "")
    view.end_step(evolve(step, result={"failures": failures, "faults": ["a.py is broken."], "sent_back": 1}))
    view.end_step(evolve(step, result={"put_off": failures[:1], "integrated": "x"}))
    assert [line.rstrip() for line in out.getvalue().splitlines()] == [
        "! architect goes back to architect-1: pytest fails (2 tests), a.py is broken.",
        "! architect is merged although this fails, to be mended later: pytest fails (1 test)",
    ]


def make_approval(step: Step) -> Approval:
    return Approval(
        approval_id=ApprovalId("a1"),
        step_id=step.step_id,
        agent_id=step.agent_id,
        task_id=step.task_id,
        question="Run it?",
        digest="",
        asked_of=None,
        asked_at=1,
    )


def test_a_conflict_that_waits_says_once_what_to_type(shop: TeamStory) -> None:
    step = make_step(shop, SETTLE_CONFLICT, "")
    approval = make_approval(step)
    state = shop.history.state
    shop.history.state = evolve(
        state,
        steps=state.steps.set(step.step_id, step),
        approvals=state.approvals.set(approval.approval_id, approval),
    )
    out = io.StringIO()
    view = view_of(TeamSettings(), out)
    for version in (98, 99):
        logged = LoggedEvent(version=version, event=OwnerChanged(at=1, epoch=2, owner="x"))
        view.line(shop.history, shop.history.add(logged))
    command = f"greenroom conflicts {state.team.team_id}"
    assert " ".join(out.getvalue().split()) == (f"? A conflict waits for you. Settle it in another terminal: {command}")


def test_results_count_the_files_and_lines_of_each_agent(shop: TeamStory) -> None:
    shop.start("architect")
    shop.at += 1500
    shop.end("architect", summary="designed")
    shop.history.steps.append(make_step(shop, "hand_in", "designed"))
    shop.end("code-1", "skipped", "architect failed")
    fields = subtask_fields(shop.history)["subtasks"]
    assert isinstance(fields, list)
    (row,) = (row for row in fields if row["subtask"] == "architect")
    assert (row["files"], row["file_count"], row["added"], row["removed"]) == (["a.py", "b.py"], 2, 5, 1)
    assert (row["agent"], row["state"], row["attempt"], row["seconds"]) == ("architect-1", "finished", 1, 1.5)
    out = io.StringIO()
    for part in render_results(shop.history):
        Console(file=out, width=160).print(part)
    assert "+5 −1" in out.getvalue()
    assert "architect failed" in out.getvalue(), "why it was skipped"
    assert render_results(TeamHistory()) == ()
    assert subtask_fields(TeamHistory()) == {}


def test_what_is_left_of_the_phases_is_measured_by_dependencies(shop: TeamStory) -> None:
    assert find_phase(shop.stage) == (1, 4)
    for name in ("baseline", "architect", "code-1", "code-2", "test"):
        shop.start(name)
        shop.end(name)
    assert find_phase(shop.stage) == (4, 4)
    shop.start("verify")
    shop.end("verify")
    assert find_phase(shop.stage) == (4, 4)
    assert all(not row.waits_for for row in list_contributions(shop.stage, (), {}, 0))


def test_a_question_says_who_asks_and_for_which_subtask(shop: TeamStory) -> None:
    step = make_step(shop, "execute_script", "")
    shop.history.state = evolve(shop.history.state, steps=shop.history.state.steps.set(step.step_id, step))
    approval = make_approval(step)
    assert describe_asker(shop.history.state, approval) == "architect-1 asks, for subtask architect (Design):"
    assert describe_asker(shop.history.state, evolve(approval, words=True)) == "For subtask architect (Design):"
    assert describe_asker(shop.history.state, evolve(approval, step_id=StepId("x#1"))) == ""


@pytest.mark.usefixtures("chinese")
def test_the_table_speaks_chinese(shop: TeamStory) -> None:
    shop.history.language = "zh"
    shop.start("architect")
    drawn = "\n".join(shop.draw(120))
    assert "[阶段 1/4]" in drawn
    assert "等待 code-1，code-2" in drawn


def test_the_time_of_a_row_leaves_out_when_no_process_ran_the_team(shop: TeamStory) -> None:
    shop.start("architect")
    shop.at += 3_000
    shop.start("code-1")
    for seconds, epoch in ((40, 2), (5, 3)):
        shop.at += seconds * 1000
        shop.tell(OwnerChanged(at=shop.at, epoch=epoch, owner="here"))
    shop.at += 2_000
    assert [line.split()[-1] for line in shop.draw() if line.startswith("●")] == ["5.0s", "2.0s"]
    shop.end("architect")
    fields = subtask_fields(shop.history)["subtasks"]
    assert isinstance(fields, list)
    assert [row["seconds"] for row in fields if row["subtask"] == "architect"] == [5.0]


def test_a_cancelled_subtask_says_so(shop: TeamStory) -> None:
    shop.start("architect")
    shop.end("architect", "cancelled", "the stage is over")
    (row,) = (line for line in shop.draw() if "architect-1" in line)
    assert ("cancelled" in row, "the stage is over" in row) == (True, False)
