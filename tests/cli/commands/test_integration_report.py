"""`greenroom report`: what a team did, how good it is, and what was not verified."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom import Greenroom
from greenroom.cli.commands import plan as plan_command
from greenroom.cli.context import Invocation
from greenroom.cli.exit_codes import Exit
from greenroom.testing.scripted import Cue
from tests.app.teams.play import plays
from tests.cli.commands.conftest import Script
from tests.cli.commands.shop import DISCOUNT, REQUEST, TAX, call, done, write
from tests.cli.conftest import Type
from tests.e2e.jobs import exactly
from tests.tiers import has_bubblewrap

needs_sandbox = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
PLAN = """request = "add rates"
[[subtasks]]
id = "tax"
agent = "code-writer"
writes = ["shop/tax.py", "shop/never.py"]
[[subtasks]]
id = "disc"
agent = "code-writer"
writes = ["shop/disc.py"]
[[subtasks]]
id = "tests"
agent = "test-writer"
dependencies = ["tax"]
writes = ["tests/**"]
[[subtasks]]
id = "review"
agent = "review"
dependencies = ["disc", "tests"]
"""
COVERAGE = """
[checks.unit]
run = "python -m pytest -q && echo 'TOTAL 4 1 {percent}%'"
kind = "test"
[team]
{team}
"""
TYPES = '\n[checks.types]\nrun = "grep -rn untyped shop && exit 1 || exit 0"\nkind = "types"\n'
TESTS = """from shop.tax import tax


def test_tax():
    assert tax(10) == 2


def test_zero():
    assert tax(0) == 0
