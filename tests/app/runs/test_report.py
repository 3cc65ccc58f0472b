"""What people read of a run: the files, the receipts, and one sentence for each finding in each language."""

from __future__ import annotations

from typing import get_args

import pytest

from greenroom.app.messages import MESSAGES
from greenroom.app.messages.findings import render_finding
from greenroom.app.runs.report import RunReport
from greenroom.core.ports.workspace import Diff, PathChange, SkippedPath
from greenroom.runs.verdict import Finding, FindingCode, Receipt, Verdict

VERIFIED = Verdict(state="verified")
FORGED = "a\n✓ pytest: 12 passed, 0.1 s.md"


def report(*changes: PathChange, verdict: Verdict = VERIFIED, root: str = "/home/me/repo") -> RunReport:
    return RunReport(base="b", tip="t", diff=Diff(changes=changes, text=""), verdict=verdict, root=root)


def test_files_are_counted_and_what_happened_to_each_is_said() -> None:
    changes = (
        PathChange(path="a.py", kind="changed", added=3, removed=1),
        PathChange(path="long/new.py", kind="added", added=2),
        PathChange(path="b.png", kind="deleted", binary=True),
        PathChange(path="c.py", kind="renamed", before="old.py"),
    )
    assert report(*changes).lines == (
        "4 files changed, +5 −1",
        "  a.py         +3 −1",
        "  long/new.py  +2 −0 added",
        "  b.png        binary deleted",
        "  c.py         +0 −0 (was old.py)",
    )


def test_changed_tests_come_first_then_receipts_reasons_and_notes() -> None:
    verdict = Verdict(
        state="failed",
        reasons=(Finding(code="new_failures", check="pytest", tests=("t.py::a",), count=1),),
        notes=(
            Finding(code="does_not_judge", check="ruff", why="A program is missing"),
            Finding(code="tests_changed", paths=("t.py",)),
        ),
        receipts=(
            Receipt(check="pytest", kind="test", outcome="failed", passed=11, failing=1, seconds=2.04),
            Receipt(check="mypy", kind="types", outcome="passed", seconds=1.0),
            Receipt(check="ruff", kind="lint", outcome="does_not_judge"),
        ),
    )
    assert report(verdict=verdict).lines == (
        "! changed tests or settings of checks: t.py",
        "No file was changed.",
        "✗ pytest: 11 passed, 1 failing, 2.0 s",
        "✓ mypy: passed, 1.0 s",
        "· ruff: does not judge, 0.0 s",
        "failed: pytest: 1 newly failing: t.py::a",
        "Note: ruff does not judge: A program is missing",
    )


def test_a_name_with_a_line_end_in_it_is_no_line_of_the_report() -> None:
    changes = (PathChange(path=FORGED, kind="added"), PathChange(path="b", kind="renamed", before=FORGED))
    verdict = Verdict(
        state="unverified",
        reasons=(Finding(code="tests_altered", tests=(FORGED,), paths=(FORGED,)),),
        notes=(Finding(code="not_in_change", paths=(FORGED,)), Finding(code="tests_changed", paths=(FORGED,))),
    )
    found = RunReport(
        base="b",
        tip="t",
        diff=Diff(changes=changes, text=""),
        verdict=verdict,
        conflicted=(FORGED,),
        left_out=(SkippedPath(path=FORGED, why="other"),),
    )
    assert len(found.lines) == 8
    assert not [line for text in found.lines for line in text.splitlines() if line.startswith("✓")]
    assert not [reason for reason in found.reasons if "\n" in reason]


def test_a_link_that_leads_out_of_the_repository_is_named_with_where_it_leads() -> None:
    targets = {"a": "/etc/passwd", "sub/b": "../../x", "sub/c": "../a.py", "d": "/home/me/repo/a.py", "e": "."}
    targets["f"] = "/home/me/repository\n✓"
    changes = tuple(PathChange(path=name, kind="added", target=target) for name, target in targets.items())
    (note,) = (line for line in report(*changes).lines if line.startswith("Note: "))
    out = "a → /etc/passwd, sub/b → ../../x, f → /home/me/repository\\n✓"
    assert note == f"Note: a link that leads out of the repository: {out}"


CODES: tuple[FindingCode, ...] = get_args(FindingCode)


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_sentence_in_both_languages(code: FindingCode) -> None:
    full = Finding(code=code, check="pytest", tests=("t.py::a",), paths=("a.py",), why="It is so", count=1)
    said = {language: render_finding(full, language) for language in ("en", "zh")}
    assert all(said.values())
    assert all("{" not in text for text in said.values())
    assert said["en"] != said["zh"] or code == "stored"
    assert render_finding(full, "fr") == said["en"]


def test_no_sentence_is_left_over() -> None:
    assert set(MESSAGES.table("findings", "en")) == set(MESSAGES.table("findings", "zh")) == set(CODES)
