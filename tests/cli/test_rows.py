import io
import re

import pytest
from rich.console import Console, RenderableType

from greenroom.app.runtime import LoggedEvent
from greenroom.cli.render.team import MAX_AGENT_ROWS, TeamHistory, describe_activity, render_agents, render_team
from greenroom.core.base.ids import AgentId, StepId
from greenroom.core.base.records import evolve
from greenroom.core.state.agent import AgentState
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import EffectPrepared


def drawn(what: RenderableType, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(what)
    out = console.file
    assert isinstance(out, io.StringIO)
    return out.getvalue()


def told_until(story: list[LoggedEvent], version: int) -> TeamHistory:
    history = TeamHistory()
    for told in story[:version]:
        history.add(told)
    return history


def test_the_rows_can_be_drawn_at_any_version(story: list[LoggedEvent]) -> None:
    history = TeamHistory()
    seen = ""
    for one in story:
        history.add(one)
        seen += drawn(render_team(history))
    for words in (
        "waits for maya",
        "answers ben",
        "thinks about 'glossary'",
        "write_file draft.md",
        "next: thinks",
        "asks you: Add this line to the ledger?",
        "a person",
        "● draft",
        "○ publish",
        "✓ glossary",
    ):
        assert words in seen, words


def test_what_runs_counts_as_working_time_only_until_then(story: list[LoggedEvent]) -> None:
    history = TeamHistory()
    for one in story:
        history.add(one)
        if isinstance(one.event, EffectPrepared):
            break
    running = next(agent for agent in history.state.agents.values() if agent.running)
    assert describe_activity(history.state, running)[2] == "working"
    began = history.state.steps[StepId(str(running.running))].started_at
    assert began is not None

    def worked(until: int) -> list[float]:
        history.at = until
        return [float(one) for one in re.findall(r"(\d+\.\d)s$", drawn(render_agents(history)), re.MULTILINE)]

    more = [after - before for before, after in zip(worked(began), worked(began + 5000), strict=True)]
    assert max(more) == pytest.approx(5.0, abs=0.11)
    assert min(more) == 0.0, "those that are idle do not work"


def test_a_paused_team_says_so_in_its_rows(story: list[LoggedEvent]) -> None:
    history = told_until(story, 16)
    ben = history.state.agents[AgentId("ben")]
    assert describe_activity(history.state, ben) == ("next: thinks", "ben#1", "queued")
    paused = evolve(history.state, team=evolve(history.state.team, paused="by a person"))
    assert describe_activity(paused, ben)[2] == "paused"


def test_a_crowd_is_cut_to_those_who_work(story: list[LoggedEvent]) -> None:
    history = told_until(story, 16)
    for number in range(100):
        name = AgentId(f"a{number:03}")
        idle = AgentState(agent_id=name, spec=AgentSpec(name=name))
        history.state = evolve(history.state, agents=history.state.agents.set(name, idle))
    seen = drawn(render_agents(history))
    assert "ben" in seen
    assert f"and {104 - MAX_AGENT_ROWS} more" in seen


def test_a_narrow_terminal_sees_who_does_what(story: list[LoggedEvent]) -> None:
    history = told_until(story, 60)
    for width in (30, 45, 55, 65, 75, 90):
        lines = drawn(render_agents(history), width).splitlines()
        assert all(len(line) <= width for line in lines)
        assert [line.split()[0] for line in lines] == ["agent", "ben", "iris", "maya", "you"]
        assert "state" in lines[0]
        assert ("role" in lines[0]) is (width >= 80)
