"""Writing a charter: a file for a new organisation, that its people go on with in their editor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from greenroom.app.agents import values
from greenroom.app.organisation.charter import folder_of, path_of
from greenroom.app.settings.layers import for_everybody
from greenroom.app.settings.sharing import tell_git
from greenroom.app.settings.values import Unfit
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.records import record

TEMPLATE: Final = """\
# An organisation: people, managers, and agents that they make as they need them.
# `greenroom team start {name}` lets it work, `greenroom talk {name}` is where you talk to it.

language = "{language}"
people = [{people}]

# Who makes tasks of what people want. Other names are agents of yours with `manager: true`.
managers = ["manager"]

# Whom managers can make agents from; without this line everybody whom `greenroom agents list` names, and
# the house's own researcher, writer, analyst, engineer and reviewer.
# blueprints = ["researcher", "writer"]

# The model that they ask. Without it, the one of your settings.
{model}

# What it may spend, at most what your settings allow.
# [limits]
# cost = 5

# [person.{first}]
# role = "head of research"
# tools = ["read_code", "web_search"]
"""


@record
class Wish:
    """What a new organisation is to be."""

    name: str
    people: tuple[str, ...]
    language: str
    model: str = ""


def write_charter(root: Path, wish: Wish) -> Path:
    """Write the file, if nothing is in its place; returns where it is."""
    _check(wish)
    folder, path = folder_of(root), path_of(root, wish.name)
    if for_everybody(root) or not folder.resolve().is_relative_to(root.resolve()):
        raise WorldFault(f"{folder} is no folder of this project's own. Go to a project.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tell_git(folder.parent)
        with path.open("x", encoding="utf-8") as file:
            file.write(text(wish))
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        why = f"There is an organisation {wish.name!r} already, in {path}."
        raise Refused(Rejected(code="team_exists", why=why, hint="Edit that file, or choose another name.")) from None
    except OSError as error:
        raise WorldFault(f"{path} cannot be written: {error.strerror}. Make the folder writable.") from None
    return path


def text(wish: Wish) -> str:
    """The file."""
    return TEMPLATE.format(
        name=wish.name,
        language=wish.language,
        people=", ".join(f'"{one}"' for one in wish.people),
        model=f'model = "{wish.model}"' if wish.model else '# model = "strong"',
        first=wish.people[0],
    )


def _check(wish: Wish) -> None:
    """Everything that goes into the file is such that it can be read again."""
    _fit("an organisation's name", values.name, wish.name)
    for one in wish.people:
        _fit("a person's name", values.name, one)
    if wish.model:
        _fit("a model's name", values.model, wish.model)


def _fit(what: str, read: object, value: str) -> None:
    assert callable(read)
    try:
        read(value)
    except Unfit as unfit:
        raise Refused(
            Rejected(code="bad_name", why=f"{value!r} cannot be {what}.", hint=f"It must be {unfit}.")
        ) from None
