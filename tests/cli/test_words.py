import json
from typing import get_type_hints

import pytest

from greenroom.app.runtime import Told
from greenroom.cli.errors import line
from greenroom.cli.render.output import event_fields
from greenroom.cli.render.team import TeamHistory
from greenroom.cli.render.words import say
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import AgentId, ArtifactId, BudgetId, MemoryId, StepId, TaskId, TeamId, ThreadId, TimerId
from greenroom.core.state.agent import AgentRemoved
from greenroom.core.state.artifact import Artifact, ArtifactWritten
from greenroom.core.state.budget import LimitReached
from greenroom.core.state.events import EVENT_TYPES, Event
from greenroom.core.state.memory import MemoriesCleared, Memory, MemorySaved
from greenroom.core.state.note import Value, ValueSet
from greenroom.core.state.step import StepInterrupted
from greenroom.core.state.task import TaskPaused, TaskResumed
from greenroom.core.state.team import Origin, OwnerChanged, TeamForked, TeamPaused, TeamResumed
from greenroom.core.state.thread import Noticed
from greenroom.core.state.timer import TimerFired
from greenroom.core.state.world import NOWHERE


def test_a_run_is_told_in_sentences(story: list[Told]) -> None:
    history = TeamHistory()
    told = [history.add(one) for one in story]
    sentences = [f"{one.said.who} {one.said.mark} {one.said.text}" for one in told if one.said.story]
    for sentence in (
        "maya  joins as lead",
        " ◆ task t1: A one-page guide to tea",
        " ◆ stage t1.s1 begins: Draft (draft, glossary, review)",
        "ben  takes 'draft': Write the draft.",
        "ben → maya: Who reads it: people who are new to tea, or people who know it?  (waits for the answer)",
        "iris ✎ on the board: House style: plain words, present tense, no mysteries.",
        "ben  write_file draft.md → draft.md written, 165 bytes",
        "iris ✓ finished 'glossary': two terms explained",
        " ✓ stage t1.s1 finished",
        "maya ? asks for a yes: Add this line to the ledger? published guide.md, 51 words",
    ):
        assert sentence in sentences


def test_every_event_of_a_run_can_be_told(story: list[Told]) -> None:
    history = TeamHistory()
    for one in story:
        line_ = history.add(one)
        assert line_.type == type(one.event).__name__
        assert line_.said.text or line_.said.plain
    assert history.version == story[-1].version
    assert history.messages_sent == 5


def test_what_agents_spent_adds_up(story: list[Told]) -> None:
    history = TeamHistory()
    for one in story:
        history.add(one)
    assert history.spent[AgentId("ben")].tokens == 400
    assert history.total().tokens == sum(one.tokens for one in history.spent.values()) == 1050
    assert not history.at_most


def test_what_an_interrupted_call_had_reserved_is_an_upper_bound() -> None:
    history = TeamHistory()
    for number, spent in enumerate((Amounts(steps=1), Amounts(tokens=500))):
        cut = StepInterrupted(at=1, step_id=StepId("ann#1"), attempt=number + 1, why="killed", spent=spent)
        history._count(cut)
        assert history.at_most == bool(spent.tokens)
    assert history.total().tokens == 500


AT = 1
STEP = StepId("ben#3")


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (OwnerChanged(at=AT, epoch=2, owner="vm:77:ab"), "process 77 on vm takes the team over"),
        (
            TeamForked(at=AT, team_id=TeamId("b"), origin=Origin(team_id=TeamId("a"), version=9)),
            "forked from a at version 9",
        ),
        (TeamPaused(at=AT, why="lunch"), "the team is paused: lunch"),
        (TaskPaused(at=AT, task_id=TaskId("t1"), why="limit: team tokens"), "task t1 is paused: limit: team tokens"),
        (TeamResumed(at=AT), "the team goes on"),
        (TaskResumed(at=AT, task_id=TaskId("t1")), "task t1 goes on"),
        (AgentRemoved(at=AT, agent_id=AgentId("ben"), why="done"), "leaves: done"),
        (LimitReached(at=AT, budget_id=BudgetId("team"), limit="tokens", step_id=STEP), "limit reached: team tokens"),
        (TimerFired(at=AT, timer_id=TimerId("x!wait")), "timer x!wait is due"),
        (
            ValueSet(at=AT, value=Value(task_id=TaskId("t1"), key="tone", content="calm", set_by="ben")),
            "on the board: tone = calm",
        ),
        (
            Noticed(at=AT, thread_id=ThreadId("ben@t1"), step_id=STEP, about="x", code="y", text="It was refused."),
            "It was refused.",
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_the_demo_does_not_show_has_words_too(event: Event, sentence: str) -> None:
    said = say(NOWHERE, event)
    assert said.text == sentence
    assert said.story


def test_memories_and_artifacts_are_told_beside_the_calls_that_made_them() -> None:
    name = MemoryId("20251101_072947_388226")
    memory = Memory(memory_id=name, type="short_term", content="slow\nAPI", created_at=AT)
    plan = Artifact(
        task_id=TaskId("t1"),
        artifact_id=ArtifactId("task_plan"),
        title="Plan",
        media_type="text/markdown",
        blob="a1",
        size=1,
        lines=1,
        by="ben",
        at=AT,
        version=2,
    )
    told: dict[str, Event] = {
        "remembered: slow API": MemorySaved(at=AT, memory=memory),
        f"no longer remembered: {name}": MemoriesCleared(at=AT, memory_ids=(name,)),
        "on the board: task_plan, version 2": ArtifactWritten(at=AT, artifact=plan),
    }
    assert [say(NOWHERE, event).text for event in told.values()] == list(told)
    assert not any(say(NOWHERE, event).story for event in told.values())


def test_no_event_has_a_field_that_the_schema_uses_itself() -> None:
    for name, cls in EVENT_TYPES.items():
        assert not {"type", "version", "team"} & get_type_hints(cls).keys(), name


def test_an_event_is_printed_as_it_is_in_the_log(story: list[Told]) -> None:
    fields = event_fields("k3f", story[0])
    assert list(fields)[:4] == ["type", "version", "team", "at"]
    assert (fields["type"], fields["version"], fields["team"]) == ("TeamCreated", 1, "k3f")
    assert json.loads(line(fields)) == fields
    assert "\n" not in line({"text": "two\nlines"})
