"""A skill's prompt in its parts: when to use it, how, and what to answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from greenroom.abilities.skills.planned.skill import Skill
from greenroom.core.base.errors import Bug
from greenroom.core.base.records import record
from greenroom.core.ports.packs import Pack

NAMES: Final = ("use_guide", "skill_prompt", "return_format")
_MARK: Final = re.compile(rf"^\[({'|'.join(NAMES)})\][ \t]*$", re.MULTILINE)


@record
class Parts:
    """What stands in a skill's file."""

    use_guide: str
    skill_prompt: str
    return_format: str


def parts(skill: Skill, language: str, *, tags: bool = True) -> Parts:
    """A skill's prompt in a language. With `tags` the answer stands between the skill's own, else it is JSON."""
    begin, end = (f"<{skill.tag}>\n", f"\n</{skill.tag}>") if tags else ("", "")
    return split(skill.name, skill.pack.render(language, skill.name, {"begin": begin, "end": end, "tags": tags}))


def use_guide(skill: Skill, language: str = "en") -> str:
    """When to use it. Nothing is filled in there, so that nobody has to render anything to read it."""
    return _guide(skill.pack, skill.pack.chosen(language), skill.name)


@cache
def _guide(pack: Pack, language: str, name: str) -> str:
    """Every prompt has the guides of all skills of its agent, so they are read once."""
    return split(name, pack.source(language, name)).use_guide


def split(name: str, text: str) -> Parts:
    """The parts of a file, each behind its mark."""
    pieces = _MARK.split(text)
    found: Mapping[str, str] = dict(zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True))
    missing = [one for one in NAMES if not found.get(one)]
    if missing:
        raise Bug(f"The prompt of the skill {name!r} has no [{missing[0]}].")
    return Parts(**found)
