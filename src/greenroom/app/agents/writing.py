"""A new agent's file: a template that works as it stands, with what else can be said in comments."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from greenroom.app.agents import keys as values
from greenroom.app.agents.finding import NAME, find_agents, user_folder
from greenroom.app.agents.front_matter import dump
from greenroom.app.settings.home import create, tell_git
from greenroom.app.settings.layers import FOLDER, for_everybody
from greenroom.app.settings.schema import short
from greenroom.app.settings.values import Reader, Unfit
from greenroom.app.settings.values import text as line
from greenroom.app.workspace import workspace_root
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.records import record

TEMPLATE: Final = """\
---
# An agent for Greenroom. `greenroom agents show {name}` says how it is understood,
# `greenroom prompt show {name}` prints the exact request that a model gets.
name: {name}
description: {description}   # others read this when they choose whom to ask
{model}
{tools}
# role: a careful reviewer         # "You are {name}, a careful reviewer."
# calls: [searcher]                # agents that it may call and hear back from
# temperature: 0.2                 # 0 to 2; left out, the model's own
# effort: high                     # low, medium or high, for models that think first
# max_output: 8000                 # tokens of its longest answer
# rounds: 20                       # how often it may act before it has to answer
# ends: finish                     # finish (a call says so), mark (a mark in its text) or text (any plain answer)
# language: en                     # of what Greenroom itself tells it: en or zh
---
{prompt}
"""
MODEL: Final = (
    "# model: strong                    # strong, fast, a group of yours or provider:model; left out, the normal one"
)
TOOLS: Final = "# tools: [read_file]               # the only tools that it may use"
DESCRIPTION: Final = "What it is for, in one line."
PROMPT: Final = """\
Here you write what the agent is told of its work: what it is to do, how it is to do it, what a good result looks like.

- Say what matters most first.
- Say what it must never do.
- Give an example of a good answer."""


@record
class Wish:
    """What a new agent is to be; `user` is for all projects."""

    name: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    user: bool = False


def write_agent(workspace: Path, wish: Wish) -> Path:
    """Write the file, if nothing is in its place; returns where it is."""
    _check(wish)
    root = workspace_root(workspace)
    folder = user_folder() if wish.user else root / FOLDER / NAME
    path = folder / f"{wish.name}.md"
    _refuse_taken(workspace, wish.name, path)
    if not wish.user:
        _refuse_elsewhere(folder, root)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not wish.user:
            tell_git(folder.parent)
        create(path, text(wish))
    except FileExistsError:
        raise _taken(wish.name, path) from None
    except OSError as error:
        why = error.strerror or error
        raise WorldFault(f"{path} cannot be written: {why}. Make the folder writable, or use --user.") from None
    return path


def text(wish: Wish) -> str:
    return TEMPLATE.format(
        name=wish.name,
        description=dump(wish.description or DESCRIPTION),
        model=f"model: {dump(wish.model)}" if wish.model else MODEL,
        tools=f"tools: [{', '.join(map(dump, wish.tools))}]" if wish.tools else TOOLS,
        prompt=PROMPT,
    )


def _check(wish: Wish) -> None:
    """Everything that goes into the file is such that it can be read again."""
    _fit("name", wish.name, values.name)
    if wish.description:
        _fit("description", wish.description, line)
    if wish.model:
        _fit("model", wish.model, values.model)
    _fit("tools", wish.tools, values.names)


def _fit(what: str, value: object, read: Reader) -> None:
    try:
        read(value)
    except Unfit as unfit:
        why = f"{short(value)} cannot be an agent's {what}."
        raise Refused(Rejected(code=f"bad_{what}", why=why, hint=f"It must be {unfit}.")) from None


def _refuse_taken(workspace: Path, name: str, path: Path) -> None:
    found = find_agents(workspace).found.get(name)
    if path.exists() or path.is_symlink() or (found is not None and found.path.parent == path.parent):
        raise _taken(name, found.path if found is not None and found.path.parent == path.parent else path)


def _taken(name: str, path: Path) -> Refused:
    why = f"There is an agent {name!r} already, in {path}."
    return Refused(Rejected(code="agent_exists", why=why, hint="Edit that file, or choose another name."))


def _refuse_elsewhere(folder: Path, root: Path) -> None:
    if for_everybody(root) or not folder.resolve().is_relative_to(root.resolve()):
        raise WorldFault(f"{folder} is no folder of this project's own. Go to a project, or use --user.")
