"""What agents of an organisation do, seen through its doors: several tasks, all questions, long tails, refusals."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from greenroom.abilities.skills.planned.skills import QUERIES, TWELVE
from tests.e2e.organised import Company, Line, new, step, writes
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import Ended, greenroom

SURFER = """---
role: a surfer
profile: Looks at pages.
style: plan
skills: [think, quick_think]
tools: [browser_use]
---
Look first.
"""


class House:
    """An organisation in a folder, asked once by ann."""

    def __init__(self, folder: Path, lines: Mapping[tuple[str, str], list[Line]]) -> None:
        self.home, self.here, self.script = folder / "home", str(folder), Company(lines)
        self.agent("surfer", SURFER)

    def agent(self, name: str, text: str) -> None:
        """Describe somebody who can be made here."""
        agents = self.home / "config" / "greenroom" / "agents"
        agents.mkdir(parents=True, exist_ok=True)
        (agents / f"{name}.md").write_text(text)

    def asked(self, folder: Path) -> Ended:
        """Ask for something, and wait."""
        new(self.home, folder, "--person", "ann")
        return self.talk("--say", "Tea.", "--wait")

    def talk(self, *words: str, stdin: str | None = None) -> Ended:
        """Ann talks, while the provider answers."""
        with provider(self.script) as server:
            self._more = reached(server)
            return greenroom(self.home, "talk", *words, stdin=stdin, cwd=self.here, **self._more)

    def states(self, kind: str) -> Mapping[str, Mapping[str, object]]:
        """All states of a type."""
        words = ("team", "status", "--type", kind, "--output-format", "json")
        found = greenroom(self.home, *words, cwd=self.here, **self._more).json["states"]
        assert isinstance(found, dict)
        return found

    def did(self, agent: str) -> list[str]:
        """What somebody did, by its names."""
        steps = self.states("step").values()
        return [f"{one['executor']}:{one['execution_state']}" for one in steps if one["agent_id"] == agent]


def task(name: str, **duties: str) -> dict[str, object]:
    stage = {"stage_intention": f"{name} made", "agent_allocation": duties}
    return {
        "action": "add_task",
        "task_name": name,
        "task_intention": f"{name} is there",
        "task_group": [*duties, "ann"],
        "stages": [stage],
    }


def made(agent: str, blueprint: str) -> dict[str, object]:
    return {"action": "init_new_agent", "agent_id": agent, "blueprint": blueprint}


@pytest.mark.req("MAS-5", "MAS-6", "MAS-8", "MAS-67")
def test_several_tasks_go_on_at_once_and_an_agent_works_in_two_of_them(tmp_path: Path) -> None:
    house = House(
        tmp_path,
        {
            ("manager", "planning"): [[step("agent_manager"), step("task_manager"), step("task_manager")]],
            ("manager", "agent_manager"): [made("wu", "writer")],
            ("manager", "task_manager"): [task("Green", wu="Write"), task("Black", wu="Write")],
            ("manager", "reflection"): [[]],
            ("wu", "planning"): [[step("send_message")]],
            ("wu", "send_message"): [writes("ann", "Which?", waiting=True)],
        },
    )
    assert house.asked(tmp_path).code == 6
    tasks = house.states("task")
    assert {name: (one["execution_state"], "wu" in str(one["task_group"])) for name, one in tasks.items()} == {
        "t1": ("running", False),
        "t2": ("running", True),
        "t3": ("running", True),
    }
    assert set(json.loads(json.dumps(house.states("agent")["wu"]["working_memory"]))) == {"t2", "t3"}


CLERK = """---
role: a clerk
profile: Asks.
style: plan
skills: [ask_info]
---
Ask first.
"""
ABOUT = {
    "task": ["t2"],
    "stage": ["t2.s2"],
    "task_agents": ["t2"],
    "stage_agents": ["t2.s1"],
    "agent_states": ["xi", "yu"],
}
EVERYBODY = ["ann", "manager", "wu", "xi", "yu"]
TOLD = {
    "managed_tasks": [],
    "joined_tasks": ["t3", "t3.s1"],
    "task": ["t2", "t2.s1", "t2.s2"],
    "stage": ["t2.s2"],
    "blueprints": ["analyst", "clerk", "engineer", "researcher", "reviewer", "surfer", "writer"],
    "all_agents": EVERYBODY,
    "team_agents": EVERYBODY,
    "task_agents": ["manager", "yu", "ann"],
    "stage_agents": ["yu"],
    "agent_states": ["xi", "yu"],
}
"""What each answer names, and nothing else: wu manages nothing and works in the first stage of t3. The team is all."""
NAMED = re.compile(r"^(?:#+ (t\d\S*)|- \*\*(\w+)\*\*)", re.MULTILINE)


def asking() -> Mapping[tuple[str, str], list[Line]]:
    """Yu works in t2; wu, who works in t3, asks everything; the manager asks what it manages."""
    black, green = task("Black", yu="Write"), task("Green", wu="Ask")
    for one, name, who in ((black, "Print", "yu"), (green, "Read", "xi")):
        stages = cast("list[object]", one["stages"])
        stages.append({"stage_intention": name, "agent_allocation": {who: name}})
    green["task_group"] = ["wu", "xi", "ann"]
    order = ("agent_manager", "agent_manager", "agent_manager", "task_manager", "task_manager", "ask_info")
    return {
        ("manager", "planning"): [[step(one) for one in order]],
        ("manager", "agent_manager"): [made("wu", "clerk"), made("xi", "writer"), made("yu", "writer")],
        ("manager", "task_manager"): [black, green],
        ("manager", "ask_info"): [{"type": "managed_tasks", "about": []}],
        ("manager", "process_message"): ["I see."],
        ("manager", "reflection"): [[]],
        ("yu", "planning"): [[step("send_message")]],
        ("yu", "send_message"): [writes("ann", "Which?", waiting=True)],
        ("wu", "planning"): [[*(step("ask_info", f"Ask {one}.") for one in QUERIES), step("send_message")]],
        ("wu", "ask_info"): [{"type": one, "about": ABOUT.get(one, [])} for one in QUERIES],
        ("wu", "process_message"): ["I see."],
        ("wu", "send_message"): [writes("ann", "Which?", waiting=True)],
    }


@pytest.mark.req("MAS-103", "MAS-105", "MAS-106", "MAS-107", "MAS-108", "MAS-109", "MAS-110", "MAS-111", "MAS-112")
@pytest.mark.req("MAS-113", "MAS-114", "MAS-115", "MAS-176")
def test_all_eleven_questions_are_asked_and_each_answer_has_what_its_question_is_about(tmp_path: Path) -> None:
    house = House(tmp_path, asking())
    house.agent("clerk", CLERK)
    assert house.asked(tmp_path).code == 6
    did = ["planning", *("ask_info", "process_message") * 11, "send_message"]
    assert house.did("wu")[: len(did)] == [f"{one}:finished" for one in did]
    steps = [one for one in house.states("step").values() if one["executor"] == "process_message"]
    read = {who: [str(one["text_content"]) for one in steps if one["agent_id"] == who] for who in ("wu", "manager")}
    answers = dict(zip(QUERIES, read["wu"], strict=True))
    names = {query: [task or name for task, name in NAMED.findall(text)] for query, text in answers.items()}
    abilities = names.pop("abilities")
    assert names == TOLD
    assert {*(one.name for one in TWELVE), "read_code"} <= set(abilities)
    assert answers["abilities"].count(" (skill): ") >= len(TWELVE)
    assert answers["managed_tasks"].endswith("None.")
    assert answers["agent_states"].count("working_state: ") == 2
    (managed,) = (NAMED.findall(text) for text in read["manager"])
    assert [one for one, _ in managed] == ["t1", "t2", "t2.s1", "t2.s2", "t3", "t3.s1", "t3.s2"]


@pytest.mark.req("MAS-104", "MAS-178", "MAS-188")
def test_a_long_tail_tool_that_fails_is_gone_on_with_until_its_agent_decides_to_end(tmp_path: Path) -> None:
    decisions = [{"decision": "continue", "direction": "Once more."}, {"decision": "end", "direction": ""}]
    house = House(
        tmp_path,
        {
            ("manager", "planning"): [[step("agent_manager"), step("task_manager")], [step("task_manager")]],
            ("manager", "agent_manager"): [made("su", "surfer")],
            ("manager", "task_manager"): [
                task("Page", su="Look"),
                {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": "Seen."},
            ],
            ("manager", "reflection"): [[]],
            ("su", "planning"): [[{**step("browser_use"), "type": "tool"}]],
            ("su", "instruction_generation"): [{"task": " "}],
            ("su", "tool_decision"): list(decisions),
            ("su", "reflection"): [[]],
            ("su", "summary"): [{"completion_summary": "Seen.", "state": "finished"}],
        },
    )
    asked = house.asked(tmp_path)
    assert (asked.code, "su wants to use browser_use." in asked.out) == (6, True), "nobody has allowed it yet"
    ended = house.talk("--wait", stdin="/yes 1 run\n")
    assert (ended.code, "Task t2 is over: finished. Seen." in ended.out) == (0, True), ended.err
    call = ["instruction_generation:finished", "browser_use:failed", "tool_decision:finished"]
    others = ["reflection:finished", "summary:finished"]
    assert house.did("su") == ["planning:finished", *call, *call, *others]


REFUSED = {
    "'summary' cannot be planned": step("summary"),
    "'tool_decision' cannot be planned": step("tool_decision"),
    "you have no 'browser_use'": {**step("browser_use"), "type": "tool"},
    "you have no 'task_manager'": step("task_manager"),
}
"""Why a plan cannot be, and a step that it then has."""


@pytest.mark.req("MAS-130", "MAS-137", "MAS-71", "MAS-119")
@pytest.mark.parametrize("two", [tuple(REFUSED)[:2], tuple(REFUSED)[2:]], ids=["skills", "permits"])
def test_what_an_agent_may_not_plan_is_refused_and_a_plan_without_a_look_back_gets_one(
    tmp_path: Path, two: tuple[str, str]
) -> None:
    house = House(
        tmp_path,
        {
            ("manager", "planning"): [[step("agent_manager"), step("task_manager")], [step("task_manager")]],
            ("manager", "agent_manager"): [made("wu", "writer")],
            ("manager", "task_manager"): [
                task("Green", wu="Write"),
                {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": "Written."},
            ],
            ("manager", "reflection"): [[]],
            ("wu", "planning"): [*([REFUSED[why]] for why in two), [step("think")]],
            ("wu", "think"): ["Green tea."],
            ("wu", "reflection"): [[]],
            ("wu", "summary"): [{"completion_summary": "Written.", "state": "finished"}],
        },
    )
    ended = house.asked(tmp_path)
    assert ended.code == 0, ended.err
    told = house.script.told["wu", "planning"]
    assert [why in text for why, text in zip(two, told[1:], strict=True)] == [True, True]
    rest = ["planning:finished", "think:finished", "reflection:finished", "summary:finished"]
    assert house.did("wu") == ["planning:failed", "planning:failed", *rest]
