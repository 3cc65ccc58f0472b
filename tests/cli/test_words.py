"""Events in words, in English and Chinese: the same lines, by the same agents and with the same marks."""

import json
from typing import get_type_hints

import pytest

from greenroom.app.runtime import LoggedEvent
from greenroom.app.words import STOPPED_BY_PERSON, ResumeHelp, describe_event, describe_pause, describe_reason
from greenroom.cli.errors import encode_line
from greenroom.cli.render.output import event_fields
from greenroom.cli.render.team import TeamHistory
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import AgentId, ArtifactId, BudgetId, MemoryId, StepId, TaskId, TeamId, ThreadId, TimerId
from greenroom.core.state.agent import AgentRemoved
from greenroom.core.state.budget import LimitReached
from greenroom.core.state.events import EVENT_TYPES, Event
from greenroom.core.state.knowledge import (
    Artifact,
    ArtifactWritten,
    BoardValue,
    MemoriesCleared,
    Memory,
    MemorySaved,
    ValueSet,
)
from greenroom.core.state.step import StepInterrupted
from greenroom.core.state.task import TaskPaused, TaskResumed
from greenroom.core.state.team import ForkOrigin, OwnerChanged, TeamForked, TeamPaused, TeamResumed
from greenroom.core.state.team_state import EMPTY_STATE
from greenroom.core.state.thread import Noticed
from greenroom.core.state.timer import TimerFired

SENTENCES = {
    "maya  joins as lead": "maya  加入，角色：lead",
    " ◆ task t1: A one-page guide to tea": " ◆ 任务t1：A one-page guide to tea",
    " ◆ stage t1.s1 begins: Draft (draft, glossary, review)": " ◆ 阶段t1.s1开始：Draft（draft、glossary、review）",
    "ben  takes 'draft': Write the draft.": "ben  接受“draft”：Write the draft.",
    "ben → maya: Who reads it: people who are new to tea, or people who know it?  (waits for the answer)": (
        "ben → maya：Who reads it: people who are new to tea, or people who know it?（等待回复）"
    ),
    "iris ✎ on the board: House style: plain words, present tense, no mysteries.": (
        "iris ✎ 公告：House style: plain words, present tense, no mysteries."
    ),
    "ben  write_file draft.md → draft.md written, 165 bytes": "ben  write_file draft.md → draft.md written, 165 bytes",
    "iris ✓ finished 'glossary': two terms explained": "iris ✓ “glossary”已完成：two terms explained",
    " ✓ stage t1.s1 finished": " ✓ 阶段t1.s1已完成",
    "maya ? asks for approval: Add this line to the ledger? published guide.md, 51 words": (
        "maya ? 请求批准：Add this line to the ledger? published guide.md, 51 words"
    ),
}


def test_a_run_is_told_in_sentences_of_both_languages(story: list[LoggedEvent]) -> None:
    english, chinese = TeamHistory(), TeamHistory(language="zh")
    pairs = [(english.add(told), chinese.add(told).summary) for told in story]
    assert [first.type for first, _ in pairs] == [type(told.event).__name__ for told in story]
    assert all(first.summary.text or first.summary.plain for first, _ in pairs)
    for (first, other), (sentence, translated) in ((pair, each) for pair in pairs for each in SENTENCES.items()):
        said = first.summary
        assert (said.who, said.mark, said.story) == (other.who, other.mark, other.story)
        if f"{said.who} {said.mark} {said.text}" == sentence:
            assert f"{other.who} {other.mark} {other.text}" == translated
    told_lines = {
        f"{first.summary.who} {first.summary.mark} {first.summary.text}" for first, _ in pairs if first.summary.story
    }
    assert told_lines >= SENTENCES.keys()
    same = {first.type for first, other in pairs if other.story and first.summary == other}
    assert same <= {"StepEnded"}, "what a tool says is the same in any language"


def test_what_agents_spent_adds_up_and_what_ended_is_kept(story: list[LoggedEvent]) -> None:
    history = TeamHistory()
    for told in story:
        history.add(told)
    assert (history.version, history.messages_sent, len(history.messages)) == (story[-1].version, 5, 5)
    assert history.spent[AgentId("ben")].tokens == 400
    assert history.total().tokens == sum(spent.tokens for spent in history.spent.values()) == 1050
    assert not history.is_at_most
    assert history.status(TaskId("t1")).state == "waiting"
    assert len(history.steps) == history.steps_ended


def test_what_an_interrupted_call_had_reserved_is_an_upper_bound() -> None:
    history = TeamHistory()
    for number, spent in enumerate((Amounts(steps=1), Amounts(tokens=500))):
        cut = StepInterrupted(at=1, step_id=StepId("ann#1"), attempt=number + 1, why="killed", spent=spent)
        history._count(cut)
        assert history.is_at_most == bool(spent.tokens)
    assert history.total().tokens == 500


STEP, T1 = StepId("ben#3"), TaskId("t1")
VALUE = BoardValue(task_id=T1, key="tone", content="calm", set_by="ben")


