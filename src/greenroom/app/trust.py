"""Trust: which agents, skills, tools, servers, checks and notes of a workspace a person has trusted, by hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from greenroom.app.agents.discovery import AgentFile, Agents, BrokenAgentFile, find_agents
from greenroom.app.messages import shorten_names, translate
from greenroom.app.settings.home import RecordFile, config_folder, read_inside
from greenroom.app.settings.layers import PROJECT_FOLDER, is_shared_folder
from greenroom.app.skill_folders import FileSkill, FoundSkills, find_skills
from greenroom.app.workspace import WorkspaceNote, read_notes, render_notes
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record
from greenroom.core.base.text import LabelledText


@record
class TrustItem:
    """An item of a workspace that needs trust. `shown` is what a person reads; `digest` covers its whole content."""

    kind: Literal["agent", "team", "tool", "server", "callback", "check", "notes", "skill", "memory"]
    name: str
    shown: str
    digest: str


class UnusableFile(WorldFault):
    """A file that cannot be used, with the reason."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__("files.not_used", path=path, why=why)
        self.path = path


TRUST_FILE_NAME: Final = "trust.json"
VERSION: Final = 1
MAX_FORMS_KEPT: Final = 20
"""How many versions of one item stay trusted, so that switching branches does not ask again."""

UNREADABLE_MESSAGE: Final = "trust.decisions_unreadable"

TrustState: TypeAlias = Literal["agreed", "changed", "new"]
IsTrusted: TypeAlias = Callable[[TrustItem], bool]


@record
class TrustRecord:
    """A trusted version of an item."""

    kind: str
    name: str
    digest: str


@record
class TrustFile:
    """The content of the trust file, by the real path of each workspace."""

    version: int = VERSION
    agreed: Mapping[str, tuple[TrustRecord, ...]] = msgspec.field(default_factory=dict)


class TrustStore:
    """The items that a person has trusted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = RecordFile(path, TrustFile, "trust.content", UNREADABLE_MESSAGE)

    def make_trust_check(self, root: Path) -> IsTrusted:
        """Return a check whether an item is trusted in its current version. It raises `WorldFault` if the file is
        unreadable."""
        get_classifier = cache(lambda: self.make_classifier(root))  # read the file only when an item is checked
        return lambda item: get_classifier()(item) == "agreed"

    def make_classifier(self, root: Path) -> Callable[[TrustItem], TrustState]:
        """Return a classifier of items: agreed, changed since then, or new."""
        trust_records = self._file.read().agreed.get(_workspace_key(root), ())
        forms = set(trust_records)
        known_names = {(trust_record.kind, trust_record.name) for trust_record in trust_records}

        def classify(item: TrustItem) -> TrustState:
            if _make_record(item) in forms:
                return "agreed"
            return "changed" if (item.kind, item.name) in known_names else "new"

        return classify

    def trust_items(self, root: Path, items: Iterable[TrustItem]) -> None:
        """Trust these items in their current versions."""
        new_records = tuple(map(_make_record, items))

        def add(file: TrustFile) -> TrustFile:
            records_by_name: dict[tuple[str, str], list[TrustRecord]] = {}
            trust_records = file.agreed.get(_workspace_key(root), ())
            for trust_record in (
                *(trust_record for trust_record in trust_records if trust_record not in new_records),
                *new_records,
            ):
                records_by_name.setdefault((trust_record.kind, trust_record.name), []).append(trust_record)
            kept_records = tuple(
                trust_record for forms in records_by_name.values() for trust_record in forms[-MAX_FORMS_KEPT:]
            )
            return evolve(
                file, agreed={**file.agreed, **({_workspace_key(root): kept_records} if kept_records else {})}
            )

        self._file.change(add)

    def revoke(self, root: Path) -> int:
        """Revoke all trust in a workspace. Return the number of items."""
        revoked: set[tuple[str, str]] = set()

        def drop(file: TrustFile) -> TrustFile:
            revoked.update(
                (trust_record.kind, trust_record.name) for trust_record in file.agreed.get(_workspace_key(root), ())
            )
            return evolve(file, agreed={key: yes for key, yes in file.agreed.items() if key != _workspace_key(root)})

        self._file.change(drop)
        return len(revoked)


def open_trust_store() -> TrustStore:
    return TrustStore(config_folder() / TRUST_FILE_NAME)


def _workspace_key(root: Path) -> str:
    return str(root.resolve())


def _make_record(item: TrustItem) -> TrustRecord:
    return TrustRecord(kind=item.kind, name=item.name, digest=item.digest)


ScriptKind = Literal["tool", "callback"]

SCRIPT_FOLDERS: Final[Mapping[ScriptKind, str]] = {"tool": "tools", "callback": "callbacks"}
MAX_SCRIPTS: Final = 500
MAX_SCRIPT_BYTES: Final = 1_000 * 1024
MAX_SUMMARY_CHARS: Final = 120
MAX_NAMES_SHOWN: Final = 12
DEFINITION_PATTERN: Final = re.compile(r"^(?:async )?(?:def|class) (\w+)|^(\w+)(?:: [^=\n]+)? = ", re.MULTILINE)


@record
class TrustedScript:
    """A Python file, with the content of all files in its folder that it can import, by name. `digest` is empty for a
    person's own file."""

    path: Path
    sources: Mapping[str, bytes]
    digest: str = ""

    @property
    def source(self) -> bytes:
        return self.sources[self.path.name]


