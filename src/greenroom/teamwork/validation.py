"""What the integrated change of a team is worth: its outputs, validation issues, coverage and score. Nothing runs here.

The score is 100, minus 25 per error, 5 per warning, and 15 for an unverified or 40 for a failed change; not below 0.
The score of the last review, if there is one, counts for a fifth.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

import yaml

from greenroom.core.base.errors import translate
from greenroom.core.base.records import Data, record
from greenroom.core.ports.workspace import PathChange
from greenroom.runs.discovery import is_test
from greenroom.runs.verdict import Receipt, Verdict, VerdictState
from greenroom.teamwork.plan import TeamSettings

ERROR_POINTS: Final = 25
WARNING_POINTS: Final = 5
VERDICT_POINTS: Final[Mapping[VerdictState, int]] = {"verified": 0, "unverified": 15, "failed": 40}
REVIEW_SHARE: Final = 0.2
"""How much the score of a review counts."""

DOC_SUFFIXES: Final = (".md", ".mdx", ".rst", ".adoc", ".txt")
DOC_FOLDERS: Final = frozenset({"doc", "docs"})
NOT_DOCUMENTATION: Final = re.compile(r"(?:requirements|constraints|robots|cmakelists).*", re.IGNORECASE)

FileKind = Literal["code", "test", "documentation"]
Severity = Literal["error", "warning"]
IssueCode = Literal["syntax_error", "type_errors", "failing_check", "missing_work", "low_coverage", "no_documentation"]


def read_outputs(paths: Sequence[str], handoff: Data | None) -> tuple[Data, ...]:
    """Return the outputs of a subtask as data: its code, its documents, and what its hand-off says about its tests."""
    by_kind = {kind: tuple(path for path in paths if classify_file(path) == kind) for kind in ("test", "documentation")}
    code, documents = tuple(path for path in paths if path not in by_kind["documentation"]), by_kind["documentation"]
    outputs: list[Data] = [{"kind": "code-change", "files": code}] if code else []
    outputs += [{"kind": "documentation", "documents": documents}] if documents else []
    count, coverage = ((handoff or {}).get(key) for key in ("tests_added", "coverage"))
    if isinstance(count, int | float):
        claim = float(coverage) if isinstance(coverage, int | float) else None
        results = {"results": by_kind["test"], "tests_count": int(count), "coverage": claim}
        outputs.append({"kind": "test-results", **results})
    return tuple(outputs)


def classify_file(path: str) -> FileKind:
    """Return whether a file is documentation, a test or other code."""
    place = PurePosixPath(path)
    if is_test(path):
        return "test"
    is_text = place.suffix.lower() in DOC_SUFFIXES and not NOT_DOCUMENTATION.fullmatch(place.name)
    return "documentation" if is_text or not DOC_FOLDERS.isdisjoint(place.parts[:-1]) else "code"


@record
class Coverage:
    """A test coverage in percent. `measured` is from the output of a check, `claimed` from a specialist's hand-off."""

    percent: float | None = None
    source: Literal["measured", "claimed", "not_measured"] = "not_measured"
    check: str = ""


@record
class MergedFile:
    """A file of the integrated change. `subtasks` are those that changed it."""

    kind: FileKind
    added: int
    removed: int
    subtasks: tuple[str, ...]


@record
class MergedOutput:
    """The work of all subtasks as it is in the integrated change."""

    files: Mapping[str, MergedFile]
    documentation: tuple[str, ...]
    test_results: tuple[Receipt, ...]
    metrics: Mapping[str, float | None]


def merge_outputs(
    written: Mapping[str, Sequence[str]],
    changes: Sequence[PathChange],
    receipts: Iterable[Receipt],
    coverage: Coverage,
    tests_added: int | None = None,
) -> MergedOutput:
    """Return what the integrated change has. `written` are the paths that each subtask changed, by its name.

    `tests_added` is None if no check counted tests before and after.
    """
    files = {
        change.path: MergedFile(
            kind=classify_file(change.path),
            added=change.added,
            removed=change.removed,
            subtasks=tuple(name for name, paths in written.items() if change.path in paths),
        )
        for change in changes
    }
    kept = (change.path for change in changes if change.kind != "deleted")
    return MergedOutput(
        files=files,
        documentation=tuple(path for path in kept if files[path].kind == "documentation"),
        test_results=tuple(receipt for receipt in receipts if receipt.kind == "test"),
        metrics={
            "total_files": len(files),
            "lines_added": sum(change.added for change in changes),
            "lines_removed": sum(change.removed for change in changes),
            "tests_added": tests_added,
            "coverage": coverage.percent,
        },
    )


