"""Decisions about what a call touches (a path, a command line, a host, a tool), and the sentences that explain them.

A person reads a sentence in a second, so it names the thing, the rule, and what would happen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from greenroom.core.base import hosts
from greenroom.core.base.errors import translate
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.tool import BUILT_IN, ToolCard
from greenroom.policy import command_line
from greenroom.policy.command_line import CommandLine, find_useful_prefix, match_rule, read_line
from greenroom.policy.paths import (
    ANY,
    HARMLESS_DEVICES,
    MAX_PATH_CHARS,
    ROOT,
    Access,
    PolicyPath,
    escape_pattern,
    fold_parts,
    is_pattern,
    locate_path,
    matches_tightening,
)
from greenroom.policy.rulebook import Hit, Layer, Rulebook, can_overrule, settle
from greenroom.policy.rules import STRICTNESS, BadRule, Level, Rule, parse
from greenroom.policy.secrets import is_secret, is_secret_pattern, may_name_secrets

_QUIET_GROUPS: Final = frozenset({"read", "memory", "human"})
_MCP_SOURCE: Final = "mcp"
_MAX_REASONS_SHOWN: Final = 3
_MIN_FOLDER_DEPTH: Final = 4
"""From this depth on, a folder outside the workspace is narrow enough to be allowed as a whole."""


_VALUE: Final = re.compile(r"-[A-Za-z](?=[./])|(?:--?)?[A-Za-z_][A-Za-z0-9_.-]*=|@")

LeadsOut: TypeAlias = Callable[[str], bool]
"""Returns whether a path, relative to the workspace root, leads out of it through a link."""

MAX_SHOWN_CHARS: Final = 120
MAX_LINES_SHOWN: Final = 60
MAX_COMMAND_CHARS: Final = 4_000
"""Maximum lines and characters of a command line that is shown whole."""

NETWORK_RULE: Final = "built-in: network"
_LAYER_NAMES: Final[dict[Layer, str]] = {
    "built-in": "the built-in rule",
    "user": "your rule",
    "project": "the project's rule",
    "granted": "the rule you granted,",
}
_DENIALS: Final = {
    "run": "run {what}",
    "touch": "run {what}, and may touch {place}",
    "read": "read {what}",
    "write": "write {what}",
    "reach": "reach {what}",
    "call": "call the tool {what}",
    "deny": "It would {would}: {rule} forbids that.",
    "maybe": "It would {would}, and that may be what {rule} forbids or asks about.",
}
"""Sentences about denied calls, which models read. People read the others, from the catalogue."""

_GAP: Final = "\0"


def is_never_outside(_: str) -> bool:
    """Return False: without files there are no links."""
    return False


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Where a command line runs: which of its paths lead out through a link, and whether a sandbox confines it."""

    workspace: str
    leads_out: LeadsOut = is_never_outside
    is_sandboxed: Callable[[], bool] = bool


@record
class CallEffect:
    """What a call would do: a code like `run`, and what it is about."""

    code: str
    what: str
    place: str = ""

    def __str__(self) -> str:
        return translate(f"decision.{self.code}", what=self.what, place=self.place)


@record
class TargetDecision:
    """The decision about one target, by a rule (`hit`) or by default. `grants` are the rules that would allow it; None
    means that only a rule for the whole line can."""

    level: Level
    why: str
    rule: str = ""
    grants: tuple[str, ...] | None = ()
    hit: Hit | None = None


def combine_decisions(decisions: Sequence[TargetDecision]) -> TargetDecision:
    """Return the strictest decision. Of equals a person's rule comes before that of the network, then the first one.

    If it asks, join the reasons and grants of all that ask.
    """
    worst = max(decisions, key=lambda decision: (STRICTNESS[decision.level], decision.rule != NETWORK_RULE))
    if worst.level != "ask":
        return worst
    asking = [target_decision for target_decision in decisions if target_decision.level == "ask"]
    known = [target_decision.grants for target_decision in asking if target_decision.grants is not None]
    merged = tuple(dict.fromkeys(rule for rules in known for rule in rules))
    reasons = join_reasons(list(dict.fromkeys(target_decision.why for target_decision in asking)))
    hidden = len(reasons) - _MAX_REASONS_SHOWN
    more = [translate("decision.more", count=hidden)] if hidden > 0 else []
    why = " ".join([*reasons[:_MAX_REASONS_SHOWN], *more])
    return evolve(worst, why=why, grants=merged if len(known) == len(asking) else None)


