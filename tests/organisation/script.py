"""The story of an organisation, as cues for a model: who says what in which skill of which conversation.

A cue knows its moment by the state alone, so that a process which begins again in the middle says the same.

    ann asks the manager for a guide
    manager   asks the house for blueprints, makes wu and xi, makes a task with two stages
    s1 wu     tastes twice (a long-tail tool), asks ann, looks back, thinks once more, sums up
    manager   ends the stage and adds a third one
    s2 wu, xi ask ann and each other, each while it waits itself; both sum up
    s3 xi     checks it and tells the manager
    manager   ends the stage and the task, and ann reads the result
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from greenroom.abilities.skills.planned.skills import TWELVE
from greenroom.testing.scripted import Cue, Reply
from tests.organisation.words import WORDS

TAGS = {one.name: one.tag for one in TWELVE}
BASE, MINE = "manager@t1", "manager@t2"
S1, S2_WU, S2_XI, S3 = "wu@t2.s1.1", "wu@t2.s2.1", "xi@t2.s2.2", "xi@t2.s3.1"


def said(skill: str, value: object, memory: str = "") -> Reply:
    """A reply between the tags of a skill."""
    body = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    kept = f"\n<persistent_memory>{memory}</persistent_memory>" if memory else ""
    return Reply(text=f"<{TAGS[skill]}>{body}</{TAGS[skill]}>{kept}")


def step(executor: str, text: str = "Do it.", type_: str = "skill") -> dict[str, object]:
    """A step of a plan."""
    return {"step_intention": f"to {executor}", "type": type_, "executor": executor, "text_content": text}


def letter(receiver: str, text: str, *, waits: bool = False, stage: str = "no_relative") -> dict[str, object]:
    """What send_message sends."""
    return {
        "receiver": [receiver],
        "message": text,
        "stage_relative": stage,
        "need_reply": waits,
        "waiting": waits,
    }


class Scene:
    """The cues of one conversation, each skill's in their order."""

    def __init__(self, thread: str) -> None:
        self._agent, _, _ = thread.partition("@")
        self._thread = thread
        self._turns: dict[str, int] = {}
        self.cues: list[Cue] = []

    def says(self, skill: str, *values: object, memory: str = "") -> Scene:
        """What a skill says the first time, the second time, …"""
        for value in values:
            self._turns[skill] = self._turns.get(skill, 0) + 1
            self._add(skill, said(skill, value, memory), turn=self._turns[skill])
        return self

    def answers(self, value: object) -> Scene:
        """What it answers to whoever waits for it. That counts as a turn of the skill."""
        self._add("send_message", said("send_message", value), answering=True)
        return self

    def plans(self, *steps: dict[str, object]) -> Scene:
        """What a plan has."""
        return self.says("planning", list(steps))

    def _add(self, skill: str, reply: Reply, turn: int | None = None, *, answering: bool = False) -> None:
        self.cues.append(
            Cue(agent=self._agent, thread=self._thread, skill=skill, turn=turn, answering=answering, reply=reply)
        )


def cues(language: str) -> tuple[Cue, ...]:
    """All of them."""
    told = WORDS[language]
    scenes = (*_manager(told), _first_stage(told), *_second_stage(told), _third_stage(told))
    return tuple(cue for scene in scenes for cue in scene.cues)


def _manager(told: Mapping[str, str]) -> Iterator[Scene]:
    def stage(goal: str, **duties: str) -> dict[str, object]:
        return {"stage_intention": told[goal], "agent_allocation": {who: told[duty] for who, duty in duties.items()}}

    def ends(what: str, name: str, summary: str) -> dict[str, object]:
        return {"action": f"finish_{what}", f"{what}_id": name, "state": "finished", "summary": told[summary]}

    task = {
        "action": "add_task",
        "task_name": told["task"],
        "task_intention": told["goal"],
        "task_group": ["wu", "xi", "ann"],
        "stages": [stage("find", wu="wu_finds"), stage("write", wu="wu_writes", xi="xi_titles")],
    }
    yield (
        Scene(BASE)
        .plans(step("ask_info"), step("agent_manager"), step("agent_manager"), step("task_manager"))
        .says("ask_info", {"type": "blueprints", "about": []})
        .says("process_message", told["seen"])
        .says("agent_manager", *(_makes(*one) for one in (("wu", "researcher"), ("xi", "writer"))))
        .says("task_manager", task)
        .says("reflection", [])
    )
    more = {"action": "add_stage", "task_id": "t2", "stages": [stage("check", xi="xi_checks")]}
    yield (
        Scene(MINE)
        .plans(step("task_manager"), step("task_manager"))
        .plans(step("task_manager"))
        .plans(step("task_manager"), step("task_manager"))
        .says("task_manager", ends("stage", "t2.s1", "found"), more, ends("stage", "t2.s2", "written"))
        .says("task_manager", ends("stage", "t2.s3", "fine"), ends("task", "t2", "result"))
        .says("process_message", told["seen"])
        .says("reflection", [], [])
    )


def _makes(name: str, blueprint: str) -> dict[str, object]:
    return {"action": "init_new_agent", "agent_id": name, "blueprint": blueprint}


def _first_stage(told: Mapping[str, str]) -> Scene:
    return (
        Scene(S1)
        .plans(step("taste", told["first_cup"], "tool"), step("send_message"))
        .says("instruction_generation", {"cup": told["first_cup"]}, {"cup": told["second_cup"]})
        .says("tool_decision", {"decision": "continue", "direction": told["second_cup"]})
        .says("tool_decision", {"decision": "end", "direction": told["bitter_end"]})
        .says("send_message", letter("ann", told["which"], waits=True, stage="t2.s1"))
        .says("process_message", told["seen"], memory=f"# Ann\n{told['memory']}")
        .says("reflection", [step("think")], [])
        .says("think", told["thought"])
        .says("summary", _summary(told["found"]))
    )


def _second_stage(told: Mapping[str, str]) -> Iterator[Scene]:
    """Each asks the other one when that one waits for ann: whoever waits still answers."""
    yield (
        Scene(S2_WU)
        .plans(step("send_message"), step("send_message"), step("send_message"))
        .says("send_message", letter("ann", told["taste"], waits=True, stage="t2.s2"))
        .says("send_message", letter("xi", told["how_long"], waits=True, stage="t2.s2"))
        .says("send_message", letter("ann", told["print"], waits=True, stage="t2.s2"))
        .answers(letter("xi", told["is_ready"], stage="t2.s2"))
        .says("process_message", told["seen"], told["seen"], told["seen"])
        .says("reflection", [])
        .says("summary", _summary(told["written"]))
    )
    scene = Scene(S2_XI).plans(step("send_message"), step("send_message"))
    scene.says("send_message", letter("ann", told["title"], waits=True, stage="t2.s2"), "its answer is the second one")
    yield (
        scene.answers(letter("wu", told["two_words"], stage="t2.s2"))
        .says("send_message", letter("wu", told["ready"], waits=True, stage="t2.s2"))
        .says("process_message", told["seen"], told["seen"])
        .says("reflection", [])
        .says("summary", _summary(told["titled"]))
    )


def _third_stage(told: Mapping[str, str]) -> Scene:
    return (
        Scene(S3)
        .plans(step("think"), step("send_message"))
        .says("think", told["fine"])
        .says("send_message", letter("manager", told["checked"]))
        .says("reflection", [])
        .says("summary", _summary(told["fine"]))
    )


def _summary(text: str) -> dict[str, object]:
    return {"completion_summary": text, "state": "finished"}
