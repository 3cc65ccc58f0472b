"""An independent checker of a log: it reads the JSON of the events, and does not use rules or the fold.

It checks the promises of the design one by one and returns sentences about violations.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenroom.core.ports.log import StoredEvent

FINAL = {"finished", "failed", "cancelled", "skipped", "uncertain"}


@dataclass
class Seen:
    """What the checker has collected so far."""

    broken: list[str] = field(default_factory=list)
    queued: dict[str, dict[str, Any]] = field(default_factory=dict)
    running: dict[str, tuple[str, int]] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    effects: dict[str, str] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    released: Counter[str] = field(default_factory=Counter)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    delivered: Counter[tuple[str, str]] = field(default_factory=Counter)
    active: dict[str, str] = field(default_factory=dict)
    limits: dict[str, dict[str, int]] = field(default_factory=dict)
    spent: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    reserved: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    humans: set[str] = field(default_factory=set)
    approvals: dict[str, str] = field(default_factory=dict)
    timers: set[str] = field(default_factory=set)
    epoch: int = 0
    over: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    subtasks: dict[str, str] = field(default_factory=dict)

    def wrong(self, version: int, what: str) -> None:
        """Record a violation."""
        self.broken.append(f"version {version}: {what}")


def check(events: Iterable[StoredEvent]) -> Seen:
    """Check a log once."""
    seen = Seen()
    last = 0
    for stored in events:
        if stored.version != last + 1:
            seen.wrong(stored.version, f"follows version {last}")
        last = stored.version
        handler = _HANDLERS.get(stored.type)
        if handler is not None:
            handler(seen, stored.version, json.loads(stored.data))
        _budgets(seen, stored.version)
    return seen


def _queued(seen: Seen, version: int, event: dict[str, Any]) -> None:
    step = event["step_id"]
    if step in seen.queued:
        seen.wrong(version, f"step {step} is queued twice")
    seen.queued[step] = event
    if event.get("message_id") and not event.get("after") and not event.get("retry"):
        seen.delivered[(event["message_id"], event["agent_id"])] += 1


def _started(seen: Seen, version: int, event: dict[str, Any]) -> None:
    step, attempt = event["step_id"], event["attempt"]
    agent = seen.queued[step]["agent_id"]
    if agent in seen.running:
        seen.wrong(version, f"{agent} runs {seen.running[agent][0]} and {step} at once")
    if step in seen.ended:
        seen.wrong(version, f"step {step} runs again after it ended as {seen.ended[step]['state']}")
    if attempt != seen.attempts.get(step, 0) + 1:
        seen.wrong(version, f"step {step} has attempt {attempt} after {seen.attempts.get(step, 0)}")
    effect = event["terms"]["effect"]
    if seen.effects.get(step) == "effectful":
        seen.wrong(version, f"the effectful step {step} was started twice")
    if event["terms"].get("verdict") == "ask" and seen.approvals.get(step) != "approved":
        seen.wrong(version, f"step {step} started without the approval it needs")
    seen.effects[step] = effect
    seen.attempts[step] = attempt
    seen.running[agent] = (step, attempt)
    for name in ("team", f"task:{seen.queued[step]['task_id']}"):
        seen.reserved[name].update(event["reserved"])


def _stopped(seen: Seen, version: int, event: dict[str, Any]) -> tuple[str, bool]:
    step = event["step_id"]
    agent = seen.queued[step]["agent_id"]
    ran = seen.running.get(agent) == (step, event["attempt"])
    if ran:
        del seen.running[agent]
    return step, ran


def _settle(seen: Seen, step: str, event: dict[str, Any], reserved: dict[str, int]) -> None:
    for name in ("team", f"task:{seen.queued[step]['task_id']}"):
        seen.reserved[name].subtract(reserved)
        seen.spent[name].update(event.get("spent", {}))


def _interrupted(seen: Seen, version: int, event: dict[str, Any]) -> None:
    step, ran = _stopped(seen, version, event)
    if not ran:
        seen.wrong(version, f"step {step} is interrupted but did not run")
    if seen.effects[step] == "effectful":
        seen.wrong(version, f"the effectful step {step} is queued again")


def _ended(seen: Seen, version: int, event: dict[str, Any]) -> None:
    step, ran = _stopped(seen, version, event)
    if step in seen.ended:
        seen.wrong(version, f"step {step} ends twice")
    person = seen.queued[step]["agent_id"] in seen.humans  # people act first: what they did is written down as over
    if event["state"] in ("finished", "uncertain") and not ran and not person:
        seen.wrong(version, f"step {step} is {event['state']} but did not run")
    seen.ended[step] = event


def _sent(seen: Seen, version: int, event: dict[str, Any]) -> None:
    message = event["message"]
    if message["message_id"] in seen.messages:
        seen.wrong(version, f"message {message['message_id']} is sent twice")
    seen.messages[message["message_id"]] = message
    seen.waiting.update(message.get("waiting") or ())


def _released(seen: Seen, version: int, event: dict[str, Any]) -> None:
    waiting = event["waiting_id"]
    if waiting not in seen.waiting:
        seen.wrong(version, f"the unknown id {waiting} is released")
    seen.released[waiting] += 1
    if seen.released[waiting] > 1:
        seen.wrong(version, f"the id {waiting} is released twice")


def _stage_started(seen: Seen, version: int, event: dict[str, Any]) -> None:
    if event["task_id"] in seen.active:
        seen.wrong(version, f"stage {event['stage_id']} starts while {seen.active[event['task_id']]} is active")
    seen.active[event["task_id"]] = event["stage_id"]


def _stage_ended(seen: Seen, _: int, event: dict[str, Any]) -> None:
    if seen.active.get(event["task_id"]) == event["stage_id"]:
        del seen.active[event["task_id"]]


def _task_ended(seen: Seen, version: int, event: dict[str, Any]) -> None:
    if event["task_id"] in seen.over:
        seen.wrong(version, f"task {event['task_id']} ends twice")
    seen.over[event["task_id"]] = event


def _owner(seen: Seen, version: int, event: dict[str, Any]) -> None:
    if event["epoch"] <= seen.epoch:
        seen.wrong(version, f"epoch {event['epoch']} after {seen.epoch}")
    seen.epoch = event["epoch"]


def _timer_gone(seen: Seen, version: int, event: dict[str, Any]) -> None:
    if event["timer_id"] not in seen.timers:
        seen.wrong(version, f"the timer {event['timer_id']} is gone twice")
    seen.timers.discard(event["timer_id"])


def _started_reserving(seen: Seen, version: int, event: dict[str, Any]) -> None:
    _started(seen, version, event)
    seen.queued[event["step_id"]]["reserved"] = event["reserved"]


def _settling(handler: Any) -> Any:
    def handle(seen: Seen, version: int, event: dict[str, Any]) -> None:
        step = event["step_id"]
        agent = seen.queued[step]["agent_id"]
        if seen.running.get(agent) == (step, event["attempt"]):
            _settle(seen, step, event, seen.queued[step].get("reserved", {}))
        handler(seen, version, event)

    return handle


def _budgets(seen: Seen, version: int) -> None:
    for name, limits in seen.limits.items():
        for amount, limit in limits.items():
            total = seen.spent[name][amount] + seen.reserved[name][amount]
            if amount != "depth" and total > limit:
                seen.wrong(version, f"budget {name}: {total} {amount} spent and reserved, {limit} allowed")


_HANDLERS: dict[str, Any] = {
    "StepQueued": _queued,
    "StepStarted": _started_reserving,
    "StepInterrupted": _settling(_interrupted),
    "StepEnded": _settling(_ended),
    "MessageSent": _sent,
    "WaitReleased": _released,
    "StageStarted": _stage_started,
    "StageEnded": _stage_ended,
    "TaskEnded": _task_ended,
    "OwnerChanged": _owner,
    "TimerSet": lambda seen, _, event: seen.timers.add(event["timer"]["timer_id"]),
    "TimerFired": _timer_gone,
    "TimerCancelled": _timer_gone,
    "LimitsSet": lambda seen, _, event: seen.limits.update({event["budget_id"]: event["limits"]}),
    "Spent": lambda seen, _, event: seen.spent[event["budget_id"]].update(event["amounts"]),
    "AgentAdded": lambda seen, _, event: (
        seen.humans.add(event["agent_id"]) if event["spec"].get("kind") == "human" else None
    ),
    "ApprovalAnswered": lambda seen, _, event: seen.approvals.update(
        {event["approval_id"].rpartition("?")[0]: event["answer"]}
    ),
    "NotePosted": lambda seen, _, event: seen.notes.append(event["note"]["content"]),
    "SubtaskEnded": lambda seen, _, event: seen.subtasks.update(
        {event["subtask_id"]: f"{event['state']}: {event.get('summary', '')}"}
    ),
}


def check_end(seen: Seen) -> list[str]:
    """Return violations of what must hold at the end."""
    broken = list(seen.broken)
    broken += [f"step {step} never ended" for step in seen.queued.keys() - seen.ended.keys()]
    broken += [f"{agent} still runs {step}" for agent, (step, _) in seen.running.items()]
    broken += [f"the id {waiting} was never answered or released" for waiting in seen.waiting - seen.released.keys()]
    broken += [f"stage {stage} is still active" for stage in seen.active.values()]
    broken += [f"the timer {timer} is still set" for timer in seen.timers]
    for name, message in seen.messages.items():
        if message.get("kind") == "instruction":
            continue
        for receiver in message["receiver"]:
            count = seen.delivered[(name, receiver)]
            wanted = (
                0 if receiver in seen.humans or message.get("waiting") == [f"{name}:{name.partition('>')[0]}"] else 1
            )
            if count != wanted:
                broken.append(f"message {name} was delivered {count} times to {receiver}, not {wanted}")
    for name, reserved in seen.reserved.items():
        broken += [f"budget {name}: {left} {amount} still reserved" for amount, left in reserved.items() if left]
    return broken


def check_effects(seen: Seen, team: str, folder: Path, tools: Sequence[str]) -> list[str]:
    """Compare the ledger outside with the log: at most once, and exactly once if the log says finished."""
    path = folder / "ledger"
    lines = Counter(line.split(" ", 1)[0] for line in path.read_text().splitlines()) if path.exists() else Counter()
    broken = [f"{key} is {count} times in the ledger" for key, count in lines.items() if count > 1]
    for step, event in seen.queued.items():
        if event["work"]["executor"] in tools and event["work"]["type"] == "tool":
            state = seen.ended.get(step, {}).get("state")
            if state == "finished" and lines[f"{team}/{step}"] != 1:
                broken.append(f"{step} is finished but not in the ledger")
            if state not in ("finished", "uncertain", "cancelled") and lines[f"{team}/{step}"]:
                broken.append(f"{step} is {state} but in the ledger")
    return broken


def projection(seen: Seen) -> dict[str, object]:
    """Return what an undisturbed and a disturbed run must have in common: results, messages, task board."""
    return {
        "tasks": {task: (event["state"], event.get("summary")) for task, event in seen.over.items()},
        "subtasks": dict(sorted(seen.subtasks.items())),
        "notes": seen.notes,
        "messages": sorted(
            (message["sender_id"], *message["receiver"], message["message"]) for message in seen.messages.values()
        ),
    }
