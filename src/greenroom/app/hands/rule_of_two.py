"""The rule of two: what anybody may have written, what is private, and a way out never come together unasked.

A conversation may have any two of them. The third needs a person who has agreed in this run, after the first two had
come together; they are told what was read, what is held and where it would go. It is asked once for each destination.

What a call reads itself counts as held: `curl -d @ledger.txt` needs no conversation that has read the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.core.base.records import evolve, record
from greenroom.core.ports.tool import Ruling
from greenroom.core.state.origin import UNKNOWN, Labels, carried, private, untrusted
from greenroom.core.state.step import Step
from greenroom.core.state.thread import Thread
from greenroom.core.state.world import World

RULE: Final = "built-in: rule of two"
SHOWN: Final = 4
"""Labels that a person reads; of more, how many there are."""


KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "web": ("the web at {}", "many pages"),
    "description": ("what the server {} says of its tools", "what servers say of their tools"),
    "mcp": ("the server {}", "several servers"),
    "tool": ("the tool {}", "several tools"),
    "command": ("what `{}` printed", "what many commands printed"),
    "file": ("the file {}", "many files"),
    "memory": ("the memory {}", "many memories"),
}
"""Labels as people read them: one, and all of a kind."""

PLACES: Final[Mapping[str, str]] = {
    "command": "wherever `{}` goes",
    "line": "wherever `{}` goes",
    "server": "the server `{}`",
    "tool": "wherever the tool `{}` goes",
}


@record
class Exposed:
    """A call that would carry something away from a conversation that has read both. `why` is for the person."""

    why: str
    places: tuple[str, ...]


def exposed(world: World, step: Step, outward: Sequence[str], reads: Labels = ()) -> Exposed | None:
    """What there is to ask about; None when the call stays here, or a person has agreed since to all its places.

    `reads` is what the call reads itself.
    """
    thread, since = world.threads.get(step.thread_id), exposed_at(world, step, reads)
    if thread is None or since is None:
        return None
    places = tuple(one for one in outward if not _released(world, one, since))
    return Exposed(why=_told(thread, places, reads), places=places) if places else None


def exposed_at(world: World, step: Step, reads: Labels = ()) -> int | None:
    """Since when the step's conversation, with what the call `reads`, has both."""
    thread = world.threads.get(step.thread_id)
    return thread.exposed_by(reads) if thread is not None else None


def tightened(ruling: Ruling, found: Exposed | None) -> Ruling:
    """The stricter of the policy's answer and this rule's. What is forbidden stays forbidden."""
    if found is None or ruling.verdict == "deny":
        return ruling
    if ruling.verdict == "ask":
        return evolve(ruling, why=f"{ruling.why}\n{found.why}".strip())
    return Ruling(verdict="ask", rule=RULE, why=found.why)


def release(ruling: Ruling, found: Exposed | None) -> str:
    """What a yes for the run lets through; nothing where each call is asked about anyway."""
    asked_each_time = ruling.verdict == "ask" and not ruling.grant
    return "" if found is None or asked_each_time else "\n".join(found.places)


def _released(world: World, place: str, since: int) -> bool:
    agreed = world.releases.get(place)
    return agreed is not None and agreed.at >= since


def _told(thread: Thread, places: Sequence[str], reads: Labels) -> str:
    strange = untrusted(thread.origins)
    read = f"This conversation has read what others may have written ({_listed(strange)})"
    holds = _held(strange, private(thread.origins), carried(reads))
    return f"{read}, {holds}; this would go to {', '.join(map(_place, places))}."


def _held(strange: Labels, own: Labels, reads: Labels) -> str:
    if not own:
        return f"and this call can take along what is private ({_listed(reads)})"
    return "which is private too" if strange == own else f"and holds what is private ({_listed(own)})"


def _listed(labels: Labels) -> str:
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return f"{', '.join(map(_known, labels[:SHOWN]))}{more}"


def _known(label: str) -> str:
    """A label in words."""
    kind, _, name = label.partition(":")
    one, many = KINDS.get(kind, KINDS[UNKNOWN])
    return many if name == "*" else one.format(name)


def _place(told: str) -> str:
    """Where it would go, in words."""
    kind, _, name = told.partition(" ")
    return PLACES.get(kind, "`{}`").format(name)
