"""Finds agent files. An agent in a nearer folder hides others of the same name; a broken file does not.

The order is: the project's folder, the person's folder, then Claude Code's folders of both. A project's files come with
a clone and are not trusted. They cannot set keys or addresses or raise limits, and links cannot leave the folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from greenroom.app.agents import specs as values
from greenroom.app.agents.claude import AgentFileNote, from_claude
from greenroom.app.agents.front_matter import UnusableAgentFile, dump_yaml_text, read_front_matter_file
from greenroom.app.agents.specs import BadKey, find_missing_tools, parse_spec
from greenroom.app.messages import LANGUAGES, translate
from greenroom.app.settings.home import config_folder, create_file, write_gitignore
from greenroom.app.settings.layers import PROJECT_FOLDER, is_shared_folder, is_visible
from greenroom.app.settings.schema import shorten
from greenroom.app.settings.values import BadValue, Reader
from greenroom.app.settings.values import parse_text as line
from greenroom.app.workspace import find_workspace_root
from greenroom.core.base.errors import RefusedError, WorldFault, make_refusal
from greenroom.core.base.records import evolve, record
from greenroom.core.state.spec import AgentSpec

AGENTS_FOLDER: Final = "agents"
MAX_AGENT_FILES: Final = 500
MAX_NAMES_SHOWN: Final = 8


@record
class AgentFolder:
    """A folder that may hold agents: its scope, its format, and for a project the root that it must be inside."""

    folder: Path
    scope: Literal["project", "user", "built-in"]
    form: Literal["greenroom", "claude"] = "greenroom"
    root: Path | None = None

    def __str__(self) -> str:
        return self.scope if self.form == "greenroom" else f"{self.scope}, Claude Code"


@record
class AgentFile:
    """An agent and its file. `notes` lists keys without effect. `digest` is the hash of the bytes that the agent was
    read from."""

    spec: AgentSpec
    path: Path
    folder: AgentFolder
    notes: tuple[AgentFileNote, ...] = ()
    digest: str = ""


@record
class BrokenAgentFile:
    """A file that is not a valid agent: the agent's name, the error, the file's scope, and whether only trust is
    missing."""

    name: str
    text: str
    scope: Literal["project", "user", "built-in"] = "user"
    is_untrusted: bool = False


@record
class Agents:
    """The agents of a workspace by name. `hidden` agents have the name of a nearer one."""

    by_name: Mapping[str, AgentFile]
    broken_files: tuple[BrokenAgentFile, ...] = ()
    hidden: tuple[AgentFile, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names in alphabetical order."""
        return tuple(self.by_name)

    @property
    def specs(self) -> Mapping[str, AgentSpec]:
        return {name: agent_file.spec for name, agent_file in self.by_name.items()}

    def without(self, broken: Sequence[BrokenAgentFile]) -> Agents:
        """Return these agents without some, whose names no other agent takes."""
        names = {broken_file.name for broken_file in broken}
        by_name = {name: agent_file for name, agent_file in self.by_name.items() if name not in names}
        return evolve(self, by_name=by_name, broken_files=(*self.broken_files, *broken))

    def get(self, name: str, caller: Path | None = None) -> AgentFile:
        """Return an agent, which the file `caller` calls. Raise an error with the problem of its file, or with the
        known names."""
        agent_file = self.by_name.get(name)
        if agent_file is not None:
            return agent_file
        broken = next((broken_file for broken_file in self.broken_files if broken_file.name == name), None)
        if broken is not None:
            raise WorldFault(broken.text)
        if caller is not None:
            raise UnusableAgentFile(caller, translate("agents.no_such_agent", name=name, hint=self._hint(name)))
        why = translate("agents.unknown", name=name)
        raise make_refusal("unknown_agent", why, self._hint(name))

    def get_called(self, caller: AgentFile, name: str) -> AgentFile | None:
        """Return an agent that a file calls. Raise an error if there is none. None stands for an agent that is not
        trusted yet, and for one that only Claude Code has."""
        waits = any(broken.name == name and broken.is_untrusted for broken in self.broken_files)
        is_left_out = name not in self.by_name and (waits or caller.folder.form == "claude")
        return None if is_left_out else self.get(name, caller.path)

    def refuse_missing_agents(self, names: Iterable[str]) -> None:
        """Raise an error if the file of one of these agents calls an agent that does not exist."""
        for agent_file in (self.by_name[name] for name in names if name in self.by_name):
            for called in agent_file.spec.calls:
                self.get_called(agent_file, called)

    def refuse_missing_tools(self, names: Iterable[str], tools: Collection[str]) -> None:
        """Raise `UnusableAgentFile` if the file of one of these agents names a tool that does not exist."""
        for agent_file in (self.by_name[name] for name in names if name in self.by_name):
            for missing in find_missing_tools(agent_file.spec.tools, tools):
                near = get_close_matches(missing, tools, n=1)
                hint = translate("hints.meant_key", near=near[0]) if near else translate("tools.see_list")
                raise UnusableAgentFile(agent_file.path, translate("agents.no_such_tool", name=missing, hint=hint))

    def _hint(self, name: str) -> str:
        near = get_close_matches(name, self.names, n=3)
        if near:
            return translate("hints.meant_names", names=_quote_names(near))
        key, shown = "hints.there" if self.names else "agents.none_usable", self.names[:MAX_NAMES_SHOWN]
        known_names = translate(key, there=_quote_names(shown))
        if any(broken_file.is_untrusted for broken_file in self.broken_files):
            return translate("agents.untrusted_hint", known_names=known_names)
        broken_hint = translate("agents.broken_hint") if self.broken_files else ""
        return translate("agents.create_hint", known_names=known_names, broken_hint=broken_hint)


