"""The charter: the file with an organisation's people, managers, limits and language.

It is in the workspace and may come with a clone, so its limits apply only below the person's own.
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
from greenroom.app.organisation.phrases import BUILTIN_ROLES, DEFAULT_MANAGER, command_phrases
from greenroom.app.settings.home import create_file, write_gitignore
from greenroom.app.settings.layers import PROJECT_FOLDER, is_shared_folder, is_visible
from greenroom.app.settings.schema import LimitSettings, Raw, check_value, read_toml, shorten, suggest_name
from greenroom.app.settings.values import BadValue, Reader
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.core.base.errors import RefusedError, WorldFault, make_refusal
from greenroom.core.base.ids import has_mixed_scripts, is_lookalike
from greenroom.core.base.records import evolve, record
from greenroom.core.state.spec import AgentSpec

CHARTER_SUFFIX: Final = ".toml"
ID_PATTERN: Final = re.compile(r"[tT]\d+(\.[sS]\d+)?")
TOML_POSITION: Final = re.compile(r"\bline (\d+), column (\d+)\b")

charter_phrase: Final = partial(phrase, "charter")


@record
class CharterPerson:
    """A person of the organisation. `tools` are those that they can use manually; None means the default tools."""

    name: str
    role: str = ""
    profile: str = ""
    tools: tuple[str, ...] | None = None


@record
class Charter:
    """The content of a charter. `managers` and `blueprints` are agent names; no blueprints means all agents. An empty
    `language` or `model` means the person's setting."""

    name: str
    path: Path
    people: tuple[CharterPerson, ...]
    managers: tuple[str, ...] = (DEFAULT_MANAGER,)
    blueprints: tuple[str, ...] = ()
    language: str = ""
    model: str = ""
    caps: LimitSettings = LimitSettings(cost=None)


@record
class PersonTable:
    """The charter's table of one person."""

    role: str = ""
    profile: Annotated[str, names.parse_prose] = ""
    tools: Annotated[tuple[str, ...] | None, names.parse_names] = None


AGENT_NAMES: Final = Annotated[tuple[str, ...], names.parse_agent_names]
CHARTER_KEYS: Final[Mapping[str, object]] = {
    "kind": Literal["organisation"],
    "language": Literal["en", "zh"],
    "people": AGENT_NAMES,
    "person": Mapping[str, PersonTable],
    "managers": AGENT_NAMES,
    "blueprints": AGENT_NAMES,
    "model": Annotated[str, names.parse_model],
    "limits": LimitSettings,
}


def charters_folder(root: Path) -> Path:
    """Return the folder of a workspace's charters."""
    return root / PROJECT_FOLDER / "teams"


def charter_path(root: Path, name: str) -> Path:
    """Return the path of a charter, whether it exists or not."""
    return charters_folder(root) / f"{name}{CHARTER_SUFFIX}"


def list_charters(root: Path) -> tuple[str, ...]:
    """Return the names of all charters, including unreadable ones."""
    return tuple(name for name in list_team_files(root) if not is_routing_file(charter_path(root, name)))


def is_routing_file(path: Path) -> bool:
    """Return whether a file describes a routing team instead of an organisation."""
    try:
        return (read_toml(path) or {}).get("kind") == "routing"
    except WorldFault:
        return False


def list_team_files(root: Path) -> tuple[str, ...]:
    """Return the names of all files of organisations and routing teams."""
    folder = charters_folder(root)
    if not is_visible(folder):
        return ()
    try:
        return tuple(sorted(path.stem for path in folder.iterdir() if path.suffix == CHARTER_SUFFIX))
    except OSError as error:
        raise WorldFault("organisation.charters_not_readable", folder=folder, strerror=error.strerror) from None


def find_charter(root: Path, name: str, language: str = "") -> Charter:
    """Return a charter by name. Raise `RefusedError` with the known names, in the person's language."""
    if name in list_charters(root):
        return read_charter(root, charter_path(root, name), language)
    raise make_unknown_charter_error(root, name, language)


def make_unknown_charter_error(root: Path, name: str, language: str) -> RefusedError:
    """Make the error for an unknown charter, with the known names."""
    charter_names = list_charters(root)
    near = get_close_matches(name, charter_names, n=1)
    hint = charter_phrase("write_it", language, name=name)
    if name in list_team_files(root):
        hint = charter_phrase("is_routing", language, name=name)
    elif near:
        hint = charter_phrase("meant", language, near=near[0])
    elif charter_names:
        hint = f"{charter_phrase('there_are', language, known=', '.join(charter_names))} {hint}"
    return make_refusal("unknown_team", charter_phrase("unknown", language, name=name), hint)


