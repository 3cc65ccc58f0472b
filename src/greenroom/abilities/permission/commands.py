"""What is decided about a command line: it is allowed only if every command in it is, and all of it could be read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from greenroom.abilities.permission import judging
from greenroom.abilities.permission.judging import Judged, answer, of_hit, path_grant, together
from greenroom.abilities.permission.leaving import leaves
from greenroom.abilities.permission.paths import HARMLESS_DEVICES, LONGEST, Access, placed
from greenroom.abilities.permission.programs import useful_prefix
from greenroom.abilities.permission.rulebook import Hit, Rulebook, overrules, settle
from greenroom.abilities.permission.rules import BadRule, Rule, parse
from greenroom.abilities.permission.saying import shown
from greenroom.abilities.permission.secrets import is_secret, may_name_secrets
from greenroom.abilities.permission.shell.reader import read
from greenroom.abilities.permission.shell.script import Command, Script
from greenroom.abilities.permission.words import gap

MOST_WORDS: Final = 300
SECRET: Final = "may hold secrets"
_VALUE: Final = re.compile(r"-[A-Za-z](?=[./])|(?:--?)?[A-Za-z_][A-Za-z0-9_.-]*=|@")
HELD: Final = frozenset({"built-in: commands", "built-in: unreadable", "built-in: redirections", "built-in: links"})
"""What walls make harmless. Whoever names what lies outside, or may hold secrets, is asked about that."""

_STEADY: Final = frozenset({"&&", "|", "|&"})


LeadsOut: TypeAlias = Callable[[str], bool]
"""Whether a path, seen from the workspace's root, leads out of it by a link."""


