"""Words, letters and the conversation pool of people."""

from __future__ import annotations

import json
import re

import pytest

from greenroom.app import words as phrases
from greenroom.app.messages import MESSAGES, MessageCatalogue
from greenroom.app.organisation.inbox import read_states, serialise_states
from greenroom.app.organisation.phrases import BASE_TASK, build_refusal, command_phrases, make_unknown_agent_error
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import GroupId
from greenroom.core.rules.intents import AddParticipants, FinishStage, FinishTask
from tests.app.organisation.office import ANN, BEN, MANAGER, S1, T2, office


@pytest.mark.req("MAS-72", "MAS-236", "MAS-241", "MAS-242", "MAS-246")
async def test_all_that_was_sent_and_received_is_in_the_private_talk_with_the_other() -> None:
    async with office() as house:
        await house.writes(ANN, "Good morning.")
        await house.ann.send("Good morning.", MANAGER)
        await house.writes(ANN, "Green or black?", waiting=True)
        (letter,) = await house.ann.inbox()
        await house.ann.answer(letter, "Green.")
        found = (await house.ann.pool()).portrait
        assert set(found) == {"conversation_groups", "conversation_privates", "global_messages"}
        privates = found["conversation_privates"]
        assert isinstance(privates, dict)
        talk = privates["manager"]
        assert [(one["sender_id"], one["content"]) for one in talk] == [
            ("manager", "Good morning."),
            ("ann", "Good morning."),
            ("manager", "Green or black?"),
            ("ann", "Green."),
        ]
        assert {tuple(one) for one in talk} == {
            ("sender_id", "content", "stage_relative", "timestamp", "need_reply", "waiting", "return_waiting_id")
        }
        assert [(one["need_reply"], one["waiting"], one["return_waiting_id"]) for one in talk[2:]] == [
            (True, "manager>2:ann", None),
            (False, None, "manager>2:ann"),
        ]
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", one["timestamp"]) for one in talk)


@pytest.mark.req("MAS-245", "MAS-247")
async def test_a_message_that_needs_a_reply_is_announced_in_the_very_words_and_a_waiting_one_before_all() -> None:
    async with office("zh") as house:
        await house.writes(ANN, "绿茶？", need_reply=True)
        await house.writes(ANN, "红茶？", waiting=True)
        told = (await house.ann.pool()).global_messages
        literal = "来自Agent[<agent_id>manager</agent_id>]的消息需要您回复。"
        assert told[:2] == (literal, literal)
        assert told[2] == "优先提醒：Agent[<agent_id>manager</agent_id>]正在等待您的回复（等待ID：manager>2:ann）。"
    async with office("en") as house:
        await house.writes(ANN, "Green?", waiting=True)
        assert (await house.ann.pool()).global_messages == (
            "A message from Agent[<agent_id>manager</agent_id>] needs your reply.",
            "Priority: Agent[<agent_id>manager</agent_id>] waits for your reply (waiting id manager>1:ann).",
        )


@pytest.mark.req("MAS-248", "MAS-249", "MAS-250", "MAS-251", "MAS-252")
@pytest.mark.parametrize(
    ("language", "words"),
    [
        (
            "en",
            (
                "has started, and you have a duty in it",
                "You are now part of task t2. Tasting: Know the tea",
                "Stage t2.s1 is over: finished. Taste it: Mild.",
                "t2 is over",
            ),
        ),
        (
            "zh",
            (
                "已开始，您的职责",
                "您已加入任务t2：Tasting: Know the tea",
                "阶段t2.s1已结束：已完成。Taste it: Mild.",
                "任务t2已结束：已完成",
            ),
        ),
    ],
)
async def test_people_are_told_when_stages_and_tasks_begin_and_end(language: str, words: tuple[str, ...]) -> None:
    async with office(language) as house:
        await house.allot(ANN)
        await house.runtime.ask(house.team, AddParticipants(task_id=T2, agents=(BEN,)))
        (joined,) = (await house.ben.pool()).global_messages
        await house.runtime.ask(house.team, FinishStage(stage_id=S1, summary="Mild."))
        await house.runtime.ask(house.team, FinishTask(task_id=T2, summary="Good tea."))
        begun, stage, task = (await house.ann.pool()).global_messages
        for text, expected in zip((begun, joined, stage, task), words, strict=True):
            assert expected in text
        assert "Good tea." in task


