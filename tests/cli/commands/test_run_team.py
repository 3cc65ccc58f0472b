"""`greenroom run --team` and `--plan`: confirmed, edited or cancelled; then a whole team to a verified change."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom.cli.commands import run
from greenroom.cli.context import Invocation
from greenroom.cli.interactive import follow, plan_review
from greenroom.testing.scripted import Cue
from tests.cli.commands.conftest import Script
from tests.cli.commands.shop import REQUEST, TAX, call, done, team_cues, write
from tests.cli.conftest import Type
from tests.e2e.jobs import exactly, git
from tests.e2e.terminal import greenroom as start_process
from tests.tiers import has_bubblewrap

needs_sandbox = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
PLAN = """request = "add tax"
[[subtasks]]
id = "tax"
agent = "code-writer"
writes = ["shop/tax.py"]
[[subtasks]]
id = "discount"
agent = "code-writer"
writes = ["shop/discount.py"]
dependencies = [{needs}]
"""


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Type these lines at a terminal. A question without a line fails."""
    lines: list[str] = []
    monkeypatch.setattr(Invocation, "is_attended", property(lambda cli: cli.app.is_attended))
    monkeypatch.setattr(plan_review, "ask_line", lambda _: lines.pop(0))
    return lines


def edit_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, texts: Iterable[str]) -> Path:
    """Set an editor that writes one of these texts each time. Return the file that holds what it was opened with."""
    seen = tmp_path / "seen.txt"
    for number, text in enumerate(texts):
        (tmp_path / f"edit-{number}").write_text(text)
    program = tmp_path / "editor.py"
    program.write_text(
        f"import pathlib, sys\nfolder = pathlib.Path({str(tmp_path)!r})\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "with (folder / 'seen.txt').open('a') as seen: seen.write(path.read_text() + '\\f')\n"
        "next_ = sorted(folder.glob('edit-*'))[0]\npath.write_text(next_.read_text())\nnext_.unlink()\n"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {program}")
    return seen


def count_runs(greenroom: Type) -> int:
    found = greenroom("runs", "--output-format", "json").json["tasks"]
    assert isinstance(found, list)
    return len(found)


@needs_sandbox
@pytest.mark.req("RC-1", "RC-3", "RC-56", "RC-59", "RC-61", "RC-107", "RC-130")
def test_a_confirmed_team_runs_in_parallel_and_its_change_is_verified(
    shop: Path, greenroom: Type, script: Script
) -> None:
    script(team_cues())
    before = exactly(shop)
    ended = greenroom("run", "--team", "--yes", REQUEST)
    assert ended.code == 0, ended.err
    assert "Task types: feature-development, testing, documentation" in ended.err
    assert "verified" in ended.err
    assert exactly(shop) == before
    assert greenroom("apply", "last").code == 0
    assert (shop / "shop" / "tax.py").exists()
    assert (shop / "shop" / "discount.py").exists()


@needs_sandbox
def test_a_chinese_run_is_chinese_on_the_screen_and_for_its_agents(
    shop: Path, greenroom: Type, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENROOM_LANGUAGE", "zh")
    model = script(team_cues())
    ended = greenroom("run", "--team", "--planner", "rules", "--non-interactive", "添加税额函数，并编写测试和文档")
    assert ended.code == 0, ended.err
    for text in (
        "架构设计",
        "代码审查",
        "基线检查",
        "代码已拆分：code-1, code-2。",
        "项目的测试可以验证改动",
        "智能体",
    ):
        assert text in ended.err, text
    for text in ("Architecture", "Baseline", "The code", "Before any change", "can judge", "The work of", "代理"):
        assert text not in ended.err + ended.out, text
    assert "团队的工作已合并。" in ended.out + ended.err
    briefing = next(str(request) for request in model.requests if "编写全面的测试" in str(request))
    for text in ("阶段目标：添加税额函数", "你的目标：编写全面的测试", "只修改：tests/**", "本阶段的其他成员："):
        assert text in briefing
    assert "goal:" not in briefing


@needs_sandbox
@pytest.mark.req("RC-43", "RC-57", "RC-63", "RC-64")
def test_the_result_for_programs_is_that_of_a_run(shop: Path, greenroom: Type, script: Script) -> None:
    script(team_cues())
    ended = greenroom("run", "--team", "--non-interactive", "--apply", "--output-format", "json", REQUEST)
    assert (ended.code, ended.json["status"], ended.json["verified"]) == (0, "finished", True), ended.err
    assert "shop/tax.py" in git(shop, "show", "--name-only", "--format=", "HEAD~4..HEAD")
    shown = cast("Mapping[str, Any]", greenroom("show", "last", "--output-format", "json").json)
    (task,) = shown["tasks"]
    (stage,) = task["stages"]
    assert (shown["team"]["team_id"], task["intention"]) == (ended.json["team"], REQUEST)
    assert (task["state"], stage["state"]) == ("finished", "finished")
    assert stage["started_at"] < stage["ended_at"] <= task["ended_at"]
    found = {row["name"]: row for row in stage["subtasks"]}
    assert all(stage["started_at"] <= row["started_at"] <= row["ended_at"] for row in found.values())
    assert (found["code-2"]["agent"], found["code-2"]["state"], found["code-2"]["summary"]) == (
        "code-writer-2",
        "finished",
        "discount",
    )
    assert found["architect"]["output"]["protocol"] == "design-handoff"


@needs_sandbox
@pytest.mark.req("RC-152")
@pytest.mark.parametrize(("setting", "waits"), [("true", False), ("false", True)])
def test_without_optimize_for_speed_a_subtask_waits_for_the_phase_before(
    shop: Path, greenroom: Type, script: Script, setting: str, waits: bool
) -> None:
    (shop / ".greenroom").mkdir()
    (shop / ".greenroom" / "config.toml").write_text(f"[team]\noptimize_for_speed = {setting}\n")
    script(team_cues())
    ended = greenroom("run", "--team", "--yes", REQUEST)
    assert ended.code == 0, ended.err
    shown = cast("Mapping[str, Any]", greenroom("show", "last", "--output-format", "json").json)
    found = {row["name"]: row for row in shown["tasks"][0]["stages"][0]["subtasks"]}
    assert (found["doc"]["subtask_id"] in found["test"]["needs"]) is waits
    assert found["test"]["started_at"] >= found["doc"]["ended_at"] or not waits


@needs_sandbox
@pytest.mark.req("RC-139", "RC-162")
def test_estimates_are_those_of_past_runs_if_metrics_are_wanted(shop: Path, greenroom: Type, script: Script) -> None:
    script(team_cues())
    assert greenroom("run", "--team", "--yes", REQUEST).code == 0
    words = ("plan", "--output-format", "json", REQUEST)
    found = cast("Mapping[str, Any]", greenroom(*words).json)
    assert (found["estimate"]["basis"], found["team"]["code"]) == ("past_runs", "single_slower")
    seconds = {subtask["id"]: subtask["seconds"] for subtask in found["subtasks"]}
    assert sum(seconds[name] for name in found["critical_path"]) == found["estimate"]["critical_seconds"]
    assert sum(seconds.values()) == found["estimate"]["serial_seconds"]
    assert "One agent: a team would take longer" in greenroom("plan", REQUEST).out
    (shop / ".greenroom").mkdir()
    (shop / ".greenroom" / "config.toml").write_text("[team]\nperformance_metrics = false\n")
    assert cast("Mapping[str, Any]", greenroom(*words).json["estimate"])["basis"] == "profiles"


def break_checks(shop: Path) -> None:
    """Leave only a check that cannot run here."""
    (shop / "package.json").write_text('{"scripts": {"test": "no-such-runner"}}')
    (shop / "tests" / "test_cart.py").unlink()
    (shop / "conftest.py").unlink()
    (shop / "p.toml").write_text(PLAN.format(needs=""))


@needs_sandbox
@pytest.mark.parametrize("on_failure", ["stop", "continue", "escalate"])
@pytest.mark.parametrize("has_check", [True, False])
def test_without_a_check_that_judges_no_specialist_is_paid_unless_that_is_allowed(
    shop: Path, greenroom: Type, script: Script, on_failure: str, has_check: bool
) -> None:
    break_checks(shop)
    if not has_check:
        (shop / "package.json").unlink()
    (shop / "p.toml").write_text(f'on_failure = "{on_failure}"\n{PLAN.format(needs="")}')
    model = script([*write("code-writer-1", "shop/tax.py", TAX, "tax"), *write("code-writer-2", "shop/a.py", TAX, "a")])
    words = ("run", "--plan", "p.toml", "--non-interactive", "--output-format", "json")
    ended = greenroom(*words)
    assert (ended.code, ended.json["status"], model.requests) == (7, "unverified", []), ended.err
    assert "Nothing here can verify a change, so no model was called." in ended.err
    assert "--allow-unverified" in ended.out
    allowed = greenroom(*words, "--allow-unverified")
    assert (allowed.code, allowed.json["status"]) == (7, "unverified"), allowed.err
    assert model.requests


@needs_sandbox
@pytest.mark.parametrize("answer", ["yes", "n"])
def test_a_person_is_asked_before_unverified_work_is_paid(
    shop: Path, greenroom: Type, script: Script, answers: list[str], monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    break_checks(shop)
    model = script([*write("code-writer-1", "shop/tax.py", TAX, "tax"), *write("code-writer-2", "shop/a.py", TAX, "a")])
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        assert not model.requests
        return answer

    monkeypatch.setattr(follow, "ask_line", ask)
    monkeypatch.setattr(run, "ask_line", lambda _: "l")
    monkeypatch.setattr(run, "_choose_checks", lambda *_: None)
    answers += ["c"]
    ended = greenroom("run", "--plan", "p.toml")
    assert (ended.code, bool(model.requests), len(asked)) == (7, answer == "yes", 1), ended.err
    assert "Continue anyway?" in asked[0]


@pytest.mark.req("RC-110")
def test_a_plan_is_cancelled_before_anything_runs(
    shop: Path, greenroom: Type, script: Script, answers: list[str]
) -> None:
    model = script(team_cues())
    answers += ["what?", "x"]
    ended = greenroom("run", "--team", REQUEST)
    assert (ended.code, model.requests, answers) == (1, [], [])
    assert "Cancelled. Nothing was started." in ended.err
    assert count_runs(greenroom) == 0


@pytest.mark.req("RC-110", "RC-132")
def test_a_plan_is_edited_checked_again_and_nothing_is_lost(
    shop: Path,
    greenroom: Type,
    script: Script,
    answers: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    script(team_cues())
    broken, faulty = "request = [", PLAN.replace("code-writer", "code-writter", 1).format(needs="")
    seen = edit_with(monkeypatch, tmp_path, [broken, faulty, PLAN.format(needs='"tax"')])
    answers += ["m", "e", "", "x"]
    ended = greenroom("run", "--team", REQUEST)
    first, second, third, _ = seen.read_text().split("\f")
    assert REQUEST in first
    assert (second, third) == (broken, faulty)
    assert "Line 1: The plan cannot be read as TOML" in ended.err
    assert "Line 4: There is no specialist `code-writter`." in ended.err
    assert "Did you mean `code-writer`?" in ended.err
    assert "Critical path (*): tax → discount" in ended.err
    assert (ended.code, answers, count_runs(greenroom)) == (1, [], 0)


def test_the_text_of_a_cancelled_edit_is_kept(
    shop: Path,
    greenroom: Type,
    script: Script,
    answers: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    script(team_cues())
    edit_with(monkeypatch, tmp_path, ["much typed = ["])
    answers += ["m", "x", "x"]
    ended = greenroom("run", "--team", REQUEST)
    kept = ended.err.partition("Your text is kept in ")[2].partition(".toml.")[0]
    assert Path(f"{kept}.toml").read_text() == "much typed = ["


def test_an_emptied_plan_cancels(
    shop: Path,
    greenroom: Type,
    script: Script,
    answers: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    script(team_cues())
    edit_with(monkeypatch, tmp_path, ["\n"])
    answers += ["m"]
    ended = greenroom("run", "--team", REQUEST)
    assert (ended.code, count_runs(greenroom)) == (1, 0)
    assert "Cancelled. Nothing was started." in ended.err


def test_without_an_editor_that_is_said(
    shop: Path, greenroom: Type, script: Script, answers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script(team_cues())
    monkeypatch.setenv("VISUAL", "no-such-editor --wait")
    answers += ["m"]
    ended = greenroom("run", "--team", REQUEST)
    assert ended.code == 3
    assert "There is no editor `no-such-editor --wait`. Set $EDITOR" in ended.err


@needs_sandbox
def test_a_task_that_is_not_worth_a_team_goes_to_one_agent_unasked(shop: Path, greenroom: Type, script: Script) -> None:
    change = call("rewrite", file="shop/mended.py", content="MENDED = True\n")
    finish = call("finish", status="done", summary="fixed")
    script([Cue(agent="coder", turn=1, reply=change), Cue(agent="coder", reply=finish)])
    ended = greenroom("run", "--team", "--yes", "fix the crash in the cart")
    assert "One agent: 0 % of the work can run in parallel" in ended.err
    assert ended.code == 0, ended.err


@needs_sandbox
def test_what_the_planning_took_counts_under_the_limits_of_one_agent(
    shop: Path, greenroom: Type, script: Script
) -> None:
    plan = {"task_types": ["bug-fix"], "subtasks": [{"id": "a", "agent": "code-writer", "writes": ["a.py"]}]}
    change = call("rewrite", file="shop/mended.py", content="MENDED = True\n")
    finish = call("finish", status="done", summary="fixed")
    coder = [Cue(agent="coder", turn=1, reply=change), Cue(agent="coder", reply=finish)]
    script([Cue(agent="planner", reply=call("answer", **plan)), *coder])
    ended = greenroom("run", "--team", "--planner", "model", "--yes", "--max-tokens", "1000000", "fix the cart")
    assert ended.code == 0, ended.err
    lines = map(json.loads, greenroom("events", "last", "--output-format", "stream-json").out.splitlines())
    limits = next(line["limits"] for line in lines if line["type"] == "LimitsSet")
    assert 0 < limits["tokens"] < 1_000_000


def test_the_planner_of_a_team_is_chosen(shop: Path, greenroom: Type, script: Script, answers: list[str]) -> None:
    wanted = {"id": "a", "agent": "code-writer", "writes": ["a.py"]}
    plan = {"task_types": ["testing"], "subtasks": [wanted, {**wanted, "id": "b", "writes": ["b.py"]}]}
    model = script([Cue(agent="planner", reply=call("answer", **plan))])
    answers += ["x", "x"]
    words = ("run", "--team", "--planner")
    assert "(the rules are sure)" in greenroom(*words, "rules", REQUEST).err
    assert model.requests == []
    assert "Task types: testing (by a model)" in greenroom(*words, "model", REQUEST).err
    assert len(model.requests) == 1


@needs_sandbox
def test_a_saved_plan_runs_without_a_classification(shop: Path, greenroom: Type, script: Script) -> None:
    tax, discount = "def tax(x):\n    return x\n", "def discount(x):\n    return x\n"
    (shop / "p.toml").write_text(PLAN.format(needs=""))
    model = script(
        [
            Cue(agent="code-writer-1", turn=1, reply=call("rewrite", file="shop/tax.py", content=tax)),
            Cue(agent="code-writer-1", reply=done("tax")),
            Cue(agent="code-writer-2", turn=1, reply=call("rewrite", file="shop/discount.py", content=discount)),
            Cue(agent="code-writer-2", reply=done("discount")),
        ]
    )
    ended = greenroom("run", "--plan", "p.toml", "--yes")
    assert ended.code == 0, ended.err
    assert "predicted gain" in ended.err
    assert "writers would wait for each other" not in ended.err, "the person wants this team"
    assert {purpose.agent for purpose in model.purposes} == {"code-writer-1", "code-writer-2"}


@needs_sandbox
@pytest.mark.req("RC-60", "RC-62")
def test_an_escalated_failure_waits_for_a_decision_and_goes_on_with_more_tries(
    shop: Path, greenroom: Type, script: Script
) -> None:
    (shop / "p.toml").write_text(f'on_failure = "escalate"\n{PLAN.format(needs="")}tries = 1\n')
    replies = iter((call("answer", status="failed", summary="cannot"), call("rewrite", file="shop/a.py", content=TAX)))
    discount = Cue(agent="code-writer-2", reply=lambda _: next(replies, done("discount")))
    script([*write("code-writer-1", "shop/tax.py", TAX, "tax"), discount])
    words = ("run", "--plan", "p.toml", "--yes", "--apply")
    waiting = greenroom(*words)
    team = waiting.err.partition("greenroom cancel ")[2].split()[0]
    decide = (
        f"It waits for your decision. To allow more tries: greenroom replan {team}, then greenroom resume {team}. "
        f"To end it: greenroom cancel {team}"
    )
    assert (waiting.code, "t1 paused: discount failed" in waiting.err) == (6, True), waiting.err
    assert decide in waiting.err
    assert decide in greenroom("show", "last").err
    assert greenroom("resume", "last", "--yes").code == 6, "it still waits"
    plan = greenroom("replan", "last", "--show").out
    (shop / "q.toml").write_text(plan.replace("tries = 1", "tries = 2"))
    assert f"Continue with: greenroom resume {team}" in greenroom("replan", "last", "--file", "q.toml").err
    ended = greenroom("resume", "last", "--yes")
    assert (ended.code, "Verified" in ended.err) == (0, True), ended.err


@pytest.mark.req("RC-54", "RC-132")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            PLAN.format(needs='"discount"'),
            "Line 10: The subtasks depend on each other in a cycle: discount → discount.",
        ),
        (PLAN.format(needs='"taxes"'), "`discount` depends on `taxes`, which is not in the plan. Did you mean `tax`?"),
        (PLAN.replace("shop/tax.py", "../tax.py").format(needs=""), "Line 5: The write set of `tax` leaves the repos"),
        (PLAN.replace('"code-writer"', '"coder"', 1).format(needs=""), "Line 4: There is no specialist `coder`."),
        (PLAN.replace("agent", "agnet", 1).format(needs=""), "Line 4: There is no key `agnet` here."),
        ("[[subtasks]", "Line 1: The plan cannot be read as TOML"),
        ('request = ""\n[[subtasks]]\nid = "a"\nagent = "review"\n', "Line 1: The request is empty."),
        (f'request = "{"x" * 20_001}"\n[[subtasks]]\nid = "a"\nagent = "review"\n', "20,001 characters"),
        ('request = "x"\n', "The plan has no subtasks."),
        (None, "p.toml cannot be read: No such file or directory."),
        (b"\xff\xfe", "p.toml cannot be read: byte 0 is not UTF-8."),
    ],
    ids=[
        "cycle",
        "nothing",
        "outside",
        "type",
        "key",
        "not TOML",
        "empty",
        "novel",
        "no subtasks",
        "missing",
        "binary",
    ],
)
def test_a_faulty_plan_is_refused_in_one_sentence_and_nothing_is_started(
    shop: Path, greenroom: Type, script: Script, text: str | bytes | None, why: str
) -> None:
    model = script(team_cues())
    if text is not None:
        (shop / "p.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused = greenroom("run", "--plan", "p.toml", "--yes")
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused.err
    assert why in refused.err
    assert (model.requests, count_runs(greenroom)) == ([], 0)


@pytest.mark.parametrize(
    "words",
    [
        ("--team", "--question", "x"),
        ("--team", "--in-place", "x"),
        ("--team", "--agent", "coder", "x"),
        ("--plan", "p.toml", "x"),
        ("--plan", "p.toml", "--planner", "rules"),
        ("--planner", "rules", "x"),
        ("--team", "--planner", "nobody", "x"),
    ],
)
def test_options_that_contradict_a_team_are_refused(shop: Path, greenroom: Type, words: tuple[str, ...]) -> None:
    assert greenroom("run", *words).code == 2


def test_without_a_terminal_the_plan_must_be_confirmed_by_an_option(
    shop: Path, greenroom: Type, script: Script
) -> None:
    script(team_cues())
    refused = greenroom("run", "--team", REQUEST)
    assert refused.code == 2
    assert (
        "The plan needs your confirmation, and this is not a terminal. Add --yes, or --non-interactive." in refused.err
    )


def test_a_team_without_a_model_is_refused_before_anything_is_asked(tmp_path: Path, shop: Path) -> None:
    ended = start_process(tmp_path / "own", "run", "--team", "--yes", REQUEST, cwd=str(shop))
    assert ended.code == 3
    assert "model" in ended.err.splitlines()[-1]


@needs_sandbox
@pytest.mark.req("RC-144", "RC-146")
def test_the_settings_limit_a_team_and_leave_its_code_whole(shop: Path, greenroom: Type, script: Script) -> None:
    (shop / ".greenroom").mkdir()
    content = '{"multiAgent": {"maxConcurrentAgents": 1, "taskAnalysis": {"autoDecompose": false}}}'
    (shop / ".greenroom" / "multiAgent.json").write_text(content)
    model = script(team_cues())
    greenroom("run", "--team", "--yes", REQUEST)
    assert "code-writer-2" not in {purpose.agent for purpose in model.purposes}
    assert '"concurrency":1' in greenroom("events", "last", "--output-format", "json").out