@record
class ScriptFolder:
    """The scripts of a folder. `troubles` lists files that cannot be used."""

    scripts: tuple[TrustedScript, ...] = ()
    troubles: tuple[str, ...] = ()


def read_own_scripts(folder: Path) -> ScriptFolder:
    """Read the `.py` files of a person's own folder, except names that start with `_`."""
    return _read_scripts(folder, None, "tool")


def read_project_scripts(root: Path, kind: ScriptKind) -> ScriptFolder:
    """Read the scripts of a workspace. Links cannot lead outside; a shared folder like /tmp has none. A digest covers
    the file and all files beside it that it can import."""
    folder = root / PROJECT_FOLDER / SCRIPT_FOLDERS[kind]
    if is_shared_folder(root) or not folder.is_dir():
        return ScriptFolder()
    if not folder.resolve().is_relative_to(root.resolve()):
        return ScriptFolder(troubles=(str(UnusableFile(folder, translate("trust.leads_out"))),))
    return _read_scripts(folder, root, kind)


def _read_scripts(folder: Path, root: Path | None, kind: ScriptKind) -> ScriptFolder:
    """Read the `.py` files directly in a folder. Only content read here ever runs."""
    try:
        paths = sorted(folder.glob("*.py"))
    except OSError:
        paths = []
    if len(paths) > MAX_SCRIPTS:
        return ScriptFolder(troubles=(str(UnusableFile(folder, translate("trust.too_many_files", limit=MAX_SCRIPTS))),))
    sources: dict[str, bytes] = {}
    troubles: list[str] = []
    for path in paths:
        try:
            sources[path.name] = read_inside(path, root, MAX_SCRIPT_BYTES)
        except WorldFault as fault:
            troubles.append(str(UnusableFile(path, str(fault))))
    folder_hash = hashlib.sha256()
    for name, text in sources.items():
        folder_hash.update(f"{name}\0{len(text)}\0".encode("utf-8", "surrogateescape") + text)
    scripts = (
        TrustedScript(
            path=folder / name,
            sources=sources,
            digest=hash_text(f"{kind}\0{name}\0{folder_hash.hexdigest()}") if root is not None else "",
        )
        for name in sources
        if not name.startswith(("_", "."))
    )
    return ScriptFolder(scripts=tuple(scripts), troubles=tuple(troubles))


def describe_script(script: TrustedScript, kind: ScriptKind, root: Path) -> TrustItem:
    """Describe a script for a person. The file is read, not run."""
    summary = f"{script.path.relative_to(root)} · {_list_definitions(script.source)}"
    return TrustItem(kind=kind, name=script.path.name, shown=summary, digest=script.digest)


