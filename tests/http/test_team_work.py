"""A team over HTTP: planned, edited and verified; its conflicts, its limits; an organisation's people."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.app.organisation.creation import create_organisation
from greenroom.app.organisation.phrases import BASE_TASK
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import TEAM_BUDGET, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.stage import SubtaskEnded
from greenroom.core.state.team_state import TeamState
from greenroom.testing.scripted import Cue, ScriptedReply
from tests.app.organisation.office import ANN, MANAGER, founders
from tests.app.teams.play import (
    DISCOUNT,
    STAGE,
    TAX,
    TESTS,
    Gate,
    GatedModel,
    call,
    done,
    is_state,
    plays,
    report_files,
    writes,
)
from tests.app.teams.test_team_conflicts import BOTH, FIRST, SECOND, propose
from tests.cli.commands.shop import DESIGN, REQUEST
from tests.http.desk import Desk, Json, coder, enter_shop, open_desk, write_test

WRONG = 'agent = "architect"'
PLAN = """request = "add tax"
[[subtasks]]
id = "code-1"
agent = "code-writer"
[[subtasks]]
id = "code-2"
agent = "code-writer"
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_shop(tmp_path, monkeypatch)


def write_team(plan: Json | None = None) -> list[Cue]:
    """Return the script of a team, and of its planner."""
    return [
        *(
            [Cue(agent="planner", reply=ScriptedReply(calls=(call("answer", **plan),), spent=Amounts(tokens=700)))]
            if plan
            else []
        ),
        Cue(agent="architect-1", reply=done("designed", handoff=DESIGN)),
        *writes("code-writer-1", "shop/tax.py", TAX),
        *writes("code-writer-2", "shop/discount.py", DISCOUNT),
        *plays("test-writer-1", call("rewrite", file="tests/test_tax.py", content=TESTS), done("tests")),
        *plays("documentation-1", call("rewrite", file="docs/tax.md", content="# Tax\n"), done("docs")),
        Cue(agent="review-1", reply=done("good")),
    ]


