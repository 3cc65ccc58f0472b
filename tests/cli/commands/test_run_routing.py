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
from tests.tiers import has_bubblewrap

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


needs_sandbox = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
SUMMARY = Cue(skill="handoff_summary", reply="The plan is made.")


@pytest.mark.req("MA-11", "MA-40", "MA-75")
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
    assert "→ lead → coder: Paint it." in ended.err
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


GOOD = send("coder", "Paint it.")
FAULTS = {
    "no-to": ("<SEND_MESSAGE>\ncontent: Paint it.\n</SEND_MESSAGE>", "'to' is missing"),
    "blank-to": ("<SEND_MESSAGE>\nto: ''\ncontent: Paint it.\n</SEND_MESSAGE>", "'to' is blank"),
    "no-content": ("<SEND_MESSAGE>\nto: coder\n</SEND_MESSAGE>", "'content' is missing"),
    "type": ("<SEND_MESSAGE>\nto: coder\ncontent: 42\n</SEND_MESSAGE>", "'content' must be a text (str), not int"),
    "target": (send("codr", "Paint it."), "there is no agent 'codr'. Write to one of these: coder, tester."),
    "yaml": ("<SEND_MESSAGE>\nto: coder\ncontent: a: b\n</SEND_MESSAGE>", "mapping values are not allowed"),
    "two": (f"{GOOD}\n{GOOD}", "only one SEND_MESSAGE block at a time. Merge them, or send them over several turns."),
    "itself": (send("lead", "Paint it."), "there is no agent 'lead'"),
}


@pytest.mark.req("MA-4", "MA-5", "MA-23", "MA-24", "MA-25", "MA-26", "MA-27", "MA-28", "MA-30", "MA-80", "MA-81")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_message_with_a_fault_comes_back_with_the_reason_and_the_run_goes_on(desk: Desk, fault: str) -> None:
    block, reason = FAULTS[fault]
    ended = desk.runs([*turns("lead", block, GOOD), *turns("coder", "It is red."), SUMMARY])
    assert (ended.code, ended.out.strip()) == (0, "It is red."), ended.err
    assert reason in desk.reads("lead")
    ((why, count),) = desk.figures()["failures"].items()
    assert (reason[:10] in why, count) == (True, 1)
    if fault in ("type", "target", "yaml"):
        fixed = desk.reads("lead").partition("send exactly this:\n")[2].partition("</SEND_MESSAGE>")[0]
        assert fixed.startswith("<SEND_MESSAGE>\nto: coder\ncontent: |2")


@pytest.mark.req("MA-22", "MA-71")
def test_a_missing_end_tag_is_added(desk: Desk) -> None:
    cut = GOOD.removesuffix("</SEND_MESSAGE>")
    ended = desk.runs([*turns("lead", cut), *turns("coder", "It is red."), SUMMARY])
    assert ended.out.strip() == "It is red.", ended.err
    assert "content:\nPaint it." in desk.reads("coder")


@pytest.mark.req("MA-46", "MA-73")
def test_an_agent_without_a_usable_message_ends_the_run_with_the_reason(desk: Desk) -> None:
    ended = desk.runs([Cue(agent="lead", reply=send("nobody", "Paint it."))])
    assert ended.code == 1
    assert "Its answer could not be used, 3 times in a row" in ended.err
    assert desk.figures()["messages"] == 0


@pytest.mark.req("MA-81")
def test_two_agents_that_only_send_the_task_back_and_forth_are_stopped_with_a_reason(desk: Desk) -> None:
    replies = [Cue(agent="lead", skill="converse", reply=send("coder", "You do it."))]
    replies += [Cue(agent="coder", skill="converse", reply=send("lead", "No, you do it.")), SUMMARY]
    ended = desk.runs(replies)
    assert ended.code == 1
    assert "coder and lead only send the task back and forth" in ended.err
    assert desk.figures()["messages"] == 3
    assert "back and forth" in desk.types("show", "last").out


def test_a_task_that_is_handed_over_too_often_ends_with_a_reason(desk: Desk) -> None:
    def pass_on(to: str) -> ReplyMaker:
        return lambda request: send(to, f"Step {len(request.messages)}.")

    replies = [Cue(agent="lead", skill="converse", reply=pass_on("coder"))]
    replies += [Cue(agent="coder", skill="converse", reply=pass_on("lead")), SUMMARY]
    ended = desk.runs(replies, more="max_hops = 3")
    assert ended.code == 1
    assert "handed over 3 times, which is the limit (max_hops)" in ended.err
    assert desk.figures()["messages"] == 3


@pytest.mark.req("MA-77")
@pytest.mark.parametrize(("answer", "chosen"), [("`tester`", "tester"), ("I choose coder.", "coder")])
def test_an_arbiter_chooses_the_receiver_of_a_message_that_names_none(desk: Desk, answer: str, chosen: str) -> None:
    nameless = "<SEND_MESSAGE>\ncontent: Look at it.\n</SEND_MESSAGE>"
    cues = [*turns("lead", nameless), *turns(chosen, "It is red."), SUMMARY]
    ended = desk.runs([*cues, Cue(skill="choose_receiver", reply=answer)], more="arbiter = true")
    assert ended.out.strip() == "It is red.", ended.err
    assert desk.asked()[1:3] == [("lead", "choose_receiver"), ("lead", "handoff_summary")]
    asked = next(one for one in desk.model.requests if one.purpose.skill == "choose_receiver").messages[-1].content
    assert "- coder: writes code\n- tester: tests code" in asked
    assert "Look at it." in asked
    assert "leave `to` out" in desk.system_prompt("lead", 0)


