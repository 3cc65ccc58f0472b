"""What people read of a job: the files, what proves it, and what nobody has proven."""

from __future__ import annotations

import pytest

from greenroom.app.jobs.delivering import NAME
from greenroom.app.jobs.report import LATER, SHOWN, JobReport, verdict_in
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.ports.workspace import Change, Diff, LeftOut
from greenroom.core.state.step import Step, Work

RECEIPT = {"check": "pytest", "outcome": "clean", "exit": 0, "tree": "0123456789abcdef", "step": "ann#7"}


def lines(*changes: Change, verdict: Data | None = None) -> tuple[str, ...]:
    return JobReport(base="b", tip="t", diff=Diff(changes=changes, text=""), verdict=verdict or {}).lines


def test_files_are_counted_and_what_happened_to_each_is_said() -> None:
    told = lines(
        Change(path="a.py", kind="changed", added=3, removed=1),
        Change(path="long/new.py", kind="added", added=2),
        Change(path="b.png", kind="deleted", binary=True),
        Change(path="c.py", kind="renamed", before="old.py"),
    )
    assert told == (
        "4 files changed, +5 −1",
        "  a.py         +3 −1",
        "  long/new.py  +2 −0 added",
        "  b.png        binary deleted",
        "  c.py         +0 −0 (was old.py)",
    )


FORGED = "a\n✓ pytest: clean, on tree 0123456789, step ann#7.md"


def test_a_name_with_a_line_end_in_it_is_no_line_of_the_report() -> None:
    told = JobReport(
        base="b",
        tip="t",
        diff=Diff(
            changes=(Change(path=FORGED, kind="added"), Change(path="b", kind="renamed", before=FORGED)), text=""
        ),
        verdict={name: [f"{FORGED} is odd"] for name in ("missing", "changed", "claims", "remarks")},
        conflicted=(FORGED,),
        left_out=(LeftOut(path=FORGED, why="other"),),
    )
    assert len(told.lines) == 10
    assert not [one for line in told.lines for one in line.splitlines() if one.startswith("✓")]
    assert all("a\\n✓" in line for line in told.lines[1:])
    assert not [one for one in told.unproven if "\n" in one]


def test_a_file_that_a_check_uses_is_not_said_to_be_read_by_none() -> None:
    uses = {"remarks": ["app.txt, which 'quick' runs or uses, was changed."]}
    told = lines(Change(path="app.txt", kind="changed"), Change(path="README.md", kind="changed"), verdict=uses)
    assert [one for one in told if one.startswith("NOT")] == ["NOT verified: docs, which no check reads: README.md"]


def test_of_many_files_the_first_are_named() -> None:
    told = lines(*(Change(path=f"{number}.py", kind="changed") for number in range(SHOWN + 3)))
    assert (len(told), told[-1]) == (SHOWN + 2, "  and 3 more")


def test_receipts_and_what_is_open_follow_in_words() -> None:
    told = lines(
        verdict={
            "state": "unproven",
            "receipts": [
                RECEIPT,
                {**RECEIPT, "check": "mypy", "exit": 1},
                {**RECEIPT, "check": "ruff", "outcome": "new_failures"},
                "nonsense",
            ],
            "missing": ["docs"],
            "changed": ["test_a.py"],
            "claims": ["`b.py`"],
            "remarks": ["flaky"],
        }
    )
    assert told == (
        "No file was changed.",
        "✓ pytest: clean, on tree 0123456789, step ann#7",
        "✓ mypy: no new failure, on tree 0123456789, step ann#7",
        "✗ ruff: new_failures, step ann#7",
        "NOT verified: docs",
        "Changed by the work itself: test_a.py",
        "Said, and not so: `b.py`",
        "Note: flaky",
    )


def test_a_link_that_leads_out_of_the_repository_is_named_with_where_it_leads() -> None:
    targets = {"a": "/etc/passwd", "sub/b": "../../x", "sub/c": "../a.py", "d": "/home/me/repo/a.py", "e": "."}
    targets["f"] = "/home/me/repository\n✓"
    changes = tuple(Change(path=name, kind="added", target=target) for name, target in targets.items())
    told = JobReport(base="b", tip="t", diff=Diff(changes=changes, text=""), verdict={}, root="/home/me/repo").lines
    (note,) = (one for one in told if one.startswith("Note: "))
    out = "a → /etc/passwd, sub/b → ../../x, f → '/home/me/repository\\n✓'"
    assert note == f"Note: a link that leads out of the repository: {out}"


def test_only_a_verdict_that_says_so_is_verified() -> None:
    found = [
        JobReport(base="b", tip="t", diff=Diff(changes=(), text=""), verdict={"state": one})
        for one in ("verified", "x")
    ]
    assert [one.verified for one in found] == [True, False]


def ended(number: int, executor: str, **result: object) -> Step:
    work = Work(type="tool", executor=executor, intention="Do it.")
    return Step(
        step_id=StepId(f"ann#{number}"),
        task_id=TaskId("t1"),
        agent_id=AgentId("ann"),
        thread_id=ThreadId("ann@t1"),
        stage_id=None,
        subtask_id=None,
        queued_at=0,
        work=work,
        state="finished",
        result=result,
    )


@pytest.mark.parametrize(
    ("later", "state"),
    [
        ((), "verified"),
        (({"tree": "t1"}, {"text": "said"}), "verified"),
        (({"tree": "t2"},), "unproven"),
        (({"tree": "t2"}, {"tree": "t1"}), "unproven"),
    ],
    ids=["nothing", "the same files", "other files", "there and back: nobody has looked"],
)
def test_a_verdict_holds_for_the_files_it_was_about(later: tuple[dict[str, object], ...], state: str) -> None:
    good = ended(1, NAME, verdict={"state": "verified"}, tree="t1")
    steps = [good, *(ended(number, "patch", **one) for number, one in enumerate(later, 2))]
    found = verdict_in(steps)
    assert (found["state"], found.get("missing", [])) == (state, [] if state == "verified" else [LATER])
    assert verdict_in([*steps, good])["state"] == "verified", "and again"


def test_only_the_house_has_a_say_in_the_verdict() -> None:
    assert verdict_in([ended(1, "patch", verdict={"state": "verified"})])["state"] == "unproven"
    assert JobReport(
        base="b",
        tip="t",
        diff=Diff(changes=(), text=""),
        verdict={"missing": ["a"], "changed": ["b"], "claims": ["c"], "remarks": ["d"]},
    ).unproven == ("a", "b", "c")


def test_a_text_that_only_programs_read_is_no_docs() -> None:
    changes = [Change(path=one, kind="changed") for one in ("CMakeLists.txt", "a/requirements-dev.txt", "notes.txt")]
    told = lines(*changes, verdict={})
    assert [one for one in told if one.startswith("NOT")] == ["NOT verified: docs, which no check reads: notes.txt"]


@pytest.mark.parametrize(("paths", "said"), [(("tests/test_a.py", "README.md"), 1), (("tests/test_a.py", "a.py"), 0)])
def test_it_is_said_where_nothing_but_tests_is_different(paths: tuple[str, ...], said: int) -> None:
    told = lines(*(Change(path=one, kind="added") for one in paths), verdict={})
    assert sum(one.startswith("Note: only tests") for one in told) == said
