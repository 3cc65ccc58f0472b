"""The policy of a workspace: built-in rules, the person's file of rules, the project's rules, and confirming."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.app.settings.home import change, config_folder, refuse_writable
from greenroom.app.settings.keys import NAME as KEYS
from greenroom.app.settings.layers import FOLDER, for_everybody
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.tool import Policy, Ruling, Target, ToolCard
from greenroom.policy.judgement import shown
from greenroom.policy.paths import ANY, ROOT, literal
from greenroom.policy.policy import rules_policy
from greenroom.policy.rulebook import Layer
from greenroom.policy.rules import BadRule, Rule, parse

NAME: Final = "permissions"
EVERYWHERE: Final = ""
HEAD: Final = "# What agents may do. One rule per line, for instance: allow command npm test"


def persons_rules() -> RulesFile:
    return RulesFile(config_folder() / NAME, own=True)


def written(rule: str) -> str:
    """A rule as it is kept; `WorldFault` for one that cannot be read."""
    return str(parse(rule))


@record
class Line:
    """A line as it is written, in the part of which workspace it stands, and the rule that it is, if it is one."""

    text: str
    place: str = EVERYWHERE
    rule: str = ""
    head: bool = False


class RulesFile:
    """Reads it anew each time: it is short, and a person may have changed it meanwhile.

    `own` says that it is the person's, so that nobody else may write it.
    """

    def __init__(self, path: Path, *, own: bool = False) -> None:
        self.path = path
        self._own = own

    def state(self) -> tuple[int, ...]:
        """Another one after every change of the file; empty where there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode

    def of(self, workspace: Path) -> tuple[str, ...]:
        """The rules that hold in a workspace."""
        rules = self.listed()
        return (*rules.get(EVERYWHERE, ()), *rules.get(str(workspace), ()))

    def listed(self) -> Mapping[str, tuple[str, ...]]:
        """All rules by workspace."""
        found: dict[str, tuple[str, ...]] = {}
        for line in self._read():
            if line.rule:
                found[line.place] = (*found.get(line.place, ()), line.rule)
        return found

    def add(self, rule: str, workspace: Path | None) -> bool:
        """Agree to a rule from now on; False when it holds already. What else stands in the file stays as it is."""
        said, place = written(rule), EVERYWHERE if workspace is None else str(workspace)

        def more(lines: list[Line]) -> list[Line] | None:
            known = any((one.place, one.rule) == (place, said) for one in lines)
            return None if known else with_rule(lines, said, place)

        return self._change(more)

    def remove(self, rule: str, workspace: Path | None) -> bool:
        """Agree to it no more; False when it was not there."""
        said, place = written(rule), EVERYWHERE if workspace is None else str(workspace)

        def less(lines: list[Line]) -> list[Line] | None:
            left = [one for one in lines if (one.place, one.rule) != (place, said)]
            return without_empty(left, place) if len(left) < len(lines) else None

        return self._change(less)

    def _change(self, changes: Callable[[list[Line]], list[Line] | None]) -> bool:
        changed = False

        def made() -> str | None:
            nonlocal changed
            lines = changes(self._read())
            changed = lines is not None
            return None if lines is None else "".join(f"{one.text}\n" for one in lines)

        change(self.path, made)
        return changed

    def _read(self) -> list[Line]:
        try:
            text = self.path.read_text(encoding="utf-8")
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise WorldFault(f"{self.path} cannot be read: {error}. Mend it, or move it away.") from None
        if self._own:
            refuse_writable(self.path, mode, "what agents may do")
        return list(self._lines(text))

    def _lines(self, text: str) -> Iterator[Line]:
        place = EVERYWHERE
        for number, line in enumerate(text.splitlines(), start=1):
            bare = line.strip()
            if bare.startswith("[") and bare.endswith("]"):
                place = bare[1:-1]
                yield Line(text=line, place=place, head=True)
            else:
                rule = self._checked(bare, number) if bare and not bare.startswith("#") else ""
                yield Line(text=line, place=place, rule=rule)

    def _checked(self, line: str, number: int) -> str:
        try:
            return str(parse(line))
        except BadRule as fault:
            raise WorldFault(f"{self.path}, line {number}: {fault}") from None


