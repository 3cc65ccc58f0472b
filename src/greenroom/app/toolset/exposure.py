"""Where data comes from, where a call would send it, and the rule of two.

Untrusted text, private data and a destination outside never come together without approval. A conversation can have any
two of them. The third needs approval in this run, given after the first two came together. What a call reads itself
counts too: `curl -d @ledger.txt` sends private data even if the conversation has not read the ledger.

A destination is a short line such as `host docs.python.org`, `server github` or `command make deploy`. People read it
and approve it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from greenroom.app.messages import shorten_names, translate
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.tool import BUILT_IN, PolicyDecision, Target, ToolCard
from greenroom.core.state.origin import (
    DEFAULT_KIND,
    Labels,
    filter_disclosable,
    filter_private,
    filter_untrusted,
    make_label,
    merge_labels,
)
from greenroom.core.state.step import SIDE_EFFECTS, Step
from greenroom.core.state.team_state import TeamState
from greenroom.core.state.thread import Thread
from greenroom.policy.command_line import read_line
from greenroom.policy.decision import escape_unprintable

OUTWARD_GROUPS: Final = frozenset({"web", "browser", "mcp"})
"""Tool groups that always reach outside."""

PROGRAM_SOURCE: Final = "program"

Reach: TypeAlias = Callable[[], Sequence[str] | None]
"""Returns the hosts that commands can reach; None means all hosts. Called only when needed."""

LOCAL_PROGRAMS: Final = frozenset(
    ("cd", "pwd", "mkdir", "cp", "mv", "rm", "rmdir", "touch", "ln", "chmod", "ls", "cat", "head", "tail", "wc", "echo")
)
"""Programs that reach no host and run no other program, with any arguments."""

SERVER_PREFIX: Final = "mcp:"
MAX_DESTINATION_CHARS: Final = 120
WEB_PORTS: Final = frozenset({"80", "443"})


def origins_of(card: ToolCard, targets: Sequence[Target]) -> Labels:
    """Return the origin labels of what a call reads. Only the tool itself knows those of memories and artifacts."""
    return merge_labels((), _list_labels(card, targets))


def _list_labels(card: ToolCard, targets: Sequence[Target]) -> Iterator[str]:
    if card.source.startswith(SERVER_PREFIX):
        yield make_label("mcp", card.source.removeprefix(SERVER_PREFIX))
    elif card.source not in (BUILT_IN, PROGRAM_SOURCE):
        yield make_label("tool", card.spec.name)
    hosts = [strip_web_port(item.value) for item in targets if item.kind == "host"]
    yield from (make_label("web", item) for item in hosts)
    if card.group in ("web", "browser") and not hosts:
        yield make_label("web", card.spec.name)
    if card.group == "command" and card.source == BUILT_IN:
        lines = [target.value.split() for target in targets if target.kind == "command"]
        yield make_label("command", lines[0][0] if lines and lines[0] else card.spec.name)  # how the line begins
    yield from (make_label("file", item.value) for item in targets if item.kind == "path")


def reach_anywhere() -> None:
    """Return None: without a sandbox, commands reach all hosts."""


def find_destinations(card: ToolCard, targets: Sequence[Target], reach: Reach = reach_anywhere) -> tuple[str, ...]:
    """Return the destinations of a call, empty if it stays local."""
    destinations = [place for target in targets for place in _list_destinations(target, reach)]
    is_foreign = card.source not in (BUILT_IN, PROGRAM_SOURCE) and card.effect in SIDE_EFFECTS
    if not destinations and (card.group in OUTWARD_GROUPS or is_foreign):
        server = card.source.removeprefix(SERVER_PREFIX) if card.source.startswith(SERVER_PREFIX) else ""
        destinations.append(f"server {server}" if server else f"tool {card.spec.name}")
    return tuple(dict.fromkeys(map(_shorten_line, destinations)))


def _list_destinations(target: Target, reach: Reach) -> Iterator[str]:
    """Return a target's destinations. A command reaches all allowed hosts, or anything without a sandbox."""
    if target.kind == "host":
        yield f"host {strip_web_port(target.value)}"
    elif target.kind == "command" and (read_line(target.value).words or ("",))[0] not in LOCAL_PROGRAMS:
        hosts = reach()
        yield from (
            (f"command {target.value.strip()}",)
            if hosts is None
            else (f"host {strip_web_port(host)}" for host in hosts)
        )


