"""The typed hand-offs between specialists: one protocol each, with a version and a JSON Schema from `handoffs.toml`.

A hand-off is what a specialist leaves to the subtasks that need it. It is data: `protocol`, `version` and the fields
of the protocol. It is a claim of its author; facts like the changed files come from the worktree.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from greenroom.abilities.protocols.calls import find_faults
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, encode, record

VERSION: Final = 1
MAX_FINDING_CHARS: Final = 2_000
_REFERENCE: Final = re.compile(rb'"#/\$defs/(\w+)"')


@cache
def read_protocols() -> Mapping[str, Data]:
    """Return the JSON Schema of each protocol, with the parts that it uses."""
    data = tomllib.loads((files(__package__) / "handoffs.toml").read_text(encoding="utf-8"))
    closed = {"type": "object", "additionalProperties": False}
    parts = {name: {**part, **closed} for name, part in data["parts"].items()}
    schemas = dict[str, Data]()
    for protocol, fields in data["protocols"].items():
        envelope = {"protocol": {"const": protocol}, "version": {"const": VERSION}}
        schema = {**fields, **closed, "properties": {**fields["properties"], **envelope}}
        schemas[protocol] = {**schema, "$defs": {name: parts[name] for name in _find_parts(schema, parts)}}
    return schemas


def _find_parts(schema: Data, parts: Mapping[str, Data]) -> list[str]:
    """Return the names of the parts that a schema refers to, and that those refer to."""
    names = [name.decode() for name in dict.fromkeys(_REFERENCE.findall(encode(schema)))]
    for name in names:
        names += [inner for inner in _find_parts(parts[name], parts) if inner not in names]
    return names


def build_handoff_schema(protocol: str) -> Data:
    """Return the JSON Schema of a protocol. Raise `WorldFault` for an unknown protocol."""
    known = read_protocols()
    if protocol not in known:
        near = get_close_matches(protocol, known, n=1) or sorted(known)
        raise WorldFault("handoffs.unknown_protocol", protocol=protocol, near=", ".join(near))
    return known[protocol]


def wrap_handoff(protocol: str, fields: Data) -> Data:
    """Return the hand-off of these fields with its protocol and version."""
    return {**fields, "protocol": protocol, "version": VERSION}


def validate_handoff(protocol: str, data: Data | None) -> str | None:
    """Return what is wrong with a hand-off in one sentence, or None. `protocol` and `version` may be left out."""
    if data is None:
        return translate("handoffs.missing", protocol=protocol)
    faults = find_faults(build_handoff_schema(protocol), data)
    return translate("handoffs.invalid", protocol=protocol, why="; ".join(faults)) if faults else None


# ------------------------------------------------------------------------------------------------------------- reviews


@record
class FileLocation:
    """A place in a file. Line 0 is the whole file."""

    path: str
    line: int = 0
    symbol: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


@record
class ReviewIssue:
    """A fault that a review found."""

    severity: str
    location: FileLocation
    description: str
    category: str = ""
    suggestion: str = ""

    def __str__(self) -> str:
        """Return the fault on one line, cut if it is long. It is the text of a model."""
        kind = ", ".join(filter(None, (self.severity, self.category)))
        return " ".join(f"{kind}: {self.location}: {self.description} {self.suggestion}".split())[:MAX_FINDING_CHARS]


@record
class Suggestion:
    """An improvement that is not a fault."""

    priority: str
    description: str
    example: str | None = None


@record
class Review:
    """What a reviewer or an auditor says about the change: a hand-off of `review-feedback` or `security-report`."""

    requires_changes: bool
    overall_score: int | None = None
    issues: tuple[ReviewIssue, ...] = ()
    findings: tuple[ReviewIssue, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    strengths: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[ReviewIssue, ...]:
        """The faults, under the name of either protocol."""
        return (*self.issues, *self.findings)


def read_review(handoff: Mapping[str, object] | None) -> Review | None:
    """Return a hand-off as a review; None if it is another one, or was never validated."""
    try:
        return msgspec.convert(handoff, Review, strict=False)
    except msgspec.ValidationError:
        return None
