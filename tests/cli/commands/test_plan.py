"""`greenroom plan`: what it shows, when it asks a model, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom.testing.scripted import Cue
from tests.cli.commands.conftest import Script
from tests.cli.commands.shop import call
from tests.cli.conftest import Type
from tests.e2e.terminal import Ended
from tests.e2e.terminal import greenroom as start_process

FEATURE = "add OAuth login, with tests and docs"
UNSURE = "make it nicer somehow"
ANSWER = {
    "task_types": ["feature-development"],
    "subtasks": [
        {"id": "login", "agent": "code-writer", "name": "Login", "writes": ["shop/login.py"], "seconds": 100},
        {"id": "token", "agent": "code-writer", "writes": ["shop/token.py"]},
        {"id": "review", "agent": "review", "dependencies": ["login", "token"], "priority": 4},
    ],
}


def fields(ended: Ended) -> Mapping[str, Any]:
    assert ended.code == 0, ended.err
    return cast("Mapping[str, Any]", ended.json)


@pytest.mark.req(
    "RC-34",
    "RC-35",
    "RC-41",
    "RC-42",
    "RC-45",
    "RC-46",
    "RC-47",
    "RC-49",
    "RC-51",
    "RC-52",
    "RC-53",
    "RC-54",
    "RC-55",
)
@pytest.mark.req("RC-107", "RC-108", "RC-109")
def test_a_plan_shows_types_specialists_estimate_subtasks_and_the_critical_path(shop: Path, greenroom: Type) -> None:
    ended = greenroom("plan", FEATURE)
    assert ended.code == 0, ended.err
    for text in (
        "Task types: feature-development, testing, documentation (the rules are sure)",
        "architect      required: designs the change and its parts",
        "review         recommended: is in `team.default_agents`",
        "Estimate (from the defaults of the profiles): 10–27 min, 173k–446k tokens",
        "30 % can run in parallel; predicted gain 1.1×.",
        "* code       2 in parallel  code-writer-1    Code Implementation  architect",
        "Critical path (*): architect → code → test → review, 14.5 min",
        "A team: 3 disjoint write sets",
    ):
        assert text in ended.out
    found = fields(greenroom("plan", "--output-format", "json", FEATURE))
    assert found["task_types"] == ["feature-development", "testing", "documentation"]
    assert (found["source"], found["is_sure"], found["team"]["is_team"]) == ("rules", True, True)
    assert [subtask["id"] for subtask in found["subtasks"]] == ["architect", "code", "test", "doc", "review"]
    assert [phase["subtasks"] for phase in found["phases"]] == [["architect"], ["code", "doc"], ["test"], ["review"]]
    planned = ("name", "agent", "dependencies", "priority", "seconds")
    assert {subtask["id"]: tuple(subtask[key] for key in planned) for subtask in found["subtasks"]} == {
        "architect": ("Architecture Design", "architect", [], 1, 300),
        "code": ("Code Implementation", "code-writer", ["architect"], 2, 180),
        "test": ("Test Writing", "test-writer", ["code"], 3, 150),
        "doc": ("Documentation", "documentation", ["architect"], 2, 120),
        "review": ("Code Review", "review", ["architect", "code", "test", "doc"], 4, 240),
    }
    assert found["subtasks"][1]["description"] == found["request"] == FEATURE
    assert [phase["number"] for phase in found["phases"]] == [1, 2, 3, 4]
    assert [phase["can_parallelize"] for phase in found["phases"]] == [False, True, False, False]
    assert [phase["seconds"] for phase in found["phases"]] == [300, 180, 150, 240]
    assert [advice["priority"] for advice in found["recommended"]] == ["required"] * 4 + ["recommended"]
    assert (found["can_parallelize"], found["estimate"]["agents"]) == (True, 5)
    assert found["estimate"]["parallelizable_ratio"] == pytest.approx(0.3, abs=0.01)
    assert found["estimate"]["cost"] is None
    assert found["runs"] == []


@pytest.mark.req("RC-35", "RC-37", "RC-38", "RC-39", "RC-40", "RC-44")
@pytest.mark.parametrize(
    ("request_", "agents"),
    [
        ("fix the crash in the parser", ["debug", "code-writer", "test-writer"]),
        ("refactor the parser", ["refactor", "test-writer", "architect", "review"]),
        ("write tests for the parser", ["test-writer"]),
        ("update the README", ["documentation"]),
        ("修复解析器的崩溃", ["debug", "code-writer", "test-writer"]),
    ],
)
def test_the_type_of_a_task_decides_its_specialists(
    shop: Path, greenroom: Type, request_: str, agents: list[str]
) -> None:
    found = fields(greenroom("plan", "--output-format", "json", request_))
    assert [advice["agent"] for advice in found["recommended"]] == agents
    assert found["team"]["is_team"] is False
    assert found["team"]["reason"].startswith("One agent: ")


@pytest.mark.req("RC-36", "RC-41")
def test_a_feature_needs_a_design_code_and_tests_and_gets_documentation(shop: Path, greenroom: Type) -> None:
    found = fields(greenroom("plan", "--output-format", "json", "add a login page"))
    needs = {advice["agent"]: advice["priority"] for advice in found["recommended"]}
    required = dict.fromkeys(("architect", "code-writer", "test-writer"), "required")
    assert needs == {**required, "documentation": "recommended", "review": "recommended"}
    assert list(needs)[:3] == list(required)


@pytest.mark.req("RC-82")
def test_an_unknown_conflict_strategy_is_said(shop: Path, greenroom: Type) -> None:
    assert "conflict_strategy" not in greenroom("plan", FEATURE).err
    (shop / ".greenroom").mkdir(exist_ok=True)
    (shop / ".greenroom" / "config.toml").write_text('[team]\nconflict_strategy = "newest"\n')
    ended = greenroom("plan", FEATURE)
    assert ended.code == 0
    assert "unknown value 'newest'" in ended.err
    assert "Known values: merge, timestamp, priority, human." in " ".join(ended.err.split())


def test_without_a_model_an_unclear_request_is_a_guess_and_is_marked(shop: Path, greenroom: Type) -> None:
    ended = greenroom("plan", UNSURE)
    assert "(a guess)" in ended.out
    assert "! The rules are not sure and no model is configured: the task types are a guess." in ended.out
    assert fields(greenroom("plan", "--output-format", "json", UNSURE))["is_sure"] is False


def test_an_unclear_request_is_one_model_call_with_the_files_of_the_repository(
    shop: Path, greenroom: Type, script: Script
) -> None:
    model = script([Cue(agent="planner", reply=call("answer", **ANSWER))])
    found = fields(greenroom("plan", "--output-format", "json", UNSURE))
    (request,) = model.requests
    text = str(request.messages)
    assert "shop/cart.py" in text
    assert "secret.txt" not in text
    assert (found["source"], found["is_sure"], found["team"]["is_team"]) == ("model", True, True)
    assert [subtask["name"] for subtask in found["subtasks"]] == ["Login", "token", "review"]
    assert [subtask["seconds"] for subtask in found["subtasks"]] == [100, 180, 240]
    (run,) = found["runs"]
    assert UNSURE in greenroom("runs").out
    assert greenroom("show", run).code == 0


def test_a_sure_request_asks_no_model_and_planner_rules_never_does(shop: Path, greenroom: Type, script: Script) -> None:
    model = script([])
    priced = fields(greenroom("plan", "--output-format", "json", FEATURE))
    guessed = fields(greenroom("plan", "--planner", "rules", "--output-format", "json", UNSURE))
    assert model.requests == []
    assert priced["estimate"]["cost"] == {"low": 0.0, "high": 0.0}
    assert guessed["source"] == "guess"


def test_a_faulty_plan_of_a_model_is_asked_for_once_more_with_its_fault_and_then_the_rules_plan(
    shop: Path, greenroom: Type, script: Script
) -> None:
    wrong = {**ANSWER, "subtasks": [{"id": "a", "agent": "code-writter", "writes": ["shop/a.py"]}]}
    script_right = Cue(agent="planner", reply=call("answer", **ANSWER))
    model = script([Cue(agent="planner", turn=1, reply=call("answer", **wrong)), script_right])
    found = fields(greenroom("plan", "--planner", "model", "--output-format", "json", FEATURE))
    assert (found["source"], len(model.requests)) == ("model", 2)
    assert "There is no specialist `code-writter`" in str(model.requests[1].messages)
    assert "Did you mean `code-writer`?" in str(model.requests[1].messages)
    model = script([Cue(agent="planner", reply=call("answer", **wrong))])
    found = fields(greenroom("plan", "--planner", "model", "--output-format", "json", FEATURE))
    assert (found["source"], len(model.requests)) == ("rules", 2)
    assert "the rules planned instead" in found["notes"][0]


def test_a_plan_that_comes_as_text_is_read_and_prose_is_asked_for_once_more(
    shop: Path, greenroom: Type, script: Script
) -> None:
    words = ("plan", "--planner", "model", "--output-format", "json", FEATURE)
    script([Cue(agent="planner", reply=json.dumps(ANSWER))])
    assert fields(greenroom(*words))["source"] == "model"
    prose = Cue(agent="planner", turn=1, reply="First I would design it, then write it.")
    model = script([prose, Cue(agent="planner", reply=call("answer", **ANSWER))])
    assert (fields(greenroom(*words))["source"], len(model.requests)) == ("model", 2)
    model = script([Cue(agent="planner", reply="First I would design it, then write it.")])
    found = fields(greenroom(*words))
    assert (found["source"], len(model.requests)) == ("rules", 2)
    assert "the rules planned instead" in found["notes"][0]


def test_the_manager_of_the_settings_plans(shop: Path, greenroom: Type, script: Script, home: Path) -> None:
    refused = greenroom("plan", "--planner", "manager", FEATURE)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "Name an agent in `manager` of `[team]`." in refused.err
    agents = home.parent / "config" / "greenroom" / "agents"
    agents.mkdir(parents=True)
    (agents / "boss.md").write_text("---\nname: boss\nrole: a boss\ndescription: Plans.\n---\nPlan with care.\n")
    settings(shop, 'planner = "manager"\nmanager = "boss"')
    model = script([Cue(agent="boss", reply=call("answer", **ANSWER))])
    assert fields(greenroom("plan", "--output-format", "json", FEATURE))["source"] == "manager"
    assert "Plan with care." in str(model.requests[0])
    settings(shop, 'planner = "manager"\nmanager = "bos"')
    assert "boss" in greenroom("plan", FEATURE).err


def settings(shop: Path, text: str) -> None:
    (shop / ".greenroom").mkdir(exist_ok=True)
    (shop / ".greenroom" / "config.toml").write_text(f"[team]\n{text}\n")


@pytest.mark.req("RC-132", "RC-142", "RC-143")
def test_teams_that_are_off_are_refused_in_one_sentence(shop: Path, greenroom: Type, home: Path) -> None:
    (shop / ".greenroom").mkdir()
    (shop / ".greenroom" / "multiAgent.json").write_text('{"multiAgent": {"enabled": false}}')
    for words in (("plan", FEATURE), ("run", "--team", "--yes", FEATURE)):
        refused = greenroom(*words)
        assert (refused.code, refused.err) == (
            2,
            "Error: Teams are off. Set `enabled = true` in `[team]` of your settings.\n",
        )
    assert greenroom("runs", "--output-format", "json").json["tasks"] == []


@pytest.mark.req("RC-50", "RC-145", "RC-147", "RC-148", "RC-149", "RC-150", "RC-151")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('default_agents = ["security"]', {"agents": "security"}),
        ("min_subtasks = 6", {"code": "single_few_subtasks"}),
        ("max_subtasks = 3", {"count": 3}),
        ("parallelization_threshold = 0.5", {"code": "single_low_ratio"}),
        ('strategy = "dependency-only"', {"first": ["architect", "doc"]}),
        ("consider_dependencies = false", {"needs": []}),
    ],
)
def test_the_settings_of_teams_shape_the_plan(
    shop: Path, greenroom: Type, text: str, expected: dict[str, object]
) -> None:
    settings(shop, text)
    found = fields(greenroom("plan", "--output-format", "json", FEATURE))
    agents = [subtask["agent"] for subtask in found["subtasks"]]
    actual = {
        "agents": "security" if "security" in agents and "review" not in agents else "",
        "code": found["team"]["code"],
        "count": len(agents),
        "first": found["phases"][0]["subtasks"],
        "needs": [need for subtask in found["subtasks"] for need in subtask["dependencies"]],
    }
    assert {key: actual[key] for key in expected} == expected


def test_a_plan_is_saved_once(shop: Path, greenroom: Type) -> None:
    assert "greenroom run --plan p.toml" in greenroom("plan", "--save", "p.toml", FEATURE).out
    assert "[[subtasks]]" in (shop / "p.toml").read_text()
    refused = greenroom("plan", "--save", "p.toml", FEATURE)
    assert (refused.code, refused.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((" ",), "There is no task."),
        (("x" * 20_001,), "The request has 20,001 characters. The limit is 20,000"),
        (("--planner", "ruels", FEATURE), "ruels"),
    ],
    ids=["empty", "a novel", "unknown planner"],
)
@pytest.mark.req("RC-132")
def test_an_unusable_request_is_refused_and_nothing_is_started(
    shop: Path, greenroom: Type, words: tuple[str, ...], why: str
) -> None:
    refused = greenroom("plan", *words)
    assert refused.code == 2
    assert why in refused.err
    assert greenroom("runs", "--output-format", "json").json["tasks"] == []


def test_a_profile_with_an_unknown_tool_group_is_named_with_the_nearest(
    shop: Path, greenroom: Type, home: Path
) -> None:
    agents = home.parent / "config" / "greenroom" / "agents"
    agents.mkdir(parents=True)
    (agents / "writer.md").write_text("---\nname: writer\nrole: r\ndescription: d\ngroups: [reed]\n---\nWrite.\n")
    settings(shop, 'default_agents = ["writer"]')
    refused = greenroom("plan", FEATURE)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "`groups`" in refused.err
    assert "read" in refused.err


def test_a_plan_is_made_in_a_process_of_its_own(tmp_path: Path, shop: Path) -> None:
    ended = start_process(tmp_path / "own", "plan", FEATURE, cwd=str(shop))
    assert ended.code == 0
    assert "Critical path (*): architect → code → test → review" in ended.out
