"""A charter: the file that says who belongs to an organisation, what it may spend, and in which language it speaks.

It lies in the workspace, so it may come with a clone: what it allows to be spent counts only below the person's own
limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from greenroom.app.agents import specs as names
from greenroom.app.messages import LANGUAGES, phrase
from greenroom.app.organisation.words import MANAGER, ROLES, commands
from greenroom.app.settings.home import create, tell_git
from greenroom.app.settings.layers import FOLDER, for_everybody, there
from greenroom.app.settings.schema import Caps, Raw, fit, meant, read_toml, short
from greenroom.app.settings.values import Reader, Unfit
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import looks_like, mixed
from greenroom.core.base.records import evolve, record
from greenroom.core.state.spec import AgentSpec

TEAMS: Final = "teams"
SUFFIX: Final = ".toml"
IDS: Final = re.compile(r"[tT]\d+(\.[sS]\d+)?")
"""How tasks and stages are called."""

PLACE: Final = re.compile(r"\bline (\d+), column (\d+)\b")
"""Where a TOML file is wrong."""

say: Final = partial(phrase, "charter")


@record
class Someone:
    """A person of the organisation. `tools` are those that they may use by hand; None is the usual ones."""

    name: str
    role: str = ""
    profile: str = ""
    tools: tuple[str, ...] | None = None


@record
class Charter:
    """An organisation on paper. `managers` and `blueprints` are names of agents; no blueprints means all there are.

    An empty `language` or `model` is what the person's settings say.
    """

    name: str
    path: Path
    people: tuple[Someone, ...]
    managers: tuple[str, ...] = (MANAGER,)
    blueprints: tuple[str, ...] = ()
    language: str = ""
    model: str = ""
    caps: Caps = Caps(cost=None)


@record
class PersonTable:
    """What a charter says of one person."""

    role: str = ""
    profile: Annotated[str, names.prose] = ""
    tools: Annotated[tuple[str, ...] | None, names.names] = None


AGENTS: Final = Annotated[tuple[str, ...], names.agents]
SHAPES: Final[Mapping[str, object]] = {
    "language": Literal["en", "zh"],
    "people": AGENTS,
    "person": Mapping[str, PersonTable],
    "managers": AGENTS,
    "blueprints": AGENTS,
    "model": Annotated[str, names.model],
    "limits": Caps,
}
"""The keys of a charter, and the type of what each holds."""


def folder_of(root: Path) -> Path:
    """Where a workspace keeps its charters."""
    return root / FOLDER / TEAMS


def path_of(root: Path, name: str) -> Path:
    """Where the charter of this name is, or would be."""
    return folder_of(root) / f"{name}{SUFFIX}"


def charters(root: Path) -> tuple[str, ...]:
    """The names of all charters, also of those that cannot be read."""
    folder = folder_of(root)
    if not there(folder):
        return ()
    try:
        return tuple(sorted(path.stem for path in folder.iterdir() if path.suffix == SUFFIX))
    except OSError as error:
        raise WorldFault(f"{folder} cannot be read: {error.strerror}. Make it readable.") from None


def find_charter(root: Path, name: str, language: str = "") -> Charter:
    """The charter of this name; `Refused` says which there are instead, in the language of the person."""
    if name in charters(root):
        return read_charter(root, path_of(root, name), language)
    raise no_charter(root, name, language)


def no_charter(root: Path, name: str, language: str) -> Refused:
    """There is no charter of this name, but others."""
    known = charters(root)
    near = get_close_matches(name, known, n=1)
    hint = say("write_it", language, name=name)
    if near:
        hint = say("meant", language, near=near[0])
    elif known:
        hint = f"{say('there_are', language, known=', '.join(known))} {hint}"
    return Refused(Rejected(code="unknown_team", why=say("unknown", language, name=name), hint=hint))


def read_charter(root: Path, path: Path, spoken: str = "") -> Charter:
    """What a file says; a `WorldFault` has a sentence for each of its mistakes: in the language of the file, else in
    that of the person."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise WorldFault(say("a_link", spoken, path=path))
    raw = _read(path, spoken)
    language = str(raw["language"]) if raw.get("language") in LANGUAGES else spoken
    found, faults = _values(raw, str(path), language)
    try:
        names.name(path.stem)
    except Unfit as unfit:
        faults.append(f"{path}: {say('misnamed', language, name=path.stem, unfit=unfit)}")
    faults += [f"{path}: {fault}" for fault in _contradictions(found, language)]
    if faults:
        raise WorldFault("\n".join(faults))
    described, limits = found.pop("person", {}), found.pop("limits", {})
    more, caps = (value if isinstance(value, Mapping) else {} for value in (described, limits))
    people = tuple(evolve(Someone(name=name), **more.get(name, {})) for name in _names(found.pop("people")))
    return evolve(Charter(name=path.stem, path=path, people=people, caps=evolve(Caps(cost=None), **caps)), **found)


def _read(path: Path, language: str) -> Raw:
    try:
        raw = read_toml(path)
    except WorldFault as fault:
        found = PLACE.search(str(fault))
        place = say("place", language, line=found[1], column=found[2]) if found is not None else ""
        raise WorldFault(say("unreadable", language, fault=fault, path=path, place=place)) from None
    if raw is None:
        raise WorldFault(say("is_gone", language, path=path, name=path.stem))
    return raw