@pytest.mark.parametrize(
    ("event", "english", "chinese"),
    [
        (
            OwnerChanged(at=1, epoch=2, owner="vm:77:ab"),
            "process 77 on vm takes over the team",
            "vm上的进程77接管了团队",
        ),
        (
            TeamForked(at=1, team_id=TeamId("b"), origin=ForkOrigin(team_id=TeamId("a"), version=9)),
            "forked from a at version 9",
            "",
        ),
        (TeamPaused(at=1, why=STOPPED_BY_PERSON), f"the team is paused: {STOPPED_BY_PERSON}", "团队已暂停：已被人停止"),
        (
            TaskPaused(at=1, task_id=T1, why="limit: team tokens"),
            "task t1 is paused: limit: team tokens",
            "任务t1已暂停：剩余Token不足以进行下一步",
        ),
        (TeamResumed(at=1), "the team is resumed", "团队继续"),
        (TaskResumed(at=1, task_id=T1), "task t1 is resumed", "任务t1继续"),
        (AgentRemoved(at=1, agent_id=AgentId("ben"), why="done"), "leaves: done", "离开：done"),
        (
            LimitReached(at=1, budget_id=BudgetId("team"), limit="tokens", step_id=STEP),
            "limit reached: team tokens",
            "达到上限：team tokens",
        ),
        (TimerFired(at=1, timer_id=TimerId("x!wait")), "timer x!wait is due", "定时器x!wait到时"),
        (ValueSet(at=1, value=VALUE), "on the board: tone = calm", "公告：tone = calm"),
        (
            Noticed(at=1, thread_id=ThreadId("ben@t1"), step_id=STEP, about="x", code="y", text="It was refused."),
            "It was refused.",
            "It was refused.",
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_the_demo_does_not_show_has_words_too(event: Event, english: str, chinese: str) -> None:
    said = describe_event(EMPTY_STATE, event)
    assert (said.text, said.story) == (english, True)
    assert not chinese or describe_event(EMPTY_STATE, event, "zh").text == chinese


def test_memories_and_artifacts_are_told_beside_the_calls_that_made_them() -> None:
    name = MemoryId("20251101_072947_388226")
    memory = Memory(memory_id=name, type="short_term", content="slow\nAPI", created_at=1)
    plan = Artifact(
        task_id=T1,
        artifact_id=ArtifactId("task_plan"),
        title="Plan",
        media_type="text/markdown",
        blob="a1",
        size=1,
        lines=1,
        by="ben",
        at=1,
        version=2,
    )
    told: dict[str, Event] = {
        "remembered: slow API": MemorySaved(at=1, memory=memory),
        f"no longer remembered: {name}": MemoriesCleared(at=1, memory_ids=(name,)),
        "on the board: task_plan, version 2": ArtifactWritten(at=1, artifact=plan),
    }
    assert [describe_event(EMPTY_STATE, event).text for event in told.values()] == list(told)
    assert not any(describe_event(EMPTY_STATE, event).story for event in told.values())


def test_no_event_has_a_field_that_the_schema_uses_itself() -> None:
    for name, cls in EVENT_TYPES.items():
        assert not {"type", "version", "team"} & get_type_hints(cls).keys(), name


def test_an_event_is_printed_as_it_is_in_the_log(story: list[LoggedEvent]) -> None:
    fields = event_fields("k3f", story[0])
    assert list(fields)[:4] == ["type", "version", "team", "at"]
    assert (fields["type"], fields["version"], fields["team"]) == ("TeamCreated", 1, "k3f")
    assert json.loads(encode_line(fields)) == fields
    assert "\n" not in encode_line({"text": "two\nlines"})


@pytest.mark.parametrize(
    ("why", "english", "chinese"),
    [
        ("limit: team money", "its money is not enough for the next step", "剩余费用不足以进行下一步"),
        ("limit: t2 millis", "its working time is used up", "工作时间已用完"),
        ("provider: The key is wrong.", "provider: The key is wrong", "模型服务: The key is wrong"),
        (STOPPED_BY_PERSON, "stopped by a person", "已被人停止"),
        ("lunch.", "lunch", "lunch"),
    ],
)
def test_why_it_stands_still_is_said_in_both_languages(why: str, english: str, chinese: str) -> None:
    assert (describe_reason(why, "en"), describe_reason(why, "zh")) == (english, chinese)


def test_what_has_used_up_its_means_is_given_more_and_all_else_is_resumed() -> None:
    way = ResumeHelp(name="tea", start="start tea", path="/w/tea.toml", keys={"tokens": "tokens"})
    assert describe_pause("limit: team money", "en", way).endswith("Raise the limit: start tea --max-cost …")
    assert "`tokens` below [limits] in /w/tea.toml" in describe_pause("limit: team tokens", "en", way)
    assert "/w/tea.toml" not in describe_pause("limit: t2 tokens", "en", way), "what a task may spend is not said there"
    poor = ResumeHelp(name="tea", start="start tea", keys={}, left={"money": "$0.57"})
    assert "is not enough for the next step ($0.57 left). Raise" in describe_pause("limit: team money", "en", poor)
    assert "剩余费用不足以进行下一步（剩余$0.57）。" in describe_pause("limit: team money", "zh", poor)
    assert "$0.57" not in describe_pause("limit: t2 money", "en", poor), "that is the team's"
    assert describe_pause("limit: team steps", "en", way).endswith("Type `/resume` to continue.")
    assert describe_pause("lunch", "zh", way) == "已暂停：lunch。输入 /resume 继续。"
