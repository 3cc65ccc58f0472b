"""What the integrated change of a team is worth: outputs, issues, coverage, score."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.ports.workspace import PathChange
from greenroom.runs.verdict import Finding, Receipt, Verdict, VerdictState
from greenroom.teamwork.merge_queue import find_broken_files
from greenroom.teamwork.plan import TeamSettings
from greenroom.teamwork.validation import (
    Coverage,
    MergedOutput,
    ValidationIssue,
    classify_file,
    compute_score,
    find_syntax_fault,
    merge_outputs,
    parse_coverage,
    read_outputs,
    validate,
)

OUTPUTS = Path(__file__).parent / "coverage"
VERIFIED = Verdict(state="verified")
NOT_MEASURED = Coverage()
STATES: tuple[VerdictState, ...] = ("verified", "unverified", "failed")


def merged(*paths: str) -> MergedOutput:
    changes = [PathChange(path=path, kind="added", added=3, removed=1) for path in paths]
    return merge_outputs({"tax": paths}, changes, (), NOT_MEASURED)


def issue(severity: str) -> ValidationIssue:
    if severity == "error":
        return ValidationIssue(severity="error", code="syntax_error", message="m")
    return ValidationIssue(severity="warning", code="no_documentation", message="m")


# ------------------------------------------------------------------------------------------------------------ outputs


def test_a_subtask_has_outputs_of_three_kinds_each_with_its_own_fields() -> None:
    handoff = {"protocol": "test-coverage-report", "tests_added": 2, "coverage": 71}
    found = read_outputs(("shop/tax.py", "tests/test_tax.py", "docs/tax.md"), handoff)
    assert found == (
        {"kind": "code-change", "files": ("shop/tax.py", "tests/test_tax.py")},
        {"kind": "documentation", "documents": ("docs/tax.md",)},
        {"kind": "test-results", "results": ("tests/test_tax.py",), "tests_count": 2, "coverage": 71.0},
    )
    assert read_outputs((), {"requires_changes": False}) == ()
    (tests,) = read_outputs((), {"tests_added": 1.0, "coverage": None})
    assert tests == {"kind": "test-results", "results": (), "tests_count": 1, "coverage": None}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("README.md", "documentation"),
        ("docs/conf.py", "documentation"),
        ("a/b/guide.RST", "documentation"),
        ("requirements.txt", "code"),
        ("requirements-dev.txt", "code"),
        ("CMakeLists.txt", "code"),
        ("tests/data/expected.md", "test"),
        ("shop/docs.py", "code"),
        ("shop/cart.py", "code"),
        ("cart_test.go", "test"),
    ],
)
def test_documents_are_told_from_code_and_tests(path: str, kind: str) -> None:
    assert classify_file(path) == kind


def test_outputs_are_merged_into_what_the_integrated_change_has() -> None:
    written = {"tax": ("shop/tax.py", "README.md", "shop/gone.py"), "disc": ("README.md",)}
    changes = [
        PathChange(path="shop/tax.py", kind="added", added=2),
        PathChange(path="README.md", kind="changed", added=3, removed=1),
        PathChange(path="old.md", kind="deleted", removed=5),
    ]
    unit = Receipt(check="unit", kind="test", outcome="passed", passed=4)
    lint = Receipt(check="lint", kind="lint", outcome="passed")
    found = merge_outputs(written, changes, (unit, lint), Coverage(percent=75, source="measured"), 3)
    assert list(found.files) == ["shop/tax.py", "README.md", "old.md"]
    assert found.files["README.md"].subtasks == ("tax", "disc")
    assert (found.documentation, found.test_results) == (("README.md",), (unit,))
    lines = {"lines_added": 5, "lines_removed": 6}
    assert found.metrics == {"total_files": 3, **lines, "tests_added": 3, "coverage": 75}


# --------------------------------------------------------------------------------------------------------- validation


def test_a_file_with_wrong_syntax_is_an_error_with_file_and_details() -> None:
    faults = {"shop/tax.py": "line 1: invalid syntax"}
    found = validate(merged("shop/tax.py"), VERIFIED, TeamSettings(), NOT_MEASURED, syntax_faults=faults)
    (only,) = found.issues
    assert (only.severity, only.message) == ("error", "Syntax error detected")
    assert (only.file, only.details) == ("shop/tax.py", "line 1: invalid syntax")
    assert (found.valid, found.score) == (False, 75)
    off = TeamSettings(validate_syntax=False)
    assert validate(merged("shop/tax.py"), VERIFIED, off, NOT_MEASURED, syntax_faults=faults).issues == ()


@pytest.mark.req("RC-93")
def test_failures_of_checks_are_errors_and_those_of_types_are_named_so() -> None:
    verdict = Verdict(
        state="failed",
        reasons=(
            Finding(code="new_failures", check="mypy", tests=("shop/tax.py: error", "x"), count=2),
            Finding(code="cannot_run_now", check="unit", why="no module shop"),
            Finding(code="tests_altered", tests=("a",)),
        ),
        receipts=(Receipt(check="mypy", kind="types", outcome="failed"),),
    )
    found = validate(merged("shop/tax.py"), verdict, TeamSettings(), NOT_MEASURED, syntax_faults={})
    assert [(each.code, each.details) for each in found.issues] == [
        ("type_errors", "shop/tax.py: error, x"),
        ("failing_check", "no module shop"),
    ]
    assert (found.valid, found.score) == (False, 10)


@pytest.mark.parametrize(("percent", "warned"), [(79.9, True), (80, False), (None, False)])
def test_coverage_below_the_minimum_is_a_warning_with_both_figures(percent: float | None, warned: bool) -> None:
    coverage = Coverage(percent=percent, source="measured" if percent is not None else "not_measured")
    found = validate(merged("shop/tax.py"), VERIFIED, TeamSettings(), coverage, syntax_faults={})
    assert [each.severity for each in found.issues] == ["warning"] * warned
    for each in found.issues:
        assert each.message == "Coverage 79.9 % is below the minimum of 80 %."
        assert each.suggestion.startswith("Add tests")
    assert (found.valid, found.score) == (True, 95 if warned else 100)
    strict = TeamSettings(min_coverage=100)
    claimed = Coverage(percent=99, source="claimed")
    (claim,) = validate(merged("a.py"), VERIFIED, strict, claimed, syntax_faults={}).issues
    assert claim.details == "claimed by an agent"


def test_missing_documentation_is_a_warning_only_if_it_is_required() -> None:
    wants = TeamSettings(require_documentation=True)
    (only,) = validate(merged("shop/tax.py"), VERIFIED, wants, NOT_MEASURED, syntax_faults={}).issues
    assert (only.severity, only.message) == ("warning", "No documentation generated")
    assert only.suggestion.startswith("Add documentation")
    for paths, settings in ((("shop/tax.py",), TeamSettings()), (("shop/tax.py", "docs/tax.md"), wants), ((), wants)):
        assert validate(merged(*paths), VERIFIED, settings, NOT_MEASURED, syntax_faults={}).issues == ()


@given(
    st.lists(st.sampled_from(("error", "warning")), max_size=30),
    st.sampled_from(STATES),
    st.one_of(st.none(), st.integers(-5, 110)),
    st.sampled_from(("error", "warning")),
)
def test_the_score_is_from_0_to_100_and_no_issue_raises_it(
    severities: list[str], state: VerdictState, review: int | None, more: str
) -> None:
    issues = [issue(severity) for severity in severities]
    score = sum(compute_score(issues, state, review).values())
    assert 0 <= score <= 100
    assert sum(compute_score([*issues, issue(more)], state, review).values()) <= score
    worse = [sum(compute_score(issues, each, review).values()) for each in STATES]
    assert worse == sorted(worse, reverse=True)


@pytest.mark.parametrize(
    ("issues", "state", "review", "score"),
    [
        ((), "verified", None, 100),
        ((), "verified", 90, 98),
        (("warning",), "unverified", None, 80),
        (("error",), "failed", 50, 38),
        (("error",) * 9, "failed", None, 0),
        (("error",) * 9, "failed", 100, 20),
    ],
)
def test_the_score_is_as_the_formula_says(
    issues: tuple[str, ...], state: VerdictState, review: int | None, score: int
) -> None:
    assert round(sum(compute_score([issue(each) for each in issues], state, review).values())) == score


# ------------------------------------------------------------------------------------------------------------- syntax


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("a.py", "def f(:\n", "line 1: invalid syntax"),
        ("a.pyi", "x: int\n", ""),
        ("a.py", "# coding: latin-1\nx = '\xe4'\n", ""),
        ("a.py", "x = '\\d'\n", ""),
        ("a.py", "x = 1\x00", "source code string cannot contain null bytes"),
        ("a.json", '{"a": }', "Expecting value: line 1 column 7 (char 6)"),
        ("a.json", '\ufeff{"a": 1}', ""),
        ("tsconfig.json", '{\n  // strict\n  "strict": true,\n}', None),
        ("a.toml", "x = \n", "Invalid value (at line 1, column 5)"),
        ("a.yaml", "a: !Ref b\n", ""),
        ("a.yml", "a: [1\n", "while parsing a flow sequence"),
        ("chart.yaml", "{{- if .Values }}\na: 1\n{{- end }}\n", None),
        ("a.rs", "fn main( {", None),
        ("Makefile", "all:", None),
    ],
)
def test_the_syntax_of_a_file_is_right_wrong_or_not_known(path: str, text: str, fault: str | None) -> None:
    found = find_syntax_fault(path, text.encode("latin-1" if "latin-1" in text else "utf-8"))
    assert found == fault or (fault and found is not None and found.startswith(fault))


def test_a_merge_breaks_a_file_that_is_new_or_was_right_before() -> None:
    before = {"a.json": b"{}", "b.json": b"{"}
    after = {"a.json": b"{", "b.json": b"{{", "c.json": b"{", "d.json": b"[]"}
    found = find_broken_files(before, after, after)
    assert [name for name in after if any(name in line for line in found)] == ["a.json", "c.json"]


# ----------------------------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize(
    ("name", "percent"),
    [
        ("pytest", 75),
        ("pytest-branch", 66.67),
        ("coverage", 80),
        ("coverage-md", 80),
        ("jest", 100),
        ("jest-summary", 100),
        ("vitest", 40),
        ("nyc", 100),
        ("c8", 100),
        ("node", 100),
        ("go", 55),
        ("go-coverpkg", 50),
        ("go-tool-cover", 66.7),
        ("llvm-cov", 81.82),
        ("lcov", 85.7),
        ("tarpaulin", 75),
    ],
)
def test_coverage_is_read_from_what_a_runner_printed(name: str, percent: float) -> None:
    text = (OUTPUTS / f"{name}.txt").read_text()
    assert parse_coverage(text) == percent


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        ("", None),
        ("3 passed in 0.1s", None),
        ("Total memory 50% used", None),
        ("TOTAL: 5 things, 50% done", None),
        ("coverage: 75.0% of statements", None),
        ("All files | 10 | 20 |", None),
        ("File | % Funcs | % Lines | Uncovered Line #s\nAll files | 66.67 | 77.78 |", 77.78),
        ("File | Branch % | Line %\nAll files | 100.0 | 83.3 |", 83.3),
        ("File | % Lines\nAll files | Unknown", None),
        ("| Total | 85.71% | 50% | 100% |", 85.71),
        ("TOTAL 4 1 75%\nTOTAL 8 1 88%", 88),
        ("  Lines:   85.71% (6/7)", 85.71),
        ("Line Coverage: 92.0% (46 / 50)", 92),
    ],
)
def test_other_lines_are_not_coverage_and_the_last_figure_counts(text: str, percent: float | None) -> None:
    assert parse_coverage(text) == percent