def _values(raw: Raw, source: str, language: str) -> tuple[dict[str, object], list[str]]:
    """What can be read, and a sentence for each key whose value cannot."""
    found, faults = dict[str, object](), list[str]()
    for key, value in raw.items():
        if key not in SHAPES:
            known = {"key": key, "meant": meant(key, SHAPES), "known": "、".join(SHAPES)}
            faults.append(f"{source}: {say('no_key', language, **known)}")
            continue
        try:
            found[key] = fit(value, source, SHAPES[key], (key,))
        except WorldFault as fault:
            faults.append(say(f"unfit_{key}", language, fault=fault, path=source))
            found[key] = None
    return found, faults


def _contradictions(found: Mapping[str, object], language: str) -> Iterator[str]:
    people, managers, described = found.get("people", ()), found.get("managers", (MANAGER,)), found.get("person")
    if people == ():
        yield say("nobody", language)
    if managers == ():
        yield say("no_managers", language, manager=MANAGER)
    yield from bad_people(_names(people), _names(managers), language)
    for name in described if isinstance(described, Mapping) and people is not None else ():
        if name not in _names(people):
            yield say("describes_nobody", language, name=name)


def _names(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def bad_people(
    people: Sequence[str], managers: Sequence[str], language: str, others: Iterable[str] = ()
) -> Iterator[str]:
    """Why people cannot be called so: a name means one agent, however it is written. `others` are the agents there
    are."""
    for place, name in enumerate(people):
        before = next((other for other in people[:place] if other != name and looks_like(name, other)), None)
        faults = {
            "mixed": mixed(name),
            "also_manages": _among(name, managers),
            "of_the_house": _among(name, (MANAGER, *ROLES, *names.RESERVED)),
            "a_command": _among(name, commands(language)) or IDS.fullmatch(name),
            "an_agent": _among(name, others),
            "taken_for": before is not None,
        }
        yield from [say(fault, language, name=name, other=before) for fault, found in faults.items() if found][:1]


def _among(name: str, others: Iterable[str]) -> bool:
    return any(looks_like(name, other) for other in others)


def misfits(charter: Charter, staff: Mapping[str, AgentSpec], tools: Toolbox, language: str) -> tuple[str, ...]:
    """A sentence for each name in a charter that means no agent and no tool here. Without such a manager nothing
    begins, a person stays under any name; all else is left out until it is there."""
    workers = ", ".join(sorted(name for name, spec in staff.items() if not spec.manager))
    found = [say("an_agent", language, name=person.name) for person in charter.people if _among(person.name, staff)]
    for name in charter.blueprints:
        if name not in staff:
            found.append(say("no_blueprint", language, name=name, known=workers))
        elif staff[name].manager:
            found.append(say("manages", language, name=name))
    found += [
        say("no_tool", language, who=person.name, name=name, why=why)
        for person in charter.people
        for name in person.tools or ()
        if (why := bad_tool(tools, name))
    ]
    return (*bad_managers(charter, staff, language), *(f"{charter.path}: {fault}" for fault in found))


def bad_managers(charter: Charter, staff: Mapping[str, AgentSpec], language: str) -> tuple[str, ...]:
    """Why those cannot manage who cannot."""
    known = ", ".join(sorted(name for name, spec in staff.items() if spec.manager))
    found = {name: "manages_not" if name in staff else "no_manager" for name in charter.managers}
    return tuple(
        f"{charter.path}: {say(why, language, name=name, known=known)}"
        for name, why in found.items()
        if name not in staff or not staff[name].manager
    )


def bad_tool(tools: Toolbox, name: str) -> str:
    """Why a tool cannot be used by hand; empty when it can."""
    try:
        tools.named(name)
    except Refused as refused:
        return str(refused)
    return ""


@record
class Wish:
    """What a new organisation is to be. `others` are the agents there are: no person is called like them. `no_model`
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
        raise WorldFault(f"{folder} is not a folder of this project. Go to a project.")
    model = f'model = "{wish.model}"' if wish.model else '# model = "strong"'
    people = ", ".join(f'"{name}"' for name in wish.people)
    known = {"name": wish.name, "language": wish.language, "people": people, "model": model, "first": wish.people[0]}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tell_git(folder.parent)
        create(path, say("template", wish.language, **known))
    except FileExistsError:
        why = say("exists", wish.language, name=wish.name, path=path)
        raise Refused(Rejected(code="team_exists", why=why)) from None
    except OSError as error:
        raise WorldFault(f"{path} cannot be written: {error.strerror}. Make the folder writable.") from None
    return path


def _check(root: Path, wish: Wish) -> None:
    """All that goes into the file can be read again, and no name is taken for another."""
    _fit("bad_team", names.name, wish.name, wish.language)
    alike = next((name for name in charters(root) if name != wish.name and looks_like(name, wish.name)), None)
    if alike is not None:
        why = say("alike", wish.language, name=wish.name, other=alike)
        raise Refused(Rejected(code="team_exists", why=why))
    for name in wish.people:
        _fit("bad_person", names.name, name, wish.language)
    twice = next((name for name in wish.people if wish.people.count(name) > 1), None)
    if twice is not None:
        raise Refused(Rejected(code="bad_name", why=say("twice", wish.language, name=twice)))
    for why in bad_people(wish.people, (MANAGER,), wish.language, wish.others):
        raise Refused(Rejected(code="bad_name", why=why, hint=say("with_person", wish.language)))
    if wish.model:
        _fit("bad_model", names.model, wish.model, wish.language)
    if wish.no_model:
        raise Refused(Rejected(code="bad_name", why=wish.no_model))


def _fit(what: str, read: Reader, value: str, language: str) -> None:
    try:
        read(value)
    except Unfit as unfit:
        hint = say("must_be_model" if what == "bad_model" else "must_be", language, unfit=unfit)
        why = say(what, language, name=short(value))
        raise Refused(Rejected(code="bad_name", why=why, hint=hint)) from None