def nowhere(_: str) -> bool:
    """Where there are no files, there are no links."""
    return False


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a line is run: which of its paths lead out by a link, and whether there are walls around it that hold."""

    workspace: str
    leads_out: LeadsOut = nowhere
    walled: Callable[[], bool] = bool


def line(book: Rulebook, text: str, ground: Ground) -> Judged:
    """What is decided about a whole command line. Behind walls that hold, what stays in the workspace is silent."""
    script = read(text)
    parts = list(_parts(book, script, ground, _folder(script)))
    if any(part.level == "ask" and part.hit is None for part in parts) and ground.walled():
        parts = list(_behind_walls(book, script, parts))
    exact = list(book.of_line(text))
    hit = settle(exact)
    if hit is None:
        return together(parts)
    judged = of_hit(hit, f"run {shown(text.strip())}", None)
    opens = hit.opens
    return together([judged, *(part for part in parts if not (opens and _gives_way(part, hit)))])


def _gives_way(part: Judged, exact: Hit) -> bool:
    """Whether a rule for exactly this line counts more than what was decided about a part of it."""
    if part.level == "deny":
        return False
    return part.hit is None or part.hit.opens or overrules(exact, part.hit)


def line_grant(text: str) -> str:
    """The rule for exactly this line, if there can be one."""
    rule = f"allow line {text.strip()}"
    try:
        return str(parse(rule))
    except BadRule:
        return ""


def _parts(book: Rulebook, script: Script, ground: Ground, folder: str) -> Iterator[Judged]:
    if script.unsure:
        why = f"It would run a command line that cannot be read with certainty: {script.unsure}."
        yield Judged(level="ask", why=why, rule="built-in: unreadable", grants=None)
    if sum(len(one.words) + len(one.reads) + len(one.writes) for one in script.commands) > MOST_WORDS:
        why = f"It would run a command line of more than {MOST_WORDS} words."
        yield Judged(level="ask", why=why, rule="built-in: unreadable", grants=None)
        return
    for at, command in enumerate(script.commands):
        seen_from = folder if at else ""
        judge = _Judge(book, ground, seen_from)
        yield from [judge.moved(command)] if folder and not at else judge.command(command)
        yield from judge.opened(command)


def _behind_walls(book: Rulebook, script: Script, parts: Sequence[Judged]) -> Iterator[Judged]:
    """What the house would ask about by itself, it need not ask: the walls hold it. Rules stay rules, and where one may
    be meant that could not be read, somebody is asked all the same; so it is for what wants to get out."""
    out = next((one for one in script.commands if leaves(one)), None)
    sure = _is_certain(script) or not any(True for _ in book.commands())
    for part in parts:
        if part.level != "ask" or part.hit is not None or part.rule not in HELD or out is not None or not sure:
            yield part
        else:
            yield Judged(level="allow", why="It may run that: walls are around it.", rule="built-in: sandboxed")


def _is_certain(script: Script) -> bool:
    """Whether it is known which programs would run."""
    return not script.unsure and all(len(one.plain) > one.assigned for one in script.commands if one.words)


def _folder(script: Script) -> str:
    """Where a line goes first (`cd FOLDER && …`), if it is certain that all the rest happens there."""
    first = script.commands[0].plain if script.commands else ()
    if script.nested or len(first) != 2 or first[0] != "cd" or script.joints[:1] != ("&&",):
        return ""
    if len(script.commands[0].words) != 2 or not _STEADY.issuperset(script.joints):
        return ""
    return "" if first[1].startswith(("-", "/")) or not first[1] else first[1]


class _Judge:
    """Decides about the commands of one line, seen from one folder."""

    def __init__(self, book: Rulebook, ground: Ground, folder: str) -> None:
        self._book = book
        self._workspace = ground.workspace
        self._leads_out = ground.leads_out
        self._folder = folder

    def moved(self, command: Command) -> Judged:
        """Going into a folder of the workspace."""
        house = self._path(command.texts[1], "read")
        return answer(list(self._book.tightened(command)), house, f"run {_said(command)}", None)

    def opened(self, command: Command) -> Iterator[Judged]:
        """The files that the shell opens for a command."""
        yield from (self._overwritten(path) for path in command.writes)
        yield from (self._path(path, "read") for path in command.reads)

    def command(self, command: Command) -> list[Judged]:
        """A program with its words: all that there is to say about it."""
        opening, near = self._opening(command)
        would, grants = f"run {_said(command)}", _grants(command)
        why = f"It would {would}, which no rule allows{near}."
        unknown = Judged(level="ask", why=why, rule="built-in: commands", grants=grants)
        judged = answer([*self._book.tightened(command), *opening], unknown, would, grants)
        return [judged, *self._forbidden(command), *self._secrets(command)]

    def _opening(self, command: Command) -> tuple[list[Hit], str]:
        """The rules that cover it, and a word about one that nearly does."""
        found: list[Hit] = []
        near = ""
        for one in self._book.loose("command", command.words[0].text):
            missing = gap(one.rule.words, command, self._trouble)
            if missing == "":
                found.append(Hit(placed=one, opens=True))
            elif missing:
                near = near or f" (`{one.rule}` does not: {missing})"
        return found, near

    def _secrets(self, command: Command) -> Iterator[Judged]:
        """A word may be a file that holds secrets: no walls keep those from whoever reads what it prints."""
        words = {_value(word.text): word.glob for word in command.words[command.assigned + 1 :]}
        for value, glob in words.items():
            if value and len(value) <= LONGEST and self._is_secret(value, glob=glob):
                place = placed(value, self._workspace, self._folder)
                why = f"It would run {_said(command)}, and {shown(str(place))} {SECRET}."
                yield Judged(level="ask", why=why, rule="built-in: secrets", grants=None)
                return

    def _is_secret(self, value: str, *, glob: bool) -> bool:
        return self._trouble(value) == SECRET or (glob and may_name_secrets(value))

    def _forbidden(self, command: Command) -> Iterator[Judged]:
        """A word may be a path that no rule about commands can open."""
        for value in dict.fromkeys(_value(word.text) for word in command.words[command.assigned + 1 :]):
            if not value or value.startswith("-") or "\0" in value or len(value) > 1000:
                continue
            place = placed(value, self._workspace, self._folder)
            for hit in self._book.of_path(place, "", only="deny"):
                would = f"run {_said(command)}, and may touch {shown(str(place))}"
                yield of_hit(Hit(placed=hit.placed, certain=False), would, None)
                return

    def _overwritten(self, value: str) -> Judged:
        """A file that the shell would write over. Nobody looks whether somebody has changed it, as the tools that edit
        do: what stood there is gone, so it is never silent unless a rule says so."""
        judged = self._path(value, "write")
        if judged.hit is not None or judged.level != "allow" or value in HARMLESS_DEVICES:
            return judged
        place = placed(value, self._workspace, self._folder)
        why = f"It would write over {shown(str(place))}, whatever stands there."
        return Judged(level="ask", why=why, rule="built-in: redirections", grants=(path_grant(place, "write"),))

    def _path(self, value: str, access: Access) -> Judged:
        """What a program opens by its name; unlike a tool of ours it follows a link wherever that leads."""
        judged = judging.path(self._book, value, access, self._workspace, self._folder)
        if judged.level not in ("allow", "notify") or value in HARMLESS_DEVICES:
            return judged
        place = placed(value, self._workspace, self._folder)
        if place.inside is None or not self._leads_out("/".join(place.inside)):
            return judged
        why = f"It would {access} {shown(str(place))}, a link that leads out of the workspace."
        return Judged(level="ask", why=why, rule="built-in: links", grants=None)

    def _trouble(self, word: str) -> str:
        """What is wrong with a word, or the value of an option, that may be a path; nothing if nothing is."""
        value = _value(word)
        if value in HARMLESS_DEVICES:
            return ""
        rooted = value.startswith("/") or value.casefold().startswith("file:")
        place = placed(value, self._workspace, self._folder)
        if (rooted and ":" in value) or (place.inside is None and (rooted or ".." in value.split("/"))):
            return "leads out of the workspace"
        if place.inside and self._leads_out("/".join(place.inside)):
            return "is a link that leads out of the workspace"
        return SECRET if place.inside and is_secret(place.folded_inside) else ""


def _value(word: str) -> str:
    """What may be a path in a word."""
    found = _VALUE.match(word)
    return word[found.end() :] if found else word


def _said(command: Command) -> str:
    return shown(" ".join(word.text if not word.plain else shlex.quote(word.text) for word in command.words))


def _grants(command: Command) -> tuple[str, ...] | None:
    """The narrowest rule of use for this command; None when that is the whole line."""
    words, at = command.plain, command.assigned
    useful = useful_prefix(words[at:]) if len(words) > at else 0
    if not useful:
        return None
    return (str(Rule(level="allow", kind="command", words=words[: at + useful])),)
