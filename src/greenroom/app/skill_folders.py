"""Finds skills: folders with a `SKILL.md`, as Agent Skills define them. A nearer skill hides others of the same name.

The order is: the project's folder, the person's folder, then Claude Code's folders of both, then synced repositories.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from greenroom.app.agents.claude import read_loose_keys
from greenroom.app.agents.discovery import claude_folder
from greenroom.app.agents.front_matter import UnusableAgentFile, read_front_matter_file
from greenroom.app.agents.specs import NAME_PATTERN
from greenroom.app.messages import translate
from greenroom.app.settings.home import config_folder, home_folder, read_inside
from greenroom.app.settings.layers import PROJECT_FOLDER, is_shared_folder
from greenroom.app.workspace import find_workspace_root
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.base.text import remove_control_characters

SKILL_FILE: Final = "SKILL.md"
SKILLS_FOLDER: Final = "skills"
MAX_SKILLS: Final = 500
MAX_SKILL_FILES: Final = 300
MAX_SKILL_FILE_BYTES: Final = 20_000_000
MAX_DESCRIPTION_CHARS: Final = 1024
"""Maximum length of a description. Agent Skills have the same limit; the rest is cut."""

REPOSITORY_PLACES: Final = (".", "*", f"{SKILLS_FOLDER}/*", f".claude/{SKILLS_FOLDER}/*", f"{PROJECT_FOLDER}/skills/*")
"""Where the skills of a repository may be."""


@record
class SkillFolder:
    """A folder with skills. `label` says where it comes from. `root` is a folder that its files cannot lead out of;
    its skills need the person's trust. `places` are patterns of the skills' folders."""

    folder: Path
    scope: Literal["project", "user", "shared"]
    label: str
    root: Path | None = None
    places: tuple[str, ...] = ("*",)


@record
class FileSkill:
    """A skill. `body` is the text below its keys. `files` has the hash of each file in its folder by relative path."""

    name: str
    description: str
    body: str
    folder: Path
    source: SkillFolder
    files: Mapping[str, str]

    @property
    def digest(self) -> str:
        """The hash of all its files."""
        listed = "".join(f"{name}\0{digest}\0" for name, digest in sorted(self.files.items()))
        return hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()

    def read(self, name: str) -> bytes:
        """Return the content of one of its files. Raise `WorldFault` if it has changed since it was found."""
        content = read_inside(self.folder / name, self.source.root and self.folder, MAX_SKILL_FILE_BYTES)
        if hashlib.sha256(content).hexdigest() != self.files[name]:
            raise WorldFault("skills.file_changed", path=self.folder / name)
        return content


@record
class FoundSkills:
    """The skills of a workspace by name. `hidden` skills have the name of a nearer one. `troubles` says which cannot be
    used, by scope."""

    by_name: Mapping[str, FileSkill]
    hidden: tuple[FileSkill, ...] = ()
    troubles: tuple[tuple[str, str], ...] = ()


def find_skills(workspace: Path, repositories: Sequence[str] = ()) -> FoundSkills:
    """Find all skills for this folder, trusted or not. `repositories` are the addresses of those that are synced."""
    return find_skills_in(list_skill_folders(workspace, repositories))


def find_skills_in(sources: Sequence[SkillFolder]) -> FoundSkills:
    """Find the skills of these folders. The first of several with one name counts."""
    by_name: dict[str, FileSkill] = {}
    hidden: list[FileSkill] = []
    troubles: list[tuple[str, str]] = []
    for source in sources:
        for folder in _list_folders(source):
            try:
                skill = _read_skill(folder, source)
            except WorldFault as fault:
                troubles.append((source.scope, str(fault)))
                continue
            if by_name.setdefault(skill.name, skill) is not skill:
                hidden.append(skill)
    return FoundSkills(by_name=dict(sorted(by_name.items())), hidden=tuple(hidden), troubles=tuple(troubles))


def list_skill_folders(workspace: Path, repositories: Sequence[str] = ()) -> Sequence[SkillFolder]:
    """Return all folders of skills, nearest first, whether they exist or not."""
    root, claude = find_workspace_root(workspace), claude_folder(SKILLS_FOLDER)
    own = SkillFolder(folder=config_folder() / SKILLS_FOLDER, scope="user", label="user")
    shared = (make_repository_folder(address) for address in repositories)
    claude_own = [SkillFolder(folder=claude, scope="user", label="user, Claude Code")] if claude is not None else []
    if is_shared_folder(root):
        return (own, *claude_own, *shared)
    ours, theirs = (root / name / SKILLS_FOLDER for name in (PROJECT_FOLDER, ".claude"))
    project = SkillFolder(folder=ours, scope="project", label="project", root=root)
    claude_project = SkillFolder(folder=theirs, scope="project", label="project, Claude Code", root=root)
    return (project, own, *([claude_project] if theirs != claude else ()), *claude_own, *shared)


def make_repository_folder(address: str) -> SkillFolder:
    """Return the folder of a synced repository, in the data folder."""
    folder = repositories_folder() / name_repository(address)
    return SkillFolder(folder=folder, scope="shared", label=address, root=folder, places=REPOSITORY_PLACES)


def repositories_folder() -> Path:
    """Return the folder of all synced repositories."""
    return home_folder() / SKILLS_FOLDER


def name_repository(address: str) -> str:
    """Return the name of a repository's folder: the end of its address, and a hash that keeps it apart."""
    name = re.sub(r"[^\w-]+", "-", address.rstrip("/").removesuffix(".git").rpartition("/")[2]).strip("-")
    return f"{name or 'skills'}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


def _list_folders(source: SkillFolder) -> list[Path]:
    try:
        found = {path.parent for place in source.places for path in source.folder.glob(f"{place}/{SKILL_FILE}")}
    except OSError:  # an unreadable folder has no skills
        found = set()
    return sorted(found)[:MAX_SKILLS]


def _read_skill(folder: Path, source: SkillFolder) -> FileSkill:
    """Read a skill. Raise `WorldFault` with its file and the problem."""
    file = read_front_matter_file(folder / SKILL_FILE, source.root)
    keys = read_loose_keys(file)
    name = str(keys.get("name") or folder.name).strip()
    if not NAME_PATTERN.fullmatch(name):
        raise UnusableAgentFile(folder / SKILL_FILE, translate("skills.bad_name", name=name[:80]))
    description = " ".join(remove_control_characters(str(keys.get("description") or "")).split())
    if not description:
        raise UnusableAgentFile(folder / SKILL_FILE, translate("skills.no_description"))
    return FileSkill(
        name=name,
        description=description[:MAX_DESCRIPTION_CHARS],
        body=file.text,
        folder=folder,
        source=source,
        files=dict(_hash_files(folder, source)),
    )


def _hash_files(folder: Path, source: SkillFolder) -> Iterator[tuple[str, str]]:
    """Yield each file of a skill with its hash. A skill inside another skill's folder is another skill."""
    count = 0
    for parent, folders, names in os.walk(folder):
        is_nested = [name for name in folders if (Path(parent) / name / SKILL_FILE).exists()]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in is_nested)
        for name in sorted(names):
            path, count = Path(parent) / name, count + 1
            if count > MAX_SKILL_FILES:
                raise WorldFault("skills.too_many_files", path=folder, limit=MAX_SKILL_FILES)
            try:
                content = read_inside(path, source.root and folder, MAX_SKILL_FILE_BYTES)
            except WorldFault as fault:
                raise WorldFault("files.not_used", path=path, why=fault) from None
            yield path.relative_to(folder).as_posix(), hashlib.sha256(content).hexdigest()
