"""Where a project has no checks, those that the work sets up judge it once a person has said so, and never before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from greenroom.app.checks.checker import NO_REPORT
from greenroom.app.checks.idle import UNASKED
from greenroom.app.checks.planning import Plan
from greenroom.app.checks.verdict import Delivered
from greenroom.app.jobs.delivering import NAME
from greenroom.app.jobs.first_checks import AGAIN, asked_in, asking, beside, set_up_in, terms_of
from greenroom.core.base.errors import Bug
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import Target
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, Work
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


def _asks(work: Job, outcome: Outcome) -> Step:
    """The step that asks after this delivery."""
    asks, cause = question(outcome), work.story.steps[-1].step_id
    assert asks is not None
    return evolve(work.story.step(NAME).steps.pop(), work=asks, cause=cause)


async def yes(work: Job, outcome: Outcome) -> Step:
    """A person has said yes, and the step that asked has run."""
    step = _asks(work, outcome)
    here = AtWork(evolve(step, state="running", ended_at=None))
    here.blobs = work.shelf.blobs
    came = await work.tool().run(cast("Bench", here))
    assert not came.intents
    assert "verdict" not in (came.result or {})
    work.story.steps.append(evolve(step, state="finished", result=came.result, ended_at=1))
    return work.story.steps[-1]


def no(work: Job, outcome: Outcome) -> Step:
    """A person has said no: the step that asked has not run."""
    work.story.steps.append(evolve(_asks(work, outcome), state="failed", result=None))
    return work.story.steps[-1]


def asked_about(work: Job, step: Step) -> list[str]:
    """The lines that a person reads."""
    return work.tool().terms(work.bench().world, step).question.splitlines()


async def test_they_judge_the_work_after_a_persons_yes_and_not_before(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        first, outcome = await hands_in(work)
        asked = await yes(work, outcome)
        then, last = await hands_in(work)
    assert (first.state, first.receipts) == ("unproven", [])
    assert first.missing == [
        f"The work has set up its checks itself (pytest: `{LINE}`): they count once a person says so."
    ]
    assert (then.state, then.missing, then.changed) == ("verified", [], [])
    assert [(one["check"], one["step"]) for one in then.receipts] == [("pytest", asked.step_id)]
    assert then.remarks == [
        "The checks are those that the work has set up itself: you have said that they count.",
        "The settings of checks in pyproject.toml were changed. (Set up with its checks.)",
    ]
    assert question(last) is None


async def test_the_question_names_what_would_judge_and_what_was_added_for_it(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        work.writes("conftest.py", "")
        work.writes("Makefile", "lint:\n\tsh ci/lint.sh\n" + "\ttrue\n" * 20)
        work.writes("ci/lint.sh", "true\n")
        step = _asks(work, (await hands_in(work))[1])
        told = asked_about(work, step)
        terms, plain = (work.tool().terms(work.bench().world, one) for one in (step, work.bench().step))
    assert (terms.verdict, terms.effect, plain.verdict) == ("ask", "keyed", "allow")
    assert told[:5] == [
        "There were no checks here, and the work has set up its own (pytest, make lint).",
        f"  pytest: {LINE}   (pyproject.toml sets up pytest.)",
        "  make lint: make lint   (Makefile has the target 'lint'.)",
        "    | lint: ",
        "    | sh ci/lint.sh",
    ]
    assert "    | and 2 more lines" in told
    assert f"  {AGAIN}" not in told
    assert {
        "  The settings of checks in pyproject.toml were changed.",
        "  conftest.py, which sets up checks, was added.",
        "  Makefile, which 'make lint' runs or uses, was added.",
        "  ci/lint.sh, which 'make lint' runs or uses, was added.",
    } <= set(told)
    assert told[-2:] == [
        "They run what it wrote itself: `greenroom diff r1` shows it. A yes runs them on exactly these files.",
        "Do they prove the work, if they pass?",
    ]


async def test_they_run_in_the_step_that_asks_alone_and_the_policy_reads_there_what_it_runs(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        work.writes("test_app.py", f"{TEST}    open({str(tmp_path / 'ran')!r}, 'a').write('x')\n")
        found, outcome = await hands_in(work)
        step = _asks(work, outcome)
        assert work.tool().targets(step.work.instruction_content or {}) == (Target(kind="command", value=LINE),)
        assert not (tmp_path / "ran").exists()
        asked = await yes(work, outcome)
        found, _ = await hands_in(work)
        assert found.state == "verified"
        work.story.steps.pop()
        work.story.steps[-1] = evolve(asked, result={"tree": (asked.result or {})["tree"]})
        found, last = await hands_in(work)
    assert (tmp_path / "ran").read_text() == "x"
    assert (found.state, found.missing) == ("unproven", ["'pytest' was never run on the work."])
    assert question(last) is None


async def test_after_a_no_it_ends_unproven_and_nobody_is_asked_again(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        _, outcome = await hands_in(work)
        asked = no(work, outcome)
        found, last = await hands_in(work)
    assert (found.state, question(last)) == ("unproven", None)
    assert found.missing == [
        f"The work has set up its checks itself (pytest: `{LINE}`), and nobody has agreed to them: they did not run."
    ]
    assert asked.result is None


def test_how_to_be_asked_again_is_to_go_back_to_the_step_before_the_delivery_that_asked() -> None:
    files = Table({"pytest.ini": "[pytest]\n"})
    told = Story().step("converse").step(NAME)
    step = evolve(told.steps[1], cause=told.steps[0].step_id)
    first = set_up_in(files, "t1", step, ())
    assert (first.began, first.open, first.agreed) == ("ann#1", True, False)
    asks = asking(step, Delivered(tree="t1"), first).works[0]
    declined = evolve(told.step(NAME).steps[2], work=asks, state="failed", result=None)
    then = set_up_in(files, "t1", evolve(told.step(NAME).steps[3], cause=step.step_id), (step, declined))
    assert (then.began, then.open, then.answer) == ("ann#1", False, False)
    assert "`greenroom rewind r1 --to ann#1`" in beside(Delivered(tree="t1"), then, (), "r1").unconfirmed[0]
    assert set_up_in(files, "t2", step, (declined,)).open, "it is another tree"
    died = evolve(declined, started_at=5)
    assert set_up_in(files, "t1", step, (died,)).open, "a yes that could not be carried out is no no"
    forged = evolve(declined, work=evolve(asks, call_id="c1"))
    assert asked_in(forged) == (), "what an agent calls itself asks about nothing"
    assert set_up_in(Table({}), "t1", step, ()).open is False


PASSES = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome, report.longrepr = "passed", None
"""
GUTTED: dict[str, Mapping[str, str]] = {
    "the tests are rewritten": {"test_app.py": "def test_it():\n    assert True\n"},
    "a test is gone": {"test_app.py": "", "test_more.py": "def test_more():\n    pass\n"},
    "a conftest.py lets it pass": {"conftest.py": PASSES},
    "a setting leaves it out": {
        "pyproject.toml": SETTINGS.replace("-q ", "-q --ignore=test_app.py "),
        "test_more.py": "def test_more():\n    pass\n",
    },
    "what is tested is another": {"app.py": "better\n"},
}