def read_charter(root: Path, path: Path, fallback_language: str = "") -> Charter:
    """Read a charter. The `WorldFault` has one sentence per mistake, in the file's language, else in the person's."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise WorldFault(charter_phrase("a_link", fallback_language, path=path))
    raw = _read_file(path, fallback_language)
    language = str(raw["language"]) if raw.get("language") in LANGUAGES else fallback_language
    values, faults = _check_values(raw, str(path), language)
    try:
        names.parse_name(path.stem)
    except BadValue as expected:
        faults.append(f"{path}: {charter_phrase('misnamed', language, name=path.stem, unfit=expected)}")
    faults += [f"{path}: {fault}" for fault in _find_contradictions(values, language)]
    if faults:
        raise WorldFault("\n".join(faults))
    values.pop("kind", None)
    described, limits = values.pop("person", {}), values.pop("limits", {})
    person_tables, limit_table = (value if isinstance(value, Mapping) else {} for value in (described, limits))
    people = tuple(
        evolve(CharterPerson(name=name), **person_tables.get(name, {})) for name in _as_names(values.pop("people"))
    )
    return evolve(
        Charter(name=path.stem, path=path, people=people, caps=evolve(LimitSettings(cost=None), **limit_table)),
        **values,
    )


def _read_file(path: Path, language: str) -> Raw:
    try:
        raw = read_toml(path)
    except WorldFault as fault:
        position = TOML_POSITION.search(str(fault))
        place = charter_phrase("place", language, line=position[1], column=position[2]) if position is not None else ""
        raise WorldFault(charter_phrase("unreadable", language, fault=fault, path=path, place=place)) from None
    if raw is None:
        raise WorldFault(charter_phrase("is_gone", language, path=path, name=path.stem))
    return raw


def _check_values(raw: Raw, source: str, language: str) -> tuple[dict[str, object], list[str]]:
    """Return the valid values, and a sentence for each invalid key."""
    values, faults = dict[str, object](), list[str]()
    for key, value in raw.items():
        if key not in CHARTER_KEYS:
            variables = {"key": key, "meant": suggest_name(key, CHARTER_KEYS), "known": "、".join(CHARTER_KEYS)}
            faults.append(f"{source}: {charter_phrase('no_key', language, **variables)}")
            continue
        try:
            values[key] = check_value(value, source, CHARTER_KEYS[key], (key,))
        except WorldFault as fault:
            faults.append(charter_phrase(f"unfit_{key}", language, fault=fault, path=source))
            values[key] = None
    return values, faults


def _find_contradictions(values: Mapping[str, object], language: str) -> Iterator[str]:
    people = values.get("people", ())
    managers = values.get("managers", (DEFAULT_MANAGER,))
    described = values.get("person")
    if people == ():
        yield charter_phrase("nobody", language)
    if managers == ():
        yield charter_phrase("no_managers", language, manager=DEFAULT_MANAGER)
    yield from find_bad_names(_as_names(people), _as_names(managers), language)
    for name in described if isinstance(described, Mapping) and people is not None else ():
        if name not in _as_names(people):
            yield charter_phrase("describes_nobody", language, name=name)


def _as_names(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def find_bad_names(
    people: Sequence[str], managers: Sequence[str], language: str, others: Iterable[str] = ()
) -> Iterator[str]:
    """Yield why names of people are not allowed. Similar names count as equal. `others` are the known agents."""
    for index, name in enumerate(people):
        lookalike = next((other for other in people[:index] if other != name and is_lookalike(name, other)), None)
        faults = {
            "mixed": has_mixed_scripts(name),
            "also_manages": _is_among(name, managers),
            "of_the_house": _is_among(name, (DEFAULT_MANAGER, *BUILTIN_ROLES, *names.RESERVED_NAMES)),
            "a_command": _is_among(name, command_phrases(language)) or ID_PATTERN.fullmatch(name),
            "an_agent": _is_among(name, others),
            "taken_for": lookalike is not None,
        }
        yield from [
            charter_phrase(fault, language, name=name, other=lookalike)
            for fault, is_fault in faults.items()
            if is_fault
        ][:1]


def _is_among(name: str, others: Iterable[str]) -> bool:
    return any(is_lookalike(name, other) for other in others)


def find_unknown_names(
    charter: Charter, staff: Mapping[str, AgentSpec], tools: Toolbox, language: str
) -> tuple[str, ...]:
    """Return a sentence for each name in a charter that is not a known agent or tool. An unknown manager prevents the
    start. A person keeps any name. Everything else is left out until it exists."""
    workers = ", ".join(sorted(name for name, spec in staff.items() if not spec.manager))
    sentences = [
        charter_phrase("an_agent", language, name=person.name)
        for person in charter.people
        if _is_among(person.name, staff)
    ]
    for name in charter.blueprints:
        if name not in staff:
            sentences.append(charter_phrase("no_blueprint", language, name=name, known=workers))
        elif staff[name].manager:
            sentences.append(charter_phrase("manages", language, name=name))
    sentences += [
        charter_phrase("no_tool", language, who=person.name, name=name, why=why)
        for person in charter.people
        for name in person.tools or ()
        if (why := explain_bad_tool(tools, name))
    ]
    return (*find_bad_managers(charter, staff, language), *(f"{charter.path}: {fault}" for fault in sentences))


def find_bad_managers(charter: Charter, staff: Mapping[str, AgentSpec], language: str) -> tuple[str, ...]:
    """Return why some managers of the charter cannot manage."""
    manager_names = ", ".join(sorted(name for name, spec in staff.items() if spec.manager))
    faults = {name: "manages_not" if name in staff else "no_manager" for name in charter.managers}
    return tuple(
        f"{charter.path}: {charter_phrase(why, language, name=name, known=manager_names)}"
        for name, why in faults.items()
        if name not in staff or not staff[name].manager
    )


def explain_bad_tool(tools: Toolbox, name: str) -> str:
    """Return why a tool cannot be used manually, or an empty string."""
    try:
        tools.get(name)
    except RefusedError as refused:
        return str(refused)
    return ""


@record
class NewCharter:
    """A new organisation to write. No person can have the name of an agent in `others`. `no_model` says why the model's
    name is unknown."""

    name: str
    people: tuple[str, ...]
    language: str
    model: str = ""
    others: tuple[str, ...] = ()
    no_model: str = ""


def write_charter(root: Path, new_charter: NewCharter) -> Path:
    """Write the charter, unless it exists, and return its path."""
    _check_new_charter(root, new_charter)
    folder, path = charters_folder(root), charter_path(root, new_charter.name)
    if is_shared_folder(root) or not folder.resolve().is_relative_to(root.resolve()):
        raise WorldFault("organisation.folder_outside_project", folder=folder)
    model = f'model = "{new_charter.model}"' if new_charter.model else '# model = "strong"'
    people = ", ".join(f'"{name}"' for name in new_charter.people)
    variables = {
        "name": new_charter.name,
        "language": new_charter.language,
        "people": people,
        "model": model,
        "first": new_charter.people[0],
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_gitignore(folder.parent)
        create_file(path, charter_phrase("template", new_charter.language, **variables))
    except FileExistsError:
        why = charter_phrase("exists", new_charter.language, name=new_charter.name, path=path)
        raise make_refusal("team_exists", why) from None
    except OSError as error:
        raise WorldFault("organisation.charter_not_writable", path=path, strerror=error.strerror) from None
    return path


def _check_new_charter(root: Path, new_charter: NewCharter) -> None:
    """Check that every value can be read back, and that no name can be confused with another."""
    _check_value("bad_team", names.parse_name, new_charter.name, new_charter.language)
    similar_name = next(
        (name for name in list_charters(root) if name != new_charter.name and is_lookalike(name, new_charter.name)),
        None,
    )
    if similar_name is not None:
        why = charter_phrase("alike", new_charter.language, name=new_charter.name, other=similar_name)
        raise make_refusal("team_exists", why)
    for name in new_charter.people:
        _check_value("bad_person", names.parse_name, name, new_charter.language)
    repeated_name = next((name for name in new_charter.people if new_charter.people.count(name) > 1), None)
    if repeated_name is not None:
        raise make_refusal("bad_name", charter_phrase("twice", new_charter.language, name=repeated_name))
    for why in find_bad_names(new_charter.people, (DEFAULT_MANAGER,), new_charter.language, new_charter.others):
        raise make_refusal("bad_name", why, charter_phrase("with_person", new_charter.language))
    if new_charter.model:
        _check_value("bad_model", names.parse_model, new_charter.model, new_charter.language)
    if new_charter.no_model:
        raise make_refusal("bad_name", new_charter.no_model)


def _check_value(code: str, read: Reader, value: str, language: str) -> None:
    try:
        read(value)
    except BadValue as expected:
        hint = charter_phrase("must_be_model" if code == "bad_model" else "must_be", language, unfit=expected)
        why = charter_phrase(code, language, name=shorten(value))
        raise make_refusal("bad_name", why, hint) from None
