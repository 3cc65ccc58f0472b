"""What a person reads about a team run whose parts conflict, fail, or are criticised."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom.core.ports.model import ModelRequest
from greenroom.testing.scripted import Cue, ScriptedCall
from tests.app.teams.play import (
    Gate,
    TeamPlay,
    call,
    is_state,
    make_plan,
    part,
    plays,
    reads,
    report_files,
    set_team,
    writes,
)
from tests.app.teams.test_review_loop import mends, refuse
from tests.cli.commands.conftest import Script
from tests.cli.commands.shop import DISCOUNT, TAX, done, write
from tests.cli.conftest import Type
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
LONG = "the tax is written, " + "with much that does not fit in a line, " * 4 + "to the end"
CONFLICT = "Not merged: disc and tax changed shop/rate.py (code-writer-1, code-writer-2)."
PLAN = """request = "add rates"
[[subtasks]]
id = "disc"
agent = "code-writer"
writes = ["shop/disc.py"]
[[subtasks]]
id = "review"
agent = "review"
dependencies = ["disc"]
"""


def flat(text: str) -> str:
    """Return the text without its line breaks."""
    return " ".join(text.split())


async def play_conflict() -> str:
    """Let two writers make the same file. Return the run."""
    cues = (
        *writes("code-writer-1", "shop/rate.py", DISCOUNT),
        *plays("code-writer-2", call("rewrite", file="shop/rate.py", content=TAX), done(LONG, handoff=report_files())),
    )
    gates = {("code-writer-2", 2): Gate()}
    async with TeamPlay.open(*cues, gates=gates) as play:
        await play.start(make_plan(part("disc"), part("tax"), part("review", "review", "tax"), on_failure="continue"))
        await play.until(lambda stage: is_state(stage, "disc", "finished"))
        gates["code-writer-2", 2].is_open.set()
        assert (await play.end()).state == "failed"
        return str(play.team)


def test_a_conflict_and_the_work_that_is_missing_can_be_read_whole(
    shop: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_team(shop, conflict_strategy="human", fallback_to_human=False)
    team = asyncio.run(play_conflict())
    shown = flat(greenroom("show", "last").out)
    assert f"✗ tax (code-writer-2) failed: {CONFLICT} {LONG}" in shown
    assert f"Its work is not in the change. See it: greenroom diff {team}/tax" in shown
    assert f"✗ failed 'tax': {CONFLICT} {LONG}" in flat(greenroom("events", "last").out)
    missing = "Not in the change: tax (failed), review (skipped)."
    assert missing in shown
    whole = greenroom("diff", "last", "--output-format", "json")
    assert ("discount" in str(whole.json["diff"]), missing in greenroom("diff", "last").err) == (True, True)
    work = greenroom("diff", "last/tax", "--output-format", "json")
    assert ("def tax" in str(work.json["diff"]), missing in work.err) == (True, False)
    assert "has no task 'taxes'" in greenroom("diff", f"{team}/taxes").err
    applied = greenroom("apply", "last")
    assert (applied.code, missing in applied.err, (shop / "shop" / "rate.py").read_text()) == (0, True, DISCOUNT)
    monkeypatch.setenv("GREENROOM_LANGUAGE", "zh")
    assert "改动中不包含：tax (失败), review (已跳过)。" in greenroom("show", "last").out


def test_the_issues_of_a_review_and_files_outside_a_write_set_are_shown_before_the_decision(
    shop: Path, greenroom: Type, script: Script
) -> None:
    issue = {
        "severity": "critical",
        "category": "correctness",
        "location": {"path": "shop/rate.py", "line": 2.0},
        "description": "The rate is wrong.",
        "suggestion": "Use 0.8.",
    }
    review = {"overall_score": 3.0, "requires_changes": True, "issues": [issue]}
    (shop / "p.toml").write_text(PLAN)
    script(
        [
            *write("code-writer-1", "shop/rate.py", DISCOUNT, "disc"),
            Cue(agent="review-1", reply=done("no", handoff=review)),
        ]
    )
    (shop / ".greenroom").mkdir()
    (shop / ".greenroom" / "config.toml").write_text("[team]\nmax_rounds = 0\n")
    ended = greenroom("run", "--plan", "p.toml", "--yes", "--non-interactive")
    assert ended.code == 1, ended.err
    for text in (ended.err, greenroom("show", "last").out):
        assert "✗ review (review-1) failed: Still requires changes after 0 rounds:" in text
        assert "! disc (code-writer-1) changed files outside its write set: shop/rate.py" in text
        assert "! review (review-1) asks for changes (3/100):" in text
        assert "critical: shop/rate.py:2: The rate is wrong. Use 0.8." in flat(text)


@pytest.mark.req("RC-75", "RC-76")
def test_the_rounds_of_a_review_are_rows_with_their_own_figures_and_all_scores(
    shop: Path, greenroom: Type, script: Script
) -> None:
    (shop / "p.toml").write_text(PLAN)
    good = {"overall_score": 90, "requires_changes": False}

    def review(request: ModelRequest) -> ScriptedCall:
        is_second = "Look at the change again" in reads(request)
        return done("good" if is_second else "no", handoff=good if is_second else refuse("shop/disc.py"))

    script([*mends("code-writer-1", "shop/disc.py", "x = 1\n", DISCOUNT), Cue(agent="review-1", reply=review)])
    ended = greenroom("run", "--plan", "p.toml", "--yes", "--non-interactive", "--output-format", "json")
    assert (ended.code, ended.json["verified"]) == (0, True), ended.err
    rows = {row["subtask"]: row for row in cast("list[dict[str, Any]]", ended.json["subtasks"])}
    assert [rows[name]["review_score"] for name in ("review", "review-2")] == [30, 90]
    assert {rows[name]["agent"] for name in ("disc", "fix-1")} == {"code-writer-1"}
    assert (rows["disc"]["tokens"], rows["fix-1"]["tokens"]) == (100, 150), "each row has its own model calls"
    assert sum(row["tokens"] for row in rows.values()) == ended.json["tokens"]
    shown = greenroom("show", "last").out
    assert "review (review-1) found issues (30/100):" in shown
    assert "asks for changes" not in shown, "the second review found it fixed"
    assert "Review scores: review 30/100, review-2 90/100" in shown
    order = [line.split()[1] for line in shown.splitlines() if line.startswith("✓")]
    assert order[:6] == ["baseline", "disc", "review", "fix-1", "review-2", "verify"]


def test_a_failed_review_with_a_hand_off_of_wrong_types_is_shown_as_a_failure(
    shop: Path, greenroom: Type, script: Script
) -> None:
    (shop / "p.toml").write_text(PLAN)
    failed = call("answer", status="failed", summary="I cannot judge it.", handoff={"requires_changes": "yes"})
    script([*write("code-writer-1", "shop/rate.py", DISCOUNT, "disc"), Cue(agent="review-1", reply=failed)])
    assert greenroom("run", "--plan", "p.toml", "--yes", "--non-interactive").code == 1
    shown = greenroom("show", "last")
    assert (shown.code, "I cannot judge it." in flat(shown.out)) == (0, True)
