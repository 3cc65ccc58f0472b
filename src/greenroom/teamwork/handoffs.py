"""The typed hand-offs between specialists: one protocol each, with a version and a JSON Schema.

A hand-off is what a specialist leaves to the subtasks that need it. It is data: `protocol`, `version` and the fields
of the protocol. It is a claim of its author; facts like the changed files come from the worktree.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from greenroom.core.base.errors import translate
from greenroom.core.base.records import Data, Record, record

VERSION: Final = 1
ENVELOPE: Final = ("protocol", "version")

Score: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=100)]
Percent: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=100)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
Texts: TypeAlias = tuple[str, ...]
Severity: TypeAlias = Literal["critical", "major", "minor"]


class HandoffPart(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all hand-offs and their parts."""


class FileLocation(HandoffPart, frozen=True, kw_only=True):
    """A place in a file. `line` counts from 1; 0 is the whole file."""

    path: Text
    line: Count = 0
    symbol: str = ""


class MethodSpec(HandoffPart, frozen=True, kw_only=True):
    """A method of an interface, with its signature as in the code."""

    name: Text
    signature: str = ""
    purpose: str = ""
    errors: Texts = ()


class PropertySpec(HandoffPart, frozen=True, kw_only=True):
    """A property of an interface."""

    name: Text
    type: str = ""
    purpose: str = ""


class InterfaceSpec(HandoffPart, frozen=True, kw_only=True):
    """A contract between components."""

    name: Text
    methods: tuple[MethodSpec, ...] = ()
    properties: tuple[PropertySpec, ...] = ()


class ComponentSpec(HandoffPart, frozen=True, kw_only=True):
    """A part of the design. `writes` is its write set: the files that only this component changes.

    `dependencies` are components that must be built first; `symbols` are functions and classes, as `path:name`.
    """

    name: Text
    purpose: str
    responsibilities: Texts = ()
    interfaces: Texts = ()
    dependencies: Texts = ()
    writes: Texts = ()
    symbols: Texts = ()


class TechStackDecision(HandoffPart, frozen=True, kw_only=True):
    """A technology that was chosen, why, and instead of what."""

    choice: Text
    reason: str
    alternatives: Texts = ()


class NonFunctionalRequirement(HandoffPart, frozen=True, kw_only=True):
    """A need like performance or security, and how to see that it is met."""

    kind: Text
    requirement: str
    measure: str = ""


class DesignHandoff(HandoffPart, frozen=True, kw_only=True):
    """The design of a change, for those who write code and documents."""

    architecture_overview: Text
    components: tuple[ComponentSpec, ...]
    interfaces: tuple[InterfaceSpec, ...] = ()
    tech_stack: tuple[TechStackDecision, ...] = ()
    non_functional_requirements: tuple[NonFunctionalRequirement, ...] = ()


class FileReport(HandoffPart, frozen=True, kw_only=True):
    """What was done to a file, and why."""

    path: Text
    change_type: Literal["created", "modified", "deleted"]
    lines_added: Count = 0
    lines_removed: Count = 0
    purpose: str = ""


class FeatureDescription(HandoffPart, frozen=True, kw_only=True):
    """A new feature, and how it is used."""

    name: Text
    description: str
    usage: str = ""


class TestScenario(HandoffPart, frozen=True, kw_only=True):
    """A case that tests must cover."""

    __test__ = False

    name: Text
    given: str = ""
    expected: str = ""


class DependencyChange(HandoffPart, frozen=True, kw_only=True):
    """A package that was added, updated or removed."""

    package: Text
    change: Literal["added", "updated", "removed"]
    version: str = ""
    reason: str = ""


class CodeHandoff(HandoffPart, frozen=True, kw_only=True):
    """What was implemented, for tests, review and documents."""

    modified_files: tuple[FileReport, ...]
    new_features: tuple[FeatureDescription, ...] = ()
    test_scenarios: tuple[TestScenario, ...] = ()
    limitations: Texts = ()
    dependency_changes: tuple[DependencyChange, ...] = ()


class TestCoverageReport(HandoffPart, frozen=True, kw_only=True):
    """The tests that were written and what they found. `coverage` is in percent of the new code, if measured."""

    __test__ = False

    test_files: tuple[FileReport, ...]
    tests_added: Count
    passed: Count = 0
    failed: Texts = ()
    coverage: Percent | None = None
    uncovered: tuple[FileLocation, ...] = ()


class DocReview(HandoffPart, frozen=True, kw_only=True):
    """The documents that were written. `open_questions` are facts that the code does not answer."""

    documents: tuple[FileReport, ...]
    audience: str = ""
    examples_checked: Texts = ()
    open_questions: Texts = ()


class RefactorReport(HandoffPart, frozen=True, kw_only=True):
    """What was restructured. `behaviour_changes` should be empty."""

    modified_files: tuple[FileReport, ...]
    improvements: Texts
    smells_removed: Texts = ()
    behaviour_changes: Texts = ()
    tests_run: Texts = ()
    remaining_debt: Texts = ()


