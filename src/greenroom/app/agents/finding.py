"""Where agents are looked for, and which are found. Nearer ones hide others of their name; a broken file hides none.

First the project's own, then the person's, then Claude Code's of both. A project's files come with a clone, so they are
a stranger's word: they may neither name keys and addresses nor raise limits, and no link leads out of their folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from greenroom.app.agents import specs as values
from greenroom.app.agents.claude import Note, from_claude
from greenroom.app.agents.front_matter import Unusable, dump, read_sheet
from greenroom.app.agents.specs import BadKey, spec_of
from greenroom.app.settings.home import config_folder, create, tell_git
from greenroom.app.settings.layers import FOLDER, for_everybody, there
from greenroom.app.settings.schema import short
from greenroom.app.settings.values import Reader, Unfit
from greenroom.app.settings.values import text as line
from greenroom.app.workspace import workspace_root
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.records import record
from greenroom.core.state.spec import AgentSpec

NAME: Final = "agents"
MOST: Final = 500
"""Files of one folder."""

SHOWN: Final = 8
"""Names in a hint."""


@record
class Place:
    """A folder that may hold agents: whose, in which form, and (a project's) where it has to lie."""

    folder: Path
    whose: Literal["project", "user"]
    form: Literal["greenroom", "claude"] = "greenroom"
    inside: Path | None = None

    def __str__(self) -> str:
        return self.whose if self.form == "greenroom" else f"{self.whose}, Claude Code"


@record
class Found:
    """An agent and the file it is from. `report` tells what of that file does not count here; `digest` is the file's,
    from the very bytes that the agent was made of."""

    spec: AgentSpec
    path: Path
    place: Place
    report: tuple[Note, ...] = ()
    digest: str = ""


@record
class Trouble:
    """A file that no agent could be made of: which agent it would be, one sentence, and whose file it is."""

    name: str
    text: str
    whose: Literal["project", "user"] = "user"


@record
class Agents:
    """All agents of a workspace by name. `hidden` are those of which a nearer one has the name."""

    found: Mapping[str, Found]
    troubles: tuple[Trouble, ...] = ()
    hidden: tuple[Found, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """In the order of the alphabet."""
        return tuple(self.found)

    @property
    def specs(self) -> Mapping[str, AgentSpec]:
        """Them alone, by name."""
        return {name: one.spec for name, one in self.found.items()}

    def get(self, name: str) -> Found:
        """One of them; says what is wrong with its file, or which names there are."""
        found = self.found.get(name)
        if found is not None:
            return found
        broken = next((one for one in self.troubles if one.name == name), None)
        if broken is not None:
            raise WorldFault(broken.text)
        raise Refused(Rejected(code="unknown_agent", why=f"There is no agent {name!r}.", hint=self._hint(name)))

    def _hint(self, name: str) -> str:
        near = get_close_matches(name, self.names, n=3)
        if near:
            return f"Did you mean {_listed(near)}?"
        there = f"There are: {_listed(self.names[:SHOWN])}." if self.names else "There are none that can be used."
        unread = " `greenroom agents list` says which files cannot be read." if self.troubles else ""
        return f"{there}{unread} `greenroom agents new NAME` makes one."


def find_agents(workspace: Path) -> Agents:
    """All agents that can be used in this folder."""
    found: dict[str, Found] = {}
    hidden: list[Found] = []
    troubles: list[Trouble] = []
    broken: set[str] = set()
    for place in places(workspace):
        good, bad = _in_place(place)
        for one in good:
            # An agent whose own file is broken is not replaced by another of its name without a word.
            if one.spec.name in found or one.spec.name in broken:
                hidden.append(one)
            else:
                found[one.spec.name] = one
        troubles += bad
        broken |= {one.name for one in bad} - found.keys()
    return Agents(found=dict(sorted(found.items())), troubles=tuple(troubles), hidden=tuple(hidden))


def load_agent(workspace: Path, name: str) -> AgentSpec:
    return find_agents(workspace).get(name).spec


def read_agent(path: Path) -> AgentSpec:
    """The agent in a file that somebody names, so it is their own word. Claude Code's are known by their folder."""
    form: Literal["greenroom", "claude"] = "claude" if path.resolve().parent.parent.name == ".claude" else "greenroom"
    return _found(path, Place(folder=path.parent, whose="user", form=form)).spec


def places(workspace: Path) -> Sequence[Place]:
    """All folders that are looked into, the nearest first, whether they are there or not."""
    root = workspace_root(workspace)
    own, claudes = user_folder(), _claude_folder()
    project: list[Place] = []
    if not for_everybody(root):
        project = [
            Place(folder=root / FOLDER / NAME, whose="project", inside=root),
            Place(folder=root / ".claude" / NAME, whose="project", form="claude", inside=root),
        ]
    every = (
        *project[:1],
        Place(folder=own, whose="user"),
        *(one for one in project[1:] if one.folder != claudes),
        *((Place(folder=claudes, whose="user", form="claude"),) if claudes is not None else ()),
    )
    return tuple(every)


def user_folder() -> Path:
    """Where a person keeps their own agents, beside their settings."""
    return config_folder() / NAME


def _claude_folder() -> Path | None:
    named, home = os.environ.get("CLAUDE_CONFIG_DIR"), os.environ.get("HOME")
    if named:
        return Path(named) / NAME
    return Path(home) / ".claude" / NAME if home else None


def _in_place(place: Place) -> tuple[list[Found], list[Trouble]]:
    good: list[Found] = []
    bad: list[Trouble] = []
    try:
        files = _files(place)
    except Unusable as fault:
        return good, [Trouble(name="", text=str(fault), whose=place.whose)]
    if len(files) > MOST:
        why = f"holds more than {MOST} agents; only the first {MOST} are read. Move some away."
        bad.append(Trouble(name="", text=str(Unusable(place.folder, why)), whose=place.whose))
    for path in files[:MOST]:
        try:
            good.append(_found(path, place))
        except Unusable as fault:
            bad.append(Trouble(name=fault.name, text=str(fault), whose=place.whose))
    counted = Counter(one.spec.name for one in good)
    bad += _doubles([one for one in good if counted[one.spec.name] > 1])
    return [one for one in good if counted[one.spec.name] == 1], bad


def _files(place: Place) -> list[Path]:
    """The files that should hold agents, by name. A README is no agent."""
    folder = place.folder
    try:
        if not there(folder):
            return []
        if place.inside is not None and not folder.resolve().is_relative_to(place.inside.resolve()):
            raise Unusable(folder, "is a link that leads out of the project, and is not read. Make it a folder.")
        named = (one for one in folder.iterdir() if one.suffix == ".md" and not one.name.startswith("."))
        files = (one for one in named if one.stem.lower() != "readme")
        return sorted(islice(files, MOST + 1))
    except (OSError, RuntimeError) as error:  # a link that leads to itself is the latter
        why = getattr(error, "strerror", None) or str(error)
        raise Unusable(folder, f"should be a folder of agents and cannot be read: {why}. Mend it there.") from None


def _found(path: Path, place: Place) -> Found:
    sheet = read_sheet(path, place.folder if place.inside is not None else None)
    if place.form == "claude":
        spec, report = from_claude(sheet)
        return Found(spec=spec, path=path, place=place, report=report, digest=sheet.digest)
    raw = sheet.keys()
    try:
        spec = spec_of(raw.values, prompt=sheet.text, default_name=path.stem, trusted=place.whose == "user")
    except BadKey as fault:
        line = raw.lines.get(fault.key, 1)
        raise Unusable(path, str(fault), line, raw.values.get("name")) from None
    return Found(spec=spec, path=path, place=place, digest=sheet.digest)


def _doubles(same: Sequence[Found]) -> Iterator[Trouble]:
    for one in same:
        others = ", ".join(
            str(other.path.name) for other in same if other is not one and other.spec.name == one.spec.name
        )
        why = f"says that it is {one.spec.name!r}, and so does {others}. Neither is used: rename one."
        yield Trouble(name=one.spec.name, text=str(Unusable(one.path, why)), whose=one.place.whose)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


UNREAD: Final = "is kept, but nothing here reads it yet; it comes with planning."

IN_JOBS: Final = frozenset({"run_checks", "propose_plan"})
"""Tools that there are where a job is done, and nowhere else."""


def remarks(one: Found, agents: Agents, tools: Collection[str] = ()) -> tuple[Note, ...]:
    """All of them: of its file, of its tools, of whom it calls. `tools` are the names of those that there are."""
    return (*one.report, *missing_tools(one.spec, tools), *_missing_agents(one.spec, agents), *_unread(one.spec))


def missing_tools(spec: AgentSpec, tools: Collection[str]) -> Iterator[Note]:
    """Tools that it names and nobody has."""
    missing = [name for name in spec.tools if name not in tools and name not in IN_JOBS]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        yield Note(key="tools", text=f"names {names}, which this Greenroom does not have: its requests leave that out.")


def _missing_agents(spec: AgentSpec, agents: Agents) -> Iterator[Note]:
    missing = [name for name in spec.calls if name not in agents.found]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        yield Note(key="calls", text=f"names {names}, whom there is not here. `greenroom agents new NAME` makes one.")


def _unread(spec: AgentSpec) -> Iterator[Note]:
    if spec.capabilities:
        yield Note(key="capabilities", text=UNREAD)
    if spec.cooperation is not None:
        yield Note(key="cooperation", text=UNREAD)


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
TOOLS: Final = "# tools: [read_code]               # the only tools that it may use"
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
