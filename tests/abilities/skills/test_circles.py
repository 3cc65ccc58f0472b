"""Who goes in circles is told so once; then its work is stopped, with a report."""

from collections.abc import Iterable
from itertools import count

import pytest

from greenroom.abilities.skills.conversation.completion import (
    ALTERNATING_CALLS,
    CALLS_TO_FORGET_WARNING,
    MAX_IDLE_CALLS,
    MAX_REPEATS,
    MAX_SAME_CHECK_FAILURES,
    MAX_UNCHANGED_CALLS,
    RECENT_CALLS,
    TRIVIAL_OUTPUT_CHARS,
    LoopDetector,
    LoopKind,
)
from greenroom.core.base.records import Data
from greenroom.core.ports.checks import REPORT_KEY, CheckComparison, CheckReport, CheckResult, report_to_data
from greenroom.core.ports.model import ModelRequest
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from tests.abilities.skills.talks import Answer, Played, calls, in_order, says, team
from tests.abilities.skills.test_transcript import ended

FAILS = "No such file."
LONG = "x" * TRIVIAL_OUTPUT_CHARS


def tool(number: int, given: str, result: Data | None = None, error: str = "") -> Step:
    work = Work(type="tool", executor="echo", instruction_content={"text": given})
    return ended(number, work, result, error=error)


def red(number: int, *new: str) -> Step:
    """The checks were run after an edit, and these tests fail newly."""
    one = CheckResult(
        check="pytest",
        kind="test",
        digest="d",
        outcome="failed" if new else "passed",
        compared=CheckComparison(new=new),
    )
    return tool(
        number,
        str(number),
        {REPORT_KEY: report_to_data(CheckReport(tree=f"t{number}", checks=(one,))), "tree": f"t{number}"},
    )


def after(steps: Iterable[Step]) -> LoopDetector:
    circles = LoopDetector()
    for step in steps:
        circles.add_step(step)
    return circles


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([tool(n, "x", {"output": "x"}) for n in range(MAX_REPEATS)], "same_call"),
        ([tool(n, "x", {"output": "x"}) for n in range(MAX_REPEATS - 1)], None),
        ([tool(n, "x", {"output": str(n)}) for n in range(20)], None),
        ([tool(n, str(n), error=FAILS) for n in range(MAX_REPEATS)], "same_failure"),
        ([tool(n, str(n), error="" if n == 1 else FAILS) for n in range(MAX_REPEATS)], None),
        ([tool(n, str(n), error="" if n % 2 else FAILS) for n in range(2 * MAX_REPEATS - 1)], "same_failure"),
        ([tool(n, str(n), error="" if n % 4 else FAILS) for n in range(4 * RECENT_CALLS)], None),
        ([tool(n, str(n), error=FAILS + str(n)) for n in range(RECENT_CALLS)], None),
        ([red(n, "t::a") for n in range(MAX_SAME_CHECK_FAILURES)], "same_failure"),
        ([red(n, "t::a") for n in range(MAX_SAME_CHECK_FAILURES - 1)], None),
        ([red(n, f"t::{n % 3}") for n in range(3 * MAX_SAME_CHECK_FAILURES)], None),
        ([red(n) for n in range(3 * MAX_SAME_CHECK_FAILURES)], None),
        ([tool(n, str(n % 2), {"output": "y"}) for n in range(ALTERNATING_CALLS)], "in_turn"),
        ([tool(n, str(n % 3), {"output": "y"}) for n in range(3 * ALTERNATING_CALLS)], None),
        (
            [tool(n, str(n), {"output": LONG + str(n), "tree": "t"}) for n in range(MAX_UNCHANGED_CALLS + 1)],
            "no_change",
        ),
        ([tool(n, str(n), {"output": LONG + str(n), "tree": "t"}) for n in range(MAX_UNCHANGED_CALLS)], None),
        ([tool(n, str(n), {"output": str(n), "tree": "t"}) for n in range(MAX_IDLE_CALLS + 1)], "no_change"),
        ([tool(n, str(n), {"output": str(n), "tree": "t"}) for n in range(MAX_IDLE_CALLS)], None),
        ([tool(n, str(n), {"output": LONG + str(n % 3), "tree": "t"}) for n in range(MAX_IDLE_CALLS + 4)], "no_change"),
        (
            [
                tool(n, str(n), {"output": "" if n % MAX_IDLE_CALLS else LONG + str(n), "tree": "t"})
                for n in range(MAX_UNCHANGED_CALLS)
            ],
            None,
        ),
        ([tool(n, str(n), {"output": "y"}) for n in range(2 * MAX_UNCHANGED_CALLS)], None),
        ([tool(n, str(n), {"tree": f"t{n // 10}"}) for n in range(2 * MAX_UNCHANGED_CALLS)], None),
    ],
)
def test_what_is_a_circle_and_what_is_work(steps: list[Step], found: LoopKind | None) -> None:
    assert after(steps).loop == found