@pytest.mark.req("MAS-240")
async def test_what_was_said_in_a_group_stays_readable_when_its_task_is_over() -> None:
    async with office() as house:
        await house.allot(ANN, BEN)
        await house.ann.form_group(GroupId("cups"), BEN, task=T2)
        await house.ben.send_to_group(GroupId("cups"), "Mine is cold.")
        await house.runtime.ask(house.team, FinishTask(task_id=T2, summary="Enough."))
        assert GroupId("cups") not in (await house.state()).groups
        (group,) = (await house.ann.pool()).conversation_groups
        assert (group.participants, [one.content for one in group.messages]) == ((BEN, ANN), ["Mine is cold."])


async def test_what_others_say_to_each_other_is_in_nobody_elses_pool() -> None:
    async with office() as house:
        await house.writes(BEN, "For you only.")
        assert (await house.ann.pool()).conversation_privates == {}
        assert BASE_TASK in (await house.state()).tasks


GAP = re.compile(r"\{(\w+)")
TABLES = {
    MESSAGES: ("charter", "founding", "input", "commands", "refusals", "hints", "notices", "instructions"),
    phrases.ORGANISATION_WORDS: ("room", "team", "standing", "columns", "picture", "reasons"),
}
OWN_WORDS = {"unreadable", "place", "must_be", "must_be_model", "no_key", "misnamed", "no_model", "no_tool", "meant"}
"""Phrases in which Chinese says itself what English takes from elsewhere."""


@pytest.mark.parametrize("catalogue", TABLES)
def test_every_phrase_is_there_in_both_languages_with_the_same_gaps(catalogue: MessageCatalogue) -> None:
    for table in TABLES[catalogue]:
        english, chinese = catalogue.table(table, "en"), catalogue.table(table, "zh")
        assert english.keys() == chinese.keys()
        for name in english:
            if name not in OWN_WORDS and not name.startswith("unfit_"):
                assert {*GAP.findall(english[name])} == {*GAP.findall(chinese[name])}, name


def test_every_command_takes_the_same_in_both_languages() -> None:
    assert {name for name, about in command_phrases("en").items() if "  " in about} == {
        name for name, about in command_phrases("zh").items() if "  " in about
    }


def test_a_region_speaks_its_language_and_an_unknown_language_is_english() -> None:
    assert command_phrases("zh-CN") == command_phrases("zh")
    assert command_phrases("fr") == command_phrases("") == command_phrases("en")


def test_a_refusal_says_what_there_is_also_when_that_is_nothing() -> None:
    assert build_refusal("unknown_group", "there", "en", name="us", there="").rejection.hint == "There are: none."
    assert "现有：无。" in str(build_refusal("unknown_group", "there", "zh", name="us", there=""))


@pytest.mark.parametrize(("name", "near"), [("Ben", "ben"), ("ｃｏｐａ", "copa")])
def test_an_agent_whose_name_looks_like_it_is_offered(name: str, near: str) -> None:
    assert make_unknown_agent_error(name, ("wu", "ben", "copa"), "en").rejection.hint == f"Did you mean {near!r}?"
    assert make_unknown_agent_error("eve", ("wu", "ben"), "en").rejection.hint == "There are: ben, wu."


@pytest.mark.req("MAS-260")
def test_what_json_cannot_hold_is_a_placeholder_and_what_is_secret_is_not_there() -> None:
    deep: dict[str, dict[str, object]] = {
        "t1": {"a": [float("nan"), {"b": object()}], "c": "the key sk-0123456789abcdef is", "d": (1, None)}
    }
    safe = serialise_states(deep, ["sk-0123456789abcdef"])
    assert json.loads(json.dumps(safe)) == {
        "t1": {"a": ["nan", {"b": "<object>"}], "c": "the key [secret] is", "d": [1, None]}
    }


async def test_states_of_an_unknown_type_are_refused_with_the_types_there_are() -> None:
    async with office() as house:
        with pytest.raises(RefusedError, match=r"no states of type 'cup'. There are: task, stage, agent, step"):
            await read_states(house.runtime, house.team, "cup")
