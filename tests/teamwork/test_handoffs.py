"""The hand-offs between specialists: what fits each protocol, and what is said about one that does not."""

import json
from collections.abc import Mapping
from typing import cast

import pytest

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.teamwork.handoffs import build_handoff_schema, read_protocols, validate_handoff, wrap_handoff

CHANGE = {
    "path": "src/login.py",
    "change_type": "created",
    "lines_added": 40,
    "lines_removed": 0,
    "purpose": "OAuth login",
}
PLACE = {"path": "src/login.py", "line": 12}
ISSUE = {
    "severity": "critical",
    "category": "security",
    "location": PLACE,
    "description": "The state is not checked.",
    "suggestion": "Compare it with the session's.",
}
COMPONENT = {
    "name": "login",
    "purpose": "Log in with OAuth.",
    "responsibilities": ["redirect", "callback"],
    "interfaces": ["Login"],
    "dependencies": ["config"],
    "writes": ["src/login.py"],
    "symbols": ["src/login.py:Login"],
}
GOOD: dict[str, dict[str, object]] = {
    "design-handoff": {
        "architecture_overview": "A login module beside the users.",
        "components": [COMPONENT],
        "interfaces": [
            {
                "name": "Login",
                "methods": [{"name": "start", "signature": "start() -> str", "purpose": "URL", "errors": ["NoConfig"]}],
                "properties": [{"name": "provider", "type": "str", "purpose": "its name"}],
            }
        ],
        "tech_stack": [{"choice": "authlib", "reason": "is installed", "alternatives": ["oauthlib"]}],
        "non_functional_requirements": [{"kind": "security", "requirement": "PKCE", "measure": "a test"}],
    },
    "code-handoff": {
        "modified_files": [CHANGE],
        "new_features": [{"name": "login", "description": "OAuth", "usage": "GET /login"}],
        "test_scenarios": [{"name": "denied", "given": "error=denied", "expected": "403"}],
        "limitations": ["one provider"],
        "dependency_changes": [{"package": "authlib", "change": "added", "version": "1.3", "reason": "OAuth"}],
    },
    "test-coverage-report": {
        "test_files": [CHANGE],
        "tests_added": 4,
        "passed": 3,
        "failed": ["test_denied: 500 instead of 403"],
        "coverage": 91.5,
        "uncovered": [PLACE],
    },
    "doc-review": {
        "documents": [CHANGE],
        "audience": "users",
        "examples_checked": ["GET /login"],
        "open_questions": ["Which providers?"],
    },
    "refactor-report": {
        "modified_files": [CHANGE],
        "improvements": ["one module less"],
        "smells_removed": ["duplicate code"],
        "behaviour_changes": [],
        "tests_run": ["pytest"],
        "remaining_debt": ["globals"],
    },
    "review-feedback": {
        "overall_score": 72,
        "requires_changes": True,
        "issues": [ISSUE],
        "suggestions": [{"priority": "low", "description": "Shorter names.", "example": None}],
        "strengths": ["small"],
    },
    "translation-review": {
        "languages": ["zh"],
        "modified_files": [CHANGE],
        "strings_translated": 12,
        "terms": {"run": "运行"},
        "unsure": ["apply"],
    },
    "debug-report": {
        "reproduced": True,
        "steps": ["pytest -k login"],
        "cause": "The state is dropped.",
        "location": [PLACE],
        "fix": "Keep it.",
        "also_affected": [PLACE],
    },
    "optimization-report": {
        "modified_files": [CHANGE],
        "measurements": [{"name": "login", "unit": "ms", "before": 40, "after": 8.5, "command": "bench"}],
        "trade_offs": ["more memory"],
    },
    "security-report": {"findings": [ISSUE], "requires_changes": True, "reviewed": ["src/login.py"]},
}
"""One example of each protocol with all fields."""

MISSING = object()


@pytest.mark.req("RC-71", "RC-72", "RC-73", "RC-74", "RC-75", "RC-76", "RC-77", "RC-78", "RC-79")
@pytest.mark.parametrize("protocol", read_protocols())
def test_a_good_hand_off_fits_its_protocol_and_its_schema(protocol: str) -> None:
    data, schema = GOOD[protocol], build_handoff_schema(protocol)
    assert validate_handoff(protocol, data) is None
    assert validate_handoff(protocol, wrap_handoff(protocol, data)) is None
    assert cast("Data", schema["properties"]).keys() == wrap_handoff(protocol, data).keys()
    assert validate_handoff(protocol, {name: data[name] for name in cast("list[str]", schema["required"])}) is None


BAD: list[tuple[str, Data, str]] = [
    ("design-handoff", {"architecture_overview": MISSING}, '"architecture_overview" is a required property'),
    ("design-handoff", {"components": [{**COMPONENT, "name": 3}]}, 'components.0.name: 3 is not of type "string"'),
    ("code-handoff", {"modified_files": [{**CHANGE, "change_type": "moved"}]}, 'modified_files.0.change_type: "moved"'),
    ("code-handoff", {"modified_fils": []}, "('modified_fils' was unexpected)"),
    ("review-feedback", {"overall_score": 101}, "overall_score: 101 is greater than the maximum of 100"),
    ("review-feedback", {"issues": [{**ISSUE, "severity": "bad"}]}, 'issues.0.severity: "bad"'),
    ("review-feedback", {"suggestions": [{"priority": "urgent", "description": "x"}]}, "suggestions.0.priority: "),
    ("test-coverage-report", {"coverage": 120}, "coverage: 120"),
    ("doc-review", {"documents": "README.md"}, 'documents: "README.md" is not of type "array"'),
    ("refactor-report", {"improvements": [1]}, "improvements.0: "),
    ("translation-review", {"strings_translated": -1}, "strings_translated: "),
    ("debug-report", {"cause": ""}, "cause: "),
    ("optimization-report", {"measurements": [{"name": "x"}]}, 'measurements.0: "unit" is a required property'),
    ("security-report", {"findings": [{**ISSUE, "location": {"path": ""}}]}, "findings.0.location.path: "),
    ("code-handoff", {"protocol": "doc-review"}, 'protocol: "code-handoff" was expected'),
    *(("doc-review", {"version": version}, "version: 1 was expected") for version in (2, 0, "1", True, None)),
]


@pytest.mark.req("RC-80")
@pytest.mark.parametrize(("protocol", "change", "fault"), BAD)
def test_the_fault_of_a_bad_hand_off_is_named_in_one_sentence(protocol: str, change: Data, fault: str) -> None:
    data = {key: value for key, value in {**GOOD[protocol], **change}.items() if value is not MISSING}
    why = validate_handoff(protocol, data)
    assert why is not None
    assert why.startswith(f"The hand-off {protocol} is not valid: ")
    assert fault in why
    assert "\n" not in why


@pytest.mark.req("RC-80")
def test_a_missing_hand_off_and_an_unknown_protocol_are_refused() -> None:
    missing = validate_handoff("doc-review", None)
    assert missing == "The hand-off doc-review must be an object with the fields of its schema."
    with pytest.raises(WorldFault, match="Did you mean: code-handoff"):
        build_handoff_schema("code-handof")


def test_a_schema_refuses_fields_that_nobody_reads_and_has_only_its_own_parts() -> None:
    for schema in read_protocols().values():
        definitions = cast("Mapping[str, Data]", schema["$defs"])
        assert all(part["additionalProperties"] is False for part in (schema, *definitions.values()))
        assert all(f"#/$defs/{name}" in json.dumps(schema) for name in definitions)