def with_rule(lines: list[Line], rule: str, place: str) -> list[Line]:
    """The same lines and this one, behind the last rule of its workspace."""
    new, lines = Line(text=rule, place=place, rule=rule), lines or [Line(text=HEAD)]
    said = (number for number, one in enumerate(lines, start=1) if one.place == place and (one.rule or one.head))
    behind = max(said, default=0)
    if not behind and place != EVERYWHERE:
        return [*lines, Line(text=""), Line(text=f"[{place}]", place=place, head=True), new]
    behind = behind or sum(1 for _ in takewhile(lambda one: one.text.startswith("#"), lines))
    rest = lines[behind:]
    gap = [Line(text="")] if rest and rest[0].head else []
    return [*lines[:behind], new, *gap, *rest]


def without_empty(lines: list[Line], place: str) -> list[Line]:
    """The same lines, but for those of a workspace of which nothing is said any more."""
    if place == EVERYWHERE or any(one.text.strip() and not one.head for one in lines if one.place == place):
        return lines
    return [one for one in lines if one.place != place]


def project_rules(root: Path) -> tuple[str, ...]:
    """All of them. A file that cannot be read is a `WorldFault`: to go on without it would be to loosen what it says.

    What it allows counts for nothing, as the policy reads it: it comes with a clone, so it is a stranger's word.
    """
    path = root / FOLDER / NAME
    if for_everybody(root) or not path.exists():
        return ()
    if not path.resolve().is_relative_to(root.resolve()):
        raise WorldFault(f"{path} is a link that leads out of the project, and is not read. Make it a file.")
    rules = RulesFile(path).listed()
    if rules.keys() - {EVERYWHERE}:
        raise WorldFault(f"{path} has rules for a workspace of its own, in brackets. All its rules are for this one.")
    return rules.get(EVERYWHERE, ())


def policy_for(
    root: Path,
    agreed: Sequence[str],
    project: Sequence[str] = (),
    *,
    own: Sequence[str] = (),
    brought: Sequence[str] = (),
    walled: Callable[[], bool] | None = None,
    lies: Path | None = None,
) -> Policy:
    """The policy of a workspace: what the person agreed to for good. A project can only forbid, or want to be asked.

    `own` are rules that they state otherwise, in a program for one; `brought` are tools that come with that program, so
    that nobody is asked about them unless a rule or the tool itself wants it. `walled` says whether commands run behind
    walls that hold; it is asked only when it matters. `lies` is where its files are, if that is not where they are
    known to be.
    """
    # Where all that a person has lies below one folder, what runs there tomorrow is changed by nobody unasked.
    careful = ["ask path ** write"] if root in (Path.home(), Path(root.anchor)) else []
    known = [*(f"allow tool {name}" for name in brought), *_persons_own(), *careful]
    rules: dict[Layer, Sequence[str]] = {"built-in": known, "user": own, "granted": agreed, "project": project}
    return rules_policy(rules, str(root), _links(lies or root), walled=walled or bool)


def _links(root: Path) -> Callable[[str], bool]:
    """Whether a path leads out of the workspace by a link, as it lies there now."""
    top = Path(os.path.realpath(root))

    def leads_out(path: str) -> bool:
        return not Path(os.path.realpath(top / path)).is_relative_to(top)

    return leads_out


def _persons_own() -> list[str]:
    """What a person keeps for themselves is not for agents, also where it lies in a workspace: they may not change it,
    nor read the keys."""
    folder = config_folder()
    places = dict.fromkeys((folder.absolute(), folder.resolve()))
    words = [(ROOT, *map(literal, one.parts[1:])) for one in places]
    rules = [Rule(level="deny", kind="path", words=(*one, ANY), access="write") for one in words]
    rules += [Rule(level="deny", kind="path", words=(*one, KEYS)) for one in words]
    return list(map(str, rules))


RULE: Final = "execute_tool_confirm"

Confirmed: TypeAlias = Callable[[AgentId], bool]
"""Whether the calls of this agent are confirmed."""


def everybody(_: AgentId) -> bool:
    return True


class Confirming:
    """Another policy, of which only what it forbids stands as it is. What it would have allowed is asked.

    There is no rule to agree to for good: who wants to be asked each time is asked each time.
    """

    def __init__(self, policy: Policy, whom: Confirmed = everybody) -> None:
        self._policy = policy
        self._whom = whom

    def decide(
        self,
        agent: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> Ruling:
        """The stricter of the policy's answer and a question."""
        ruling = self._policy.decide(agent, card, targets, grants, limits)
        if ruling.verdict == "deny" or not self._whom(agent):
            return ruling
        if ruling.verdict == "ask":
            return evolve(ruling, grant="")
        touched = ", ".join(dict.fromkeys(one.value for one in targets if one.kind != "tool"))
        about = f"It is about {shown(touched)}. " if touched else ""
        return Ruling(verdict="ask", rule=RULE, why=f"{about}Every call is confirmed.")