def strip_web_port(host: str) -> str:
    """Return a host without the web's default port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port in WEB_PORTS else host.lower()


def _shorten_line(text: str) -> str:
    """Return a single line that is unique even if it is shortened."""
    escaped = escape_unprintable(text)
    name = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    return escaped if len(escaped) <= MAX_DESTINATION_CHARS else f"{escaped[:MAX_DESTINATION_CHARS]}… ({name})"


RULE_OF_TWO: Final = "built-in: rule of two"
MAX_LABELS_SHOWN: Final = 4
LABEL_KINDS: Final = frozenset({"web", "description", "mcp", "tool", "command", "file", "memory"})
DESTINATION_KINDS: Final = frozenset({"command", "line", "server", "tool"})


@record
class Exposure:
    """A call that would send data from a conversation with untrusted text and private data. `why` is for the person."""

    why: str
    places: tuple[str, ...]


def find_exposure(state: TeamState, step: Step, outward: Sequence[str], reads: Labels = ()) -> Exposure | None:
    """Return what needs approval. None if the call stays local, or all destinations were approved since. `reads` are
    the labels of what the call reads itself."""
    thread, exposed_since = state.threads.get(step.thread_id), find_exposed_since(state, step, reads)
    if thread is None or exposed_since is None:
        return None
    released = {place for place, release_record in state.releases.items() if release_record.at >= exposed_since}
    places = tuple(place for place in outward if place not in released)
    return Exposure(why=_explain_exposure(thread, places, reads), places=places) if places else None


def find_exposed_since(state: TeamState, step: Step, reads: Labels = ()) -> int | None:
    """Return since when the conversation, with what the call `reads`, has both untrusted and private data."""
    thread = state.threads.get(step.thread_id)
    return thread.exposed_by(reads) if thread is not None else None


def tighten_ruling(ruling: PolicyDecision, exposure: Exposure | None) -> PolicyDecision:
    """Return the stricter of the policy's decision and this rule. A denied call stays denied."""
    if exposure is None or ruling.verdict == "deny":
        return ruling
    if ruling.verdict == "ask":
        return evolve(ruling, why=f"{ruling.why}\n{exposure.why}".strip())
    return PolicyDecision(verdict="ask", rule=RULE_OF_TWO, why=exposure.why)


def describe_release(ruling: PolicyDecision, exposure: Exposure | None) -> str:
    """Return the destinations that an approval for the run releases; empty if each call is asked about anyway."""
    is_asked_each_time = ruling.verdict == "ask" and not ruling.grant
    return "" if exposure is None or is_asked_each_time else "\n".join(exposure.places)


def _explain_exposure(thread: Thread, places: Sequence[str], reads: Labels) -> str:
    untrusted_labels = filter_untrusted(thread.origins)
    private_labels = filter_private(thread.origins)
    code, private = "exposure.holds_private", _render_labels(private_labels)
    if not private_labels:
        code, private = "exposure.takes_private", _render_labels(filter_disclosable(reads))
    elif untrusted_labels == private_labels:
        code = "exposure.private_too"
    where = ", ".join(_render_destination(*place.split(" ", 1)) for place in places)
    return translate(code, untrusted=_render_labels(untrusted_labels), private=private, where=where)


def _render_destination(kind: str, name: str = "") -> str:
    return translate(f"destinations.{kind}", name=name) if kind in DESTINATION_KINDS else f"`{name}`"


def _render_labels(labels: Labels) -> str:
    return shorten_names([_render_label(label) for label in labels], limit=MAX_LABELS_SHOWN)


def _render_label(label: str) -> str:
    kind, _, name = label.partition(":")
    kind = kind if kind in LABEL_KINDS else DEFAULT_KIND
    return translate(f"{'many_labels' if name == '*' else 'labels'}.{kind}", name=name)
