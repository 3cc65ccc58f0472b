"""Writing a charter: a file for a new organisation, that its people go on with in their editor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from greenroom.app.agents import values
from greenroom.app.organisation.charter import bad_people, charters, folder_of, path_of
from greenroom.app.organisation.charter_words import said
from greenroom.app.organisation.names import MANAGER, in_language
from greenroom.app.settings.layers import for_everybody
from greenroom.app.settings.reading import short
from greenroom.app.settings.sharing import tell_git
from greenroom.app.settings.values import Reader, Unfit
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import looks_like
from greenroom.core.base.records import record

TEMPLATES: Final = {
    "en": """\
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
""",
    "zh": """\
# 一个组织：人类操作员、管理者，以及他们按需创建的Agent。
# `greenroom team start {name}` 让它开始工作，`greenroom talk {name}` 与它对话。

language = "{language}"
people = [{people}]

# 由谁把人的需求变成任务。也可以写您自己的Agent，其文件中须有 `manager: true`。
managers = ["manager"]

# 管理者可以用哪些蓝图创建Agent；不写则为 `greenroom agents list` 列出的全部，
# 以及内置的 researcher、writer、analyst、engineer 和 reviewer。
# blueprints = ["researcher", "writer"]

# 使用的模型。不写则用您设置中的模型。
{model}

# 最多可以花费多少，不超过您设置中的上限。
# [limits]
# cost = 5

# [person.{first}]
# role = "研究负责人"
# tools = ["read_code", "web_search"]
""",
}


@record
class Wish:
    """What a new organisation is to be. `others` are the agents there are: nobody else is called like them. `no_model`
    is why nothing is known to be behind the name of its model."""

    name: str
    people: tuple[str, ...]
    language: str
    model: str = ""
    others: tuple[str, ...] = ()
    no_model: str = ""


def write_charter(root: Path, wish: Wish) -> Path:
    """Write the file, if nothing is in its place; returns where it is."""
    _check(root, wish)
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
        why = said("exists", wish.language, name=wish.name, path=path)
        raise Refused(Rejected(code="team_exists", why=why)) from None
    except OSError as error:
        raise WorldFault(f"{path} cannot be written: {error.strerror}. Make the folder writable.") from None
    return path


def text(wish: Wish) -> str:
    """The file."""
    return in_language(TEMPLATES, wish.language).format(
        name=wish.name,
        language=wish.language,
        people=", ".join(f'"{one}"' for one in wish.people),
        model=f'model = "{wish.model}"' if wish.model else '# model = "strong"',
        first=wish.people[0],
    )


def _check(root: Path, wish: Wish) -> None:
    """Everything that goes into the file is such that it can be read again, and nobody is taken for another."""
    _fit("bad_team", values.name, wish.name, wish.language)
    alike = next((one for one in charters(root) if one != wish.name and looks_like(one, wish.name)), None)
    if alike is not None:
        why = said("alike", wish.language, name=wish.name, other=alike)
        raise Refused(Rejected(code="team_exists", why=why))
    for one in wish.people:
        _fit("bad_person", values.name, one, wish.language)
    twice = next((one for one in wish.people if wish.people.count(one) > 1), None)
    if twice is not None:
        raise Refused(Rejected(code="bad_name", why=said("twice", wish.language, name=twice)))
    for why in bad_people(wish.people, (MANAGER,), wish.language, wish.others):
        raise Refused(Rejected(code="bad_name", why=why, hint=said("with_person", wish.language)))
    if wish.model:
        _fit("bad_model", values.model, wish.model, wish.language)
    if wish.no_model:
        raise Refused(Rejected(code="bad_name", why=wish.no_model))


def _fit(what: str, read: Reader, value: str, language: str) -> None:
    try:
        read(value)
    except Unfit as unfit:
        must_be = said("must_be_model" if what == "bad_model" else "must_be", language, unfit=unfit)
        why = said(what, language, name=short(value))
        raise Refused(Rejected(code="bad_name", why=why, hint=must_be)) from None