@record
class ValidationIssue:
    """A fault of the integrated change. `code` is for programs, the texts are for people. `file` can be empty."""

    severity: Severity
    code: IssueCode
    message: str
    file: str = ""
    details: str = ""
    suggestion: str = ""


@record
class ValidationResult:
    """The issues of the integrated change. It is `valid` without errors. `score_parts` add up to the `score`."""

    valid: bool
    issues: tuple[ValidationIssue, ...]
    score: int
    score_parts: Mapping[str, float]


def validate(
    merged: MergedOutput,
    verdict: Verdict,
    settings: TeamSettings,
    coverage: Coverage,
    *,
    missing: Sequence[str] = (),
    syntax_faults: Mapping[str, str],
    review_score: int | None = None,
) -> ValidationResult:
    """Validate the integrated change: syntax, the project's checks, coverage and documentation.

    `missing` are subtasks whose work is not in it, `syntax_faults` are details by file.
    """
    faults = syntax_faults.items() if settings.validate_syntax else ()
    issues = [_make_issue("error", "missing_work", name=name) for name in missing]
    issues += [_make_issue("error", "syntax_error", file=path, details=why) for path, why in faults]
    issues += [*_find_failures(verdict), *_find_gaps(merged, settings, coverage)]
    parts = compute_score(issues, verdict.state, review_score)
    is_valid = all(issue.severity != "error" for issue in issues)
    return ValidationResult(valid=is_valid, issues=tuple(issues), score=round(sum(parts.values())), score_parts=parts)


def _find_failures(verdict: Verdict) -> Iterator[ValidationIssue]:
    """Yield the checks that fail and did not before."""
    kinds = {receipt.check: receipt.kind for receipt in verdict.receipts}
    for reason in verdict.reasons:
        if reason.code in ("new_failures", "cannot_run_now"):
            code: IssueCode = "type_errors" if kinds.get(reason.check) == "types" else "failing_check"
            yield _make_issue("error", code, details=", ".join(reason.tests) or reason.why, check=reason.check)


def _find_gaps(merged: MergedOutput, settings: TeamSettings, coverage: Coverage) -> Iterator[ValidationIssue]:
    """Yield what is missing: coverage, documentation."""
    if coverage.percent is not None and coverage.percent < settings.min_coverage:
        percent, source = f"{coverage.percent:g}", translate(f"validation.{coverage.source}")
        yield _make_issue("warning", "low_coverage", details=source, coverage=percent, least=settings.min_coverage)
    if settings.require_documentation and merged.files and not merged.documentation:
        yield _make_issue("warning", "no_documentation")


def _make_issue(
    severity: Severity, code: IssueCode, *, file: str = "", details: str = "", **values: object
) -> ValidationIssue:
    message, suggestion = (translate(f"validation.{key}", **values) for key in (code, f"{code}_suggestion"))
    return ValidationIssue(
        severity=severity, code=code, message=message, file=file, details=details, suggestion=suggestion
    )


def compute_score(
    issues: Sequence[ValidationIssue], state: VerdictState, review_score: int | None = None
) -> Mapping[str, float]:
    """Return the parts of the score. Their sum is from 0 to 100."""
    errors = sum(issue.severity == "error" for issue in issues)
    parts: dict[str, float] = {
        "start": 100,
        "errors": -ERROR_POINTS * errors,
        "warnings": -WARNING_POINTS * (len(issues) - errors),
        "verdict": -VERDICT_POINTS[state],
    }
    own = max(sum(parts.values()), 0)
    parts["floor"] = own - sum(parts.values())
    parts["review"] = 0 if review_score is None else round((min(max(review_score, 0), 100) - own) * REVIEW_SHARE, 2)
    return parts


