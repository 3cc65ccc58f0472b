"""Where data comes from and where a call would carry it, and the rule of two that follows from both.

Untrusted text, private data and a way out never come together without a person's yes. A conversation may have any two
of them; the third needs a person who has agreed in this run, after the first two had come together. What a call reads
itself counts as held: `curl -d @ledger.txt` needs no conversation that has read the ledger.

A destination is a short line such as `host docs.python.org`, `server github` or `command make deploy`: what a person
reads, and what they agree to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from greenroom.core.base.records import evolve, record
from greenroom.core.ports.tool import BUILT_IN, Ruling, Target, ToolCard
from greenroom.core.state.origin import UNKNOWN, Labels, carried, label, merged, private, untrusted
from greenroom.core.state.step import SIDE_EFFECTS, Step
from greenroom.core.state.thread import Thread
from greenroom.core.state.world import World
from greenroom.policy.command_line import read_line
from greenroom.policy.judgement import plainly

GROUPS: Final = frozenset({"web", "browser", "mcp"})
"""Groups of tools that go elsewhere, whatever they are given."""

PROGRAM: Final = "program"
"""The source of a function that a program gives to its own agents."""

Reach: TypeAlias = Callable[[], Sequence[str] | None]
"""What commands get to over the network: nothing, some hosts, or (None) whatever they like. Asked when it matters."""

LOCAL: Final = frozenset(
    ("cd", "pwd", "mkdir", "cp", "mv", "rm", "rmdir", "touch", "ln", "chmod", "ls", "cat", "head", "tail", "wc", "echo")
)
"""Programs that reach no host and run no other program, whatever words they are given."""

SERVER: Final = "mcp:"
LONGEST: Final = 120
USUAL: Final = frozenset({"80", "443"})


def origins_of(card: ToolCard, targets: Sequence[Target]) -> Labels:
    """The labels of what a call reads. Those of memories and artifacts only the tool itself knows."""
    return merged((), _labels(card, targets))


def _labels(card: ToolCard, targets: Sequence[Target]) -> Iterator[str]:
    if card.source.startswith(SERVER):
        yield label("mcp", card.source.removeprefix(SERVER))
    elif card.source not in (BUILT_IN, PROGRAM):
        yield label("tool", card.spec.name)
    hosts = [known(one.value) for one in targets if one.kind == "host"]
    yield from (label("web", one) for one in hosts)
    if card.group in ("web", "browser") and not hosts:
        yield label("web", card.spec.name)
    if card.group == "command" and card.source == BUILT_IN:
        lines = [target.value.split() for target in targets if target.kind == "command"]
        yield label("command", lines[0][0] if lines and lines[0] else card.spec.name)  # how the line begins
    yield from (label("file", one.value) for one in targets if one.kind == "path")


def anywhere() -> None:
    """Nothing is around commands."""


def outward(card: ToolCard, targets: Sequence[Target], reach: Reach = anywhere) -> tuple[str, ...]:
    """The destinations of a call; none when it stays here."""
    found = [place for target in targets for place in _destinations(target, reach)]
    foreign = card.source not in (BUILT_IN, PROGRAM) and card.effect in SIDE_EFFECTS
    if not found and (card.group in GROUPS or foreign):
        server = card.source.removeprefix(SERVER) if card.source.startswith(SERVER) else ""
        found.append(f"server {server}" if server else f"tool {card.spec.name}")
    return tuple(dict.fromkeys(map(_line, found)))


def _destinations(target: Target, reach: Reach) -> Iterator[str]:
    """A host is one; a command goes to the hosts that all commands reach, and without a sandbox wherever it likes."""
    if target.kind == "host":
        yield f"host {known(target.value)}"
    elif target.kind == "command" and (read_line(target.value).words or ("",))[0] not in LOCAL:
        hosts = reach()
        yield from (f"command {target.value.strip()}",) if hosts is None else (f"host {known(one)}" for one in hosts)


def known(host: str) -> str:
    """A host as people know it: without the port that the web has."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port in USUAL else host.lower()


def _line(text: str) -> str:
    """One line that stands for this and nothing else, also where it has to be cut."""
    plain = plainly(text)
    name = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}… ({name})"


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
    released = {place for place, agreed in world.releases.items() if agreed.at >= since}
    places = tuple(place for place in outward if place not in released)
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


def _told(thread: Thread, places: Sequence[str], reads: Labels) -> str:
    strange = untrusted(thread.origins)
    read = f"This conversation has read what others may have written ({_listed(strange)})"
    own = private(thread.origins)
    if not own:
        holds = f"and this call can take along what is private ({_listed(carried(reads))})"
    else:
        holds = "which is private too" if strange == own else f"and holds what is private ({_listed(own)})"
    kinds = [place.partition(" ") for place in places]
    where = ", ".join(PLACES.get(kind, "`{}`").format(name) for kind, _, name in kinds)
    return f"{read}, {holds}; this would go to {where}."


def _listed(labels: Labels) -> str:
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return f"{', '.join(map(_known, labels[:SHOWN]))}{more}"


def _known(label: str) -> str:
    """A label in words."""
    kind, _, name = label.partition(":")
    one, many = KINDS.get(kind, KINDS[UNKNOWN])
    return many if name == "*" else one.format(name)