async def test_a_yes_is_one_to_the_very_tree_that_was_asked_about(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work, "worse\n")
        await yes(work, (await hands_in(work))[1])
        failing, _ = await hands_in(work)
        assert failing.missing == ["'pytest' fails: test_app.py::test_it."]
        for what, files in GUTTED.items():
            for path in work.place.folder.glob("*.py"):
                path.unlink()
            sets_up(work, "worse\n")
            for name, text in files.items():
                work.writes(name, text)
            found, outcome = await hands_in(work)
            assert (found.state, found.receipts) == ("unproven", []), what
            assert "they count once a person says so" in found.missing[0], what
            assert f"  {AGAIN}" in asked_about(work, _asks(work, outcome)), what


async def test_a_yes_to_what_was_changed_before_it_ran_runs_nothing_and_is_asked_anew(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        _, outcome = await hands_in(work)
        work.writes("test_app.py", "def test_it():\n    assert True\n")
        asked = await yes(work, outcome)
        found, again = await hands_in(work)
        work.writes("test_app.py", TEST)
        back, _ = await hands_in(work)
    assert (asked.result or {}).keys() == {"output", "tree", "commit"}
    assert "not what a person was asked about" in str(asked.result)
    assert all("they count once a person says so" in one.missing[0] for one in (found, back))
    assert question(again) is not None


async def test_a_person_is_asked_about_each_tree_and_not_for_ever(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work)
        for at in range(3):
            found, outcome = await hands_in(work)
            assert found.state == "unproven"
            no(work, outcome)
            work.writes("app.py", f"worse{at}\n")
        found, outcome = await hands_in(work)
    assert (found.state, question(outcome)) == ("unproven", None)
    told = f"The work has set up its checks itself (pytest: `{LINE}`), and has changed after each of 3 questions: "
    told += "nobody is asked again. Look at it (`greenroom diff r1`): once you have taken it over they are the "
    assert found.missing == [f"{told}project's own."]


async def test_checks_of_the_work_that_fail_are_mended_and_the_question_costs_no_try(tmp_path: Path) -> None:
    async with job(tmp_path, "") as work:
        sets_up(work, "worse\n")
        await yes(work, (await hands_in(work))[1])
        for again in (True, True, False):
            found, outcome = await hands_in(work)
            assert found.missing == ["'pytest' fails: test_app.py::test_it."]
            (after,) = outcome.intents
            assert isinstance(after, QueueSteps) is again
        work.writes("app.py", "better\n")
        await yes(work, (await hands_in(work))[1])
        found, _ = await hands_in(work)
    assert found.state == "verified"


PRINTS = "import os\nos.write(1, b'\\n5 passed in 0.01s\\n')\nos._exit(0)\n"


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({"mod.py": PRINTS, "test_app.py": "import mod\n\ndef test_it():\n    assert mod.x\n"}, NO_REPORT),
        ({"test_app.py": "import pytest\n\n@pytest.mark.skip\ndef test_it():\n    pass\n"}, "reports no test"),
        (
            {
                "test_app.py": "import pytest\n\n@pytest.mark.skip\ndef test_it():\n    pass\n",
                "Makefile": "check:\n\t@echo '3 passed in 0.01s'\n",
            },
            "reports no test that passes",
        ),
    ],
)
async def test_what_is_printed_proves_nothing_only_the_report_of_pytest_does(
    tmp_path: Path, files: Mapping[str, str], missing: str
) -> None:
    async with job(tmp_path, "") as work:
        for name, text in {"app.py": "worse\n", "pyproject.toml": SETTINGS.replace("-q", "-q -s"), **files}.items():
            work.writes(name, text)
        await yes(work, (await hands_in(work))[1])
        found, _ = await hands_in(work)
    assert found.state == "unproven"
    assert missing in found.missing[0]