def apply_rules(
    hits: Sequence[Hit], default: TargetDecision, would: CallEffect, grants: tuple[str, ...] | None
) -> TargetDecision:
    """Apply rules to the default decision. Unless one of them opens, they can only tighten it."""
    hit = settle(hits)
    if hit is None:
        return default
    judged = decide_by_rule(hit, would, grants)
    opened = any(other.opens for other in hits)
    return judged if opened or STRICTNESS[judged.level] >= STRICTNESS[default.level] else default


def decide_by_rule(hit: Hit, would: CallEffect, grants: tuple[str, ...] | None) -> TargetDecision:
    """Return a rule's decision, with a sentence that says whose rule it is."""
    rule, layer, code = str(hit.placed.rule), hit.placed.layer, hit.level if hit.certain else "maybe"
    if hit.level == "deny":
        effect = _DENIALS[would.code].format(what=would.what, place=would.place)
        why = _DENIALS[code].format(would=effect, rule=f"{_LAYER_NAMES[layer]} `{rule}`")
    else:
        owner = translate(f"decision.layer_{layer.replace('-', '_')}")
        why = translate(f"decision.{code}", would=would, rule=f"{owner} `{rule}`")
    return TargetDecision(level=hit.level, why=why, rule=rule, grants=grants if hit.level == "ask" else (), hit=hit)


def decide_path(book: Rulebook, value: str, access: Access, workspace: str) -> TargetDecision:
    """Decide about a path. The workspace may be read except likely secrets, and written except protected files."""
    if value in HARMLESS_DEVICES:
        return TargetDecision(
            level="allow", why=translate("decision.device", what=render_quoted(value)), rule="built-in: devices"
        )
    place = locate_path(value[:MAX_PATH_CHARS], workspace)
    would = CallEffect(code="write" if access == "write" else "read", what=render_quoted(str(place)))
    grants: tuple[str, ...] | None = (propose_path_rule(place, access),)
    hits = book.find_path_rules(place, access)
    if len(value) > MAX_PATH_CHARS or not value.isprintable():  # a deny stays, and no rule can allow it
        why, grants = translate("decision.odd_name", what=render_quoted(value)), None
        default = TargetDecision(level="deny" if "\0" in value else "ask", why=why, grants=grants)
        hits = [hit for hit in hits if hit.level == "deny"]
    elif access == "read" and is_secret(place.folded_inside):
        why = translate("decision.secrets", would=would)
        default = TargetDecision(level="ask", why=why, rule="built-in: secrets", grants=grants)
        # Only a rule that names likely secrets opens one: a wide rule was not written with it in mind.
        hits = [hit for hit in hits if not hit.opens or is_secret_pattern(fold_parts(hit.placed.rule.words))]
    elif place.inside is None or value.startswith("~"):  # a tool may expand it to a home folder
        why = translate("decision.outside", would=would)
        default = TargetDecision(level="ask", why=why, rule="built-in: outside", grants=grants)
    else:
        default = TargetDecision(
            level="allow", why=translate("decision.inside", would=would), rule="built-in: workspace"
        )
    return apply_rules(hits, default, would, grants)


def propose_path_rule(place: PolicyPath, access: Access) -> str:
    """Return a rule for this file; for reading deep outside the workspace, a rule for its folder."""
    inside = place.inside is not None
    names = place.inside if place.inside is not None else place.whole
    words = tuple(name if name == ROOT else escape_pattern(name) for name in names) or (ANY,)
    hidden = any(name.startswith(".") for name in names)
    if access == "read" and not inside and len(words) > _MIN_FOLDER_DEPTH and not hidden:
        words = (*words[:-1], ANY)
    return str(Rule(level="allow", kind="path", words=words, access=access))


def decide_line(book: Rulebook, text: str, context: CommandContext, *, networked: bool = False) -> TargetDecision:
    """Decide about a command line. Without a matching rule it runs in a sandbox without approval, unless it is not
    plain and its call names hosts (`networked`). Otherwise a person is asked."""
    read = read_line(text)
    parts = [_decide_command(book, read, context, networked=networked), *_decide_named_files(book, read, context)]
    if len(read.text) > command_line.MAX_LINE_CHARS:
        why = translate("decision.long_line", limit=command_line.MAX_LINE_CHARS)
        parts.append(TargetDecision(level="ask", why=why, rule="built-in: too long", grants=None))
    hits = book.find_line_rules(text)
    exact = settle(hits)
    if exact is None:
        return combine_decisions(parts)
    # A rule for exactly this line overrules decisions about parts of the line, except denials.
    opening = [hit for hit in hits if hit.opens and hit.level == exact.level]
    left = [
        part
        for part in parts
        if part.level == "deny"
        or (part.hit and not part.hit.opens and not any(can_overrule(hit, part.hit) for hit in opening))
        or not opening
    ]
    return combine_decisions(
        [decide_by_rule(exact, CallEffect(code="run", what=render_quoted(read.text)), None), *left]
    )


