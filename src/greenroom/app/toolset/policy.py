"""The policy of a workspace: built-in rules, the person's rules file, the project's rules, and confirmation."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.app.messages import translate
from greenroom.app.settings.home import change_file, config_folder, refuse_writable
from greenroom.app.settings.keys import KEYS_FILE as KEYS
from greenroom.app.settings.layers import PROJECT_FOLDER, is_shared_folder
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.tool import Policy, PolicyDecision, Target, ToolCard
from greenroom.policy.decision import render_quoted
from greenroom.policy.paths import ANY, ROOT, escape_pattern
from greenroom.policy.policy import build_rules_policy
from greenroom.policy.rulebook import Layer
from greenroom.policy.rules import BadRule, Rule, parse

RULES_FILE: Final = "permissions"
EVERYWHERE: Final = ""
FILE_HEADER: Final = "# What agents may do. One rule per line, for instance: allow command npm test"


def open_user_rules() -> RulesFile:
    return RulesFile(config_folder() / RULES_FILE, own=True)


def normalise_rule(rule: str) -> str:
    """Return a rule in its stored form. Raise `WorldFault` for an invalid rule."""
    return str(parse(rule))


@record
class RuleLine:
    """A line of the rules file, with its workspace section and its rule, if any."""

    text: str
    place: str = EVERYWHERE
    rule: str = ""
    is_heading: bool = False


class RulesFile:
    """A rules file. It is short and can change, so every access reads it again. `own` marks the person's file, which
    other users must not be able to write."""

    def __init__(self, path: Path, *, own: bool = False) -> None:
        self.path = path
        self._own = own

    def state(self) -> tuple[int, ...]:
        """Return a value that changes with the file, or an empty one without a file."""
        try:
            status = self.path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode

    def rules_for(self, workspace: Path) -> tuple[str, ...]:
        rules = self.list_rules()
        return (*rules.get(EVERYWHERE, ()), *rules.get(str(workspace), ()))

    def list_rules(self) -> Mapping[str, tuple[str, ...]]:
        rules: dict[str, tuple[str, ...]] = {}
        for line in self._read():
            if line.rule:
                rules[line.place] = (*rules.get(line.place, ()), line.rule)
        return rules

    def add(self, rule: str, workspace: Path | None) -> bool:
        """Add a rule. Return False if it exists. The rest of the file stays unchanged."""
        rule_text, place = normalise_rule(rule), EVERYWHERE if workspace is None else str(workspace)

        def add_line(lines: list[RuleLine]) -> list[RuleLine] | None:
            is_known = any((rule_line.place, rule_line.rule) == (place, rule_text) for rule_line in lines)
            return None if is_known else with_rule(lines, rule_text, place)

        return self._change(add_line)

    def remove(self, rule: str, workspace: Path | None) -> bool:
        """Remove a rule. Return False if it does not exist."""
        rule_text, place = normalise_rule(rule), EVERYWHERE if workspace is None else str(workspace)

        def remove_line(lines: list[RuleLine]) -> list[RuleLine] | None:
            remaining = [rule_line for rule_line in lines if (rule_line.place, rule_line.rule) != (place, rule_text)]
            return drop_empty_section(remaining, place) if len(remaining) < len(lines) else None

        return self._change(remove_line)

    def _change(self, edit: Callable[[list[RuleLine]], list[RuleLine] | None]) -> bool:
        changed = False

        def render() -> str | None:
            nonlocal changed
            lines = edit(self._read())
            changed = lines is not None
            return None if lines is None else "".join(f"{rule_line.text}\n" for rule_line in lines)

        change_file(self.path, render)
        return changed

    def _read(self) -> list[RuleLine]:
        try:
            text = self.path.read_text(encoding="utf-8")
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise WorldFault("toolset.rules_unreadable", path=self.path, error=error) from None
        if self._own:
            refuse_writable(self.path, mode, "policy.rules_content")
        return list(self._parse_lines(text))

    def _parse_lines(self, text: str) -> Iterator[RuleLine]:
        place = EVERYWHERE
        for number, line in enumerate(text.splitlines(), start=1):
            stripped = line.strip()
            if stripped.startswith("[") and stripped.endswith("]"):
                place = stripped[1:-1]
                yield RuleLine(text=line, place=place, is_heading=True)
            else:
                rule = self._parse_rule(stripped, number) if stripped and not stripped.startswith("#") else ""
                yield RuleLine(text=line, place=place, rule=rule)

    def _parse_rule(self, line: str, number: int) -> str:
        try:
            return str(parse(line))
        except BadRule as fault:
            raise WorldFault("agents.fault_in_line", path=self.path, line=number, why=fault) from None


def with_rule(lines: list[RuleLine], rule: str, place: str) -> list[RuleLine]:
    """Return the lines with this rule after the last rule of its workspace."""
    new, lines = RuleLine(text=rule, place=place, rule=rule), lines or [RuleLine(text=FILE_HEADER)]
    positions = (
        number
        for number, rule_line in enumerate(lines, start=1)
        if rule_line.place == place and (rule_line.rule or rule_line.is_heading)
    )
    position = max(positions, default=0)
    if not position and place != EVERYWHERE:
        return [*lines, RuleLine(text=""), RuleLine(text=f"[{place}]", place=place, is_heading=True), new]
    position = position or sum(1 for _ in takewhile(lambda rule_line: rule_line.text.startswith("#"), lines))
    rest = lines[position:]
    gap = [RuleLine(text="")] if rest and rest[0].is_heading else []
    return [*lines[:position], new, *gap, *rest]


def drop_empty_section(lines: list[RuleLine], place: str) -> list[RuleLine]:
    """Return the lines without the section of a workspace that has no rules left."""
    if place == EVERYWHERE or any(
        rule_line.text.strip() and not rule_line.is_heading for rule_line in lines if rule_line.place == place
    ):
        return lines
    return [rule_line for rule_line in lines if rule_line.place != place]


def project_rules(root: Path) -> tuple[str, ...]:
    """Return the project's rules. Raise `WorldFault` if the file is unreadable, because ignoring it would loosen them.
    The policy ignores its `allow` rules, because the file comes with a clone and is not trusted."""
    path = root / PROJECT_FOLDER / RULES_FILE
    if is_shared_folder(root) or not path.exists():
        return ()
    if not path.resolve().is_relative_to(root.resolve()):
        raise WorldFault("toolset.rules_link_outside", path=path)
    rules = RulesFile(path).list_rules()
    if rules.keys() - {EVERYWHERE}:
        raise WorldFault("toolset.rules_with_heading", path=path)
    return rules.get(EVERYWHERE, ())


def build_policy(
    root: Path,
    agreed: Sequence[str],
    project: Sequence[str] = (),
    *,
    stated_rules: Sequence[str] = (),
    program_tools: Sequence[str] = (),
    is_sandboxed: Callable[[], bool] | None = None,
    files_root: Path | None = None,
) -> Policy:
    """Build the policy of a workspace from the person's rules. A project can only deny or require approval.

    `stated_rules` are further rules of the person, such as those of a program. `program_tools` come with that program
    and need no approval unless a rule or the tool asks. `is_sandboxed` says whether commands run in a sandbox that
    holds; it is called only when needed. `files_root` is where the files are, if they are not at `root`.
    """
    # In a home or root folder every write needs approval, because files there may run later.
    home_rules = ["ask path ** write"] if root in (Path.home(), Path(root.anchor)) else []
    built_in_rules = [*(f"allow tool {name}" for name in program_tools), *_protect_user_folder(), *home_rules]
    rules: dict[Layer, Sequence[str]] = {
        "built-in": built_in_rules,
        "user": stated_rules,
        "granted": agreed,
        "project": project,
    }
    return build_rules_policy(
        rules,
        str(root),
        _make_outside_check(files_root or root),
        is_sandboxed=is_sandboxed or bool,
        in_worktree=files_root not in (None, root),
    )


def _make_outside_check(root: Path) -> Callable[[str], bool]:
    """Return a check whether a path leaves the workspace through a link."""
    top = Path(os.path.realpath(root))

    def is_outside(path: str) -> bool:
        return not Path(os.path.realpath(top / path)).is_relative_to(top)

    return is_outside


def _protect_user_folder() -> list[str]:
    """Return rules that protect the person's configuration folder, even inside a workspace. Agents cannot write there
    and cannot read the keys."""
    folder = config_folder()
    user_folders = dict.fromkeys((folder.absolute(), folder.resolve()))
    path_patterns = [(ROOT, *map(escape_pattern, item.parts[1:])) for item in user_folders]
    rules = [Rule(level="deny", kind="path", words=(*item, ANY), access="write") for item in path_patterns]
    rules += [Rule(level="deny", kind="path", words=(*item, KEYS)) for item in path_patterns]
    return list(map(str, rules))


CONFIRM_RULE: Final = "execute_tool_confirm"

ConfirmsAgent: TypeAlias = Callable[[AgentId], bool]
"""Returns whether the calls of an agent need confirmation."""


def is_any_agent(_: AgentId) -> bool:
    return True


class ConfirmingPolicy:
    """A policy that asks about every call that another policy would allow. Denied calls stay denied. There is no rule
    to approve permanently: every call is asked about."""

    def __init__(self, policy: Policy, confirms_agent: ConfirmsAgent = is_any_agent) -> None:
        self._policy = policy
        self._confirms_agent = confirms_agent

    def decide(
        self,
        agent: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> PolicyDecision:
        """Return the stricter of the policy's decision and a question."""
        ruling = self._policy.decide(agent, card, targets, grants, limits)
        if ruling.verdict == "deny" or not self._confirms_agent(agent):
            return ruling
        if ruling.verdict == "ask":
            return evolve(ruling, grant="")
        touched = ", ".join(dict.fromkeys(target.value for target in targets if target.kind != "tool"))
        code = "question.confirm_about" if touched else "question.confirm"
        return PolicyDecision(verdict="ask", rule=CONFIRM_RULE, why=translate(code, what=render_quoted(touched)))
