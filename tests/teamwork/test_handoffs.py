"""The hand-offs between specialists: what fits each protocol, and what is said about one that does not."""

import json
from collections.abc import Mapping
from typing import cast

import msgspec
import pytest

from greenroom.abilities.protocols.calls import find_faults
from greenroom.core.base.records import Data
from greenroom.teamwork.handoffs import PROTOCOLS, build_handoff_schema, validate_handoff, wrap_handoff

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


@pytest.mark.req("RC-71", "RC-72", "RC-73", "RC-74", "RC-75", "RC-76", "RC-77", "RC-78", "RC-79")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_good_hand_off_fits_its_protocol_and_its_schema(protocol: str) -> None:
    data, schema = GOOD[protocol], build_handoff_schema(protocol)
    assert validate_handoff(protocol, data) is None
    assert validate_handoff(protocol, wrap_handoff(protocol, data)) is None
    assert not find_faults(schema, data)
    fields = msgspec.structs.fields(PROTOCOLS[protocol].content)
    assert {field.name for field in fields} == set(data)
    required = {name: data[name] for name in (field.name for field in fields if field.required)}
    assert validate_handoff(protocol, required) is None


@pytest.mark.req("RC-71", "RC-73", "RC-75")
def test_a_protocol_says_between_whom_it_is() -> None:
    ends = {name: (protocol.sender, protocol.receivers) for name, protocol in PROTOCOLS.items()}
    assert ends["design-handoff"] == ("architect", ("code-writer", "documentation"))
    assert ends["code-handoff"] == ("code-writer", ("test-writer", "review", "documentation"))
    assert ends["review-feedback"] == ("review", ("code-writer", "refactor"))


BAD: list[tuple[str, Data, str]] = [
    ("design-handoff", {"components": []}, "Object missing required field `architecture_overview`"),
    (
        "design-handoff",
        {"components": [{**COMPONENT, "name": 3}]},
        "Expected `str`, got `int`, at `components[0].name`",
    ),
    (
        "code-handoff",
        {"modified_files": [{**CHANGE, "change_type": "moved"}]},
        "'moved', at `modified_files[0].change_type`",
    ),
    ("code-handoff", {"modified_fils": []}, "unknown field `modified_fils`"),
    ("review-feedback", {"overall_score": 101}, "Expected `int` <= 100, at `overall_score`"),
    ("review-feedback", {"issues": [{**ISSUE, "severity": "bad"}]}, "'bad', at `issues[0].severity`"),
    ("review-feedback", {"suggestions": [{"priority": "urgent", "description": "x"}]}, "at `suggestions[0].priority`"),
    ("test-coverage-report", {"coverage": 120}, "at `coverage`"),
    ("doc-review", {"documents": "README.md"}, "Expected `array`, got `str`, at `documents`"),
    ("refactor-report", {"improvements": [1]}, "at `improvements[0]`"),
    ("translation-review", {"strings_translated": -1}, "at `strings_translated`"),
    ("debug-report", {"cause": ""}, "at `cause`"),
    ("optimization-report", {"measurements": [{"name": "x"}]}, "missing required field `unit`, at `measurements[0]`"),
    ("security-report", {"findings": [{**ISSUE, "location": {"path": ""}}]}, "at `findings[0].location.path`"),
]


@pytest.mark.req("RC-80")
@pytest.mark.parametrize(("protocol", "change", "fault"), BAD)
def test_the_fault_of_a_bad_hand_off_is_named_in_one_sentence(protocol: str, change: Data, fault: str) -> None:
    data = {**GOOD[protocol], **change}
    if fault.startswith("Object missing required field `arch"):
        del data["architecture_overview"]
    why = validate_handoff(protocol, data)
    assert why is not None
    assert why.startswith(f"The hand-off {protocol} is not valid: ")
    assert fault in why
    assert "\n" not in why
    assert find_faults(build_handoff_schema(protocol), data)


@pytest.mark.req("RC-80")
@pytest.mark.parametrize("version", [2, 0, "1", True, None])
def test_an_unknown_version_is_refused(version: object) -> None:
    why = validate_handoff("doc-review", {**GOOD["doc-review"], "version": version})
    assert why == f"The hand-off doc-review has version {version!r}; this Greenroom knows version 1."


@pytest.mark.req("RC-80")
def test_another_protocol_and_what_is_not_an_object_are_refused() -> None:
    data = wrap_handoff("doc-review", GOOD["doc-review"])
    assert validate_handoff("code-handoff", data) == "The hand-off must follow code-handoff, not 'doc-review'."
    unknown = validate_handoff("code-handof", data)
    assert unknown == "There is no hand-off protocol 'code-handof'. Did you mean: code-handoff?"
    others: tuple[object, ...] = (None, [], "done")
    for value in others:
        assert validate_handoff("doc-review", value) == (
            "The hand-off doc-review must be an object with the fields of its schema."
        )


def test_a_schema_refuses_fields_that_nobody_reads() -> None:
    for protocol in PROTOCOLS:
        definitions = cast("Mapping[str, Data]", build_handoff_schema(protocol)["$defs"])
        assert all(definition["additionalProperties"] is False for definition in definitions.values())
        assert json.dumps(definitions)
