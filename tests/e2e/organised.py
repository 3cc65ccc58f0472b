"""An organisation with a scripted model: replies by agent and skill."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from greenroom.abilities.skills.planned.skills import PLANNED_SKILLS
from tests.e2e.provider import Beside, provider, reached
from tests.e2e.terminal import Ended, greenroom
from tests.e2e.typing import Typing
from tests.fake_openai import Answer
from tests.fake_openai.scripts import Script

TAGS = {one.name: one.tag for one in PLANNED_SKILLS}
WHO = re.compile(r"^- agent_id\s*[:：]\s*(\S+)", re.MULTILINE)
SKILL = re.compile(r"^(?:You run a step of the skill|你正在执行技能) ?`(\w+)`", re.MULTILINE)

Line = object | Callable[[str], object]
"""An answer, or a function of the request."""


def step(executor: str, text: str = "Do it.") -> dict[str, str]:
    """Build a step of a plan."""
    return {"step_intention": f"to {executor}", "type": "skill", "executor": executor, "text_content": text}


def writes(receiver: str, text: str, *, waiting: bool = False) -> dict[str, object]:
    """Build the answer of send_message."""
    told = {"receiver": [receiver], "message": text, "stage_relative": "no_relative"}
    return {**told, "need_reply": waiting, "waiting": waiting}


class Company:
    """The script of a provider. Each line serves once, the last repeats; equal requests get equal answers, because an
    interrupted request is repeated. `asked` lists who asked with what, `told` all prompts by agent."""

    def __init__(self, lines: Mapping[tuple[str, str], Sequence[Line]]) -> None:
        self._lines = {key: list(told) for key, told in lines.items()}
        self._lock = threading.Lock()
        self._known: dict[str, Line] = {}
        self.asked: list[tuple[str, str]] = []
        self.told: dict[tuple[str, str], list[str]] = {}

    def __call__(self, body: dict[str, object], _: int) -> Answer:
        """Answer one request."""
        messages = body["messages"]
        assert isinstance(messages, list)
        text = "\n".join(str(one["content"]) for one in messages)
        who, skill = WHO.search(text), SKILL.search(text)
        assert who is not None, text
        assert skill is not None, text
        with self._lock:
            key = (who[1], skill[1])
            self.asked.append(key)
            self.told.setdefault(key, []).append(text)
            if text not in self._known:
                lines = self._lines.get(key) or [[]]
                self._known[text] = lines.pop(0) if len(lines) > 1 else lines[0]
            line = self._known[text]
        value = line(text) if callable(line) else line
        if "response_format" in body:
            return Answer(text=json.dumps({"answer": value, "persistent_memory": ""}, ensure_ascii=False))
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return Answer(text=f"<{TAGS[key[1]]}>{said}</{TAGS[key[1]]}>")


GUIDE = "Green tea: 80 degrees, two minutes."
TEA: Mapping[tuple[str, str], Sequence[Line]] = {
    ("manager", "planning"): [
        [step("agent_manager", "Make a writer."), step("task_manager", "Begin the task.")],
        [step("task_manager", "Finish the task.")],
    ],
    ("manager", "agent_manager"): [{"action": "init_new_agent", "agent_id": "wu", "blueprint": "writer"}],
    ("manager", "task_manager"): [
        {
            "action": "add_task",
            "task_name": "Tea guide",
            "task_intention": "A guide to green tea",
            "task_group": ["wu"],
            "stages": [{"stage_intention": "Write it", "agent_allocation": {"wu": "Write the guide"}}],
        },
        {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": GUIDE},
    ],
    ("manager", "reflection"): [[]],
    ("wu", "planning"): [[step("think", "Write it.")]],
    ("wu", "think"): [GUIDE],
    ("wu", "reflection"): [[]],
    ("wu", "summary"): [{"completion_summary": GUIDE, "state": "finished"}],
}
"""A person asks for a guide. The manager makes a writer and a task, the writer writes, the manager ends the task."""


class Office:
    """An organisation called tea in a folder, and its people. `server` serves its models."""

    def __init__(self, folder: Path, server: Beside) -> None:
        self.home, self.folder, self.server, self.more = folder / "home", folder, server, reached(server)

    def types(self, *words: str, stdin: str | None = None) -> Ended:
        """Run a command to its end."""
        return greenroom(self.home, *words, stdin=stdin, cwd=str(self.folder), **self.more)

    def sits(self, *words: str, columns: str = "100") -> Typing:
        """Run a command at a terminal."""
        return Typing(self.home, *words, columns=columns, cwd=str(self.folder), **self.more)


@contextmanager
def office(folder: Path, script: Script, *people: str, language: str = "en") -> Iterator[Office]:
    """Found an organisation of these people with scripted agents."""
    words = [word for name in people for word in ("--person", name)]
    with provider(script) as server:
        there = Office(folder, server)
        new(there.home, folder, *words, "--language", language, **there.more)
        yield there


def new(home: Path, folder: Path, *words: str, **more: str) -> Ended:
    """Found an organisation called tea in this folder."""
    ended = greenroom(home, "org", "new", "tea", *words, cwd=str(folder), **more)
    assert ended.code == 0, ended.err
    return ended
