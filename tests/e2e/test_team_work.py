"""What agents of an organisation do, seen through its doors: several tasks, all questions, long tails, refusals."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.abilities.skills.planned.skills.ask_info import QUERIES
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
        agents = self.home / "config" / "greenroom" / "agents"
        agents.mkdir(parents=True)
        (agents / "surfer.md").write_text(SURFER)

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


ABOUT = {"task": ["t2"], "stage": ["t2.s1"], "task_agents": ["t2"], "stage_agents": ["t2.s1"], "agent_states": ["wu"]}
TOLD = {
    "managed_tasks": "## t1 MAS base task",
    "joined_tasks": "## t2 Green",
    "task": "## t2 Green",
    "stage": "### t2.s1",
    "blueprints": "**researcher**",
    "all_agents": "**ann**",
    "team_agents": "**manager**",
    "task_agents": "**wu**",
    "stage_agents": "**wu**",
    "agent_states": "working_state",
    "abilities": "**quick_think**",
}
"""What each answer has in it, where nothing else has."""


@pytest.mark.req("MAS-103", "MAS-105", "MAS-106", "MAS-107", "MAS-108", "MAS-109", "MAS-110", "MAS-111", "MAS-112")
@pytest.mark.req("MAS-113", "MAS-114", "MAS-115")
def test_a_manager_asks_all_eleven_questions_and_reads_each_answer(tmp_path: Path) -> None:
    house = House(
        tmp_path,
        {
            ("manager", "planning"): [
                [step("agent_manager"), step("task_manager"), *(step("ask_info", f"Ask {one}.") for one in QUERIES)],
            ],
            ("manager", "agent_manager"): [made("wu", "writer")],
            ("manager", "task_manager"): [task("Green", wu="Write")],
            ("manager", "ask_info"): [{"type": one, "about": ABOUT.get(one, [])} for one in QUERIES],
            ("manager", "process_message"): ["I see."],
            ("manager", "reflection"): [[]],
            ("wu", "planning"): [[step("send_message")]],
            ("wu", "send_message"): [writes("ann", "Which?", waiting=True)],
        },
    )
    assert house.asked(tmp_path).code == 6
    did = ["planning", "agent_manager", "task_manager", *("ask_info", "process_message") * 11, "reflection"]
    assert house.did("manager") == [f"{one}:finished" for one in did]
    steps = [one for one in house.states("step").values() if one["agent_id"] == "manager"]
    read = [str(one["text_content"]) for one in steps if one["executor"] == "process_message"]
    assert {query for query, text in zip(QUERIES, read, strict=True) if TOLD[query] not in text} == set()


@pytest.mark.req("MAS-104", "MAS-148", "MAS-142", "MAS-212")
def test_a_long_tail_tool_is_gone_on_with_until_its_agent_decides_to_end(tmp_path: Path) -> None:
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
            ("su", "planning"): [[step("quick_think"), {**step("browser_use"), "type": "tool"}]],
            ("su", "quick_think"): ["Hm."],
            ("su", "instruction_generation"): [{"task": " "}],
            ("su", "tool_decision"): list(decisions),
            ("su", "reflection"): [[]],
            ("su", "summary"): [{"completion_summary": "Seen.", "state": "finished"}],
        },
    )
    asked = house.asked(tmp_path)
    assert (asked.code, "su wants to use browser_use." in asked.out) == (6, True), "nobody has allowed it yet"
    ended = house.talk("--wait", stdin="yes 1 run\n")
    assert (ended.code, "Task t2 is over: finished. Seen." in ended.out) == (0, True), ended.err
    call = ["instruction_generation:finished", "browser_use:failed", "tool_decision:finished"]
    others = ["reflection:finished", "summary:finished"]
    assert house.did("su") == ["planning:finished", "quick_think:finished", *call, *call, *others]


LEAFS = """from greenroom import tool


@tool(effect="pure", group="read", long_tail=True)
def turn_page(page: int) -> str:
    \"\"\"Turn to a page of the book.\"\"\"
    return f"This is page {page}."
"""


@pytest.mark.req("MAS-212")
def test_a_tool_of_ones_own_can_have_a_long_tail_too(tmp_path: Path) -> None:
    decisions = [{"decision": "continue", "direction": "The next one."}, {"decision": "end", "direction": ""}]
    house = House(
        tmp_path,
        {
            ("manager", "planning"): [[step("agent_manager"), step("task_manager")], [step("task_manager")]],
            ("manager", "agent_manager"): [made("su", "surfer")],
            ("manager", "task_manager"): [
                task("Book", su="Read"),
                {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": "Read."},
            ],
            ("manager", "reflection"): [[]],
            ("su", "planning"): [[{**step("turn_page"), "type": "tool"}]],
            ("su", "instruction_generation"): [{"page": 1}, {"page": 2}],
            ("su", "tool_decision"): list(decisions),
            ("su", "reflection"): [[]],
            ("su", "summary"): [{"completion_summary": "Read.", "state": "finished"}],
        },
    )
    tools = house.home / "config" / "greenroom" / "tools"
    tools.mkdir()
    (tools / "leafs.py").write_text(LEAFS)
    surfer = tools.parent / "agents" / "surfer.md"
    surfer.write_text(SURFER.replace("browser_use", "turn_page"))
    ended = house.asked(tmp_path)
    assert (ended.code, "Task t2 is over: finished. Read." in ended.out) == (0, True), ended.err
    call = ["instruction_generation:finished", "turn_page:finished", "tool_decision:finished"]
    assert house.did("su") == ["planning:finished", *call, *call, "reflection:finished", "summary:finished"]


REFUSED = {
    "'summary' cannot be planned": step("summary"),
    "'tool_decision' cannot be planned": step("tool_decision"),
    "you have no 'browser_use'": {**step("browser_use"), "type": "tool"},
    "you have no 'task_manager'": step("task_manager"),
}
"""Why a plan cannot be, and a step that it then has."""


@pytest.mark.req("MAS-130", "MAS-137", "MAS-71", "MAS-119")
@pytest.mark.parametrize("why", REFUSED)
def test_what_an_agent_may_not_plan_is_refused_and_a_plan_without_a_look_back_gets_one(
    tmp_path: Path, why: str
) -> None:
    told: list[str] = []

    def mended(text: str) -> object:
        told.append(text)
        return [step("think")]

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
            ("wu", "planning"): [[REFUSED[why]], mended],
            ("wu", "think"): ["Green tea."],
            ("wu", "reflection"): [[]],
            ("wu", "summary"): [{"completion_summary": "Written.", "state": "finished"}],
        },
    )
    ended = house.asked(tmp_path)
    assert ended.code == 0, ended.err
    assert why in told[0]
    rest = ["planning:finished", "think:finished", "reflection:finished", "summary:finished"]
    assert house.did("wu") == ["planning:failed", *rest]
