"""A day of an organisation in Chinese through its doors, played once: what all who worked were told, and all states.

ann       asks the manager for a guide
manager   asks the house for its blueprints, makes wu and xi, makes a task with two stages
s1 wu     uses two long-tail tools in three goes, asks xi and ann and waits for both
   xi     answers at once; here the states are looked at for the first time
   wu     when ann has answered too, uses one of the tools again, looks back, thinks once more, sums up
manager   ends a stage that is not there, then this one
s2 xi     asks somebody who is not there, then wu, and waits
   wu     answers, and writes to the manager
   xi     never looks back as it should, and has failed
manager   reads that, calls the stage failed and ends the task
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.e2e.organised import Company, Keeps, Line, new, step, writes
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import Ended, greenroom

States = Mapping[str, Mapping[str, Mapping[str, object]]]
"""All states by type and id."""

READER = """---
role: a reader
profile: Reads and weighs.
style: plan
skills: [think, quick_think]
tools: [turn_page, weigh]
---
Read first.
"""
TOOLS = '''from greenroom import tool


@tool(effect="pure", group="read", long_tail=True)
def turn_page(page: int) -> str:
    """Turn to a page of the book."""
    return f"This is page {page} of the book."


@tool(effect="pure", group="read", long_tail=True)
def weigh(grams: int) -> str:
    """Weigh some tea."""
    return f"The scales say {grams} grams."
'''
RESULT = "The guide has no title: 80 degrees."
CONTINUE = {"decision": "continue", "direction": "Turn to the second page."}
END = {"decision": "end", "direction": "That is enough."}


def uses(tool: str, text: str) -> dict[str, str]:
    """A step of a plan that uses a tool."""
    return {**step(tool, text), "type": "tool"}


def ends(what: str, name: str, state: str, summary: str) -> dict[str, object]:
    return {"action": f"finish_{what}", f"{what}_id": name, "state": state, "summary": summary}


TASK = {
    "action": "add_task",
    "task_name": "Guide",
    "task_intention": "A guide to tea",
    "task_group": ["wu", "xi", "ann"],
    "stages": [
        {"stage_intention": "Find out", "agent_allocation": {"wu": "Read the book"}},
        {"stage_intention": "Write", "agent_allocation": {"wu": "Write the text", "xi": "Find a title"}},
    ],
}
MANAGER: dict[tuple[str, str], list[Line]] = {
    ("manager", "planning"): [
        [step("ask_info"), step("agent_manager"), step("agent_manager"), step("task_manager")],
        [step("task_manager")],
        [step("task_manager"), step("task_manager")],
    ],
    ("manager", "ask_info"): [{"type": "blueprints", "about": []}],
    ("manager", "process_message"): ["There is a reader."],
    ("manager", "agent_manager"): [
        {"action": "init_new_agent", "agent_id": "wu", "blueprint": "reader"},
        {"action": "init_new_agent", "agent_id": "xi", "blueprint": "writer"},
    ],
    ("manager", "task_manager"): [
        TASK,
        ends("stage", "t9.s9", "finished", "Found."),
        ends("stage", "t2.s1", "finished", "Found."),
        ends("stage", "t2.s2", "failed", "No title."),
        ends("task", "t2", "failed", RESULT),
    ],
    ("manager", "reflection"): [[]],
}
PLAN = [
    step("quick_think", "Guess."),
    uses("turn_page", "Read the first pages."),
    uses("weigh", "Weigh a spoon of tea."),
    step("think", "Think it over."),
    uses("turn_page", "Read the last page."),
    step("send_message", "Ask ann."),
    uses("weigh", "Weigh a cup of tea."),
]
OWED = "<return_waiting_id>"
"""What a step is told that answers somebody who waits."""

WORKERS: dict[tuple[str, str], list[Line]] = {
    ("wu", "planning"): [PLAN, [step("send_message", "Tell the manager.")]],
    ("wu", "quick_think"): ["Seventy degrees, I guess."],
    ("wu", "think"): ["Eighty degrees, says the book."],
    ("wu", "instruction_generation"): [{"page": 1}, {"page": 2}, {"grams": 3}, {"page": 99}, {"grams": 5}],
    ("wu", "tool_decision"): [CONTINUE, END],
    ("wu", "send_message"): [
        {**writes("ann", "Green or black?", waiting=True), "receiver": ["xi", "ann"], "stage_relative": "t2.s1"},
        lambda text: writes("xi", "Eighty.") if OWED in text else writes("manager", "It is written."),
    ],
    ("wu", "process_message"): ["Xi likes black tea.", Keeps("Ann likes green tea.", "# Ann\nLikes green tea.")],
    ("wu", "reflection"): [[step("quick_think", "Once more.")], []],
    ("wu", "summary"): [{"completion_summary": "I know the tea.", "state": "finished"}],
    ("xi", "planning"): [[step("send_message", "Ask wu.")]],
    ("xi", "send_message"): [
        writes("wu", "Black."),
        writes("nobody", "How hot?", waiting=True),
        {**writes("wu", "How hot?", waiting=True), "stage_relative": "t2.s2"},
    ],
    ("xi", "process_message"): ["Eighty degrees."],
    ("xi", "reflection"): ["I will not look back."],
}


@dataclass(frozen=True)
class Day:
    """The day, when it is over: `waiting` are states while wu waits for ann, `over` those at the end."""

    told: Mapping[tuple[str, str], list[str]]
    waiting: States
    over: States

    def steps(self, agent: str, executor: str) -> list[Mapping[str, object]]:
        """What somebody did with a skill or a tool."""
        return [one for one in self.over["step"].values() if (one["agent_id"], one["executor"]) == (agent, executor)]


@cache
def workday() -> Day:
    """It is played once for all that is asked of it."""
    with tempfile.TemporaryDirectory(prefix="greenroom-day-") as name:
        return _played(Path(name))


def _played(folder: Path) -> Day:
    home, more = _furnished(folder), dict[str, str]()

    def talk(*words: str, stdin: str | None = None) -> Ended:
        return greenroom(home, "talk", *words, stdin=stdin, cwd=str(folder), **more)

    def states(*types: str) -> States:
        asked = {one: ("team", "status", "--type", one, "--output-format", "json") for one in types}
        return {one: _states(greenroom(home, *words, cwd=str(folder), **more)) for one, words in asked.items()}

    script = Company({**MANAGER, **WORKERS})
    with provider(script) as server:
        more |= reached(server)
        new(home, folder, "--person", "ann", "--language", "zh", **more)
        first = talk("--say", "A guide to tea, please.", "--wait")
        waiting = states("task", "agent")
        last = talk("--wait", stdin="/answer 1 Green.\n")
        assert (first.code, last.code) == (6, 1), first.err + last.err
        return Day(script.told, waiting, states("task", "stage", "agent", "step"))


def _furnished(folder: Path) -> Path:
    home = folder / "home"
    own = home / "config" / "greenroom"
    for name, text in {"agents/reader.md": READER, "tools/book.py": TOOLS}.items():
        (own / name).parent.mkdir(parents=True)
        (own / name).write_text(text)
    return home


def _states(shown: Ended) -> Mapping[str, Mapping[str, object]]:
    assert shown.code == 0, shown.err
    found = shown.json["states"]
    assert isinstance(found, dict)
    return found
