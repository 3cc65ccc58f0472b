"""`greenroom run --team-file`: agents that hand a task over with SEND_MESSAGE, and what `show` says of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom.core.ports.model import Failed
from greenroom.testing.scripted import Cue, ReplyMaker, ScriptedModel
from tests.cli.commands.conftest import Script
from tests.cli.conftest import Type
from tests.e2e.terminal import Ended

TEAM = """kind = "routing"
main_agent = "lead"
common_system_prompt = "Be brief."
{more}
[[agents]]
name = "lead"
description = "knows the plan"
system_prompt = "You lead."
{lead}
[[agents]]
name = "coder"
description = "writes code"
system_prompt = "You write code."
{coder}
[[agents]]
name = "tester"
description = "tests code"
system_prompt = "You test code."
"""


def send(to: str, content: str) -> str:
    """Write a message as a model does."""
    return f"I hand over.\n<SEND_MESSAGE>\nto: {to}\ncontent: |2\n  {content}\n</SEND_MESSAGE>"


def turns(agent: str, *replies: ReplyMaker) -> list[Cue]:
    """Let an agent give these replies, one per turn."""
    return [Cue(agent=agent, skill="converse", turn=turn, reply=reply) for turn, reply in enumerate(replies, start=1)]


def write_team(folder: Path, more: str = "", lead: str = "", coder: str = "") -> Path:
    """Write the file of a team that needs no trust, because it is outside the project."""
    path = folder.parent / "ship.toml"
    path.write_text(TEAM.format(more=more, lead=lead, coder=coder))
    return path


class Desk:
    """A person who lets a team work on a question, and looks at what it did."""

    def __init__(self, greenroom: Type, script: Script, project: Path) -> None:
        self.types = greenroom
        self._script = script
        self._project = project
        self.model: ScriptedModel

    def runs(self, cues: Iterable[Cue], *, more: str = "", lead: str = "", coder: str = "") -> Ended:
        """Run the team without tools."""
        self.model = self._script(cues)
        path = write_team(self._project, more, lead, coder)
        return self.types("run", "Make it red.", "--team-file", str(path), "--no-tools", "--max-cost", "none")

    def system_prompt(self, agent: str, place: int = -1) -> str:
        """Return the system prompt of an agent's last request."""
        requests = [one for one in self.model.requests if one.purpose.agent == agent]
        return requests[place].messages[0].content

    def reads(self, agent: str, place: int = -1) -> str:
        """Return the last message that an agent was sent."""
        requests = [one for one in self.model.requests if (one.purpose.agent, one.purpose.skill) == (agent, "converse")]
        return requests[place].messages[-1].content

    def asked(self) -> list[tuple[str, str]]:
        """Return who was asked for what, in order."""
        return [(str(purpose.agent), purpose.skill) for purpose in self.model.purposes]

    def figures(self) -> dict[str, Any]:
        """Return the figures of the last run."""
        return cast("dict[str, Any]", self.types("show", "last", "--output-format", "json").json["routing"])


@pytest.fixture(name="desk")
def _desk(greenroom: Type, script: Script, project: Path) -> Desk:
    return Desk(greenroom, script, project)


SUMMARY = Cue(skill="handoff_summary", reply="The plan is made.")


@pytest.mark.req("MA-40", "MA-75")
def test_a_text_without_a_message_is_the_answer(desk: Desk) -> None:
    ended = desk.runs(turns("lead", "It is red."))
    assert (ended.code, ended.out.strip()) == (0, "It is red."), ended.err
    assert desk.figures() == {"messages": 0, "requests": 1, "failures": {}, "mean_hops": 0.0}


