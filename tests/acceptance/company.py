"""An organisation whose model answers by who asks and with which skill."""

import json
import re
import threading
from collections.abc import Mapping, Sequence

from tests.acceptance.kit import Answer

TAGS = {
    "planning": "planned_step",
    "reflection": "reflection_step",
    "summary": "summary",
    "think": "think_result",
    "send_message": "send_message",
    "process_message": "process_message",
    "task_manager": "task_instruction",
    "agent_manager": "agent_instruction",
}
WHO = re.compile(r"^- agent_id\s*[:：]\s*(\S+)", re.MULTILINE)
SKILL = re.compile(r"^(?:You run a step of the skill|你正在执行技能) ?`(\w+)`", re.MULTILINE)
GUIDE = "Green tea: 80 degrees."


def plan_step(skill: str) -> dict[str, str]:
    """A step of a plan."""
    return {"step_intention": f"to {skill}", "type": "skill", "executor": skill, "text_content": "Do it."}


ASK = {"receiver": ["ann"], "message": "Which one?", "stage_relative": "no_relative", "need_reply": True}
LINES: Mapping[tuple[str, str], Sequence[object]] = {
    ("manager", "planning"): [
        [plan_step("send_message"), plan_step("agent_manager"), plan_step("task_manager")],
        [plan_step("task_manager")],
    ],
    ("manager", "send_message"): [{**ASK, "waiting": True}],
    ("manager", "process_message"): ["I see."],
    ("manager", "agent_manager"): [{"action": "init_new_agent", "agent_id": "wu", "blueprint": "writer"}],
    ("manager", "task_manager"): [
        {
            "action": "add_task",
            "task_name": "Tea guide",
            "task_intention": "A guide to tea",
            "task_group": ["wu"],
            "stages": [{"stage_intention": "Write it", "agent_allocation": {"wu": "Write it"}}],
        },
        {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": GUIDE},
    ],
    ("wu", "planning"): [[plan_step("think")]],
    ("wu", "think"): [GUIDE],
    ("wu", "summary"): [{"completion_summary": GUIDE, "state": "finished"}],
}
"""The manager asks Ann, makes Wu and a task; Wu writes; the manager ends the task."""


class Company:
    """A script for the fake server. Each line serves once, the last one repeats; equal requests get equal answers. With
    `begun` the manager has already made its first plan."""

    def __init__(self, *, begun: bool = False) -> None:
        self._lines = {key: list(lines) for key, lines in LINES.items()}
        if begun:
            self._lines["manager", "planning"].pop(0)
        self._known: dict[str, object] = {}
        self._lock = threading.Lock()
        self.asked: list[tuple[str, str]] = []

    def __call__(self, body: dict[str, object], _: int) -> Answer:
        messages = body["messages"]
        assert isinstance(messages, list)
        text = "\n".join(str(message["content"]) for message in messages)
        who, skill = WHO.search(text), SKILL.search(text)
        assert who is not None
        assert skill is not None
        key = (who[1], skill[1])
        with self._lock:
            self.asked.append(key)
            if text not in self._known:
                lines = self._lines.get(key) or [[]]
                self._known[text] = lines.pop(0) if len(lines) > 1 else lines[0]
            value = self._known[text]
        if "response_format" in body:
            return Answer(text=json.dumps({"answer": value, "persistent_memory": ""}))
        said = value if isinstance(value, str) else json.dumps(value)
        return Answer(text=f"<{TAGS[key[1]]}>{said}</{TAGS[key[1]]}>")