def test_who_was_told_begins_anew_and_is_not_told_twice() -> None:
    circles = after([tool(n, "x") for n in range(MAX_REPEATS)])
    assert (circles.loop, circles.must_end) == ("same_call", False)
    circles.add_warning()
    assert (circles.loop, circles.must_end) == (None, False)
    for n in range(MAX_REPEATS):
        circles.add_step(tool(n, "x"))
    assert circles.must_end
    circles.start_over()
    assert (circles.loop, circles.warnings) == (None, 0)


def test_that_somebody_was_told_is_forgotten_when_it_has_long_got_on() -> None:
    circles = after([tool(n, "x") for n in range(MAX_REPEATS)])
    circles.add_warning()
    for n in range(CALLS_TO_FORGET_WARNING - 1):
        circles.add_step(tool(n, str(n), {"output": LONG + str(n)}))
    assert circles.warnings == 1
    circles.add_step(tool(CALLS_TO_FORGET_WARNING, "new", {"output": LONG}))
    assert circles.warnings == 0


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_who_goes_in_circles_is_told_and_then_stopped_with_a_report(language: str) -> None:
    model = Played(lambda asked: says("I tried echo.") if asked.tool_choice == "none" else calls("echo", text="x"))
    async with team(model, AgentSpec(name="Ann", tools=("echo",), language=language)) as here:
        assert await here.ask() == "failed"
        assert await here.summary() == (
            "It went in circles, and was stopped. It made the same call again and again.\nI tried echo."
        )
        assert (await here.did()).count("echo") == 2 * MAX_REPEATS
    newest = [one.messages[-1].content for one in model.asked]
    told = [n for n, text in enumerate(newest) if "same call" in text or "同样的调用" in text]
    assert told == [MAX_REPEATS, 2 * MAX_REPEATS]


@pytest.mark.parametrize("varies", [False, True])
async def test_calls_that_are_answered_at_once_are_circles_too(*, varies: bool) -> None:
    numbers = count()

    def finishes(asked: ModelRequest) -> Answer:
        return (
            says("I wanted to finish.")
            if asked.tool_choice == "none"
            else calls("finish", summary=str(next(numbers)) if varies else "x")
        )

    model = Played(finishes)
    async with team(model, AgentSpec(name="Ann", tools=("echo",))) as here:
        assert await here.ask() == "failed"
        assert "It went in circles, and was stopped." in await here.summary()
    assert len(model.asked) == 2 * MAX_REPEATS + 1
    assert "again" in model.asked[MAX_REPEATS].messages[-1].content, "it is told once"


async def test_who_does_something_beside_what_is_answered_at_once_gets_on() -> None:
    numbers = count(1)

    def acts(_: ModelRequest) -> Answer:
        if (number := next(numbers)) > 2 * RECENT_CALLS:
            return says("Done.")
        return (*calls("echo", text=str(number)), *calls("finish", summary="x"))

    model = Played(acts)
    async with team(model, AgentSpec(name="Ann", tools=("echo",))) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "Done."


async def test_who_does_something_else_when_told_goes_on() -> None:
    numbers = count()

    def play(_: ModelRequest) -> Answer:
        number = next(numbers)
        return (
            says("Done.")
            if number == MAX_REPEATS + 2
            else calls("echo", text="x" if number < MAX_REPEATS else str(number))
        )

    async with team(Played(play)) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "Done."


async def test_a_new_question_is_no_part_of_an_old_circle() -> None:
    model = Played(in_order(*([calls("echo", text="x"), says("A.")] * (2 * MAX_REPEATS))))
    async with team(model, solo=False) as here:
        for _ in range(2 * MAX_REPEATS):
            await here.ask("Again?")
    assert all(one.tool_choice == "auto" for one in model.asked)
