"""Where a project has no checks, those that the work sets up judge it once a person has said so, and never before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from greenroom.app.checks.idle import UNASKED
from greenroom.app.checks.planning import Plan
from greenroom.app.jobs.delivering import NAME
from greenroom.app.jobs.first_checks import asked_in, set_up_in, terms_of
from greenroom.core.base.errors import Bug
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import Target
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, StepEnd, Work
from tests.abilities.checks.shelves import Table
from tests.app.checks.log import Story
from tests.app.jobs.deliveries import AtWork, Job, Told, job, verdict_of
from tests.e2e.jobs import ALONE

SETTINGS = f"[tool.pytest.ini_options]\naddopts = '-q {ALONE}'\n"
TEST = "def test_it():\n    assert open('app.py').read() == 'better\\n'\n"
LINE = "python3 -m pytest"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def sets_up(work: Job, text: str = "better\n") -> None:
    """What a job in a new project does."""
    work.writes("app.py", text)
    work.writes("test_app.py", TEST)
    work.writes("pyproject.toml", SETTINGS)


async def hands_in(work: Job, said: str = "It is better.") -> tuple[Told, Outcome]:
    """One delivery, which the log has from now on."""
    bench = work.bench(said)
    outcome = await work.tool().run(bench)
    work.story.steps.append(evolve(bench.step, state="finished", result=outcome.result, ended_at=1))
    return verdict_of(outcome.result or {}), outcome


def question(outcome: Outcome) -> Work | None:
    """What a person is asked after a delivery; behind it the next delivery waits for the answer."""
    (after,) = outcome.intents
    if not isinstance(after, QueueSteps) or len(after.works) != 2:
        return None
    asks, delivers = after.works
    assert delivers.instruction_content == {"said": "It is better."}
    return asks


def answers(work: Job, outcome: Outcome, state: StepEnd) -> Step:
    """The step that asked has ended like this."""
    asks, cause = question(outcome), work.story.steps[-1].step_id
    assert asks is not None
    step = work.story.step(NAME).steps.pop()
    work.story.steps.append(evolve(step, work=asks, state=state, cause=cause))
    return work.story.steps[-1]


async def test_they_judge_the_work_after_a_persons_yes_and_not_before(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        first, outcome = await hands_in(work)
        asked = answers(work, outcome, "finished")
        then, last = await hands_in(work)
    assert (first.state, first.receipts) == ("unproven", [])
    assert first.missing == [
        f"The work has set up its checks itself (pytest: `{LINE}`): they count once a person says so."
    ]
    assert (then.state, then.missing, then.changed) == ("verified", [], [])
    assert [one["check"] for one in then.receipts] == ["pytest"]
    assert then.remarks == [
        "The checks are those that the work has set up itself: you have said that they count.",
        "The settings of checks in pyproject.toml were changed. (Set up with its checks.)",
    ]
    assert question(last) is None
    assert work.tool().targets(asked.work.instruction_content or {}) == (Target(kind="command", value=LINE),)


async def test_the_question_names_what_would_judge_and_a_step_that_asks_judges_nothing(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        asked = answers(work, (await hands_in(work))[1], "finished")
        bench = work.bench()
        terms, plain = (work.tool().terms(bench.world, one) for one in (asked, bench.step))
        ran = await work.tool().run(cast("Bench", AtWork(evolve(bench.step, work=asked.work))))
    assert (terms.verdict, plain.verdict) == ("ask", "allow")
    assert terms.question.splitlines() == [
        "There were no checks here, and the work has set up its own (pytest).",
        f"  pytest: {LINE}   (pyproject.toml sets up pytest.)",
        "  The settings of checks in pyproject.toml were changed.",
        "They run what it wrote itself: `greenroom diff r1` shows it. Do they prove the work, if they pass?",
    ]
    assert "verdict" not in (ran.result or {})
    assert not ran.intents


async def test_after_a_no_it_ends_unproven_and_nobody_is_asked_again(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        _, outcome = await hands_in(work)
        answers(work, outcome, "failed")
        found, last = await hands_in(work)
    assert (found.state, question(last)) == ("unproven", None)
    assert found.missing == [
        f"The work has set up its checks itself (pytest: `{LINE}`), and nobody has agreed to them: they did not run."
    ]


def test_how_to_be_asked_again_is_to_go_back_to_the_step_before_the_first_delivery() -> None:
    files = Table({"pytest.ini": "[pytest]\n"})
    told = Story().step("converse").step(NAME)
    first = set_up_in(files, (), evolve(told.steps[1], cause=told.steps[0].step_id), ())
    assert (first.began, first.open, first.agreed) == ("ann#1", True, False)
    assert set_up_in(files, {one.digest for one in first.checks}, told.steps[1], ()).checks == (), "they were declined"
    assert set_up_in(Table({}), (), told.steps[1], ()).open is False


async def test_what_is_set_up_after_the_yes_is_asked_about_anew_and_not_for_ever(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        for at in range(3):
            found, outcome = await hands_in(work)
            assert found.state == "unproven"
            answers(work, outcome, "finished")
            work.writes("Makefile", f"check:\n\t./ci.sh {at}\n")
        found, outcome = await hands_in(work)
    assert found.state == "unproven"
    assert question(outcome) is None


async def test_checks_of_the_work_that_fail_are_mended_and_the_question_costs_no_try(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work, "worse\n")
        answers(work, (await hands_in(work))[1], "finished")
        for again in (True, True, False):
            found, outcome = await hands_in(work)
            assert found.missing == ["'pytest' fails: test_app.py::test_it."]
            (after,) = outcome.intents
            assert isinstance(after, QueueSteps) is again
            work.writes("app.py", f"worse{again}\n")


@pytest.mark.parametrize(
    ("files", "missing", "changed"),
    [
        ({"Makefile": "check:\n\ttrue\n"}, ["names no test that passes"], []),
        ({"pyproject.toml": SETTINGS, "test_app.py": TEST, "pytest.py": "print('1 passed')\n"}, [], ["pytest.py"]),
        ({"pyproject.toml": SETTINGS, "test_old.py": "def test_old():\n    assert True\n"}, [], ["test_old.py"]),
    ],
)
async def test_a_yes_is_no_yes_to_whatever_ends_well(
    tmp_path: Path, files: dict[str, str], missing: Sequence[str], changed: Sequence[str]
) -> None:
    async with job(tmp_path, "", {"test_old.py": "def test_old():\n    assert open('app.py')\n"}) as work:
        work.writes("app.py", "better\n")
        for name, text in files.items():
            work.writes(name, text)
        answers(work, (await hands_in(work))[1], "finished")
        found, _ = await hands_in(work)
    assert found.state == "unproven"
    for told, parts in ((found.missing, missing), (found.changed, changed)):
        assert all(any(part in one for one in told) for part in parts), told


async def test_who_changes_nothing_has_set_up_nothing(tmp_path: Path) -> None:
    async with job(tmp_path, "", {"pyproject.toml": SETTINGS}) as work:
        found, outcome = await hands_in(work)
    assert question(outcome) is None
    assert found.missing == [UNASKED]


async def test_where_a_person_has_checks_or_has_to_confirm_some_nothing_of_the_work_becomes_a_judge(
    tmp_path: Path,
) -> None:
    async with job(tmp_path, "grep -q better app.py") as work:
        sets_up(work)
        found, outcome = await hands_in(work)
    assert question(outcome) is None
    assert [one["check"] for one in found.receipts] in ([], ["quick"])
    async with job(tmp_path / "left", "") as work:
        work.plan = Plan(left=("'pytest' was not run: nobody has confirmed it.",))
        sets_up(work)
        found, outcome = await hands_in(work)
    assert question(outcome) is None
    assert "'pytest' was not run: nobody has confirmed it." in found.missing


def test_what_a_file_is_called_makes_no_line_of_the_question() -> None:
    given = {"said": "", "first_checks": [], "set_up": ["a\n[y] yes, which sets up checks, was added."]}
    step = Story().step(NAME).steps[0]
    asks = evolve(step, work=evolve(step.work, instruction_content=given))
    assert "  'a\\n[y] yes, which sets up checks, was added.'" in terms_of(asks, "r1").question.splitlines()


def test_a_question_that_cannot_be_read_is_a_bug_of_ours() -> None:
    step = Story().step(NAME).steps[0]
    with pytest.raises(Bug, match="cannot be read"):
        asked_in(evolve(step, work=evolve(step.work, instruction_content={"first_checks": [{"name": 1}]})))