class ReviewIssue(HandoffPart, frozen=True, kw_only=True):
    """A fault of the change: how grave, of what kind, where, and how to fix it."""

    severity: Severity
    category: Literal["correctness", "performance", "security", "maintainability", "style"]
    location: FileLocation
    description: Text
    suggestion: str


class Suggestion(HandoffPart, frozen=True, kw_only=True):
    """An improvement that is not a fault."""

    priority: Literal["high", "medium", "low"]
    description: Text
    example: str | None = None


class ReviewFeedback(HandoffPart, frozen=True, kw_only=True):
    """The verdict of a review, for those who write and restructure code."""

    overall_score: Score
    requires_changes: bool
    issues: tuple[ReviewIssue, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    strengths: Texts = ()


class TranslationReview(HandoffPart, frozen=True, kw_only=True):
    """What was translated. `terms` gives the translation of each term; `unsure` lists texts that need a reader."""

    languages: Texts
    modified_files: tuple[FileReport, ...]
    strings_translated: Count
    terms: Mapping[str, str] = msgspec.field(default_factory=dict)
    unsure: Texts = ()


class DebugReport(HandoffPart, frozen=True, kw_only=True):
    """The cause of a fault: how it is reproduced, where it is, and how it can be fixed."""

    reproduced: bool
    steps: Texts
    cause: Text
    location: tuple[FileLocation, ...] = ()
    fix: str = ""
    also_affected: tuple[FileLocation, ...] = ()


class Measurement(HandoffPart, frozen=True, kw_only=True):
    """A figure before and after a change, with the command that measures it."""

    name: Text
    unit: str
    before: float
    after: float
    command: str = ""


class OptimizationReport(HandoffPart, frozen=True, kw_only=True):
    """What became faster, measured in the same way before and after."""

    modified_files: tuple[FileReport, ...]
    measurements: tuple[Measurement, ...]
    trade_offs: Texts = ()


class SecurityReport(HandoffPart, frozen=True, kw_only=True):
    """The result of an audit. `reviewed` lists what was looked at."""

    findings: tuple[ReviewIssue, ...]
    requires_changes: bool
    reviewed: Texts = ()


@record
class HandoffProtocol:
    """A protocol: its fields, and the types of specialists that send and receive it."""

    name: str
    content: type[HandoffPart]
    sender: str
    receivers: tuple[str, ...]
    version: int = VERSION


_WRITERS: Final = ("code-writer", "refactor")
PROTOCOLS: Final[Mapping[str, HandoffProtocol]] = {
    name: HandoffProtocol(name=name, content=content, sender=sender, receivers=receivers)
    for name, content, sender, receivers in (
        ("design-handoff", DesignHandoff, "architect", ("code-writer", "documentation")),
        ("code-handoff", CodeHandoff, "code-writer", ("test-writer", "review", "documentation")),
        ("test-coverage-report", TestCoverageReport, "test-writer", ("code-writer", "debug", "review")),
        ("doc-review", DocReview, "documentation", ("architect", "code-writer", "review")),
        ("refactor-report", RefactorReport, "refactor", ("test-writer", "review")),
        ("review-feedback", ReviewFeedback, "review", _WRITERS),
        ("translation-review", TranslationReview, "translator", ("documentation", "review")),
        ("debug-report", DebugReport, "debug", ("code-writer", "test-writer")),
        ("optimization-report", OptimizationReport, "optimizer", ("test-writer", "review")),
        ("security-report", SecurityReport, "security", ("code-writer", "review")),
    )
}


@cache
def build_handoff_schema(protocol: str) -> Data:
    """Return the JSON Schema of a protocol's fields, with `$defs`. Raise `KeyError` for an unknown protocol."""
    return msgspec.json.schema(PROTOCOLS[protocol].content)


def wrap_handoff(protocol: str, fields: Data) -> Data:
    """Return the hand-off of these fields with its protocol and version."""
    return {**fields, "protocol": protocol, "version": PROTOCOLS[protocol].version}


def validate_handoff(protocol: str, data: object) -> str | None:
    """Return what is wrong with a hand-off in one sentence, or None. `protocol` and `version` may be left out."""
    known = PROTOCOLS.get(protocol)
    if known is None:
        near = get_close_matches(protocol, PROTOCOLS, n=1) or sorted(PROTOCOLS)
        return translate("handoffs.unknown_protocol", protocol=protocol, near=", ".join(near))
    if not isinstance(data, Mapping):
        return translate("handoffs.not_object", protocol=protocol)
    named, version = data.get("protocol", protocol), data.get("version", known.version)
    if named != protocol:
        return translate("handoffs.other_protocol", protocol=protocol, named=named)
    if type(version) is not int or version != known.version:
        return translate("handoffs.unknown_version", protocol=protocol, version=version, known=known.version)
    try:
        msgspec.convert({key: value for key, value in data.items() if key not in ENVELOPE}, known.content)
    except msgspec.ValidationError as error:
        return translate("handoffs.invalid", protocol=protocol, why=_explain_error(str(error)))
    return None


def _explain_error(error: str) -> str:
    """Return the error with the path of the field, as in `components[0].name`."""
    why, _, path = error.partition(" - at `$")
    where = path.rstrip("`").removeprefix(".")
    return translate("handoffs.at", why=why, where=where) if where else why
