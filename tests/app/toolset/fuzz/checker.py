"""An independent checker: reads the JSON of the log and what tools noted, knows nothing of policies and rules.

It returns sentences about executions that nobody has decided about, and counts.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from posixpath import normpath
from typing import Any

from greenroom.core.base.ids import AgentId
from greenroom.core.ports.log import StoredEvent
from tests.app.toolset.fuzz.tools import Entered

GOVERNS = {".git", ".greenroom"}
"""Folders that no tool ever writes in."""


@dataclass
class Trail:
    """What the log says, by step."""

    work: dict[str, dict[str, Any]] = field(default_factory=dict)
    starts: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    approvals: dict[str, dict[str, Any]] = field(default_factory=dict)
    agreed: dict[str, str] = field(default_factory=dict)
    """By approval: `approved` or `denied`; nothing for those that were voided."""

    asked: dict[str, str] = field(default_factory=dict)
    """By step: its newest question."""

    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def read(events: Iterable[StoredEvent]) -> Trail:
    """Go through a log once."""
    trail = Trail()
    for stored in events:
        event = json.loads(stored.data)
        match stored.type:
            case "StepQueued" | "StepChanged":
                trail.work[event["step_id"]] = event["work"]
                trail.counts["put in another's place"] += stored.type == "StepChanged"
            case "ThreadOpened":
                trail.counts["on another's behalf"] += bool(event.get("call"))
            case "ApprovalRequested":
                trail.approvals[event["approval_id"]] = event
                trail.asked[event["step_id"]] = event["approval_id"]
            case "ApprovalAnswered":
                trail.agreed[event["approval_id"]] = event["answer"]
            case "ApprovalVoided":
                trail.agreed.pop(event["approval_id"], None)
            case "StepStarted":
                _started(trail, event)
            case "StepEnded":
                trail.ended[event["step_id"]] = event
            case _:
                pass
    return trail


def _started(trail: Trail, event: dict[str, Any]) -> None:
    """What was decided by then. Later answers are answers to nobody."""
    approval = trail.asked.get(event["step_id"], "")
    event["answer"] = trail.agreed.get(approval)
    event["question"] = trail.approvals.get(approval)
    trail.starts[event["step_id"], event["attempt"]] = event


def digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """The name of a call, as the design says it: the hash of exactly these arguments."""
    written = json.dumps([tool, arguments], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()


def violations(trail: Trail, entered: Iterable[Entered], rights: Mapping[AgentId, frozenset[str] | None]) -> list[str]:
    """What was run although nobody had decided that it may be."""
    return [
        f"{one.step} ({one.tool} {one.arguments:.200}) {why}"
        for one in entered
        for why in _judge(trail, one, rights.get(one.agent))
    ]


def _judge(trail: Trail, one: Entered, rights: frozenset[str] | None) -> Iterable[str]:
    trail.counts["run"] += 1
    start = trail.starts.get((one.step, one.attempt))
    if start is None:
        yield "was run without having been started"
        return
    terms, work = start["terms"], trail.work[one.step]
    given = work.get("instruction_content") or {}
    verdict = terms.get("verdict", "allow")
    trail.counts[f"run after {verdict}"] += 1
    if (work["executor"], json.dumps(given, sort_keys=True)) != (one.tool, one.arguments):
        yield "was run with other arguments than the log says"
    if terms.get("digest") != digest(one.tool, given):
        yield f"was decided about for other arguments: {terms.get('digest')!r}"
    if verdict == "ask":
        yield from _asked(start, digest(one.tool, given))
    elif verdict not in ("allow", "notify"):
        yield f"was run after {verdict}"
    yield from _forbidden(one, rights)


def _asked(start: dict[str, Any], exactly: str) -> Iterable[str]:
    question = start["question"]
    if question is None or start["answer"] != "approved":
        yield f"was run although the answer was {start['answer']}"
    elif question["digest"] != exactly:
        yield "was run after a yes to something else"


def _forbidden(one: Entered, rights: frozenset[str] | None) -> Iterable[str]:
    """What no rule of anybody allows."""
    if rights is not None and one.tool not in rights:
        yield "was run by somebody who has no such tool"
    for target in one.targets:
        if target.kind == "path" and "\0" in target.value:
            yield "was run on a path that is none"
        if target.kind == "path" and target.writes and GOVERNS.intersection(normpath(target.value.lower()).split("/")):
            yield "would have written what governs us"


def counted(trail: Trail) -> Counter[str]:
    """How the calls ended that the log knows."""
    found = trail.counts
    for step, work in trail.work.items():
        if work["type"] == "tool":
            found["calls"] += 1
            found[_fate(trail.ended.get(step))] += 1
    found["questions"] = len(trail.approvals)
    found["answered yes"] = sum(answer == "approved" for answer in trail.agreed.values())
    return found


def _fate(ended: dict[str, Any] | None) -> str:
    if ended is None:
        return "still open"
    error = ended.get("error", "")
    if error.startswith(("Not permitted", "Denied")):
        return "denied by a rule" if error.startswith("Not p") else "denied by a person"
    return "not callable" if ended["state"] == "failed" else ended["state"]
