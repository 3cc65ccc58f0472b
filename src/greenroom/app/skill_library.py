"""The skills that agents may use here: those of the person, and the trusted ones of the project and of repositories."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Final

import yaml
from msgspec import Meta

from greenroom.abilities.tools.read_output import present_text
from greenroom.abilities.tools.tool import Arguments, CardedTool, build_schema, make_card, read_arguments
from greenroom.adapters.git.files import write_atomic
from greenroom.adapters.storage.text_index import SqliteTextIndex, make_temporary_index
from greenroom.app.agents.discovery import Agents, BrokenAgentFile
from greenroom.app.agents.specs import NAME_PATTERN, list_own_skills
from greenroom.app.messages import translate
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.schema import SkillSettings
from greenroom.app.skill_folders import SKILL_FILE, SKILLS_FOLDER, FileSkill, FoundSkills, find_skills
from greenroom.app.trust import make_skill_check
from greenroom.core.base.errors import Bug, ModelFault, WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.base.text import remove_control_characters
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.skill_library import READ_SKILL, OfferedSkill, SkillLibrary
from greenroom.core.ports.text_index import Document

COLLECTION: Final = "skills"
MAX_CHOSEN: Final = 8
MIN_SCORE_SHARE: Final = 0.3
"""Share of the best score that a skill must reach to be chosen."""


_COMMON: Final = (
    "a about all an and any are as at be by can do does for from has have help how i if in into is it its make me my "
    "new no not now of on one or our out please should so some that the them then there these they this to up use "
    "using want was we what when where which will with work would you your"
)
COMMON_WORDS: Final = frozenset(_COMMON.split())
"""Words that say nothing about the kind of work."""

_WORD: Final = re.compile(r"\w+")


class WorkspaceSkills:
    """The trusted skills of a workspace by name. Files are read once; a changed file is not used."""

    def __init__(self, skills: Mapping[str, FileSkill]) -> None:
        self._skills = skills
        self._index: SqliteTextIndex | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._skills)

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self._skills

    def get(self, name: str) -> FileSkill | None:
        """Return a skill, or None if there is none of this name that may be used."""
        return self._skills.get(name)

    async def choose(self, task: str, max_bytes: int) -> Sequence[OfferedSkill]:
        """Return the skills that fit a task, best first, then others, as far as there is room for them."""
        chosen = await asyncio.to_thread(self._rank, task)
        offered: list[OfferedSkill] = []
        for name in dict.fromkeys((*chosen, *self._skills)):
            skill, is_chosen = self._skills[name], name in chosen
            line = OfferedSkill(name=name, description=skill.description, chosen=is_chosen)
            whole = evolve(line, text=skill.body)
            entry = whole if is_chosen and _measure(whole) <= max_bytes else line
            if _measure(entry) <= max_bytes:
                offered.append(entry)
                max_bytes -= _measure(entry)
        return offered

    def _rank(self, task: str) -> list[str]:
        """Return the names of the skills that share words with a task, best first."""
        if self._index is None:
            self._index = make_temporary_index()
            documents = (
                Document(key=skill.name, text=skill.body, tags=(skill.name, skill.description))
                for skill in self._skills.values()
            )
            self._index.replace(COLLECTION, documents)
        query = " ".join(word for word in _WORD.findall(task) if word.lower() not in COMMON_WORDS)
        if not query:
            return []
        found = self._index.search(query, limit=MAX_CHOSEN, collections=(COLLECTION,))
        best = max((match.score for match in found), default=0.0)
        return [match.key for match in found if match.score > 0 and match.score >= MIN_SCORE_SHARE * best]

    async def read(self, name: str, file: str = "") -> str:
        """Return the text of a skill, or of a file in its folder. Raise `ModelFault` if there is none."""
        skill = self._skills.get(name)
        if skill is None:
            raise ModelFault(f"There is no skill {name!r}. There are: {', '.join(self._skills)}.")
        if file and file not in skill.files:
            raise ModelFault(f"The skill {name!r} has no file {file!r}. It has: {', '.join(skill.files)}.")
        if not file:
            others = ", ".join(path for path in skill.files if path != "SKILL.md")
            return f"{skill.body}\n\nFiles of this skill: {others}." if others else skill.body
        try:
            content = await asyncio.to_thread(skill.read, file)
        except WorldFault as fault:
            raise ModelFault(str(fault)) from None
        if b"\0" in content:
            raise ModelFault(f"{file} is not a text. It is at {skill.folder / file}.")
        return remove_control_characters(content.decode(errors="replace"))

    async def save(self, skill: OfferedSkill) -> str:
        """Save a skill of the person, under the next free name. Return its path."""
        if not NAME_PATTERN.fullmatch(skill.name):
            raise Bug(f"{skill.name!r} cannot be the name of a skill.")
        names = chain([skill.name], (f"{skill.name}-{number}" for number in count(2)))
        return next(path for name in names if (path := self._save_as(name, skill)))

    def _save_as(self, name: str, skill: OfferedSkill) -> str:
        """Save a skill under this name. Return "" if another one has it."""
        path = config_folder() / SKILLS_FOLDER / name / SKILL_FILE
        keys = yaml.safe_dump({"name": name, "description": skill.description}, allow_unicode=True, width=10_000)
        content = f"---\n{keys}---\n{skill.text}\n".encode()
        if not path.exists() and name not in self._skills:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
        return str(path) if path.exists() and path.read_bytes() == content else ""


def _measure(skill: OfferedSkill) -> int:
    return len(f"{skill.name}{skill.description}{skill.text}".encode()) + 30


def open_skills(root: Path, settings: SkillSettings) -> WorkspaceSkills:
    """Return the skills that agents may use in a workspace."""
    found = find_skills(root, settings.repositories) if settings.use else FoundSkills(by_name={})
    usable = dict[str, FileSkill]()
    for skill in filter(make_skill_check(root), (*found.by_name.values(), *found.hidden)):
        usable.setdefault(skill.name, skill)  # an untrusted skill hides no other of its name
    return WorkspaceSkills(dict(sorted(usable.items())))


def keep_agents_with_skills(agents: Agents, get_skills: Callable[[], WorkspaceSkills]) -> Agents:
    """Return the agents whose planning skills exist; the others become broken files with the reason."""
    broken = [
        BrokenAgentFile(name=name, text=translate("agents.no_such_skill", name=name, skill=skill))
        for name, spec in agents.specs.items()
        for skill in list_own_skills(spec)
        if get_skills().get(skill) is None
    ]
    return agents.without(broken)


class ReadSkillArguments(Arguments, frozen=True):
    name: Annotated[str, Meta(description="The skill, as it is listed.")]
    file: Annotated[str, Meta(description="A file in its folder; its SKILL.md if left out.")] = ""


class ReadSkillTool(CardedTool):
    """Reads a skill. Files outside its folder cannot be read."""

    card = make_card(
        READ_SKILL,
        "Read a skill: instructions of the people you work for, for one kind of work. Read it before you do that work, "
        'if only its purpose was listed. Example: {"name": "release"} or {"name": "release", "file": "checklist.md"}.',
        build_schema(ReadSkillArguments),
        group="read",
        pure=True,
    )

    def __init__(self, library: SkillLibrary) -> None:
        self._library = library

    async def run(self, context: StepContext) -> Outcome:
        """Read the skill or the file."""
        asked = read_arguments(ReadSkillArguments, context.step)
        text = await self._library.read(asked.name, asked.file)
        return Outcome(result=present_text(text, context.step.step_id))