@pytest.mark.req("MA-77")
def test_without_a_usable_choice_the_main_agent_gets_the_message_and_itself_is_asked_again(desk: Desk) -> None:
    nameless = "<SEND_MESSAGE>\ncontent: Look at it.\n</SEND_MESSAGE>"
    cues = [*turns("lead", nameless, GOOD, "It is red."), *turns("coder", nameless), SUMMARY]
    ended = desk.runs([*cues, Cue(skill="choose_receiver", reply="nobody")], more="arbiter = true")
    assert ended.out.strip() == "It is red.", ended.err
    works = [agent for agent, skill in desk.asked() if skill == "converse"]
    assert works == ["lead", "lead", "coder", "lead"]
    assert "it names no receiver, and none could be chosen" in desk.reads("lead", 1)


@pytest.mark.req("MA-45", "MA-68", "MA-74", "MA-79")
@pytest.mark.parametrize(
    ("keys", "is_cleared"),
    [
        ("", False),
        ("clear_after_send_message = true", True),
        ("clear_after_send_message = true\nclear_after_turns = 5", False),
        ("clear_after_send_message = true\nclear_after_turns = 1", True),
        ("clear_after_send_message = true\nclear_after_tokens = 100000", False),
        ("clear_after_send_message = true\nclear_after_tokens = 10", True),
        ("clear_after_send_message = true\nsummary_on_send = false", True),
    ],
)
def test_the_senders_conversation_is_emptied_after_a_message_if_that_is_wanted(
    desk: Desk, keys: str, is_cleared: bool
) -> None:
    first = [Cue(agent="lead", skill="converse", thread="lead@t1", reply=_lead_replies())]
    ended = desk.runs([*first, *turns("coder", send("lead", "It is red.")), SUMMARY], lead=keys)
    assert ended.out.strip() == "Done.", ended.err
    last = [one for one in desk.model.requests if one.purpose.agent == "lead"][-1]
    assert any("to: coder" in message.content for message in last.messages[1:]) is not is_cleared
    assert ("# The request that your team works on\nMake it red." in last.messages[0].content) is is_cleared


def _lead_replies() -> ReplyMaker:
    replies = iter([GOOD, "Done."])
    return lambda _: next(replies)


@pytest.mark.req("MA-78")
def test_the_words_that_ask_for_the_summary_can_be_replaced(desk: Desk) -> None:
    cues = [*turns("lead", GOOD), *turns("coder", send("tester", "Test it.")), *turns("tester", "Good."), SUMMARY]
    desk.runs(cues, more='handoff_summary_prompt = "Name the risks."', coder='handoff_summary_prompt = "Be short."')
    asked = [one.messages[-1].content for one in desk.model.requests if one.purpose.skill == "handoff_summary"]
    assert asked == ["Name the risks.", "Be short."]


def test_a_team_of_the_workspace_needs_trust(desk: Desk, project: Path) -> None:
    desk.runs(turns("lead", "Good."))
    folder = project / ".greenroom" / "teams"
    folder.mkdir(parents=True)
    (folder / "ship.toml").write_text((project.parent / "ship.toml").read_text())
    words = ("run", "Make it red.", "--team-file", "ship", "--no-tools", "--max-cost", "none")
    refused = desk.types(*words)
    assert refused.code != 0
    assert "you have not trusted it yet" in " ".join(refused.err.split())
    assert "ship" in desk.types("trust", "--list").out
    assert desk.types("trust", "--yes").code == 0
    ended = desk.types(*words)
    assert ended.out.strip() == "Good.", ended.err


def test_options_that_contradict_a_team_file_are_refused(greenroom: Type, project: Path) -> None:
    assert project.is_dir()
    assert "Pass either --agent or --team-file." in greenroom("run", "x", "--team-file", "a", "--agent", "b").err
    assert greenroom("run", "x", "--team-file", "a", "--team").code == 2
    assert "--team-file needs" in greenroom("run", "x", "--team-file", " ").err
    unknown = greenroom("run", "x", "--team-file", "ship")
    assert "There is no routing team or file 'ship'." in unknown.err


@needs_sandbox
@pytest.mark.req("MA-10", "MA-60")
def test_a_pair_changes_a_repository_and_the_change_is_judged_at_the_end(
    greenroom: Type, script: Script, shop: Path
) -> None:
    call = '<REWRITE file="shop/tax.py">\ndef tax(x):\n    return x * 0.2\n</REWRITE>'
    cues = [*turns("coder", call, send("reviewer", "I wrote shop/tax.py.")), *turns("reviewer", "It is good."), SUMMARY]
    script(cues)
    ended = greenroom("run", "--team-file", "pair", "add tax", "--yes", "--allow-unverified", "--max-cost", "none")
    assert ended.out.strip() == "It is good."
    assert ended.code == 0, ended.err
    assert not (shop / "shop" / "tax.py").exists()
    assert greenroom("apply", "last").code == 0
    assert "def tax" in (shop / "shop" / "tax.py").read_text()