def hash_text(text: str) -> str:
    """Return the digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _list_definitions(source: bytes) -> str:
    """List the top-level functions, classes and values of a Python file."""
    names = list(
        dict.fromkeys(first or second for first, second in DEFINITION_PATTERN.findall(source.decode(errors="replace")))
    )
    key = "trust.defines" if names else "trust.defines_nothing"
    return translate(key, names=shorten_names(names, limit=MAX_NAMES_SHOWN))


def find_note_items(folder: Path) -> tuple[TrustItem, ...]:
    """Return the notes that apply to a folder. A shared folder like /tmp has none."""
    if is_shared_folder(folder):
        return ()
    return tuple(describe_note(note) for note in reversed(read_notes(folder)) if note.text)


def describe_note(note: WorkspaceNote) -> TrustItem:
    """Describe a note for a person. The digest covers the whole text."""
    first_line = next(filter(None, (line.strip("# ") for line in note.text.splitlines())), "")
    summary = _cut(first_line)
    count = len(note.text.splitlines())
    lines = translate("trust.one_line" if count == 1 else "trust.several_lines", count=count)
    digest = hash_text(f"{note.name}\0{note.text}")
    return TrustItem(kind="notes", name=note.name, shown=f"{summary} · {lines}", digest=digest)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SUMMARY_CHARS else f"{text[: MAX_SUMMARY_CHARS - 1]}…"


def render_trusted_notes(folder: Path, trusted: IsTrusted) -> LabelledText:
    """Render the notes for models, with untrusted ones labelled."""
    return render_notes(folder, lambda note: trusted(describe_note(note)))


def find_trust_items(
    root: Path, other_items: Iterable[TrustItem] = (), *, folder: Path | None = None
) -> tuple[TrustItem, ...]:
    """Return the agents, skills, tools and callbacks of a workspace, the notes for `folder`, and `other_items`."""
    agents = [
        describe_agent(entry, root) for entry in find_agents(root).by_name.values() if entry.folder.scope == "project"
    ]
    scripts = [
        describe_script(entry, kind, root)
        for kind in SCRIPT_FOLDERS
        for entry in read_project_scripts(root, kind).scripts
    ]
    skills = [describe_skill(skill) for skill in _find_project_skills(root).by_name.values()]
    return (*agents, *skills, *scripts, *other_items, *find_note_items(folder or root))


def find_troubles(root: Path) -> tuple[str, ...]:
    """Return the agents, skills, tools and callbacks that cannot be read, with the reasons."""
    agents = (broken_file.text for broken_file in find_agents(root).broken_files if broken_file.scope == "project")
    skills = (text for scope, text in _find_project_skills(root).troubles if scope == "project")
    return (
        *agents,
        *skills,
        *(trouble for kind in SCRIPT_FOLDERS for trouble in read_project_scripts(root, kind).troubles),
    )


def describe_agent(agent_file: AgentFile, root: Path) -> TrustItem:
    """Describe a project's agent. The digest includes its path, because the path decides how the file is read."""
    location = (
        agent_file.path.relative_to(root).as_posix() if agent_file.path.is_relative_to(root) else str(agent_file.path)
    )
    digest = hash_text(f"{location}\0{agent_file.digest}")
    return TrustItem(
        kind="agent",
        name=agent_file.spec.name,
        shown=" · ".join((location, *_describe_wants(agent_file))),
        digest=digest,
    )


def _find_project_skills(root: Path) -> FoundSkills:
    found = find_skills(root)
    own = {name: skill for name, skill in found.by_name.items() if skill.source.scope == "project"}
    return evolve(found, by_name=own)


def describe_skill(skill: FileSkill) -> TrustItem:
    """Describe a skill of a project or a repository. The digest covers all its files, and its place."""
    place = skill.folder.relative_to(skill.source.root or skill.folder).as_posix()
    return TrustItem(
        kind="skill",
        name=skill.name,
        shown=f"{place} · {_cut(skill.description)}",
        digest=hash_text(f"skill\0{place}\0{skill.digest}"),
    )


def make_skill_check(root: Path) -> Callable[[FileSkill], bool]:
    """Return whether a skill may be used: a person's own always, those of the project and of repositories if trusted in
    their current version."""
    get_check = cache(open_trust_store().make_trust_check)

    def may_be_used(skill: FileSkill) -> bool:
        source = skill.source
        place = root if source.scope == "project" else source.folder
        return source.scope == "user" or get_check(place)(describe_skill(skill))

    return may_be_used


def _describe_wants(agent_file: AgentFile) -> Iterator[str]:
    """Yield the agent's purpose, tools, called agents and model."""
    spec = agent_file.spec
    purpose = " ".join((spec.description or spec.role).split())
    if purpose:
        yield _cut(purpose)
    model = str((spec.llm_config or {}).get("model", ""))
    for word, names in (
        ("tools", spec.tools),
        ("groups", spec.groups),
        ("calls", spec.calls),
        ("model", (model,) if model else ()),
    ):
        if names:
            yield f"{word}: {', '.join(names)}"
    if not spec.tools and not spec.groups:
        yield translate("trust.no_tools")


def keep_trusted_agents(agents: Agents, root: Path, trusted: IsTrusted) -> Agents:
    """Return the trusted agents; the others become broken files with the reason. No other agent takes their names."""
    return agents.without(
        [
            BrokenAgentFile(name=name, text=explain_untrusted_agent(agent_file), is_untrusted=True)
            for name, agent_file in agents.by_name.items()
            if not may_be_used(agent_file, root, trusted)
        ]
    )


def may_be_used(agent_file: AgentFile, root: Path, trusted: IsTrusted) -> bool:
    """Whether an agent can be used: a person's own always, a project's only if trusted."""
    return agent_file.folder.scope != "project" or trusted(describe_agent(agent_file, root))


def explain_untrusted_agent(agent_file: AgentFile) -> str:
    return translate("trust.agent_not_trusted", name=agent_file.spec.name, path=agent_file.path)
