"""A whole story of an organisation through its doors: asked for, made, worked on in three stages, asked, delivered."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.organised import Company, Line, new, step, writes
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import Ended, greenroom
from tests.sampling import first

RESULT = {"en": "Sencha: 80 degrees, two minutes.", "zh": "煎茶：八十度，两分钟。"}
OVER = {"en": "Task t2 is over: finished. {}", "zh": "任务t2已结束：已完成。{}"}
ORDER = {
    "manager": (
        "planning ask_info process_message agent_manager agent_manager task_manager reflection "
        "planning task_manager task_manager reflection planning task_manager reflection process_message "
        "planning task_manager task_manager reflection"
    ),
    "wu": (
        "planning instruction_generation read_code instruction_generation read_code send_message process_message "
        "reflection think reflection summary planning send_message process_message reflection summary"
    ),
    "xi": "send_message planning think reflection summary planning send_message reflection summary",
    "ann": "send_message send_message",
}
"""What everybody did. Xi answers Wu before it plans, or after: that depends on who is quicker."""


def stage(goal: str, **duties: str) -> dict[str, object]:
    return {"stage_intention": goal, "agent_allocation": duties}


def ends(what: str, name: str, summary: str) -> dict[str, object]:
    return {"action": f"finish_{what}", f"{what}_id": name, "state": "finished", "summary": summary}


def reads(text: str) -> dict[str, str]:
    return {**step("read_code", text), "type": "tool"}


DONE = {"completion_summary": "Done.", "state": "finished"}


def story(language: str) -> Mapping[tuple[str, str], Sequence[Line]]:
    """Ann wants a guide: Wu reads two files and asks her, Wu and Xi write it, Xi checks it."""
    return {**manager(language), **WORKERS}


def manager(language: str) -> Mapping[tuple[str, str], Sequence[Line]]:
    """What the manager says."""
    task = {
        "action": "add_task",
        "task_name": "Guide",
        "task_intention": "A guide to tea",
        "task_group": ["wu", "xi", "ann"],
        "stages": [stage("Find out", wu="Read"), stage("Write", wu="Write the text", xi="Find a title")],
    }
    return {
        ("manager", "planning"): [
            [step("ask_info"), step("agent_manager"), step("agent_manager"), step("task_manager")],
            [step("task_manager"), step("task_manager")],
            [step("task_manager")],
            [step("task_manager"), step("task_manager")],
        ],
        ("manager", "ask_info"): [{"type": "blueprints", "about": []}],
        ("manager", "process_message"): ["I see."],
        ("manager", "agent_manager"): [
            {"action": "init_new_agent", "agent_id": "wu", "blueprint": "researcher"},
            {"action": "init_new_agent", "agent_id": "xi", "blueprint": "writer"},
        ],
        ("manager", "task_manager"): [
            task,
            ends("stage", "t2.s1", "Found."),
            {"action": "add_stage", "task_id": "t2", "stages": [stage("Check", xi="Read it again")]},
            ends("stage", "t2.s2", "Written."),
            ends("stage", "t2.s3", "Checked."),
            ends("task", "t2", RESULT[language]),
        ],
        ("manager", "reflection"): [[]],
    }


WORKERS: Mapping[tuple[str, str], Sequence[Line]] = {
    ("wu", "planning"): [
        [reads("What tea is there?"), reads("How is it made?"), step("send_message")],
        [step("send_message")],
    ],
    ("wu", "instruction_generation"): [{"file": "tea.txt"}, {"file": "made.txt"}],
    ("wu", "send_message"): [writes("ann", "Which one?", waiting=True), writes("xi", "The title?", waiting=True)],
    ("wu", "process_message"): ["I see."],
    ("wu", "reflection"): [[step("think")], []],
    ("wu", "think"): ["80 degrees."],
    ("wu", "summary"): [DONE],
    ("xi", "planning"): [[step("think")], [step("send_message")]],
    ("xi", "think"): ["Sencha."],
    ("xi", "send_message"): [writes("wu", "Sencha."), writes("manager", "It is good.")],
    ("xi", "reflection"): [[]],
    ("xi", "summary"): [DONE],
}


def states(home: Path, folder: Path, kind: str, **more: str) -> Mapping[str, Mapping[str, object]]:
    shown = greenroom(home, "team", "status", "--type", kind, "--output-format", "json", cwd=str(folder), **more)
    assert shown.code == 0, shown.err
    found = shown.json["states"]
    assert isinstance(found, dict)
    return found


def did(steps: Mapping[str, Mapping[str, object]], agent: str) -> list[str]:
    return [str(one["executor"]) for one in steps.values() if one["agent_id"] == agent]


@pytest.mark.req("MAS-10", "MAS-12", "MAS-13", "MAS-15", "MAS-18", "MAS-26", "MAS-57", "MAS-76", "MAS-77", "MAS-132")
@pytest.mark.req("MAS-136", "MAS-166", "MAS-167", "MAS-187", "MAS-245", "MAS-250", "MAS-253")
@pytest.mark.parametrize("language", first("zh", "en"))
def test_what_a_person_asks_for_is_made_by_agents_that_did_not_exist_before(tmp_path: Path, language: str) -> None:
    home, script = tmp_path / "home", Company(story(language))
    (tmp_path / "tea.txt").write_text("sencha\n")
    (tmp_path / "made.txt").write_text("80 degrees\n")

    def talk(*words: str, stdin: str | None = None) -> Ended:
        return greenroom(home, "talk", *words, stdin=stdin, cwd=str(tmp_path), **more)

    with provider(script) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", "--language", language, **more)
        asked = talk("--say", "A guide to tea, please.", "--wait")
        assert asked.code == 6, asked.err
        assert "Which one?" in asked.out
        ended = talk("--wait", stdin="/answer 1 Sencha.\n")
        assert ended.code == 0, ended.err
        assert OVER[language].format(RESULT[language]) in ended.out
        steps = states(home, tmp_path, "step", **more)
        agents = states(home, tmp_path, "agent", **more)
        stages = states(home, tmp_path, "stage", **more)
    for agent in ("manager", "wu", "ann"):
        assert did(steps, agent) == ORDER[agent].split()
    assert sorted(did(steps, "xi")) == sorted(ORDER["xi"].split())
    assert [one["execution_state"] for one in stages.values()] == ["finished"] * 3
    assert stages["t2.s2"]["every_agent_state"] == {"wu": "finished", "xi": "finished"}
    assert {name: one["working_memory"] for name, one in agents.items()} == {
        "ann": {"t1": {}},
        "manager": {"t1": {}},
        "wu": {},
        "xi": {},
    }
    assert not [one for one in agents.values() if one["step_lock"]]
    told = json.dumps([one["execute_result"] for one in steps.values()], ensure_ascii=False)
    assert "sencha" in told, "the tool has read a real file"
    assert "80 degrees" in told


@pytest.mark.req("MAS-8", "MAS-31")
def test_eight_people_who_come_at_once_the_first_time_talk_in_one_organisation(tmp_path: Path) -> None:
    home, people = tmp_path / "home", [f"p{number}" for number in range(8)]

    def says(who: str) -> Ended:
        words = ("talk", "tea", "--as", who, "--say", f"{who} is here.")
        return greenroom(home, *words, cwd=str(tmp_path), **more)

    with provider(Company({})) as server:
        more = reached(server)
        new(home, tmp_path, *(word for one in people for word in ("--person", one)), **more)
        with ThreadPoolExecutor(len(people)) as together:
            ended = list(together.map(says, people))
        assert [one.code for one in ended] == [0] * len(people), [one.err for one in ended]
        shown = greenroom(home, "team", "list", "--output-format", "json", cwd=str(tmp_path), **more)
        steps = states(home, tmp_path, "step", **more)
    teams = shown.json["teams"]
    assert isinstance(teams, list)
    assert len([one for one in teams if one["team"]]) == 1, shown.out
    assert {str(one["agent_id"]) for one in steps.values()} >= set(people), "what each said was said there"