def propose_line_rule(text: str) -> str:
    """Return the rule for exactly this line, or an empty string if there can be none."""
    try:
        return str(parse(f"allow line {text.strip()}"))
    except BadRule:
        return ""


def _decide_command(book: Rulebook, read: CommandLine, context: CommandContext, *, networked: bool) -> TargetDecision:
    """Decide about the line itself. Tightening rules apply to any line, loosening rules to plain ones."""
    hits: list[Hit] = []
    near = ""
    for layered_rule in book.list_rules("command"):
        meant = match_rule(layered_rule.rule.words, read) if layered_rule.is_tightening else ""
        if meant:
            hits.append(Hit(placed=layered_rule, certain=meant == "certain"))
        words = layered_rule.rule.words
        if not layered_rule.is_loosening or read.words is None or read.words[: len(words)] != words:
            continue
        rest = read.words[max(1, len(words)) :]
        trouble = next(
            (f"{render_quoted(word)} {translate(why)}" for word in rest if (why := _find_path_problem(word, context))),
            "",
        )
        if not trouble:
            hits.append(Hit(placed=layered_rule, opens=True))
        elif not near:
            near = translate("decision.near_rule", rule=layered_rule.rule, trouble=trouble)
    would, prefix = CallEffect(code="run", what=render_quoted(read.text)), find_useful_prefix(read.words or ())
    # The narrowest useful rule for this line; None if that is a rule for the line itself.
    grants = (str(Rule(level="allow", kind="command", words=prefix)),) if prefix else None
    if not (networked and read.words is None) and context.is_sandboxed():
        default = TargetDecision(
            level="allow", why=translate("decision.sandboxed", would=would), rule="built-in: sandboxed"
        )
    else:
        why = translate("decision.no_rule", would=would, near=near)
        default = TargetDecision(level="ask", why=why, rule="built-in: commands", grants=grants)
    return apply_rules(hits, default, would, grants)


def _decide_named_files(book: Rulebook, read: CommandLine, context: CommandContext) -> Iterator[TargetDecision]:
    """Decide about files that a line names: likely secrets, and files that a rule denies. A sandbox does not hide
    printed secrets, and rules about commands do not open denied files."""
    command = render_quoted(read.text)
    denied = [layered_rule for layered_rule in book.list_rules("path") if layered_rule.rule.level == "deny"]
    secret = False
    for value in dict.fromkeys(map(_read_value, read.tokens if read.words is None else read.words[1:])):
        if not value or len(value) > MAX_PATH_CHARS or value.startswith("-") or "\0" in value:
            continue
        place = locate_path(value, context.workspace)
        wild = read.words is None and is_pattern(value)
        if not secret and (_has_secrets(place) or (wild and may_name_secrets(value))):
            secret = True
            would = CallEffect(code="run", what=command)
            why = translate("decision.names_secrets", would=would, what=render_quoted(str(place)))
            yield TargetDecision(level="ask", why=why, rule="built-in: secrets", grants=None)
        found = next(
            (layered_rule for layered_rule in denied if matches_tightening(layered_rule.rule.words, place)), None
        )
        if found is not None:
            denied = []  # report it once
            touches = CallEffect(code="touch", what=command, place=render_quoted(str(place)))
            yield decide_by_rule(Hit(placed=found, certain=False), touches, None)


def _find_path_problem(word: str, context: CommandContext) -> str:
    """Return the code of what is wrong with a word or option value that may be a path; empty if nothing is."""
    value = _read_value(word)
    if value in HARMLESS_DEVICES:
        return ""
    rooted = value.startswith("/") or value.casefold().startswith("file:")
    place = locate_path(value, context.workspace)
    if (rooted and ":" in value) or (place.inside is None and (rooted or ".." in value.split("/"))):
        return "decision.leads_out"
    if place.inside and context.leads_out("/".join(place.inside)):
        return "decision.link_out"
    return "decision.may_hold_secrets" if _has_secrets(place) else ""


def _has_secrets(place: PolicyPath) -> bool:
    return bool(place.inside) and is_secret(place.folded_inside)


def _read_value(word: str) -> str:
    """Return the part of a word that may be a path."""
    found = _VALUE.match(word)
    return word[found.end() :] if found else word


