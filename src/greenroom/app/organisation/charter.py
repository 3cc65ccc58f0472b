"""A charter: the file that says who belongs to an organisation, what it may spend, and in which language it speaks.

It lies in the workspace, so it may come with a clone: what it allows to be spent counts only below the person's own
limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from greenroom.app.agents import values as names
from greenroom.app.organisation.charter_words import said
from greenroom.app.organisation.commands import COMMANDS
from greenroom.app.organisation.names import LANGUAGES, MANAGER, ROLES
from greenroom.app.settings import values
from greenroom.app.settings.layers import FOLDER, there
from greenroom.app.settings.reading import Raw, fit, meant, read_toml
from greenroom.app.settings.schema import Caps, Named, Shape, Table
from greenroom.app.settings.values import Unfit
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import looks_like, mixed
from greenroom.core.base.records import record

TEAMS: Final = "teams"
SUFFIX: Final = ".toml"
IDS: Final = re.compile(r"[tT]\d+(\.[sS]\d+)?")
"""How tasks and stages are called."""

PLACE: Final = re.compile(r"\bline (\d+), column (\d+)\b")
"""Where something is no TOML."""


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
class Written:
    """What stands below `[person.NAME]`."""

    role: str = ""
    profile: str = ""
    tools: tuple[str, ...] = ()


SHAPES: Final[Mapping[str, Shape]] = {
    "language": values.one_of(*LANGUAGES),
    "people": names.agents,
    "person": Named(
        entry=Table(record=Written, keys={"role": values.text, "profile": names.prose, "tools": names.names})
    ),
    "managers": names.agents,
    "blueprints": names.agents,
    "model": names.model,
    "limits": Table(record=Caps, keys={"cost": values.cost, "tokens": values.tokens, "time": values.time}),
}


def folder_of(root: Path) -> Path:
    """Where a workspace keeps its charters."""
    return root / FOLDER / TEAMS


def path_of(root: Path, name: str) -> Path:
    """Where this one is, or would be."""
    return folder_of(root) / f"{name}{SUFFIX}"


def charters(root: Path) -> tuple[str, ...]:
    """The names of all of them, also of those that cannot be read."""
    folder = folder_of(root)
    if not there(folder):
        return ()
    try:
        return tuple(sorted(one.stem for one in folder.iterdir() if one.suffix == SUFFIX))
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
    there_are = f"{said('there_are', language, known=', '.join(known))} " if known else ""
    write_it = f"{there_are}{said('write_it', language, name=name)}"
    hint = said("meant", language, near=near[0]) if near else write_it
    return Refused(Rejected(code="unknown_team", why=said("unknown", language, name=name), hint=hint))


def read_charter(root: Path, path: Path, spoken: str = "") -> Charter:
    """What a file says; a `WorldFault` has a sentence for each of its mistakes: in the language of the file, else in
    that of the person."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise WorldFault(said("a_link", spoken, path=path))
    raw = _read(path, spoken)
    if raw is None:
        raise WorldFault(said("is_gone", spoken, path=path, name=path.stem))
    language = str(raw["language"]) if raw.get("language") in LANGUAGES else spoken
    found, faults = _values(raw, str(path), language)
    faults += _misnamed(path, language)
    faults += [f"{path}: {one}" for one in _wrong(found, language)]
    if faults:
        raise WorldFault("\n".join(faults))
    return _made(path, found)


def _read(path: Path, language: str) -> Raw | None:
    try:
        return read_toml(path)
    except WorldFault as fault:
        found = PLACE.search(str(fault))
        place = said("place", language, line=found[1], column=found[2]) if found is not None else ""
        raise WorldFault(said("unreadable", language, fault=fault, path=path, place=place)) from None


