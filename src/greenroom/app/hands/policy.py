"""The policy of a workspace: whose rules hold there, and what nobody may change whatever they say."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from greenroom.abilities.permission.paths import ANY, ROOT, literal
from greenroom.abilities.permission.policy import rules_policy
from greenroom.abilities.permission.rulebook import Layer
from greenroom.abilities.permission.rules import Rule
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.keys import NAME as KEYS
from greenroom.core.ports.tool import Policy


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
    known = [*(f"allow tool {name}" for name in brought), *_persons_own(), *_careful(root)]
    rules: dict[Layer, Sequence[str]] = {"built-in": known, "user": own, "granted": agreed, "project": project}
    return rules_policy(rules, str(root), _links(lies or root), walled=walled or bool)


def _links(root: Path) -> Callable[[str], bool]:
    """Whether a path leads out of the workspace by a link, as it lies there now."""
    top = Path(os.path.realpath(root))

    def leads_out(path: str) -> bool:
        return not Path(os.path.realpath(top / path)).is_relative_to(top)

    return leads_out


def _careful(root: Path) -> list[str]:
    """Where all that a person has lies below one folder, what runs there tomorrow is changed by nobody unasked."""
    return ["ask path ** write"] if root in (Path.home(), Path(root.anchor)) else []


def _persons_own() -> list[str]:
    """What a person keeps for themselves is not for agents, also where it lies in a workspace: they may not change it,
    nor read the keys."""
    folder = config_folder()
    places = dict.fromkeys((folder.absolute(), folder.resolve()))
    words = [(ROOT, *map(literal, one.parts[1:])) for one in places]
    rules = [Rule(level="deny", kind="path", words=(*one, ANY), access="write") for one in words]
    rules += [Rule(level="deny", kind="path", words=(*one, KEYS)) for one in words]
    return list(map(str, rules))