def decide_host(book: Rulebook, value: str) -> TargetDecision:
    """Decide about a host. The network needs approval."""
    try:
        asked = hosts.parse_host(value)
    except hosts.BadHost as bad:
        why = translate("decision.bad_host", host=render_quoted(value), why=bad)
        return TargetDecision(level="deny", why=why, rule="built-in: host names")
    name = render_quoted(str(asked))
    port = 0 if asked.port in hosts.USUAL_PORTS else asked.port
    grants = (str(Rule(level="allow", kind="host", words=(asked.name, str(port)))),)
    would = CallEffect(code="reach", what=name)
    why = translate("decision.no_rule", would=would, near="")
    default = TargetDecision(level="ask", why=why, rule=NETWORK_RULE, grants=grants)
    return apply_rules(book.find_host_rules(asked), default, would, grants)


def decide_tool(book: Rulebook, card: ToolCard, *, alone: bool) -> TargetDecision:
    """Decide about a tool. A tool that only reads, or ends what the team started, is allowed. If the call names its
    targets (not `alone`), only they count, and rules about the tool can only tighten."""
    name, built_in = card.spec.name, card.source == BUILT_IN
    would = CallEffect(code="call", what=render_quoted(name))
    grants = _propose_tool_rule(name)
    if not alone:
        default = TargetDecision(level="allow", why=translate("decision.may", would=would))
    elif _is_read_only(card):
        default = TargetDecision(
            level="allow", why=translate("decision.only_reads", would=would), rule="built-in: tools that look"
        )
    elif built_in and card.ends_own:
        why = translate("decision.only_ends", would=would)
        default = TargetDecision(level="allow", why=why, rule="built-in: what was begun here")
    else:
        why = translate("decision.touches_unknown" if built_in else "decision.name_only", would=would)
        default = TargetDecision(level="ask", why=why, rule="built-in: unknown tools", grants=grants)
    return apply_rules(book.find_tool_rules(name), default, would, grants)


def _is_read_only(card: ToolCard) -> bool:
    """Return whether a tool only reads. Claims of an MCP server are not trusted; those of a person's file are."""
    if card.source == BUILT_IN:
        return card.effect == "pure" or card.group in _QUIET_GROUPS
    return card.effect == "pure" and not card.source.startswith(_MCP_SOURCE)


def _propose_tool_rule(name: str) -> tuple[str, ...] | None:
    try:
        rule = parse(f"allow tool {name}")
    except BadRule:
        return None
    return (str(rule),) if rule.words == (name,) and not name.endswith("*") else None


def escape_unprintable(text: str) -> str:
    """Escape every unprintable character, so that a terminal cannot act on it and a reader sees it."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def render_full_command(line: str, why: str) -> str:
    """Render a command line in full if `why` does not show it, so that people see what they approve."""
    if f"`{line.strip()}`" in why:
        return ""
    lines = line[: MAX_COMMAND_CHARS + 1].replace("\t", "    ").split("\n")
    told = "\n".join(f"  | {escape_unprintable(row)}" for row in lines[:MAX_LINES_SHOWN])
    more = len(lines) > MAX_LINES_SHOWN or len(line) > MAX_COMMAND_CHARS or len(told) > 2 * MAX_COMMAND_CHARS
    return f"\n{told[: 2 * MAX_COMMAND_CHARS]}" + (translate("decision.cut") if more else "")


def join_reasons(reasons: Sequence[str]) -> list[str]:
    """Merge sentences that differ only in the host, and join them with the command that goes there."""
    prefix, suffix = _split_unruled("reach")
    unruled = [reason for reason in reasons if reason.startswith(prefix) and reason.endswith(suffix)]
    others = [reason for reason in reasons if reason not in unruled]
    names = [reason.removeprefix(prefix).removesuffix(suffix) for reason in unruled]
    if not names:
        return others
    places = translate("decision.last_of", others=", ".join(names[:-1]), last=names[-1]) if names[1:] else names[0]
    if others and others[0].startswith(_split_unruled("run")[0]) and others[0].endswith(suffix):
        reach = CallEffect(code="reach", what=places)
        joined = translate("decision.run_and_reach", run=others[0].removesuffix(suffix), reach=reach)
        return [f"{joined}{suffix}", *others[1:]]
    return [*others, f"{prefix}{places}{suffix}"]


def _split_unruled(code: str) -> tuple[str, str]:
    """Return what is before and after the object in the sentence about something that no rule allows."""
    sentence = translate("decision.no_rule", would=CallEffect(code=code, what=_GAP), near="")
    prefix, _, suffix = sentence.partition(_GAP)
    return prefix, suffix


def render_quoted(text: str) -> str:
    """Quote a text for a person: one line, shortened, escaped."""
    plain = escape_unprintable(
        text if len(text) <= 2 * MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + text[-MAX_SHOWN_CHARS:]
    )
    if len(plain) > MAX_SHOWN_CHARS:
        half = MAX_SHOWN_CHARS // 2
        plain = f"{plain[:half]} … {plain[-half:]}"
    return f"`{plain}`"
