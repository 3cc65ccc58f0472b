"""The rule for long results: moderate ones as they are, of long ones thirty lines of either end and a handle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.abilities.tools.read_output import (
    OutputPage,
    ReadOutputTool,
    count_lines,
    cut_line,
    present_text,
    read_page,
    read_whole_text,
    shape_text,
)
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import MAX_RESULT_BYTES, WHOLE_KEY
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState
from tests.abilities.tools.calling import caller

LINES = "".join(f"line {number} of many, with some words in it\n" for number in range(1, 2001))


@pytest.mark.req("AG-59")
@pytest.mark.parametrize("text", ["", "one line", "a\n" * 200, "x" * MAX_RESULT_BYTES])
def test_moderate_output_is_shown_as_it_is(text: str) -> None:
    assert present_text(text, "ann#3") == {"output": text}


@pytest.mark.req("AG-58")
def test_of_long_output_the_first_and_last_thirty_lines_are_shown() -> None:
    made = present_text(LINES, "ann#3")
    lines = str(made["output"]).split("\n")
    assert lines[:30] == LINES.splitlines()[:30]
    assert lines[-30:] == LINES.splitlines()[-30:]
    assert len(lines) == 61
    assert "1940 of 2000 lines" in lines[30]
    assert 'read_output(handle="ann#3", from_line=31)' in lines[30]
    assert made[WHOLE_KEY] == LINES


def test_a_line_of_ten_megabytes_shows_its_beginning_and_its_end() -> None:
    made = shape_text("begin" + "x" * 10_000_000 + "end", "ann#3")
    output = str(made["output"])
    assert output.startswith("beginxxx")
    assert "xxxend\n[… Long lines are cut." in output
    assert len(output.encode()) <= MAX_RESULT_BYTES


def test_what_a_terminal_obeys_is_not_shown() -> None:
    assert present_text("\x1b[31mred\x1b[0m\x07", "ann#3") == {"output": "red"}


@given(st.text(alphabet="ab文\n", min_size=1).map(lambda text: text * (2 + MAX_RESULT_BYTES // len(text))))
def test_what_is_shown_fits_whatever_it_is(text: str) -> None:
    made = present_text(text, "somebody#12345")
    assert len(str(made["output"]).encode()) <= MAX_RESULT_BYTES
    assert made[WHOLE_KEY] == text


@given(st.text(alphabet="a文", max_size=500), st.integers(8, 300))
def test_a_cut_line_keeps_to_its_bound(line: str, most: int) -> None:
    made = cut_line(line, most)
    assert made == line or len(made.encode()) <= most + 30


def test_lines_are_counted_as_people_count_them() -> None:
    assert [count_lines(text) for text in ("", "a", "a\n", "a\nb", "a\n\n")] == [0, 1, 1, 2, 2]


def test_a_page_has_its_lines_and_says_where_to_go_on() -> None:
    page = read_page(LINES, OutputPage(from_line=31, lines=2))
    assert page.splitlines() == [
        "31: line 31 of many, with some words in it",
        "32: line 32 of many, with some words in it",
        "[Lines 31 to 32, of 2000. There is more: from_line=33.]",
    ]
    assert read_page(LINES, OutputPage(from_line=2000)).endswith("[Lines 2000 to 2000, of 2000. That was the last.]")


def test_a_page_that_is_too_long_ends_where_there_is_no_more_room() -> None:
    text = "".join(f"{'x' * 1500}\n" for _ in range(100))
    page = read_page(text, OutputPage(lines=100))
    assert len(page.encode()) <= MAX_RESULT_BYTES
    assert page.endswith("There is more: from_line=20.]")


def test_lines_are_found_by_what_stands_in_them() -> None:
    text = "fine\nan ERROR here\nfine\nit failed\n" + "x" * 5000 + "error" + "y" * 5000
    page = read_page(text, OutputPage(pattern="error|Failed"))
    assert page.splitlines()[:2] == ["2: an ERROR here", "4: it failed"]
    assert page.splitlines()[2].startswith("5: …xxx")
    assert "xerrory" in page
    assert len(page) < 1000
    assert (
        read_page(text, OutputPage(pattern="nowhere")) == "[No line from 1 on has 'nowhere' in it. There are 5 lines.]"
    )


def test_a_pattern_is_no_regular_expression() -> None:
    assert read_page("(a+)+$ here\nno", OutputPage(pattern="(a+)+$")).startswith("1: (a+)+$ here")


def test_one_long_line_can_be_read_further_than_several() -> None:
    assert len(read_page("x" * 100_000, OutputPage(lines=1))) > 25_000


def test_a_line_that_is_not_there_is_none() -> None:
    assert read_page("a\nb\n", OutputPage(from_line=9)) == "[There is no line 9: there are 2.]"


LONG = "".join(f"line {number}, and a few words\n" for number in range(1, 3001))


class Talks:
    """A tool that says a text of this length."""

    type: StepType = "tool"
    name: str = "talks"
    description: str = "Talk."

    def __init__(self, text: str = LONG, *, ruled: bool = True) -> None:
        self._text = text
        self._ruled = ruled

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        text = self._text
        return Outcome(result=present_text(text, context.step.step_id) if self._ruled else {"output": text})


@pytest.mark.req("AG-58")
async def test_a_long_result_is_read_on_where_the_shown_part_ends() -> None:
    async with caller([Talks(), ReadOutputTool()]) as team:
        step = await team.call("talks")
        assert step.blobs
        assert step.result is not None
        assert len(str(step.result["output"]).splitlines()) == 61
        page = await team.output("read_output", handle=step.step_id, from_line=31, lines=1)
    assert page.splitlines()[0] == "31: line 31, and a few words"


async def test_a_result_that_the_log_has_cut_by_itself_is_read_too() -> None:
    async with caller([Talks(ruled=False), ReadOutputTool()]) as team:
        step = await team.call("talks")
        assert "line 3000," not in str(step.result)
        page = await team.output("read_output", handle=step.step_id, from_line=3000)
    assert page.splitlines()[0] == "3000: line 3000, and a few words"


@pytest.mark.parametrize("handle", ["ann#99", "bob#1", "", "0" * 64, "../ann#1"])
async def test_a_handle_of_nothing_is_refused(handle: str) -> None:
    async with caller([Talks(), ReadOutputTool()]) as team:
        talk = await team.call("talks")
        handle = handle or talk.blobs[0]  # nothing of another team can be read by its digest
        step = await team.call("read_output", handle=handle)
    assert step.state == "failed"
    assert f"There is no output {handle!r} in this team." in step.error


async def test_what_is_no_longer_in_the_conversation_is_found_by_whoever_can_look() -> None:
    asked = list[tuple[TeamId, StepId]]()
    kept = list[Step]()

    async def find(team: TeamId, step: StepId) -> Step | None:
        asked.append((team, step))
        return evolve(kept[0], step_id=step) if kept and step == "bob#7" else None

    async with caller([Talks(), ReadOutputTool(find)]) as team:
        kept.append(await team.call("talks"))
        page = await team.output("read_output", handle="bob#7", from_line=2, lines=1)
        assert (await team.call("read_output", handle="bob#8")).state == "failed"
    assert page.startswith("2: line 2,")
    assert asked == [(team.team, "bob#7"), (team.team, "bob#8")]


@pytest.mark.parametrize("arguments", [{}, {"handle": "ann#1", "lines": 1001}, {"handle": "ann#1", "from_line": 0}])
async def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, object]) -> None:
    async with caller([Talks(), ReadOutputTool()]) as team:
        step = await team.call("read_output", **arguments)
    assert step.state == "failed"
    assert "read_output was not called" in step.error


def test_it_is_a_reader_that_changes_nothing() -> None:
    tool = ReadOutputTool()
    assert (tool.card.group, tool.card.effect, tool.card.spec.pure) == ("read", "pure", True)
    assert [one.kind for one in tool.targets({})] == ["tool"]


@settings(max_examples=25, deadline=None)
@given(st.integers(MAX_RESULT_BYTES - 1000, 70_000), st.sampled_from(["a", "文", "a line\n"]))
async def test_whatever_its_length_the_shown_part_and_the_whole_are_both_there(length: int, unit: str) -> None:
    text = (unit * length)[:length]
    async with caller([Talks(text), ReadOutputTool()]) as team:
        step = await team.call("talks")
        assert step.result is not None
        assert step.result["output"] == present_text(text, step.step_id)["output"]
        assert await read_whole_text(step, team.runtime.log.get_blob) == text