def find_agents(workspace: Path) -> Agents:
    """Find all agents that can be used in this folder."""
    by_name: dict[str, AgentFile] = {}
    hidden: list[AgentFile] = []
    broken_files: list[BrokenAgentFile] = []
    broken_names: set[str] = set()
    for folder in list_agent_folders(workspace):
        usable, bad = _read_folder(folder)
        for agent_file in usable:
            # An agent whose file is broken is not silently replaced by another agent of the same name.
            if agent_file.spec.name in by_name or agent_file.spec.name in broken_names:
                hidden.append(agent_file)
            else:
                by_name[agent_file.spec.name] = agent_file
        broken_files += bad
        broken_names |= {agent_file.name for agent_file in bad} - by_name.keys()
    return Agents(by_name=dict(sorted(by_name.items())), broken_files=tuple(broken_files), hidden=tuple(hidden))


def read_agent(path: Path) -> AgentFile:
    """Read an agent from a file that the person names. Claude Code's files are recognised by their folder."""
    form: Literal["greenroom", "claude"] = "claude" if path.resolve().parent.parent.name == ".claude" else "greenroom"
    return _read_agent_file(path, AgentFolder(folder=path.parent, scope="user", form=form))


def read_packaged_agent(package: str, name: str, language: str) -> AgentSpec:
    """Read an agent that comes with Greenroom, from the folder of this language in a package."""
    known_language = language if language in LANGUAGES else LANGUAGES[0]
    with resources.as_file(resources.files(package) / known_language / f"{name}.md") as path:
        file = read_front_matter_file(path)
    return evolve(parse_spec(file.parse_keys().values, prompt=file.text, default_name=name), language=known_language)


def list_agent_folders(workspace: Path) -> Sequence[AgentFolder]:
    """Return all agent folders, nearest first, whether they exist or not."""
    root = find_workspace_root(workspace)
    own_folder, claude_agents = user_folder(), claude_folder(AGENTS_FOLDER)
    project_folders: list[AgentFolder] = []
    if not is_shared_folder(root):
        project_folders = [
            AgentFolder(folder=root / PROJECT_FOLDER / AGENTS_FOLDER, scope="project", root=root),
            AgentFolder(folder=root / ".claude" / AGENTS_FOLDER, scope="project", form="claude", root=root),
        ]
    folders = (
        *project_folders[:1],
        AgentFolder(folder=own_folder, scope="user"),
        *(folder for folder in project_folders[1:] if folder.folder != claude_agents),
        *((AgentFolder(folder=claude_agents, scope="user", form="claude"),) if claude_agents is not None else ()),
    )
    return tuple(folders)


def user_folder() -> Path:
    """Return the folder of the person's own agents, beside their settings."""
    return config_folder() / AGENTS_FOLDER