def find_syntax_fault(path: str, content: bytes) -> str | None:
    """Return what is wrong with the syntax of a file; empty if it is right, None if it cannot be told here."""
    reader = _READERS.get(PurePosixPath(path).suffix.lower())
    if reader is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler's, about the project's code
            reader(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError, yaml.YAMLError) as error:
        text = content.decode(errors="replace")
        may_be_other = _TEMPLATE.search(text) or (reader is json.loads and _JSON_EXTENSION.search(text))
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) and error.lineno else str(error)
        return None if may_be_other else " ".join(where.split())[:MAX_DETAILS_CHARS]
    return ""


def _read_toml(content: bytes) -> object:
    return tomllib.loads(content.decode("utf-8-sig"))


def _read_yaml(content: bytes) -> None:
    """Read the events only: what tags stand for is another program's."""
    for _ in yaml.parse(content, Loader=yaml.SafeLoader):
        pass


MAX_DETAILS_CHARS: Final = 300
_READERS: Final[Mapping[str, Callable[[bytes], object]]] = {
    **dict.fromkeys((".py", ".pyi"), ast.parse),
    **dict.fromkeys((".yaml", ".yml"), _read_yaml),
    ".json": json.loads,
    ".toml": _read_toml,
}
_TEMPLATE: Final = re.compile(r"\{\{|\{%|<%")
_JSON_EXTENSION: Final = re.compile(r"^\s*//|/\*|,\s*[}\]]", re.MULTILINE)

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)%")
_TOTAL_ROW: Final = re.compile(r"(?:TOTAL|\|\s*\**TOTAL\**|\|\s*Total)(?=.*\d%)(?:[\s|*]+(?:[\d.]+%?|-))+[\s|*]*")
_TABLE_ROW: Final = re.compile(r"\s*(?:[ℹ#]\s+)?(File|All files)\s*\|.*", re.IGNORECASE)
_GO_PACKAGE: Final = re.compile(r"(?:ok|FAIL|)\s+\S+\s.*coverage: ([\d.]+)% of statements(?P<of> in)?.*")
_SENTENCES: Final = (
    re.compile(r".*Total coverage: ([\d.]+)%.*"),  # pytest-cov with a minimum
    re.compile(r"\s*Lines\s*:\s+([\d.]+)% \(\s*\d+/\s*\d+\s*\).*"),  # istanbul's summary, PHPUnit
    re.compile(r"\s*lines\.+: ([\d.]+)% \(\d+ of \d+ lines?\).*"),  # lcov
    re.compile(r"([\d.]+)% coverage, \d+/\d+ lines covered.*"),  # tarpaulin
    re.compile(r".*Line Coverage: ([\d.]+)% \(\d+ / \d+\).*"),  # SimpleCov
    re.compile(r"total:\s+\(statements\)\s+([\d.]+)%.*"),  # go tool cover
)
LLVM_LINES: Final = 2
"""The place of the lines' figure in a row of llvm-cov, after regions and functions."""


def parse_coverage(output: str) -> float | None:
    """Return the line coverage in percent that a test runner printed last; None if it printed none.

    Of several Go packages without a sum it is the mean, or the best if each is of all packages.
    """
    found, packages, header = None, list[re.Match[str]](), list[str]()
    for line in _ESCAPE.sub("", output).splitlines():
        cells = [cell.strip().lower() for cell in line.split("|")]
        if row := _TABLE_ROW.fullmatch(line):
            header = cells if row[1].lower() == "file" else header
            found = found if row[1].lower() == "file" else _read_lines_cell(header, cells)
        elif sentence := next((match for pattern in _SENTENCES if (match := pattern.fullmatch(line))), None):
            found = float(sentence[1])
        elif package := _GO_PACKAGE.fullmatch(line):
            packages.append(package)
        elif _TOTAL_ROW.fullmatch(line):
            figures = [float(figure) for figure in _PERCENT.findall(line)]
            found = figures[LLVM_LINES if len(figures) > LLVM_LINES and "|" not in line else 0]
    if found is None and packages:
        figures = [float(package[1]) for package in packages]
        return max(figures) if packages[0]["of"] else round(sum(figures) / len(figures), 2)
    return found


def _read_lines_cell(header: Sequence[str], cells: Sequence[str]) -> float | None:
    """Return the figure below the column of lines."""
    pairs = zip(header, cells, strict=False)
    texts = (cell.removesuffix("%") for name, cell in pairs if "line" in name and "uncovered" not in name)
    return next((float(text) for text in texts if re.fullmatch(r"\d+(?:\.\d+)?", text)), None)
