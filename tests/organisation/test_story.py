"""A whole story of an organisation on the running house, from what ann wants to what she gets, in both languages."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.organisation.inbox import read_states
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.state.events import Event
from greenroom.core.state.message import Message
from greenroom.core.state.stage import StageEnded, StageStarted
from greenroom.core.state.step import Step, StepEnded, StepStarted
from tests.organisation.firm import LIMITS, NOTHING_LEFT, ORDER, WORDS, Firm, facts, firm, left, tasted

NOTE = {"en": "{} step: finished.", "zh": "执行{}步骤:finished，"}
OVER = {"en": "Task t2 is over: finished. {}", "zh": "任务t2已结束：已完成。{}"}
pytestmark = pytest.mark.parametrize("language", ["en", "zh"])


@dataclass(frozen=True, slots=True)
class Told:
    """The story, when it is over."""

    words: Mapping[str, str]
    facts: dict[str, object]
    left: dict[str, object]
    tasted: Sequence[str]
    messages: Sequence[Message]
    steps: Sequence[Step]
    stages: Mapping[str, Mapping[str, object]]
    events: Sequence[Event]
    spent: Amounts


@cache
def story(language: str) -> Told:
    """It is played once for all that is asked of it."""
    with tempfile.TemporaryDirectory(prefix="greenroom-story-") as name:
        return asyncio.run(_played(Path(name), language))


async def _played(folder: Path, language: str) -> Told:
    async with firm(await SqliteLog.open(folder / "home"), folder, language) as made:
        await asyncio.wait_for(made.play(), 60)
        return Told(
            words=WORDS[language],
            facts=await facts(made),
            left=await left(made),
            tasted=tasted(folder),
            messages=await made.ann.messages(),
            steps=await _steps(made),
            stages=await read_states(made.runtime, made.team, "stage"),
            events=[logged.event async for logged in made.runtime.events(made.team)],
            spent=(await made.state()).budgets[TEAM_BUDGET].spent,
        )


async def _steps(made: Firm) -> list[Step]:
    return [one async for one in made.runtime.archive(made.team, "step") if isinstance(one, Step)]


def by(told: Told, agent: str, executor: str) -> list[Step]:
    """The steps of somebody with this skill or tool."""
    return [one for one in told.steps if (one.agent_id, one.work.executor) == (agent, executor)]


@pytest.mark.req("MAS-11", "MAS-16", "MAS-18", "MAS-132", "MAS-188", "MAS-220", "MAS-17", "MAS-24", "MAS-25")
def test_everybody_does_exactly_these_steps_in_this_order(language: str) -> None:
    assert story(language).facts["order"] == ORDER


@pytest.mark.req("MAS-12", "MAS-13", "MAS-15", "MAS-166", "MAS-167", "MAS-250", "MAS-252")
def test_the_manager_ends_every_stage_and_the_task_and_the_person_has_the_result(language: str) -> None:
    told = story(language)
    result = told.words["result"]
    assert told.facts["tasks"] == {"t1": ("running", ""), "t2": ("finished", result)}
    assert OVER[language].format(result) in str(told.facts["pool"])
    (last,) = [one for one in told.messages if one.message == result]
    assert (last.sender_id, set(last.receiver)) == ("manager", {"manager", "wu", "xi", "ann"})


@pytest.mark.req("MAS-10", "MAS-57", "MAS-58", "MAS-97", "MAS-99", "MAS-136", "MAS-139", "MAS-3", "MAS-19")
def test_every_member_of_every_stage_has_finished_and_said_what_it_did(language: str) -> None:
    told = story(language)
    words = told.words
    assert told.facts["stages"] == {
        "t2.s1": ("finished", [("wu", "finished", words["found"])]),
        "t2.s2": ("finished", [("wu", "finished", words["written"]), ("xi", "finished", words["titled"])]),
        "t2.s3": ("finished", [("xi", "finished", words["fine"])]),
    }
    assert told.stages["t2.s2"]["agent_allocation"] == {"wu": words["wu_writes"], "xi": words["xi_titles"]}


@pytest.mark.req("MAS-98", "MAS-123", "MAS-124", "MAS-22", "MAS-23")
def test_the_board_has_a_note_of_every_skill_that_ended(language: str) -> None:
    told = story(language)
    names = {"planning": "Planning", "reflection": "Reflection", "send_message": "Send Message"}
    names |= {"ask_info": "Ask Info", "tool_decision": "Tool Decision"}
    notes = told.facts["notes"]
    assert isinstance(notes, dict)
    for agent in ("manager", "wu", "xi"):
        mine = [one for one in told.steps if one.agent_id == agent and one.work.type == "skill"]
        wanted = [
            f"{one.stage_id}: {NOTE[language].format(names.get(one.work.executor, one.work.executor))}"
            for one in mine
            if one.state == "finished"
        ]
        assert notes[agent][: len(wanted)] == wanted
    assert not [sent for sent in told.messages if NOTE[language].format("summary") in sent.message], "nobody is told"


@pytest.mark.req("MAS-14", "MAS-16")
def test_stages_run_one_after_the_other_and_an_agent_does_one_step_at_a_time(language: str) -> None:
    order: list[str] = []
    running: set[str] = set()
    for event in story(language).events:
        match event:
            case StageStarted(stage_id=stage) | StageEnded(stage_id=stage):
                order.append(stage)
            case StepStarted(step_id=step):
                assert step.partition("#")[0] not in running, "it had another one"
                running.add(step.partition("#")[0])
            case StepEnded(step_id=step):
                running.discard(step.partition("#")[0])
            case _:
                pass
    assert order == ["t2.s1", "t2.s1", "t2.s2", "t2.s2", "t2.s3", "t2.s3"]


@pytest.mark.req("MAS-7", "MAS-73", "MAS-76", "MAS-77", "MAS-229", "MAS-230", "MAS-273")
def test_nothing_is_left_open_no_step_no_wait_no_letter_no_reservation(language: str) -> None:
    assert story(language).left == NOTHING_LEFT


@pytest.mark.req("MAS-68", "MAS-121")
def test_what_an_agent_wanted_to_keep_is_kept_when_all_its_work_is_over(language: str) -> None:
    told = story(language)
    assert told.facts["memory"] == {"ann": "", "manager": "", "xi": "", "wu": f"### Ann\n{told.words['memory']}"}


@pytest.mark.req("MAS-26", "MAS-153", "MAS-154", "MAS-222", "MAS-269", "MAS-270", "MAS-271")
def test_every_question_that_somebody_waits_for_has_one_answer_with_its_id(language: str) -> None:
    told = story(language)
    asked = [one for one in told.messages if one.waiting is not None]
    answers = {one.return_waiting_id: one for one in told.messages if one.return_waiting_id is not None}
    pairs = [
        (it.message, answers[name].message) for it in asked if it.sender_id != "manager" for name in it.waiting or ()
    ]
    words = told.words
    wanted = ("which green", "title short", "taste bitter", "how_long two_words", "print yes", "ready is_ready")
    assert sorted(pairs) == sorted((words[a], words[b]) for a, b in (one.split() for one in wanted))
    assert len(answers) == len(asked) == 7, "the seventh is what the manager asked the house"


@pytest.mark.req("MAS-87", "MAS-88", "MAS-178", "MAS-179", "MAS-180", "MAS-182", "MAS-184", "MAS-188", "MAS-189")
def test_the_tool_was_used_twice_and_judged_each_time(language: str) -> None:
    told = story(language)
    words = told.words
    assert told.tasted == [f"wu#3 1 {words['first_cup']}", f"wu#8 1 {words['second_cup']}"]
    decided = [(one.result or {})["tool_decision"] for one in by(told, "wu", "tool_decision")]
    assert [one["decision"] for one in decided if isinstance(one, Mapping)] == ["continue", "end"]
    given = [one.work.instruction_content for one in by(told, "wu", "taste")]
    assert given == [{"cup": words["first_cup"]}, {"cup": words["second_cup"]}]
    assert [(one.result or {})["output"] for one in by(told, "wu", "taste")] == [
        f"tasted: {words['first_cup']}",
        f"tasted: {words['second_cup']}",
    ]


@pytest.mark.req("MAS-251", "MAS-252")
def test_what_the_house_tells_a_person_is_all_in_their_language(language: str) -> None:
    told = story(language)
    pool = told.facts["pool"]
    assert isinstance(pool, list)
    joined = {"en": "You are now part of task t2. {}: {}", "zh": "您已加入任务t2：{}: {}"}[language]
    assert joined.format(told.words["task"], told.words["goal"]) in pool
    assert len(pool) == 10, "one to join, eight about four questions, one at the end"
    assert language == "en" or not [one for one in pool if "You" in one or "Task" in one]


@pytest.mark.req("MAS-109", "MAS-174", "MAS-175", "MAS-176", "MAS-177")
def test_what_the_manager_asks_the_house_is_its_next_step(language: str) -> None:
    told = story(language)
    answer = next(one for one in told.messages if one.sender_id == "manager" and one.return_waiting_id is not None)
    assert (answer.task_id, answer.receiver, answer.stage_relative) == ("t1", ("manager",), "no_relative")
    assert (answer.need_reply, answer.waiting) == (False, None)
    assert "**researcher**" in answer.message
    assert answer.message in by(told, "manager", "process_message")[0].work.text_content


def test_what_was_spent_is_in_the_books(language: str) -> None:
    told = story(language)
    skills = [one for one in told.steps if one.work.type == "skill" and one.state == "finished"]
    models = [one for one in skills if one.agent_id != "ann"]
    assert told.spent.tokens == 50 * len(models), "fifty for each answer of the model"
    assert told.spent.steps == len(models) + 2
    assert told.spent.hops <= (LIMITS.hops or 0)