def claude_folder(name: str) -> Path | None:
    """Return this folder of the person's Claude Code."""
    named, home = os.environ.get("CLAUDE_CONFIG_DIR"), os.environ.get("HOME")
    if named:
        return Path(named) / name
    return Path(home) / ".claude" / name if home else None


def _read_folder(place: AgentFolder) -> tuple[list[AgentFile], list[BrokenAgentFile]]:
    usable: list[AgentFile] = []
    broken: list[BrokenAgentFile] = []
    try:
        files = _list_agent_files(place)
    except UnusableAgentFile as fault:
        return usable, [BrokenAgentFile(name="", text=str(fault), scope=place.scope)]
    if len(files) > MAX_AGENT_FILES:
        why = translate("agents.too_many", limit=MAX_AGENT_FILES)
        broken.append(BrokenAgentFile(name="", text=str(UnusableAgentFile(place.folder, why)), scope=place.scope))
    for path in files[:MAX_AGENT_FILES]:
        try:
            usable.append(_read_agent_file(path, place))
        except UnusableAgentFile as fault:
            broken.append(BrokenAgentFile(name=fault.name, text=str(fault), scope=place.scope))
    name_counts = Counter(agent_file.spec.name for agent_file in usable)
    broken += _report_duplicates([agent_file for agent_file in usable if name_counts[agent_file.spec.name] > 1])
    return [agent_file for agent_file in usable if name_counts[agent_file.spec.name] == 1], broken


def _list_agent_files(place: AgentFolder) -> list[Path]:
    """Return the agent files of a folder by name. README files are skipped."""
    folder = place.folder
    try:
        if not is_visible(folder):
            return []
        if place.root is not None and not folder.resolve().is_relative_to(place.root.resolve()):
            raise UnusableAgentFile(folder, translate("agents.link_outside"))
        markdown_files = (path for path in folder.iterdir() if path.suffix == ".md" and not path.name.startswith("."))
        files = (path for path in markdown_files if path.stem.lower() != "readme")
        return sorted(islice(files, MAX_AGENT_FILES + 1))
    except (OSError, RuntimeError) as error:  # a link to itself raises RuntimeError
        why = getattr(error, "strerror", None) or str(error)
        raise UnusableAgentFile(folder, translate("agents.folder_unreadable", why=why)) from None


def _read_agent_file(path: Path, place: AgentFolder) -> AgentFile:
    file = read_front_matter_file(path, place.folder if place.root is not None else None)
    if place.form == "claude":
        spec, report = from_claude(file)
        return AgentFile(spec=spec, path=path, folder=place, notes=report, digest=file.digest)
    raw = file.parse_keys()
    try:
        spec = parse_spec(raw.values, prompt=file.text, default_name=path.stem, trusted=place.scope == "user")
    except BadKey as fault:
        raise UnusableAgentFile(path, str(fault), raw.lines.get(fault.key, 1), raw.values.get("name")) from None
    return AgentFile(spec=spec, path=path, folder=place, digest=file.digest)


def _report_duplicates(agent_files: Sequence[AgentFile]) -> Iterator[BrokenAgentFile]:
    for agent_file in agent_files:
        others = ", ".join(
            str(other.path.name)
            for other in agent_files
            if other is not agent_file and other.spec.name == agent_file.spec.name
        )
        why = translate("agents.same_name", name=agent_file.spec.name, others=others)
        yield BrokenAgentFile(
            name=agent_file.spec.name, text=str(UnusableAgentFile(agent_file.path, why)), scope=agent_file.folder.scope
        )


def _quote_names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def collect_notes(agent_file: AgentFile, agents: Agents, tools: Collection[str] = ()) -> tuple[AgentFileNote, ...]:
    """Return all notes about an agent: its file, its tools and the agents it calls. `tools` are the known names."""
    return (
        *agent_file.notes,
        *note_missing_tools(agent_file.spec, tools),
        *_note_missing_agents(agent_file.spec, agents),
    )


def note_missing_tools(spec: AgentSpec, tools: Collection[str]) -> Iterator[AgentFileNote]:
    """Return a note about tools that do not exist."""
    if missing := find_missing_tools(spec.tools, tools):
        names = ", ".join(f"`{name}`" for name in missing)
        yield AgentFileNote(key="tools", text=translate("agents.unknown_tools", names=names))


