"""`read_output` reads what this team's steps have made, in whichever shape the log keeps it, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.abilities.tools.read_output import ReadOutput, presented, whole_text
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import SHOWN
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World
from tests.abilities.tools.calling import caller

LONG = "".join(f"line {number}, and a few words\n" for number in range(1, 3001))


class Talks:
    """A tool that says a text of this length."""

    type: StepType = "tool"
    name: str = "talks"
    description: str = "Talk."

    def __init__(self, text: str = LONG, *, ruled: bool = True) -> None:
        self._text = text
        self._ruled = ruled

    def terms(self, _: World, __: Step) -> Terms:
        """Nothing is changed."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Say it."""
        text = self._text
        return Outcome(result=presented(text, bench.step.step_id) if self._ruled else {"output": text})


@pytest.mark.req("AG-58")
async def test_a_long_result_is_read_on_where_the_shown_part_ends() -> None:
    async with caller([Talks(), ReadOutput()]) as team:
        step = await team.call("talks")
        assert step.blobs
        assert step.result is not None
        assert len(str(step.result["output"]).splitlines()) == 61
        page = await team.output("read_output", handle=step.step_id, from_line=31, lines=1)
    assert page.splitlines()[0] == "31: line 31, and a few words"


async def test_a_result_that_the_log_has_cut_by_itself_is_read_too() -> None:
    async with caller([Talks(ruled=False), ReadOutput()]) as team:
        step = await team.call("talks")
        assert "line 3000," not in str(step.result)
        page = await team.output("read_output", handle=step.step_id, from_line=3000)
    assert page.splitlines()[0] == "3000: line 3000, and a few words"


async def test_a_short_result_is_read_as_it_is() -> None:
    async with caller([Talks("short"), ReadOutput()]) as team:
        step = await team.call("talks")
        assert (await team.output("read_output", handle=step.step_id)).startswith("1: short\n")


@pytest.mark.parametrize("handle", ["ann#99", "bob#1", "", "0" * 64, "../ann#1"])
async def test_a_handle_of_nothing_is_refused(handle: str) -> None:
    async with caller([Talks(), ReadOutput()]) as team:
        await team.call("talks")
        step = await team.call("read_output", handle=handle)
    assert step.state == "failed"
    assert f"There is no output {handle!r} in this team." in step.error


async def test_a_digest_is_no_handle_so_that_nothing_of_another_team_can_be_read() -> None:
    async with caller([Talks(), ReadOutput()]) as team:
        talk = await team.call("talks")
        step = await team.call("read_output", handle=talk.blobs[0])
    assert step.state == "failed"


async def test_what_is_no_longer_in_the_conversation_is_found_by_whoever_can_look() -> None:
    asked = list[tuple[TeamId, StepId]]()
    kept = list[Step]()

    async def find(team: TeamId, step: StepId) -> Step | None:
        asked.append((team, step))
        return evolve(kept[0], step_id=step) if kept and step == "bob#7" else None

    async with caller([Talks(), ReadOutput(find)]) as team:
        kept.append(await team.call("talks"))
        page = await team.output("read_output", handle="bob#7", from_line=2, lines=1)
        assert (await team.call("read_output", handle="bob#8")).state == "failed"
    assert page.startswith("2: line 2,")
    assert asked == [(team.team, "bob#7"), (team.team, "bob#8")]


@pytest.mark.parametrize("arguments", [{}, {"handle": "ann#1", "lines": 1001}, {"handle": "ann#1", "from_line": 0}])
async def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, object]) -> None:
    async with caller([Talks(), ReadOutput()]) as team:
        step = await team.call("read_output", **arguments)
    assert step.state == "failed"
    assert "read_output was not called" in step.error


def test_it_is_a_reader_that_changes_nothing() -> None:
    tool = ReadOutput()
    assert (tool.card.group, tool.card.effect, tool.card.spec.pure) == ("read", "pure", True)
    assert [one.kind for one in tool.targets({})] == ["tool"]


@settings(max_examples=25, deadline=None)
@given(st.integers(SHOWN - 1000, 70_000), st.sampled_from(["a", "文", "a line\n"]))
async def test_whatever_its_length_the_shown_part_and_the_whole_are_both_there(length: int, unit: str) -> None:
    text = (unit * length)[:length]
    async with caller([Talks(text), ReadOutput()]) as team:
        step = await team.call("talks")
        assert step.result is not None
        assert step.result["output"] == presented(text, step.step_id)["output"]
        assert await whole_text(step, team.runtime.log.get_blob) == text