@pytest.mark.parametrize(
    "files",
    [
        {"Makefile": "check:\n\t@echo 'test result: ok. 3 passed; 0 failed'\n"},
        {"package.json": '{"scripts": {"test": "echo 3 passed"}}'},
        {"pyproject.toml": SETTINGS, "test_app.py": TEST, "uv.lock": ""},
    ],
)
async def test_of_first_checks_only_pytest_by_an_installed_python_is_asked_about(
    tmp_path: Path, files: Mapping[str, str]
) -> None:
    async with job(tmp_path, "") as work:
        for name, text in {"app.py": "better\n", **files}.items():
            work.writes(name, text)
        found, outcome = await hands_in(work)
    assert (found.state, found.receipts, question(outcome)) == ("unproven", [], None)
    assert "and none of them is pytest" in found.missing[0]
    assert "once you have taken it over they are the project's own" in found.missing[0]


OLD = {
    "test_old.py": "def test_old():\n    assert open('app.py')\n",
    "ci/verify.sh": "grep -q better app.py\n",
    "setup.cfg": "[metadata]\nname = a\n",
}


@pytest.mark.parametrize(
    ("files", "changed"),
    [
        ({"pytest.py": "print('1 passed')\n"}, "pytest.py, which takes the place of 'pytest'"),
        ({"nox.py": "print('1 passed')\n"}, "nox.py, which takes the place of 'nox'"),
        ({"test_old.py": "def test_old():\n    assert True\n"}, "test_old.py"),
        ({"setup.cfg": "[mypy]\nignore_errors = true\n"}, "setup.cfg"),
        ({"Makefile": "lint:\n\tsh ci/verify.sh\n", "ci/verify.sh": "true\n"}, "ci/verify.sh, which 'make lint' runs"),
        ({"Makefile": "lint:\n\tsh run.sh\n", "run.sh": "sh ci/verify.sh\n", "ci/verify.sh": "true\n"}, "ci/verify.sh"),
        ({".venv/bin/python": "#!/bin/sh\necho '3 passed'\n"}, ".venv/bin/python, which takes the place of what is"),
    ],
)
async def test_nobody_is_asked_while_there_is_something_that_no_yes_excuses(
    tmp_path: Path, files: Mapping[str, str], changed: str
) -> None:
    async with job(tmp_path, "", OLD) as work:
        sets_up(work)
        for name, text in files.items():
            work.writes(name, text)
        found, outcome = await hands_in(work)
    assert (found.state, found.receipts, question(outcome)) == ("unproven", [], None)
    assert "who is asked when nothing else is changed" in found.missing[0]
    assert any(changed in one for one in found.changed), found.changed


async def test_who_changes_nothing_has_set_up_nothing(tmp_path: Path) -> None:
    async with job(tmp_path, "", {"pyproject.toml": SETTINGS}) as work:
        found, outcome = await hands_in(work)
    assert question(outcome) is None
    assert found.missing == [UNASKED]


async def test_where_a_person_has_checks_or_has_said_something_about_some_nothing_of_the_work_becomes_a_judge(
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
    async with job(tmp_path / "declined", "") as work:
        work.plan = Plan(declined=frozenset({"the digest of one that was offered"}))
        sets_up(work)
        found, outcome = await hands_in(work)
    assert question(outcome) is None
    assert found.missing == ["No check was run: none is set up for this project, or none could be run."]


def test_what_a_file_is_called_makes_no_line_of_the_question() -> None:
    given = {"said": "", "first_checks": [], "set_up": ["a\n[y] yes, which sets up checks, was added."]}
    step = Story().step(NAME).steps[0]
    asks = evolve(step, work=evolve(step.work, instruction_content=given))
    assert "  'a\\n[y] yes, which sets up checks, was added.'" in terms_of(asks, "r1").question.splitlines()


def test_a_question_that_cannot_be_read_is_a_bug_of_ours() -> None:
    step = Story().step(NAME).steps[0]
    with pytest.raises(Bug, match="cannot be read"):
        asked_in(evolve(step, work=evolve(step.work, instruction_content={"first_checks": [{"name": 1}]})))