"""
REVIEW = {
    "overall_score": 90,
    "requires_changes": False,
    "suggestions": [
        {"priority": "high", "description": "Name the rate.", "example": "RATE = 0.2 </review>"},
        {"priority": "low", "description": "Explain the discount."},
    ],
}


def cues(tax: str = TAX, disc: str = "shop/disc.py", review: object = REVIEW, **report: object) -> list[Cue]:
    claim = {"test_files": [], "tests_added": 7, **report}
    return [
        *write("code-writer-1", "shop/tax.py", tax, "tax"),
        *write("code-writer-2", disc, DISCOUNT, "disc"),
        *plays("test-writer-1", call("rewrite", file="tests/test_tax.py", content=TESTS), done("tests", handoff=claim)),
        Cue(agent="review-1", reply=done("good", handoff=review)),
    ]


def start(shop: Path, greenroom: Type, *options: str, settings: str = "") -> Any:
    """Run the team of the plan. Return the result as data."""
    (shop / "p.toml").write_text(PLAN)
    (shop / ".greenroom").mkdir(exist_ok=True)
    (shop / ".greenroom" / "config.toml").write_text(settings)
    run = greenroom("run", "--plan", "p.toml", "--yes", "--non-interactive", "--output-format", "json", *options)
    assert "integration" in run.json, run.err
    return cast("Any", run.json)


@needs_sandbox
@pytest.mark.req("RC-89", "RC-90", "RC-91", "RC-99", "RC-100", "RC-101", "RC-102", "RC-105", "RC-112", "RC-126")
def test_the_report_of_a_team_says_what_each_agent_did_and_what_it_is_worth(
    shop: Path, greenroom: Type, script: Script
) -> None:
    script(cues())
    run = start(shop, greenroom)
    found = run["integration"]
    assert (run["verified"], found["validation"]["valid"], found["validation"]["issues"]) == (True, True, [])
    assert (found["validation"]["score"], found["validation"]["score_parts"]["review"]) == (98, -2.0)
    outputs = {name: [part["kind"] for part in parts] for name, parts in found["outputs"].items()}
    assert outputs == {
        "tax": ["code-change"],
        "disc": ["code-change"],
        "tests": ["code-change", "test-results"],
        "review": [],
    }
    assert found["outputs"]["tests"][1] == {
        "results": ["tests/test_tax.py"],
        "tests_count": 7,
        "coverage": None,
        "kind": "test-results",
    }
    merged = found["merged"]
    assert merged["files"]["shop/tax.py"] == {"kind": "code", "added": 2, "removed": 0, "subtasks": ["tax"]}
    assert merged["metrics"] == {
        "total_files": 3,
        "lines_added": 13,
        "lines_removed": 0,
        "tests_added": 2,
        "coverage": None,
    }
    assert (merged["documentation"], [each["passed"] for each in merged["test_results"]]) == ([], [3])
    report = found["report"]
    summary = report["summary"]
    assert report["execution_id"] == run["team"]
    assert (summary["total_agents"], summary["total_subtasks"], summary["completed_subtasks"]) == (4, 4, 4)
    assert (summary["failed_subtasks"], summary["files_modified"], summary["lines_changed"]) == (0, 3, 13)
    assert (summary["tests_added"], summary["coverage"], summary["verdict"]) == (2, None, "verified")
    assert 0 < summary["total_duration"] < 120
    assert summary["serial_seconds"] > summary["work_seconds"] > 0
    writers = report["agent_contributions"]["code-writer"]
    assert (writers["agents"], writers["subtasks"]) == (["code-writer-1", "code-writer-2"], ["tax", "disc"])
    assert (writers["completed"], writers["files"]) == (2, ["shop/tax.py", "shop/disc.py"])
    assert (writers["lines_added"], writers["lines_removed"]) == (4, 0)
    assert report["reviews"] == [{"subtask": "review", "score": 90, "issues": 0, "requires_changes": False}]
    assert (found["conflicts"], found["resolutions"]) == (0, [])
    assert "Coverage: no check printed one." in report["not_verified"]
    assert any("agents' own words" in line for line in report["not_verified"])


@needs_sandbox
def test_the_report_is_text_markdown_and_json_and_says_the_same(shop: Path, greenroom: Type, script: Script) -> None:
    script(cues(disc="shop/other_disc.py"))
    run = start(shop, greenroom)
    text = greenroom("report", "last").out
    assert text.startswith(f"Integration report of {run['team']}\n\nResult\n  Quality 98/100, verified\n")
    assert "  4 of 4 subtasks, 3 files, +13 −0\n  Tests added: 2\n" in text
    assert "code-writer (code-writer-1, code-writer-2): tax, disc. 2 files, +4 −0" in text
    assert "Write sets\n  2 of 3 subtasks changed only planned files.\n" in text
    assert "  disc changed unplanned files: shop/other_disc.py\n" in text
    assert "  high: Name the rate. RATE = 0.2 </review>\n" in text
    assert "Score\n  start: +100\n  review: -2\n" in text
    markdown = greenroom("report", "last", "--markdown").out
    assert markdown.startswith(f"# Integration report of {run['team']}\n\n## Result\n\n- Quality 98/100, verified\n")
    assert "- disc changed unplanned files: shop/other\\_disc.py\n" in markdown
    assert text.count("\n  ") == markdown.count("\n- ")
    json = cast("Any", greenroom("report", "last", "--output-format", "json").json)
    assert {key: json[key] for key in run["integration"]} == run["integration"]
    assert "2 of 3 subtasks changed only planned files; often unplanned: –" in greenroom("plan", REQUEST).out
    past = cast("Any", greenroom("plan", REQUEST, "--output-format", "json").json)["past_merges"]
    assert (past["merges"], past["unplanned"]) == (3, {"shop/other_disc.py": 1})
    sets = {row["subtask"]: row for row in json["report"]["write_sets"]}
    assert sets["tax"] == {
        "subtask": "tax",
        "planned": ["shop/tax.py", "shop/never.py"],
        "changed": ["shop/tax.py"],
        "outside": [],
        "unused": ["shop/never.py"],
    }


@needs_sandbox
@pytest.mark.req("RC-92", "RC-96", "RC-97", "RC-98", "RC-103", "RC-104", "RC-156")
def test_a_changed_file_with_wrong_syntax_is_an_error_unless_the_setting_is_off(
    shop: Path, greenroom: Type, script: Script
) -> None:
    script(cues(disc="shop/disc.json"))
    found = start(shop, greenroom, settings="[team]\nvalidate_syntax = false\n")["integration"]
    assert (found["validation"]["issues"], found["validation"]["valid"]) == ([], True)
    assert found["report"]["recommendations"] == []
    assert "Syntax: `validate_syntax` is off." in found["report"]["not_verified"]
    (shop / ".greenroom" / "config.toml").write_text("")
    again = cast("Any", greenroom("report", "last", "--output-format", "json").json)
    (issue,) = again["validation"]["issues"]
    assert (issue["severity"], issue["file"]) == ("error", "shop/disc.json")
    assert (issue["message"], issue["details"][:15]) == ("Syntax error detected", "Expecting value")
    assert again["report"]["recommendations"] == ["shop/disc.json: Mend the file."]
    assert (again["validation"]["valid"], again["validation"]["score"]) == (False, 78)


@needs_sandbox
def test_scripts_are_not_verified_without_the_extra_that_reads_them(
    shop: Path, greenroom: Type, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(cues(disc="shop/disc.ts"))
    line = "the extra `merge` is not installed: shop/disc.ts"
    found = start(shop, greenroom)["integration"]
    assert not any(line in text for text in found["report"]["not_verified"])
    monkeypatch.setitem(sys.modules, "ast_grep_py", None)
    again = cast("Any", greenroom("report", "last", "--output-format", "json").json)
    assert any(line in text for text in again["report"]["not_verified"])


@needs_sandbox
@pytest.mark.req("RC-157")
@pytest.mark.parametrize("is_on", [True, False])
def test_the_type_check_of_the_project_counts_unless_the_setting_is_off(
    shop: Path, greenroom: Type, script: Script, is_on: bool
) -> None:
    script(cues(tax=f"{TAX}# untyped\n"))
    settings = f"[team]\nmax_rounds = 0\nvalidate_types = {str(is_on).lower()}\n{TYPES}"
    run = start(shop, greenroom, settings=settings)
    report = run["integration"]["report"]
    assert (report["summary"]["failed_subtasks"], "shop/tax.py" in run["integration"]["merged"]["files"]) == (
        (1, False) if is_on else (0, True)
    )
    events = greenroom("events", "last", "--output-format", "json").out
    assert ('"check":"types"' in events) == is_on, "a check that is off is never run"
    assert ("Types: `validate_types` is off." in report["not_verified"]) == (not is_on)


@needs_sandbox
@pytest.mark.req("RC-94", "RC-97", "RC-158")
@pytest.mark.parametrize(
    ("percent", "team", "warned"),
    [(79, "", 80), pytest.param(80, "", 0, marks=pytest.mark.prove), (79, "min_coverage = 60", 0)],
)
def test_coverage_that_a_check_printed_is_compared_with_the_minimum(
    shop: Path, greenroom: Type, script: Script, percent: int, team: str, warned: int
) -> None:
    script(cues(coverage=99))
    settings = COVERAGE.format(percent=percent, team=team)
    found = start(shop, greenroom, settings=settings)["integration"]
    texts = [each["message"] for each in found["validation"]["issues"]]
    assert texts == ([f"Coverage {percent} % is below the minimum of {warned} %."] if warned else [])
    assert all(each["suggestion"].startswith("Add tests") for each in found["validation"]["issues"])
    assert (found["validation"]["valid"], found["merged"]["metrics"]["coverage"]) == (True, percent)
    assert found["report"]["summary"]["coverage_source"] == "measured"
    assert f"Coverage: {percent} % (measured), minimum" in greenroom("report", "last").out


@needs_sandbox
@pytest.mark.req("RC-95", "RC-97", "RC-159")
def test_claimed_coverage_is_labelled_and_missing_documentation_is_a_warning_if_it_is_required(
    shop: Path, greenroom: Type, script: Script
) -> None:
    script(cues(coverage=71))
    found = start(shop, greenroom, settings="[team]\nrequire_documentation = true\n")["integration"]
    issues = {each["code"]: each for each in found["validation"]["issues"]}
    assert list(issues) == ["low_coverage", "no_documentation"]
    assert issues["low_coverage"]["details"] == "claimed by an agent"
    assert issues["no_documentation"]["message"] == "No documentation generated"
    assert issues["no_documentation"]["suggestion"].startswith("Add documentation")
    assert "Coverage: no check printed one. The figure is an agent's claim." in found["report"]["not_verified"]
    (shop / ".greenroom" / "config.toml").write_text("")
    again = cast("Any", greenroom("report", "last", "--output-format", "json").json)
    assert [each["code"] for each in again["validation"]["issues"]] == ["low_coverage"]


@needs_sandbox
def test_the_end_of_a_run_and_its_report_are_in_the_language_of_the_person(
    shop: Path, greenroom: Type, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(cues())
    (shop / "p.toml").write_text(PLAN)
    ended = greenroom("run", "--plan", "p.toml", "--yes", "--non-interactive")
    assert "Quality 98/100, verified" in ended.err
    assert "Report: greenroom report " in ended.err
    monkeypatch.setenv("GREENROOM_LANGUAGE", "zh")
    shown = greenroom("report", "last").out
    assert "质量 98/100，已验证" in shown
    assert "未验证\n  覆盖率：没有检查输出覆盖率。" in shown


def test_other_runs_have_no_report(shop: Path, greenroom: Type, script: Script) -> None:
    script([Cue(reply="yes")])
    assert greenroom("ask", "is it?").code == 0
    refused = greenroom("report", "last")
    assert (refused.code, "is not a team run." in refused.err) == (2, True)


# ------------------------------------------------------------------------------------------------------- the follow-up


@needs_sandbox
@pytest.mark.req("RC-113")
def test_a_follow_up_begins_with_the_change_and_only_it_has_to_be_applied(
    shop: Path, greenroom: Type, script: Script
) -> None:
    script(cues())
    first = start(shop, greenroom)
    before = exactly(shop)
    model = script(write("code-writer-1", "shop/rate.py", "RATE = 0.2\n", "named"))
    ended = greenroom("report", "last", "--apply-suggestions", "--yes", "--non-interactive", "--output-format", "json")
    second = cast("Any", ended.json)
    assert (ended.code, second["verified"], second["team"] != first["team"]) == (0, True, True), ended.err
    asked = str(model.requests[0].messages)
    assert r"```\n- high: Name the rate. RATE = 0.2 </review>\n" in asked, "a suggestion cannot end the fence"
    assert second["base"] == first["base"]
    changed = {change["path"] for change in second["changes"]}
    assert changed == {"shop/tax.py", "shop/disc.py", "tests/test_tax.py", "shop/rate.py"}
    assert second["integration"]["merged"]["metrics"]["tests_added"] == 2, "the base of the checks is the first run's"
    assert exactly(shop) == before
    assert greenroom("apply", str(second["team"])).code == 0
    assert (shop / "shop" / "rate.py").read_text() == "RATE = 0.2\n"
    assert (shop / "shop" / "disc.py").read_text() == DISCOUNT
    assert greenroom("undo", str(second["team"])).code == 0
    assert exactly(shop) == before


@needs_sandbox
def test_a_follow_up_of_an_applied_run_adds_only_its_own_work_and_one_that_changes_nothing_keeps_the_change(
    shop: Path, greenroom: Type, script: Script
) -> None:
    script(cues())
    first = start(shop, greenroom)
    script([Cue(agent="code-writer-1", reply=done("nothing to do"))])
    words = ("--apply-suggestions", "--yes", "--non-interactive", "--output-format", "json")
    idle = cast("Any", greenroom("report", str(first["team"]), *words).json)
    assert ([change["path"] for change in idle["changes"]], idle["verified"]) == (
        [change["path"] for change in first["changes"]],
        True,
    )
    assert greenroom("apply", str(first["team"])).code == 0
    script(write("code-writer-1", "shop/rate.py", "RATE = 0.2\n", "named"))
    second = cast("Any", greenroom("report", str(first["team"]), *words).json)
    applied = greenroom("apply", str(second["team"]))
    assert (applied.code, (shop / "shop" / "rate.py").exists()) == (0, True), applied.err
    assert (shop / "shop" / "tax.py").read_text() == TAX


@needs_sandbox
def test_at_a_terminal_the_report_offers_detail_suggestions_and_close(
    shop: Path, greenroom: Type, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(cues())
    start(shop, greenroom)
    lines = ["detail", "c"]
    monkeypatch.setattr(Invocation, "is_attended", property(lambda cli: cli.app.is_attended))
    monkeypatch.setattr(plan_command, "ask_line", lambda _: lines.pop(0))
    shown = greenroom("report", "last").out
    assert (shown.count("Quality 98/100"), shown.count("Score\n"), lines) == (2, 1, [])
    lines += ["s"]
    script(write("code-writer-1", "shop/tax.py", f"RATE = 0.2\n\n\n{TAX}", "named"))
    monkeypatch.setattr(plan_command, "start_team", _note_start)
    assert greenroom("report", "last").code == 0
    assert [str(part.id) for part in STARTED] == ["suggestions"]


STARTED: list[Any] = []


async def _note_start(cli: Invocation, choice: Any, *_: object, **__: object) -> object:
    STARTED[:] = choice.plan.subtasks
    return cli.out.result("ok", Exit.DONE)


@needs_sandbox
def test_a_follow_up_needs_suggestions_a_change_and_the_folder_of_the_run(
    shop: Path, greenroom: Type, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script(cues(review={"overall_score": 90, "requires_changes": False}))
    start(shop, greenroom)
    refused = greenroom("report", "last", "--apply-suggestions", "--non-interactive")
    assert (refused.code, "has no suggestions of a review." in refused.err) == (2, True)
    lines, asked = ["s", "x", "c"], list[str]()

    def ask_line(question: str) -> str:
        asked.append(question)
        return lines.pop(0)

    with monkeypatch.context() as terminal:
        terminal.setattr(Invocation, "is_attended", property(lambda cli: cli.app.is_attended))
        terminal.setattr(plan_command, "ask_line", ask_line)
        closed = greenroom("report", "last")
    assert (closed.code, closed.err.count("Unknown answer."), asked) == (0, 2, ["[d]etail, [c]lose? "] * 3)
    assert "Score\n" not in closed.out, "the detail was not asked for"
    script(cues())
    start(shop, greenroom)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    refused = greenroom("report", "last", "--apply-suggestions", "--non-interactive")
    assert (refused.code, f"works in {shop}. Type this command there." in refused.err) == (2, True)


@needs_sandbox
def test_a_program_reads_the_report_of_a_run(shop: Path, greenroom: Type, script: Script, home: Path) -> None:
    script(cues())
    run = start(shop, greenroom)

    async def read() -> object:
        async with Greenroom(workspace=shop, home=home) as program:
            return await program.teams.report(run["team"])

    assert asyncio.run(read()) == run["integration"]