@pytest.mark.req("RC-118")
async def test_a_plan_is_proposed_edited_and_started_to_a_verified_change(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(write_team(), monkeypatch) as desk:
        proposal = await desk.post("/plans", request=REQUEST)
        assert proposal["is_team"], proposal["reason"]
        assert {"feature-development", "testing", "documentation"} <= set(proposal["types"])
        assert [part["agent"] for part in proposal["parts"] if part["id"] == "doc"] == ["documentation"]
        assert proposal["critical_path"]
        assert any(check.startswith("unittest: ") for check in proposal["checks"])
        wrong = await desk.post("/plans", 422, text=proposal["text"].replace(WRONG, 'agent = "architekt"'))
        assert wrong["code"].startswith("plan.")
        line = next(n for n, row in enumerate(proposal["text"].splitlines(), 1) if row == WRONG)
        assert wrong["message"].startswith(f"Line {line}: There is no specialist `architekt`."), wrong
        assert (await desk.post("/runs", 422, request=REQUEST, plan="request = ["))["message"].startswith("Line 1: ")
        body = {"request": REQUEST, "plan": proposal["text"], "confirm_checks": proposal["checks_digest"]}
        (shop / "package.json").write_text('{"scripts": {"test": "python3 -m unittest --failfast"}}')
        assert (await desk.post("/runs", 409, **body))["message"].startswith("The checks of the project have changed")
        (shop / "package.json").unlink()
        assert (await desk.get("/runs"))["items"] == []
        edited = await desk.post("/plans", request=REQUEST, text=proposal["text"])
        assert [part["id"] for part in edited["parts"]] == [part["id"] for part in proposal["parts"]]
        assert edited["checks_digest"] == proposal["checks_digest"]
        run = await desk.start(request=REQUEST, plan=edited["text"], confirm_checks=edited["checks_digest"])
        assert await desk.allow(run) is None
        change = await desk.get(f"/runs/{run}/change")
        assert (change["state"], change["verdict"]) == ("ready", "verified"), change
        wrote = {file["path"]: file["agents"] for file in change["files"]}
        assert wrote["shop/discount.py"] == ["code-writer-2"]
        report, head = (await desk.get(f"/runs/{run}/report"))["text"], (await desk.runtime.log.head(run)).version
        assert report.startswith("#")
        assert (await desk.get(f"/runs/{run}/report", at=head))["text"] == report
        for at, status in ((1, 409), (head + 1, 404)):
            assert (await desk.client.get(f"/api/runs/{run}/report?at={at}")).status_code == status
        then = [await desk.client.get(f"/api/runs/{run}/report?at={at}") for at in range(2, head, 9)]
        texts = [answer.json()["text"] for answer in then if answer.status_code == 200]
        assert "shop/discount.py" in report
        assert texts
        assert "shop/discount.py" not in texts[0]
        assert (await desk.post(f"/runs/{run}/apply"))["commit"]
        assert (shop / "shop" / "discount.py").read_text() == DISCOUNT


async def test_what_planning_took_counts_under_the_limits_of_the_run(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [{"id": name, "agent": "code-writer", "writes": [f"{name}.py"]} for name in ("a", "b")]
    (shop / ".greenroom").mkdir()
    (shop / ".greenroom" / "config.toml").write_text('[team]\nplanner = "model"\n[limits]\ntokens = 50000\n')
    planner = write_team({"task_types": ["testing"], "subtasks": parts})[0]
    async with open_desk([planner, planner], monkeypatch) as desk:
        first = await desk.post("/plans", request="try it", cost_limit=2.0)
        planning = [TeamId(info.stream) for info in await desk.runtime.log.streams()]
        assert [(await desk.runtime.state(run)).budgets[TEAM_BUDGET].limits.money for run in planning] == [2_000_000]
        again = await desk.post("/plans", request="try it better", proposal=first["id"])
        checked = await desk.post("/plans", text=again["text"], proposal=again["id"])
        assert first["id"] == again["id"] == checked["id"]
        left = []
        for name in (checked["id"], checked["id"], "made-up"):
            run = await desk.start(request="try it", plan=again["text"], proposal=name)
            left.append((await desk.runtime.state(run)).budgets[TEAM_BUDGET].limits.tokens)
            await desk.post(f"/runs/{run}/cancel")
        assert left == [48_600, 50_000, 50_000]
        monkeypatch.setattr(GatedModel, "price", lambda *_: 1_000_000)
        begun = await desk.post("/runs", 201, request="try it", plan=again["text"], cost_limit=0.5)
        assert begun["notes"][0].startswith("The limit of $0.5 is below the estimate of $")


async def test_a_run_goes_on_with_one_answer_while_another_question_waits(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / ".greenroom").mkdir()
    (shop / ".greenroom" / "permissions").write_text("ask path shop/** write\n")
    script = [*writes("code-writer-1", "shop/tax.py", TAX), *writes("code-writer-2", "shop/discount.py", DISCOUNT)]
    async with open_desk(script, monkeypatch) as desk:
        shown = await desk.post("/plans", text=PLAN)
        options = {"plan": shown["text"], "proposal": shown["id"], "confirm_checks": True, "allow_unverified": True}
        run = await desk.start(request="add tax", **options)
        await desk.ask(run)
        await desk.rest(run)
        first, second = await desk.list_open(run)
        await desk.post(f"/runs/{run}/messages", text="Name it well.")
        await desk.rest(run)
        assert (await desk.get(f"/runs/{run}"))["state"] == "waiting"
        await desk.answer(first)
        await desk.rest(run)
        assert (await desk.get(f"/runs/{run}"))["state"] == "waiting", "for the second answer"
        assert [item["id"] for item in await desk.list_open(run)] == [second["id"]]
        ended = [step.work.executor for step in await desk.context.app.steps(run) if step.agent_id == first["agent"]]
        assert "rewrite" in ended
        assert await desk.allow(run) is None
        assert (await desk.get(f"/runs/{run}"))["state"] == "finished"


@asynccontextmanager
async def open_conflict(script: list[Cue], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Desk, Json]]:
    """Let two writers change one file, one after the other, and yield the question about it."""
    first, second = Gate(), Gate()
    monkeypatch.setattr(GatedModel, "gates", {("code-writer-1", 2): first, ("code-writer-2", 2): second})
    async with open_desk(script, monkeypatch) as desk, asyncio.timeout(90):
        run = await desk.start(request="add tax", plan=PLAN, confirm_checks=True, allow_unverified=True)
        asking = asyncio.create_task(desk.allow(run, until="conflict"))
        for gate in (first, second):  # both have their worktrees
            await gate.is_reached.wait()
        first.is_open.set()
        async for entry in desk.runtime.events(run, follow=True):
            if isinstance(entry.event, SubtaskEnded) and is_merged(await desk.runtime.state(run)):
                break
        second.is_open.set()
        item = await asking
        assert item is not None
        yield desk, item


def is_merged(state: TeamState) -> bool:
    """Return whether the work of the first writer is merged."""
    return is_state(state.stages[STAGE], "code-1", "finished")


OWN = "TAX = 1\n"
ANSWERS = [
    ("accept", BOTH),
    ("left", FIRST),
    ("right", SECOND),
    (json.dumps({"texts": {"shop/tax.py": OWN}}), OWN),
    ("back Keep both rates.", BOTH),
    ("drop", None),
]


@pytest.mark.parametrize(("text", "content"), ANSWERS, ids=["accept", "left", "right", "own text", "back", "drop"])
async def test_a_person_settles_a_conflict(
    shop: Path, monkeypatch: pytest.MonkeyPatch, text: str, content: str | None
) -> None:
    mended = (call("read_code", file="shop/tax.py"), call("rewrite", file="shop/tax.py", content=BOTH))
    report = done("shop/tax.py", handoff=report_files("shop/tax.py"))
    second = plays("code-writer-2", call("rewrite", file="shop/tax.py", content=SECOND), report, *mended, report)
    script = [*writes("code-writer-1", "shop/tax.py", FIRST), *second, *propose(BOTH)]
    async with open_conflict(script, monkeypatch) as (desk, item):
        run = item["run"]
        assert item["choices"] == ["accept", "left", "right", "back", "drop"]
        assert "shop/tax.py" in item["question"]
        assert not any(word in item["question"] for word in ("Answer", "greenroom"))
        (conflict,) = (await desk.get(f"/runs/{run}/conflicts"))["items"]
        assert (conflict["approval"], conflict["path"], conflict["rung"]) == (item["id"], "shop/tax.py", "model")
        assert [conflict[side] for side in ("left", "right", "result")] == [FIRST, SECOND, BOTH]
        perhaps = await desk.answer(item, 409, text="perhaps")
        assert (perhaps["message"], perhaps["hint"]) == ("'perhaps' is not possible for shop/tax.py.", "")
        if text == "drop":
            await desk.answer(item, decision="denied")
        else:
            await desk.answer(item, text=text)
        assert await desk.allow(run) is None
        detail = await desk.get(f"/runs/{run}")
        assert detail["state"] == ("failed" if content is None else "finished")
        assert detail["reason"].startswith("Not done: code-2 (" if content is None else "")
        shown = await desk.runtime.log.head(run)
        assert shown.version
        diff = (await desk.get(f"/runs/{run}/change/file", path="shop/tax.py"))["text"]
        added = "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] == "+" and line[:3] != "+++")
        assert added == (content or FIRST)
        late = await desk.answer(item, 409, text="left")
        assert late["code"] == "answered_elsewhere"
        assert "{" not in late["message"]


async def test_a_run_that_reached_its_limit_goes_on_with_a_higher_one(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = ScriptedReply(calls=(write_test(),), spent=Amounts(tokens=50, money=20_000))
    async with open_desk(coder(paid), monkeypatch) as desk:
        run = await desk.start(request="add a test", cost_limit=0.01, confirm_checks=True)
        await desk.rest(run)
        row = await desk.get(f"/runs/{run}")
        assert (row["state"], row["cost"], row["cost_limit"]) == ("limit", 0.02, 0.01)
        assert row["reason"] == "The limit of $0.01 is reached. Resume with a higher one."
        for limit in (None, 0.01, 0.005):
            refused = await desk.post(f"/runs/{run}/resume", 409, cost_limit=limit)
            shown = (row["reason"], f"`greenroom resume {run} --max-cost 0.02`")
            assert (refused["message"], refused["hint"]) == shown
        assert (await desk.get(f"/runs/{run}"))["cost_limit"] == 0.01
        await desk.post(f"/runs/{run}/resume", cost_limit=1)
        assert await desk.allow(run) is None
        row = await desk.get(f"/runs/{run}")
        assert (row["state"], row["verdict"], row["cost_limit"]) == ("finished", "verified", 1)
    (shop / ".greenroom").mkdir()
    (shop / ".greenroom" / "config.toml").write_text("[limits]\ntokens = 40\n")
    async with open_desk(coder(paid), monkeypatch) as desk:
        run = await desk.start(request="add a test")
        await desk.rest(run)
        refused = await desk.post(f"/runs/{run}/resume", 409)
        assert refused["message"] == "The limit of 40 tokens is reached. Resume with a higher one."
        assert refused["hint"] == f"`greenroom resume {run} --max-tokens 80`"
        assert (await desk.get(f"/runs/{run}"))["reached"] == {"field": "token_limit", "value": 40}
        await desk.post(f"/runs/{run}/resume", token_limit=1_000_000)
        assert await desk.allow(run) is None
        row = await desk.get(f"/runs/{run}")
        assert (row["state"], row["reached"]) == ("finished", None)


@pytest.mark.req("MAS-234", "MAS-239", "MAS-242", "MAS-245", "MAS-253")
async def test_a_person_of_an_organisation_asks_and_answers(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_desk([], monkeypatch) as desk:
        run = await create_organisation(desk.runtime, evolve(founders(people=("ann",)), workspace=str(shop)))
        await desk.post(f"/runs/{run}/messages", text="Make tea.", to="manager")
        (step,) = (await desk.get(f"/runs/{run}/agents/ann/steps"))["items"]
        assert (step["executor"], step["state"]) == ("send_message", "finished")
        queued = (await desk.get(f"/runs/{run}/agents/manager"))["queued"]
        assert [step["executor"] for step in queued] == ["planning"]
        asked = SendMessage(
            task_id=BASE_TASK, receiver=(ANN,), message="Green or black?", need_reply=True, waiting=True, sender=MANAGER
        )
        await desk.runtime.ask(run, asked)
        (item,) = await desk.list_open(run)
        assert (item["kind"], item["agent"], item["question"]) == ("message", "manager", "Green or black?")
        assert (await desk.runtime.state(run)).agents[MANAGER].step_lock
        await desk.answer(item, text="Green.")
        assert (await desk.runtime.state(run)).agents[MANAGER].step_lock == ()
        assert await desk.list_open(run) == []
        late = await desk.answer(item, 409, text="Black.")
        assert late["message"] == "The question is no longer open."
        reply = await desk.post(f"/runs/{run}/messages", 409, text="Black.", answers=item["id"])
        assert (reply["message"], reply["code"]) == (late["message"], "gone")
        rows = (await desk.get(f"/runs/{run}/messages"))["items"]
        assert [(row["sender"], row["text"]) for row in rows] == [
            ("ann", "Make tea."),
            ("manager", "Green or black?"),
            ("ann", "Green."),
        ]
        assert rows[1]["answered_at"] is not None