@pytest.mark.req("MA-6", "MA-31", "MA-39", "MA-41", "MA-42", "MA-43", "MA-44", "MA-67", "MA-76", "MA-81")
def test_a_message_hands_the_task_over_with_a_summary_to_an_agent_that_joins_for_it(desk: Desk) -> None:
    ended = desk.runs([*turns("lead", send("coder", "Paint it.")), *turns("coder", "It is red."), SUMMARY])
    assert (ended.code, ended.out.strip()) == (0, "It is red."), ended.err
    assert desk.asked() == [("lead", "converse"), ("lead", "handoff_summary"), ("coder", "converse")]
    told = "from: lead\nsummary_of_sender_work: The plan is made.\ncontent:\nPaint it.\n"
    assert desk.reads("coder").startswith(told)
    shown = desk.types("show", "last")
    assert "hand-overs: 1, 1.0 per request" in shown.out
    agents = [one["agent"] for one in cast("Any", desk.types("show", "last", "--output-format", "json").json["agents"])]
    assert agents == ["coder", "lead"], "the tester was never needed"


@pytest.mark.req("MA-3", "MA-8", "MA-12", "MA-18", "MA-36", "MA-37", "MA-63", "MA-64")
def test_each_agent_reads_the_common_prompt_its_own_the_other_agents_and_the_request(desk: Desk) -> None:
    desk.runs([*turns("lead", send("coder", "Paint it.")), *turns("coder", "It is red."), SUMMARY])
    lead, coder = desk.system_prompt("lead"), desk.system_prompt("coder")
    assert "Be brief.\n\nYou lead." in lead
    assert "Be brief.\n\nYou write code." in coder
    assert "- `coder`: writes code\n- `tester`: tests code" in lead
    assert "- `lead`: knows the plan\n- `tester`: tests code" in coder
    for prompt in (lead, coder):
        assert "<SEND_MESSAGE>\nto: name-of-the-agent" in prompt
        assert "one message or one call, never two" in prompt
    assert "Make it red." not in lead, "it reads the request as its first message"
    assert coder.index("You write code.") < coder.index("# The request that your team works on\nMake it red.")


@pytest.mark.req("MA-32", "MA-47", "MA-48", "MA-7")
def test_messages_are_passed_on_one_at_a_time_and_an_agent_keeps_its_conversation(desk: Desk) -> None:
    replies = [
        *turns("lead", send("coder", "Paint it."), "It is red and dry."),
        *turns("coder", send("tester", "Look at it.")),
        *turns("tester", send("lead", "It is red.")),
        SUMMARY,
    ]
    ended = desk.runs(replies)
    assert ended.out.strip() == "It is red and dry.", ended.err
    works = [agent for agent, skill in desk.asked() if skill == "converse"]
    assert works == ["lead", "coder", "tester", "lead"]
    last = [one for one in desk.model.requests if one.purpose.agent == "lead"][-1]
    said = [message.content for message in last.messages]
    assert said[1].startswith("Make it red.")
    assert "to: coder" in said[2]
    assert said[3].startswith("from: tester")
    assert desk.figures()["messages"] == 3


@pytest.mark.req("MA-67")
def test_without_summary_on_send_no_model_is_asked_for_one(desk: Desk) -> None:
    cues = [*turns("lead", send("coder", "Paint it.")), *turns("coder", "It is red.")]
    ended = desk.runs(cues, lead="summary_on_send = false")
    assert ended.out.strip() == "It is red.", ended.err
    assert desk.reads("coder").startswith("from: lead\nsummary_of_sender_work: \ncontent:\nPaint it.")


@pytest.mark.req("MA-72", "MA-81")
def test_without_an_answer_the_summary_is_empty_and_the_message_is_sent(desk: Desk) -> None:
    broken = Cue(skill="handoff_summary", reply=Failed(kind="filter", why="No summary today."))
    ended = desk.runs([*turns("lead", send("coder", "Paint it.")), *turns("coder", "It is red."), broken])
    assert ended.out.strip() == "It is red.", ended.err
    assert "summary_of_sender_work: \ncontent:" in desk.reads("coder")
    assert list(desk.figures()["failures"]) == ["a hand-over had no summary: No summary today."]