def _note_missing_agents(spec: AgentSpec, agents: Agents) -> Iterator[AgentFileNote]:
    missing = [name for name in spec.calls if name not in agents.by_name]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        yield AgentFileNote(key="calls", text=translate("agents.unknown_calls", names=names))


AGENT_TEMPLATE: Final = """\
---
# An agent for Greenroom. `greenroom agents show {name}` shows how it is read,
# `greenroom prompt show {name}` prints the exact request that a model gets.
name: {name}
description: {description}   # other agents read this when they choose whom to call
{model}
{tools}
# role: a careful reviewer         # "You are {name}, a careful reviewer."
# calls: [{name}]                    # agents that it can call, itself too
# temperature: 0.2                 # 0 to 2; default: the model's own
# effort: high                     # low, medium or high, for reasoning models
# max_output: 8000                 # the longest answer, in tokens
# rounds: 20                       # how many turns it can take before it must answer
# ends: finish                     # how a turn ends: finish (a call), mark (in its text) or text (any plain answer)
# language: en                     # of Greenroom's own instructions: en or zh
---
{prompt}
"""
MODEL_COMMENT: Final = (
    "# model: strong                    # strong, fast, a group or provider:model; default: your default model"
)
TOOLS_COMMENT: Final = "# tools: [read_code]               # the only tools that it can use"
DEFAULT_DESCRIPTION: Final = "What it is for, in one line."
DEFAULT_PROMPT: Final = """\
Write the agent's instructions here: what it does, how it works, and what a good result looks like.

- Say what matters most first.
- Say what it must never do.
- Give an example of a good answer."""


@record
class NewAgent:
    """A new agent to write. `user` makes it available in all projects."""

    name: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    user: bool = False


def write_agent(workspace: Path, new_agent: NewAgent) -> Path:
    """Write the agent's file, unless it exists, and return its path."""
    _check_fields(new_agent)
    root = find_workspace_root(workspace)
    folder = user_folder() if new_agent.user else root / PROJECT_FOLDER / AGENTS_FOLDER
    path = folder / f"{new_agent.name}.md"
    existing = find_agents(workspace).by_name.get(new_agent.name)
    beside = existing.path if existing is not None and existing.path.parent == path.parent else None
    if beside is not None or path.exists() or path.is_symlink():
        raise _make_taken_error(new_agent.name, beside or path)
    if not new_agent.user and (is_shared_folder(root) or not folder.resolve().is_relative_to(root.resolve())):
        raise WorldFault("agents.outside_project", folder=folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not new_agent.user:
            write_gitignore(folder.parent)
        create_file(path, render_agent_file(new_agent))
    except FileExistsError:
        raise _make_taken_error(new_agent.name, path) from None
    except OSError as error:
        why = error.strerror or error
        raise WorldFault("agents.file_not_writable", path=path, why=why) from None
    return path


def render_agent_file(new_agent: NewAgent) -> str:
    return AGENT_TEMPLATE.format(
        name=new_agent.name,
        description=dump_yaml_text(new_agent.description or DEFAULT_DESCRIPTION),
        model=f"model: {dump_yaml_text(new_agent.model)}" if new_agent.model else MODEL_COMMENT,
        tools=f"tools: [{', '.join(map(dump_yaml_text, new_agent.tools))}]" if new_agent.tools else TOOLS_COMMENT,
        prompt=DEFAULT_PROMPT,
    )


def _check_fields(new_agent: NewAgent) -> None:
    """Check that every value can be read back from the file."""
    _check_field("name", new_agent.name, values.parse_name)
    if new_agent.description:
        _check_field("description", new_agent.description, line)
    if new_agent.model:
        _check_field("model", new_agent.model, values.parse_model)
    _check_field("tools", new_agent.tools, values.parse_names)


def _check_field(field: str, value: object, read: Reader) -> None:
    try:
        read(value)
    except BadValue as expected:
        why = translate("agents.bad_field", value=shorten(value), field=field)
        raise make_refusal(f"bad_{field}", why, translate("agents.must_be", expected=expected)) from None


def _make_taken_error(name: str, path: Path) -> RefusedError:
    why = translate("agents.exists", name=name, path=path)
    return make_refusal("agent_exists", why, translate("agents.edit_or_rename"))