def _values(raw: Raw, source: str, language: str) -> tuple[dict[str, object], list[str]]:
    """What can be read, and a sentence for whatever cannot."""
    found, faults = dict[str, object](), list[str]()
    for key, value in raw.items():
        if key not in SHAPES:
            known = "、".join(SHAPES)
            faults.append(f"{source}: {said('no_key', language, key=key, meant=meant(key, SHAPES), known=known)}")
            continue
        wrong = [*_unfit(value, source, key)]
        faults += dict.fromkeys(said(f"unfit_{key}", language, fault=one, path=source) for one in wrong)
        found[key] = None if wrong else fit(value, source, SHAPES[key], (key,))
    return found, faults


def _unfit(value: object, source: str, key: str) -> Iterator[WorldFault]:
    """Everything that is wrong below a key."""
    for piece in _pieces(value, SHAPES[key]):
        try:
            fit(piece, source, SHAPES[key], (key,))
        except WorldFault as fault:
            yield fault


def _pieces(value: object, shape: Shape) -> Iterator[object]:
    """A table, one key at a time: each may be wrong by itself."""
    if isinstance(shape, Table | Named) and isinstance(value, Mapping):
        for name, one in value.items():
            inner = _pieces(one, shape.entry) if isinstance(shape, Named) else (one,)
            yield from ({name: piece} for piece in inner)
    else:
        yield value


def _misnamed(path: Path, language: str) -> list[str]:
    try:
        names.name(path.stem)
    except Unfit as unfit:
        return [f"{path}: {said('misnamed', language, name=path.stem, unfit=unfit)}"]
    return []


def bad_people(
    people: Sequence[str], managers: Sequence[str], language: str, others: Sequence[str] = ()
) -> Iterator[str]:
    """Why people cannot be called so: a name means one, however it is written. `others` are the agents there are."""
    for place, one in enumerate(people):
        before = next((other for other in people[:place] if other != one and looks_like(one, other)), None)
        if mixed(one):
            yield said("mixed", language, name=one)
        elif _among(one, managers):
            yield said("also_manages", language, name=one)
        elif _among(one, (MANAGER, *ROLES, *names.RESERVED)):
            yield said("of_the_house", language, name=one)
        elif _among(one, COMMANDS) or IDS.fullmatch(one):
            yield said("a_command", language, name=one)
        elif _among(one, others):
            yield said("an_agent", language, name=one)
        elif before is not None:
            yield said("taken_for", language, other=before, name=one)


def _among(one: str, others: Iterable[str]) -> bool:
    return any(looks_like(one, other) for other in others)


def _wrong(found: Mapping[str, object], language: str) -> Iterator[str]:
    people = found.get("people", ())
    if people == ():
        yield said("nobody", language)
    if found.get("managers", (MANAGER,)) == ():
        yield said("no_managers", language, manager=MANAGER)
    yield from bad_people(_names(people), _names(found.get("managers", (MANAGER,))), language)
    described = found.get("person")
    for one in described if isinstance(described, Mapping) and people is not None else ():
        if one not in _names(people):
            yield said("describes_nobody", language, name=one)


def _names(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _made(path: Path, found: Mapping[str, object]) -> Charter:
    described = found.get("person")
    more = described if isinstance(described, Mapping) else {}
    limits = found.get("limits")
    return Charter(
        name=path.stem,
        path=path,
        people=tuple(_someone(name, more.get(name, {})) for name in _names(found["people"])),
        managers=_names(found.get("managers", (MANAGER,))),
        blueprints=_names(found.get("blueprints")),
        language=str(found.get("language", "")),
        model=str(found.get("model", "")),
        caps=_caps(limits if isinstance(limits, Mapping) else {}),
    )


def _someone(name: str, told: Mapping[str, object]) -> Someone:
    tools = told.get("tools")
    return Someone(
        name=name,
        role=str(told.get("role", "")),
        profile=str(told.get("profile", "")),
        tools=_names(tools) if tools is not None else None,
    )


def _caps(told: Mapping[str, object]) -> Caps:
    cost, tokens, time = (told.get(name) for name in ("cost", "tokens", "time"))
    return Caps(
        cost=cost if isinstance(cost, float | int) else None,
        tokens=tokens if isinstance(tokens, int) else None,
        time=time if isinstance(time, float | int) else None,
    )
