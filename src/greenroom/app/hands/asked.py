"""What a person is shown of a call beside what the policy says of it: who wants what, and what the agent says why.

Of a call of which nothing is known but its tool they see its arguments, so that a yes means them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from greenroom.abilities.permission.judgement import in_full, plainly
from greenroom.abilities.tools.commands import NAME as COMMAND
from greenroom.core.base.records import Data
from greenroom.core.ports.tool import Target
from greenroom.core.state.step import Step

MOST: Final = 4_000
LINES: Final = 60
REASON: Final = 300
"""Characters of what an agent says why it wants something."""


def wish(step: Step) -> str:
    """The first sentence of a question; why it is asked comes after it."""
    if step.work.executor != COMMAND:
        return f"{step.agent_id} wants to use {step.work.executor}."
    network = (step.work.instruction_content or {}).get("hosts")
    return f"{step.agent_id} wants {'the network for a command' if network else 'to run a command'}."


def of_command(step: Step, targets: Sequence[Target], question: str) -> str:
    """What the question does not say of a command yet: the line, its hosts, and what the agent says why, which is
    marked as its words."""
    if step.work.executor != COMMAND:
        return ""
    return "".join((*_unsaid(targets, question), *_reason(step.work.instruction_content or {})))


def _unsaid(targets: Sequence[Target], question: str) -> Iterator[str]:
    for line in (in_full(one.value, question) for one in targets if one.kind == "command"):
        if line not in question:
            yield line
    hosts = [f"`{plainly(one.value)}`" for one in targets if one.kind == "host"]
    if named := [one for one in hosts if one not in question]:
        yield f"\nIt would reach {', '.join(named)}."


def _reason(given: Data) -> Iterator[str]:
    why = given.get("why")
    if isinstance(why, str) and why.strip():
        told = plainly(" ".join(why.split()))
        yield f"\nIt says why:\n  | {told[:REASON]}{' […]' if len(told) > REASON else ''}"
    elif given.get("hosts"):
        yield "\nIt does not say why."


def with_what(targets: Sequence[Target], given: Data) -> str:
    """The arguments, one a line; nothing where the question says already what is touched."""
    if not given or any(one.kind != "tool" for one in targets):
        return ""
    lines = [line for name, value in given.items() for line in f"{name}: {_told(value)}".split("\n")]
    told = "\n".join(f"  | {plainly(line)}" for line in lines[:LINES])
    more = len(lines) > LINES or len(told) > MOST
    return f"\n{told[:MOST]}" + ("\n  [… There is more of it than can be shown here …]" if more else "")


def _told(value: object) -> str:
    """A text as it is, everything else as JSON."""
    return (
        value[: MOST + 1] if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)[: MOST + 1]
    )
